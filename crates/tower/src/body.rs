//! The body of an answer, which holds the request's slot until it is done.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use suimon_proxy::Admitted;

pin_project! {
    /// The body of an answer: the service's own, or the gate's.
    #[derive(Debug)]
    pub struct GatedBody<R> {
        #[pin]
        body: Kind<R>,
        // Ends with the body; dropped before, it is abandoned.
        admitted: Option<Box<Admitted>>,
    }
}

pin_project! {
    #[project = KindProjection]
    #[derive(Debug)]
    enum Kind<R> {
        Answer { text: Option<Bytes> },
        Served { #[pin] body: R },
    }
}

impl<R: Body<Data = Bytes>> GatedBody<R> {
    /// Returns the body of the gate's own answer.
    pub(crate) fn answer(text: String) -> Self {
        let text = Some(Bytes::from(text)).filter(|text| !text.is_empty());
        GatedBody { body: Kind::Answer { text }, admitted: None }
    }

    /// Returns the body of the service's answer.
    pub(crate) fn served(body: R, admitted: Box<Admitted>) -> Self {
        let admitted = if admitted.streams() || body.is_end_stream() {
            admitted.end();
            None
        } else {
            Some(admitted)
        };
        GatedBody { body: Kind::Served { body }, admitted }
    }
}

impl<R: Body<Data = Bytes>> Body for GatedBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let mut this = self.project();
        let (frame, is_over) = match this.body.as_mut().project() {
            KindProjection::Answer { text } => {
                return Poll::Ready(text.take().map(|text| Ok(Frame::data(text))));
            }
            KindProjection::Served { mut body } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                // Whoever reads a body of known length may not ask for its end.
                let is_over = !matches!(frame, Some(Ok(_))) || body.is_end_stream();
                (frame, is_over)
            }
        };
        if is_over && let Some(admitted) = this.admitted.take() {
            if let Some(Err(_)) = frame { admitted.fail() } else { admitted.end() }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Kind::Answer { text } => text.is_none(),
            Kind::Served { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Kind::Answer { text } => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Kind::Served { body } => body.size_hint(),
        }
    }
}

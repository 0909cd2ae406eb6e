//! The body of an answer, which holds the request's slot until it is done.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use suimon_proxy::{Admitted, BodyEnd};

pin_project! {
    /// The body of an answer: the service's own, or the gate's.
    #[derive(Debug)]
    pub struct GatedBody<R> {
        #[pin]
        body: Kind<R>,
        held: Option<Held>,
    }
}

/// The slot of an answer whose body is under way.
#[derive(Debug)]
struct Held {
    /// Ends with the body; dropped before, it is abandoned.
    admitted: Box<Admitted>,
    end: BodyEnd,
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
        GatedBody { body: Kind::Answer { text }, held: None }
    }

    /// Returns the body of the service's answer, which ends at `end`.
    pub(crate) fn served(body: R, mut end: BodyEnd, admitted: Box<Admitted>) -> Self {
        end.or_declare(body.size_hint().exact());
        let held = if admitted.streams() || end.is_over() || body.is_end_stream() {
            admitted.end();
            None
        } else {
            Some(Held { admitted, end })
        };
        GatedBody { body: Kind::Served { body }, held }
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
        let (frame, is_end) = match this.body.as_mut().project() {
            KindProjection::Answer { text } => {
                return Poll::Ready(text.take().map(|text| Ok(Frame::data(text))));
            }
            KindProjection::Served { mut body } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                (frame, body.is_end_stream())
            }
        };
        let held = this.held.take();
        *this.held = held.and_then(|held| held.passing(frame.as_ref(), is_end));
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

impl Held {
    /// Ends with the last frame, `None` among them, and otherwise returns what is still held.
    fn passing<E>(mut self, frame: Option<&Result<Frame<Bytes>, E>>, is_end: bool) -> Option<Held> {
        match frame {
            Some(Err(_)) => {
                self.admitted.fail();
                return None;
            }
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => self.end.passed(data.len()),
                // Trailers: nothing comes behind them.
                None => self.end.end(),
            },
            None => self.end.end(),
        }
        if is_end || self.end.is_over() {
            self.admitted.end();
            return None;
        }
        Some(self)
    }
}

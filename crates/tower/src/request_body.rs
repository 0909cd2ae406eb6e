//! The body of a request, as the service within reads it.

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use suimon_proxy::Admitted;

pin_project! {
    /// The body of a request that was let in: the client's own, without what only the gate or a proxy may say
    /// in its trailers.
    pub struct RequestBody<B> {
        #[pin]
        body: B,
    }
}

impl<B> RequestBody<B> {
    pub(crate) fn new(body: B) -> Self {
        RequestBody { body }
    }

    /// Returns the client's own body, whose trailers say whatever the client likes.
    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut frame = ready!(self.project().body.poll_frame(cx));
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            Admitted::strip_request_trailers(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}

//! The body of a request, as the service within reads it.

use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use suimon_proxy::Admitted;

/// The body of a request that was let in: the client's own, without what only the gate or a proxy may say
/// in its trailers.
pub struct RequestBody<B>(Pin<Box<B>>);

impl<B> RequestBody<B> {
    pub(crate) fn new(body: B) -> Self {
        RequestBody(Box::pin(body))
    }

    /// Returns the client's own body, whose trailers say whatever the client likes.
    pub fn into_inner(self) -> B
    where
        B: Unpin,
    {
        *Pin::into_inner(self.0)
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut frame = ready!(self.0.as_mut().poll_frame(cx));
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            Admitted::strip_request_trailers(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl<B> fmt::Debug for RequestBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}

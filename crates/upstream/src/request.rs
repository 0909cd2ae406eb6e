//! A request on its way: its head, its body, and the body's progress.
//!
//! A request without a body costs no allocation here. A body is boxed once, so that every
//! connection can carry any type of body. It shares its progress with the side that waits for the
//! response: whether the body moves, has failed, or is waited for.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// An error of unknown type, as bodies and libraries hand it over.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The request body as connections see it.
#[derive(Default)]
pub(super) struct RequestBody {
    inner: Option<Inner>,
}

struct Inner {
    body: UnsyncBoxBody<Bytes, BoxError>,
    progress: Arc<Progress>,
}

/// The progress of a body while it is being sent.
#[derive(Debug)]
pub(super) struct Progress {
    start: Instant,
    /// When the body last moved, in nanoseconds since `start`.
    moved: AtomicU64,
    failed: AtomicBool,
    awaits_client: AtomicBool,
}

impl RequestBody {
    /// Returns `body` ready to be sent, and its progress if it has anything to send.
    pub(super) fn new<B>(body: B) -> (Self, Option<Arc<Progress>>)
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return (RequestBody::empty(), None);
        }
        let progress = Arc::new(Progress {
            start: Instant::now(),
            moved: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            awaits_client: AtomicBool::new(false),
        });
        let body = body.map_err(Into::into).boxed_unsync();
        (RequestBody { inner: Some(Inner { body, progress: Arc::clone(&progress) }) }, Some(progress))
    }

    /// Returns an empty body.
    pub(super) fn empty() -> Self {
        RequestBody::default()
    }
}

impl Progress {
    /// Returns whether the client's body ended early or was malformed.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Returns whether all that was received is sent, and the client must send more.
    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Relaxed)
    }

    /// Returns how long ago the body last moved.
    pub(super) fn still_for(&self) -> Duration {
        let moved = Duration::from_nanos(self.moved.load(Relaxed));
        self.start.elapsed().saturating_sub(moved)
    }

    fn note_moved(&self) {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.moved.store(nanos, Relaxed);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let polled = Pin::new(&mut inner.body).poll_frame(cx);
        inner.progress.awaits_client.store(polled.is_pending(), Relaxed);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Err(_))) => inner.progress.failed.store(true, Relaxed),
            Poll::Ready(_) => inner.progress.note_moved(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), |inner| inner.body.size_hint())
    }
}

/// Returns whether sending the request twice has no more effect than once, judged by its method.
pub(super) fn is_safe(method: &http::Method) -> bool {
    matches!(*method, http::Method::GET | http::Method::HEAD | http::Method::OPTIONS)
}

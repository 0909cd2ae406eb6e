//! A request's body on its way to the application, and the part of it that is read while the request still waits.
//!
//! A client that sends its body at once should not find the connection dead while it waits to be let in, and its
//! leaving should be seen; so up to a bound of the body is read early and replayed later. Not where the client
//! expects `100 Continue`: reading would ask for a body that may not be wanted.

use crate::headers;
use crate::validate::Fault;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::error::Error as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{error, fmt, io};
use tokio::time::{Instant, Sleep};

/// A request body as it is sent on.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// `None`: there is no body.
    inner: Option<Box<Inner>>,
}

#[derive(Debug)]
struct Inner {
    early: VecDeque<Bytes>,
    early_bytes: usize,
    /// What came behind the body, to be sent on behind it.
    trailers: Option<HeaderMap>,
    rest: Incoming,
    rest_ended: bool,
    /// Bytes that may still come.
    left: u64,
    pause_max: Duration,
    /// Whether the client may be silent for as long as it likes.
    unhurried: Arc<AtomicBool>,
    pause: Option<Pin<Box<Sleep>>>,
}

/// Why a request body broke off: the client's fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyFault(pub(crate) Fault);

impl RequestBody {
    /// Returns the body that comes in over `rest`: at most `bytes_max`, no pause longer than `pause_max`.
    pub(crate) fn new(rest: Incoming, bytes_max: Option<u64>, pause_max: Duration) -> Self {
        if rest.is_end_stream() {
            return RequestBody { inner: None };
        }
        RequestBody {
            inner: Some(Box::new(Inner {
                early: VecDeque::new(),
                early_bytes: 0,
                trailers: None,
                rest,
                rest_ended: false,
                left: bytes_max.unwrap_or(u64::MAX),
                pause_max,
                unhurried: Arc::default(),
                pause: None,
            })),
        }
    }

    /// Returns what to set true where the body turns out to be one side of a conversation: its client may then be silent. `None`: there is no body.
    pub(crate) fn unhurried(&self) -> Option<Arc<AtomicBool>> {
        self.inner.as_ref().map(|inner| Arc::clone(&inner.unhurried))
    }

    /// Reads until `bytes_max` are held or the body has ended, then waits for ever; returns only if the body breaks.
    /// May be dropped at any moment without losing anything.
    pub(crate) async fn fill(&mut self, bytes_max: usize) -> BodyFault {
        poll_fn(|cx| {
            let Some(inner) = &mut self.inner else {
                return Poll::Pending;
            };
            while !inner.rest_ended && inner.early_bytes < bytes_max {
                match ready!(inner.poll_rest(cx)) {
                    Some(Ok(piece)) => {
                        inner.early_bytes += piece.len();
                        inner.early.push_back(piece);
                    }
                    Some(Err(fault)) => return Poll::Ready(fault),
                    None => break,
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl RequestBody {
    /// Returns the whole body, if it is no longer than `bytes_max` and comes without a break.
    pub(crate) async fn collect(&mut self, bytes_max: usize) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
            let Ok(piece) = frame.ok()?.into_data() else { continue };
            if all.len() + piece.len() > bytes_max {
                return None;
            }
            all.extend_from_slice(&piece);
        }
        Some(all)
    }
}

impl Inner {
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        loop {
            match Pin::new(&mut self.rest).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.pause = None;
                    let piece = match frame.into_data() {
                        Ok(piece) => piece,
                        Err(frame) => {
                            self.trailers = frame.into_trailers().ok().and_then(fit);
                            continue;
                        }
                    };
                    match self.left.checked_sub(piece.len() as u64) {
                        Some(left) => self.left = left,
                        None => return Poll::Ready(Some(Err(BodyFault(Fault::BodyTooLarge)))),
                    }
                    return Poll::Ready(Some(Ok(piece)));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(BodyFault::of(&error)))),
                Poll::Ready(None) => {
                    self.rest_ended = true;
                    return Poll::Ready(None);
                }
                Poll::Pending if self.unhurried.load(Relaxed) => {
                    self.pause = None;
                    return Poll::Pending;
                }
                Poll::Pending => {
                    let pause_max = self.pause_max;
                    let pause = self.pause.get_or_insert_with(|| {
                        Box::pin(tokio::time::sleep_until(Instant::now() + pause_max))
                    });
                    ready!(pause.as_mut().poll(cx));
                    // Set since then, perhaps.
                    if self.unhurried.load(Relaxed) {
                        continue;
                    }
                    return Poll::Ready(Some(Err(BodyFault(Fault::BodyTimeout))));
                }
            }
        }
    }
}

/// Returns the trailers that may be sent on, if any are left.
fn fit(mut trailers: HeaderMap) -> Option<HeaderMap> {
    headers::prepare_trailers(&mut trailers);
    (!trailers.is_empty()).then_some(trailers)
}

impl BodyFault {
    fn of(error: &hyper::Error) -> Self {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                let is_malformed =
                    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
                return BodyFault(if is_malformed { Fault::BadBody } else { Fault::BrokenBody });
            }
            cause = error.source();
        }
        BodyFault(Fault::BrokenBody)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        if let Some(piece) = inner.early.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if !inner.rest_ended
            && let Some(piece) = ready!(inner.poll_rest(cx))
        {
            return Poll::Ready(Some(piece.map(Frame::data)));
        }
        Poll::Ready(inner.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| {
            inner.early.is_empty()
                && inner.trailers.is_none()
                && (inner.rest_ended || inner.rest.is_end_stream())
        })
    }

    fn size_hint(&self) -> SizeHint {
        let Some(inner) = &self.inner else {
            return SizeHint::with_exact(0);
        };
        let early: u64 = inner.early.iter().map(|piece| piece.len() as u64).sum();
        let rest = if inner.rest_ended { SizeHint::with_exact(0) } else { inner.rest.size_hint() };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + early);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + early);
        }
        hint
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Fault::BodyTooLarge => "the request body is larger than is accepted",
            Fault::BodyTimeout => "the request body came too slowly",
            Fault::BrokenBody => "the request body broke off",
            _ => "the request body is malformed",
        })
    }
}

impl error::Error for BodyFault {}

//! One HTTP/1.1 connection, driven by its caller.
//!
//! A connection has no task of its own: the request that holds it polls it, and nothing polls an
//! idle one until it leaves the pool. So a dropped request closes its connection, and a request
//! costs no hand-over between tasks. The HTTP client is the gateway's own, too: library clients
//! need a task each, and the channels between the two tasks took more of a proxied request's time
//! than writing a head and reading one (`experiments/proxy-cost`).
//!
//! - [`write_head`], [`Outgoing`](super::outgoing::Outgoing): the request on its way to the node.
//! - [`Head`], [`Framing`]: the response on its way back.

mod decode;
mod encode;

#[cfg(any(test, fuzzing))]
pub(crate) use decode::decoded;

use super::connect::Stream;
use super::error::UpstreamErrorKind;
use super::fault::{BodyFault, Failed};
use super::head::RequestHead;
use super::outgoing::Left;
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use super::wire::{self, Wire};
use bytes::Bytes;
use decode::{Framing, Head, HeadEnd, Malformed, Step};
use encode::write_head;
use http::response;
use http::{HeaderValue, Method};
use http_body::{Body as _, Frame, SizeHint};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// The most interim responses, such as `103 Early Hints`, that are skipped before the response
/// itself.
const INTERIM_MAX: u32 = 16;

/// An open HTTP/1.1 connection.
pub(super) struct Http1 {
    wire: Wire,
    head_max: usize,
    head_end: HeadEnd,
    /// Framing of the response that is being read.
    framing: Framing,
    /// Whether the connection may be used again after the response.
    persists: bool,
    /// Whether the request has an unusual body, which the node may take for the next request: few
    /// applications read a body with a method that does not need one.
    has_odd_body: bool,
    idle_since: Instant,
    /// How long the node says that it keeps the connection open without a request.
    kept_for: Option<Duration>,
}

impl Http1 {
    /// Returns a connection over `stream` that accepts response heads of at most `head_max` bytes.
    /// `timeout` is about how long it will wait for them.
    pub(super) fn new(stream: Stream, head_max: usize, timeout: Duration) -> Box<Self> {
        Box::new(Http1 {
            wire: Wire::new(stream, timeout),
            head_max,
            head_end: HeadEnd::default(),
            framing: Framing::OVER,
            persists: true,
            has_odd_body: false,
            idle_since: Instant::now(),
            kept_for: None,
        })
    }

    /// Returns whether the node has neither closed the connection nor sent anything unasked. Leaves
    /// no task's waker registered.
    pub(super) fn is_open(&mut self) -> bool {
        self.wire.is_quiet()
    }

    /// Returns whether request and response are complete and the connection is ready for another
    /// request.
    pub(super) fn is_at_rest(&self) -> bool {
        self.persists && self.is_over() && self.wire.outgoing.is_sent() && self.wire.read.bytes.is_empty()
    }

    /// Returns the connection's timer, for whatever the caller waits for.
    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.wire.silence
    }

    /// Returns whether the connection was idle for `age`, or for as long as the node keeps it open.
    pub(super) fn is_stale(&self, age: Duration) -> bool {
        self.idle_since.elapsed() >= self.kept_for.map_or(age, |kept| kept.min(age))
    }

    /// Notes that the connection is idle from now on.
    pub(super) fn note_idle(&mut self) {
        self.idle_since = Instant::now();
        self.wire.rest();
    }

    /// Sends a request and returns the head of the response; the body follows over this connection.
    /// Waits for the head no longer than `timeout` after the last piece of the request. `host` is
    /// for a request that names none.
    pub(super) async fn exchange(
        &mut self,
        head: &RequestHead,
        host: &HeaderValue,
        body: RequestBody,
        progress: Option<&Arc<Progress>>,
        timeout: Duration,
    ) -> Result<response::Parts, Failed> {
        self.persists = false;
        self.has_odd_body = !body.is_end_stream() && needs_no_body(&head.parts.method);
        let left = Left::of(head, &body);
        self.wire.begin(timeout, (body, left), |text| write_head(text, head, host, left));
        let (method, mut interims) = (&head.parts.method, 0);
        let poll_head = |own: &mut Self, cx: &mut Context<'_>| own.poll_answer(cx, method, &mut interims);
        wire::answer(self, |own| &mut own.wire, progress, poll_head).await
    }

    /// Returns the next piece of the response's body; `None` at its end.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if let Err(fault) = self.wire.keep_sending(cx) {
            return Poll::Ready(Some(Err(fault)));
        }
        loop {
            match self.framing.next(&mut self.wire.read.bytes) {
                Ok(Step::Frame(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(Step::Over) => return Poll::Ready(None),
                Ok(Step::More) => {}
                Err(malformed) => return Poll::Ready(Some(Err(BodyFault::Malformed(malformed.into())))),
            }
            let broken = match ready!(self.wire.poll_read(cx)) {
                Ok(0) if self.framing == Framing::UntilClose => {
                    self.framing = Framing::OVER;
                    continue;
                }
                Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                Ok(_) => continue,
                Err(error) => error,
            };
            return Poll::Ready(Some(Err(BodyFault::Broken(broken))));
        }
    }

    /// Returns whether the response is complete.
    pub(super) fn is_over(&self) -> bool {
        self.framing == Framing::OVER
    }

    /// Returns what is known of the length of the rest of the body.
    pub(super) fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }

    /// Returns the raw connection after it has switched protocols, and what was already read from
    /// it.
    pub(super) fn into_upgraded(self) -> (Stream, Bytes) {
        (self.wire.stream, self.wire.read.bytes.freeze())
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        method: &Method,
        interims: &mut u32,
    ) -> Poll<Result<response::Parts, Failed>> {
        loop {
            let end = self.head_end.find(&self.wire.read.bytes);
            if !begins_as_response(&self.wire.read.bytes) {
                return Poll::Ready(Err(malformed(Malformed("what it sends is not HTTP/1"))));
            }
            if end.unwrap_or(self.wire.read.bytes.len()) > self.head_max {
                return Poll::Ready(Err(malformed(Malformed("its head is too long"))));
            }
            if let Some(end) = end {
                self.head_end = HeadEnd::default();
                let head =
                    Head::parse(&self.wire.read.bytes.split_to(end).freeze(), method).map_err(malformed)?;
                if !head.is_interim() {
                    return Poll::Ready(Ok(self.begin_body(head)));
                }
                *interims += 1;
                if *interims > INTERIM_MAX {
                    return Poll::Ready(Err(malformed(Malformed("it does not get past announcing itself"))));
                }
                continue;
            }
            let error = match ready!(self.wire.poll_read(cx)) {
                Ok(0) => None,
                Ok(_) => continue,
                Err(error) => Some(error),
            };
            // A node that has begun to answer has worked on the request.
            if *interims > 0 || !self.wire.read.bytes.is_empty() {
                return Poll::Ready(Err(Failed::in_head(error)));
            }
            return Poll::Ready(Err(Failed::before_head(error)));
        }
    }

    fn begin_body(&mut self, head: Head) -> response::Parts {
        self.framing = head.framing;
        // A node that answers before it has the whole body may never read the rest, or may take it
        // for the next request.
        self.persists = head.persists && !self.has_odd_body && self.wire.outgoing.is_sent();
        if let Some(kept) = head.parts.headers.get("keep-alive").and_then(kept_for) {
            self.kept_for = Some(kept);
        }
        head.parts
    }
}

/// Returns whether few applications read a body with this method.
fn needs_no_body(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS)
}

fn malformed(malformed: Malformed) -> Failed {
    let detail = "the node sent no HTTP response, or one past the limits";
    Failed::new(UpstreamErrorKind::BadResponse, detail).caused_by(malformed)
}

/// Returns whether `bytes` can be the beginning of a response, as far as they have arrived.
fn begins_as_response(bytes: &[u8]) -> bool {
    const BEGIN: &[u8] = b"HTTP/1.";
    let length = bytes.len().min(BEGIN.len());
    bytes[..length] == BEGIN[..length]
}

/// Returns how long a connection may be used after a header such as `Keep-Alive: timeout=5`: a
/// little less than it says.
fn kept_for(header: &HeaderValue) -> Option<Duration> {
    let parameters = header.to_str().ok()?.split(',');
    let mut named = parameters.filter_map(|parameter| parameter.trim().split_once('='));
    let (_, seconds) = named.find(|(name, _)| name.eq_ignore_ascii_case("timeout"))?;
    let timeout = Duration::from_secs(seconds.trim().parse::<u32>().ok()?.into());
    Some(timeout - (timeout / 2).min(Duration::from_secs(1)))
}

//! One HTTP/1.1 connection, driven by its caller.
//!
//! A connection has no task of its own: the request that holds it polls it, and nothing polls an
//! idle one until it leaves the pool. So a dropped request closes its connection, and a request
//! costs no hand-over between tasks. The HTTP client is the gateway's own, too: library clients
//! need a task each, and the channels between the two tasks took more of a proxied request's time
//! than writing a head and reading one (`experiments/proxy-cost`).
//!
//! - [`Outgoing`]: the request on its way to the node.
//! - [`Head`], [`Framing`]: the response on its way back.

mod decode;
mod outgoing;

#[cfg(any(test, fuzzing))]
pub(crate) use decode::decoded;

use super::connect::Stream;
use super::error::UpstreamErrorKind;
use super::head::RequestHead;
use super::request::BoxError;
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use bytes::{Bytes, BytesMut};
use decode::{Framing, Head, HeadEnd, Malformed, Step};
use http::response;
use http::{HeaderValue, Method};
use http_body::{Body as _, Frame, SizeHint};
use outgoing::{Outgoing, SendFault};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::task::unconstrained;

/// Bounds of the free space for a read, in bytes: it doubles with each read that fills it.
const READ_MIN: usize = 4 << 10;
const READ_MAX: usize = 64 << 10;
/// The largest buffer an idle connection keeps, in bytes.
const IDLE_BUFFER_MAX: usize = 16 << 10;
/// The most interim responses, such as `103 Early Hints`, that are skipped before the response
/// itself.
const INTERIM_MAX: u32 = 16;

/// An open HTTP/1.1 connection.
pub(super) struct Http1 {
    stream: Stream,
    head_max: usize,
    outgoing: Outgoing,
    read: BytesMut,
    room: usize,
    head_end: HeadEnd,
    /// Framing of the response that is being read.
    framing: Framing,
    /// Whether the connection may be used again after the response.
    persists: bool,
    /// Whether the request has an unusual body, which the node may take for the next request: few
    /// applications read a body with a method that does not need one.
    has_odd_body: bool,
    silence: Silence,
    idle_since: Instant,
    /// How long the node says that it keeps the connection open without a request.
    kept_for: Option<Duration>,
}

/// Why no head of a response arrived, and the request's body if nothing of the request was written.
pub(super) struct Failed {
    pub(super) kind: UpstreamErrorKind,
    pub(super) detail: &'static str,
    pub(super) cause: Option<BoxError>,
    pub(super) unsent: Option<RequestBody>,
}

impl Http1 {
    /// Returns a connection over `stream` that accepts response heads of at most `head_max` bytes.
    /// `timeout` is about how long it will wait for them.
    pub(super) fn new(stream: Stream, head_max: usize, timeout: Duration) -> Box<Self> {
        Box::new(Http1 {
            stream,
            head_max,
            outgoing: Outgoing::default(),
            read: BytesMut::new(),
            room: READ_MIN,
            head_end: HeadEnd::default(),
            framing: Framing::OVER,
            persists: true,
            has_odd_body: false,
            silence: Silence::new(timeout),
            idle_since: Instant::now(),
            kept_for: None,
        })
    }

    /// Returns whether the node has neither closed the connection nor sent anything unasked. Leaves
    /// no task's waker registered.
    pub(super) fn is_open(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        // Outside the task's cooperative budget: if that is spent, a closed connection would look
        // open.
        let read = pin!(unconstrained(poll_fn(|cx| self.poll_read(cx))));
        read.poll(&mut nobody).is_pending()
    }

    /// Returns whether request and response are complete and the connection is ready for another
    /// request.
    pub(super) fn is_at_rest(&self) -> bool {
        self.persists && self.is_over() && self.outgoing.is_sent() && self.read.is_empty()
    }

    /// Returns the connection's timer, for whatever the caller waits for.
    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    /// Returns whether the connection was idle for `age`, or for as long as the node keeps it open.
    pub(super) fn is_stale(&self, age: Duration) -> bool {
        self.idle_since.elapsed() >= self.kept_for.map_or(age, |kept| kept.min(age))
    }

    /// Notes that the connection is idle from now on.
    pub(super) fn note_idle(&mut self) {
        self.idle_since = Instant::now();
        self.silence.rest();
        self.room = READ_MIN;
        if self.read.capacity() > IDLE_BUFFER_MAX {
            self.read = BytesMut::new();
        }
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
        self.silence.begin(timeout);
        self.persists = false;
        self.has_odd_body = !body.is_end_stream() && needs_no_body(&head.parts.method);
        self.outgoing.begin(head, host, body);
        let mut interims = 0;
        poll_fn(|cx| {
            if let Poll::Ready(Err(fault)) = self.outgoing.poll(&mut self.stream, cx) {
                self.fail_unsent(fault)?;
            }
            if let Poll::Ready(answer) = self.poll_answer(cx, &head.parts.method, &mut interims) {
                return Poll::Ready(answer);
            }
            self.silence
                .poll_over(cx, progress)
                .map(|()| Err(Failed::new(UpstreamErrorKind::FirstByteTimeout, "no response came in time")))
        })
        .await
    }

    /// Returns the next piece of the response's body; `None` at its end.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        // A response may come before the end of the request.
        if let Poll::Ready(Err(SendFault::Body(error))) = self.outgoing.poll(&mut self.stream, cx) {
            return Poll::Ready(Some(Err(BodyFault::Request(error))));
        }
        loop {
            match self.framing.next(&mut self.read) {
                Ok(Step::Frame(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(Step::Over) => return Poll::Ready(None),
                Ok(Step::More) => {}
                Err(malformed) => return Poll::Ready(Some(Err(BodyFault::Malformed(malformed)))),
            }
            let broken = match ready!(self.poll_read(cx)) {
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
        (self.stream, self.read.freeze())
    }

    /// Returns the error if the request could not be sent and no answer can follow. A node that
    /// closes the connection in the middle of a request may have answered why.
    fn fail_unsent(&mut self, fault: SendFault) -> Result<(), Failed> {
        match fault {
            SendFault::Body(error) => {
                let detail = "the request's body broke off or is malformed";
                Err(Failed::new(UpstreamErrorKind::RequestBody, detail).caused_by(error))
            }
            SendFault::Connection(error) => match self.outgoing.take_unsent() {
                Some(body) => {
                    let detail = "the connection broke before the request was sent";
                    let failed = Failed::new(UpstreamErrorKind::BrokenBeforeHead, detail).caused_by(error);
                    Err(Failed { unsent: Some(body), ..failed })
                }
                None => Ok(()),
            },
        }
    }

    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        method: &Method,
        interims: &mut u32,
    ) -> Poll<Result<response::Parts, Failed>> {
        loop {
            let end = self.head_end.find(&self.read);
            if !begins_as_response(&self.read) {
                return Poll::Ready(Err(malformed(Malformed("what it sends is not HTTP/1"))));
            }
            if end.unwrap_or(self.read.len()) > self.head_max {
                return Poll::Ready(Err(malformed(Malformed("its head is too long"))));
            }
            if let Some(end) = end {
                self.head_end = HeadEnd::default();
                let head = Head::parse(&self.read.split_to(end).freeze(), method).map_err(malformed)?;
                if !head.is_interim() {
                    return Poll::Ready(Ok(self.begin_body(head)));
                }
                *interims += 1;
                if *interims > INTERIM_MAX {
                    return Poll::Ready(Err(malformed(Malformed("it does not get past announcing itself"))));
                }
                continue;
            }
            let (detail, error) = match ready!(self.poll_read(cx)) {
                Ok(0) => ("the connection ended before a response came", None),
                Ok(_) => continue,
                Err(error) => ("the connection broke before a response came", Some(error)),
            };
            let failed = Failed::new(UpstreamErrorKind::BrokenBeforeHead, detail);
            return Poll::Ready(Err(error.into_iter().fold(failed, Failed::caused_by)));
        }
    }

    fn begin_body(&mut self, head: Head) -> response::Parts {
        self.framing = head.framing;
        // A node that answers before it has the whole body may never read the rest, or may take it
        // for the next request.
        self.persists = head.persists && !self.has_odd_body && self.outgoing.is_sent();
        if let Some(kept) = head.parts.headers.get("keep-alive").and_then(kept_for) {
            self.kept_for = Some(kept);
        }
        head.parts
    }

    /// Reads what is available; ready with 0 at the connection's end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read.capacity() - self.read.len() < READ_MIN {
            self.read.reserve(self.room);
        }
        let room = self.read.capacity() - self.read.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.read)).poll(cx))?;
        if read == room {
            self.room = (self.room * 2).min(READ_MAX);
        }
        Poll::Ready(Ok(read))
    }
}

/// Why a response's body ended too early.
#[derive(Debug)]
pub(super) enum BodyFault {
    /// The client's request body ended early, and the node waits for it.
    Request(BoxError),
    Malformed(Malformed),
    Broken(io::Error),
}

impl Failed {
    pub(super) fn new(kind: UpstreamErrorKind, detail: &'static str) -> Self {
        Failed { kind, detail, cause: None, unsent: None }
    }

    pub(super) fn caused_by(self, cause: impl Into<BoxError>) -> Self {
        Failed { cause: Some(cause.into()), ..self }
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

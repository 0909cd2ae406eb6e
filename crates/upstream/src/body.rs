//! The body of a response on its way from a node.
//!
//! Reading it drives the connection. At a complete end the connection returns to its pool and the
//! node's in-flight count falls. A body dropped before its end closes the connection (HTTP/2:
//! resets the stream).

use super::Guard;
use super::cgi::Cgi;
use super::connect::Stream;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::fastcgi::FastCgi;
use super::fault::BodyFault;
use super::http1::Http1;
use super::http2::StreamPermit;
use super::request::{BoxError, Progress};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use suimon_model::NodeId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const BODY_BROKE_OFF: &str = "the request's body broke off while the response was coming";
const BROKEN: &str = "the connection broke in the middle of the response";

/// The body of a response, or the raw connection after a `101`.
pub struct UpstreamBody {
    state: BodySource,
    node: NodeId,
    /// Small, as each answer in flight is one of these.
    tries: u8,
    waiting: bool,
    idle_timeout: Duration,
    progress: Option<Arc<Progress>>,
    guard: Option<Guard>,
}

enum BodySource {
    Http1(Box<Http1>),
    Http2 { incoming: Incoming, lease: StreamPermit },
    FastCgi(Box<FastCgi>),
    Cgi(Box<Cgi>),
    Upgraded { stream: Stream, early: Bytes },
    Over,
}

/// The raw connection to a node after a `101`: reads and writes the bytes of the new protocol.
///
/// The node's in-flight count falls when it is dropped.
pub struct UpgradedIo {
    stream: Stream,
    early: Bytes,
    _guard: Option<Guard>,
}

impl UpstreamBody {
    /// Returns the node the response comes from.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns how many times the request was sent or tried to be; 1 if the first try succeeded.
    pub fn tries(&self) -> u32 {
        u32::from(self.tries)
    }

    /// Returns the raw connection, if this is the body of a `101`.
    pub fn into_upgraded(mut self) -> Option<UpgradedIo> {
        match std::mem::replace(&mut self.state, BodySource::Over) {
            BodySource::Upgraded { stream, early } => {
                Some(UpgradedIo { stream, early, _guard: self.guard.take() })
            }
            _ => None,
        }
    }

    pub(super) fn http1(connection: Box<Http1>, sent: SentRequest) -> Self {
        let mut body = sent.into_body(BodySource::Http1(connection));
        if body.is_end_stream() {
            body.end();
        }
        body
    }

    pub(super) fn http2(incoming: Incoming, lease: StreamPermit, sent: SentRequest) -> Self {
        let mut body = sent.into_body(BodySource::Http2 { incoming, lease });
        if body.is_end_stream() {
            body.end();
        }
        body
    }

    pub(super) fn fastcgi(connection: Box<FastCgi>, sent: SentRequest) -> Self {
        let mut body = sent.into_body(BodySource::FastCgi(connection));
        if body.is_end_stream() {
            body.end();
        }
        body
    }

    pub(super) fn cgi(program: Box<Cgi>, sent: SentRequest) -> Self {
        sent.into_body(BodySource::Cgi(program))
    }

    pub(super) fn upgraded(stream: Stream, early: Bytes, sent: SentRequest) -> Self {
        sent.into_body(BodySource::Upgraded { stream, early })
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let (kind, detail, cause) = match &mut self.state {
            BodySource::Http1(connection) => match ready!(connection.poll_frame(cx)) {
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                None => return Poll::Ready(None),
                Some(Err(fault)) => told(fault),
            },
            BodySource::FastCgi(connection) => match ready!(connection.poll_frame(cx)) {
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                None => return Poll::Ready(None),
                Some(Err(fault)) => told(fault),
            },
            BodySource::Cgi(program) => match ready!(program.poll_frame(cx)) {
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                None => return Poll::Ready(None),
                Some(Err(fault)) => told(fault),
            },
            BodySource::Http2 { incoming, .. } => match ready!(Pin::new(incoming).poll_frame(cx)) {
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                None => return Poll::Ready(None),
                Some(Err(cause)) if self.progress.as_ref().is_some_and(|progress| progress.failed()) => {
                    (UpstreamErrorKind::RequestBody, BODY_BROKE_OFF, cause.into())
                }
                Some(Err(cause)) => (UpstreamErrorKind::BrokenInBody, BROKEN, cause.into()),
            },
            BodySource::Upgraded { .. } | BodySource::Over => return Poll::Ready(None),
        };
        Poll::Ready(Some(Err(self.fail(kind, detail).caused_by(cause))))
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let silence = match &mut self.state {
            BodySource::Http1(connection) => connection.silence(),
            BodySource::FastCgi(connection) => connection.silence(),
            BodySource::Cgi(program) => program.silence(),
            BodySource::Http2 { lease, .. } => lease.silence(),
            BodySource::Upgraded { .. } | BodySource::Over => return Poll::Pending,
        };
        if !std::mem::replace(&mut self.waiting, true) {
            silence.begin(self.idle_timeout);
        }
        silence.poll_over(cx, self.progress.as_ref())
    }

    /// Says that from now on nobody counts the request among those that are let in.
    pub fn ungate(&self) {
        if let Some(worker) = self.guard.as_ref().and_then(|guard| guard.worker.as_ref()) {
            worker.ungate();
        }
    }

    /// The response is complete: returns a reusable connection to the pool, and frees the request's
    /// place at the node.
    fn end(&mut self) {
        let state = std::mem::replace(&mut self.state, BodySource::Over);
        let Some(mut guard) = self.guard.take() else { return };
        match state {
            BodySource::Http1(connection) if connection.is_at_rest() => guard.put_back(connection),
            BodySource::FastCgi(connection) => guard.keep(connection.at_rest()),
            _ => {}
        }
        guard.done();
    }

    fn fail(&mut self, kind: UpstreamErrorKind, detail: &'static str) -> UpstreamError {
        self.state = BodySource::Over;
        if let Some(guard) = self.guard.take()
            && kind != UpstreamErrorKind::RequestBody
        {
            guard.note_broken();
        }
        UpstreamError::new(kind, self.node, detail)
    }
}

/// Returns what is said of a fault in a body.
fn told(fault: BodyFault) -> (UpstreamErrorKind, &'static str, BoxError) {
    match fault {
        BodyFault::Request(cause) => (UpstreamErrorKind::RequestBody, BODY_BROKE_OFF, cause),
        BodyFault::Malformed(cause) => {
            (UpstreamErrorKind::BadResponse, "the response's body is malformed", cause)
        }
        BodyFault::Broken(cause) => (UpstreamErrorKind::BrokenInBody, BROKEN, cause.into()),
    }
}

/// What the body of a response must know of how its request was sent.
pub(super) struct SentRequest {
    pub(super) node: NodeId,
    pub(super) tries: u32,
    pub(super) idle_timeout: Duration,
    pub(super) progress: Option<Arc<Progress>>,
    pub(super) guard: Guard,
}

impl SentRequest {
    fn into_body(self, state: BodySource) -> UpstreamBody {
        let SentRequest { node, tries, idle_timeout, progress, mut guard } = self;
        // Before the guard can go, as it does at once where there is nothing to follow.
        guard.note_answer();
        let tries = u8::try_from(tries).unwrap_or(u8::MAX);
        UpstreamBody { state, node, tries, waiting: false, idle_timeout, progress, guard: Some(guard) }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = self.get_mut();
        match this.poll_source(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.waiting = false;
                if this.is_end_stream() {
                    this.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
            Poll::Ready(None) => {
                this.end();
                Poll::Ready(None)
            }
            Poll::Pending => this.poll_silence(cx).map(|()| {
                let detail = "the next piece of the response did not come in time";
                if let Some(guard) = &mut this.guard {
                    guard.stuck();
                }
                Some(Err(this.fail(UpstreamErrorKind::IdleTimeout, detail)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            BodySource::Http1(connection) => connection.is_over(),
            BodySource::FastCgi(connection) => connection.is_over(),
            BodySource::Cgi(program) => program.is_over(),
            BodySource::Http2 { incoming, .. } => incoming.is_end_stream(),
            BodySource::Upgraded { .. } | BodySource::Over => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            BodySource::Http1(connection) => connection.size_hint(),
            BodySource::FastCgi(connection) => connection.size_hint(),
            BodySource::Cgi(program) => program.size_hint(),
            BodySource::Http2 { incoming, .. } => incoming.size_hint(),
            BodySource::Upgraded { .. } | BodySource::Over => SizeHint::with_exact(0),
        }
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamBody")
            .field("node", &self.node)
            .field("tries", &self.tries)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for UpgradedIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradedIo").field("early", &self.early.len()).finish_non_exhaustive()
    }
}

impl AsyncRead for UpgradedIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.early.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let count = this.early.len().min(buf.remaining());
        buf.put_slice(&this.early[..count]);
        this.early.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UpgradedIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

//! One HTTP/1.1 connection, driven by whoever uses it.
//!
//! There is no task behind a connection: the request that holds it polls it, and an idle one in the pool is polled by nobody
//! until it is taken out. So a dropped request is a closed connection, and a request costs no hand-over between tasks.

use super::connect::Stream;
use super::error::{BoxError, UpstreamErrorKind};
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::task::coop::unconstrained;

/// An open HTTP/1.1 connection.
pub(super) struct Http1 {
    sender: SendRequest<RequestBody>,
    connection: Option<Connection<TokioIo<Stream>, RequestBody>>,
    ended: bool,
    silence: Silence,
    idle_since: Instant,
    /// How long the node keeps the connection open without a request, as far as it has said so.
    kept_for: Option<Duration>,
}

/// Why no head of a response came, and the request itself where none of it was written.
pub(super) struct Failed {
    pub(super) kind: UpstreamErrorKind,
    pub(super) detail: &'static str,
    pub(super) cause: Option<BoxError>,
    pub(super) unsent: Option<Box<Request<RequestBody>>>,
}

impl Http1 {
    /// Returns a connection over `stream` that accepts response heads of at most `max_head_bytes`, and is to wait for them
    /// for about `timeout`.
    pub(super) async fn open(
        stream: Stream,
        max_head_bytes: usize,
        timeout: Duration,
    ) -> Result<Box<Self>, hyper::Error> {
        let (sender, connection) =
            Builder::new().max_header_size(max_head_bytes).handshake(TokioIo::new(stream)).await?;
        Ok(Box::new(Http1 {
            sender,
            connection: Some(connection),
            ended: false,
            silence: Silence::new(timeout),
            idle_since: Instant::now(),
            kept_for: None,
        }))
    }

    /// Drives the connection; ready once it is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let (false, Some(connection)) = (self.ended, &mut self.connection) {
            // How it ended is told to whoever waits for the response or its body.
            let _ = ready!(connection.poll_without_shutdown(cx));
            self.ended = true;
        }
        Poll::Ready(())
    }

    /// Returns whether the connection is open and between two requests. Leaves no waker of a task behind in it.
    pub(super) fn is_usable(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        self.poll(&mut nobody).is_pending() && self.sender.is_ready()
    }

    /// Returns the timer of whatever this connection is waited for.
    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    /// Returns whether nobody has used the connection for `age`, or for as long as the node keeps it open.
    pub(super) fn is_stale(&self, age: Duration) -> bool {
        self.idle_since.elapsed() >= self.kept_for.map_or(age, |kept| kept.min(age))
    }

    /// Takes note that from now on nobody uses the connection.
    pub(super) fn note_idle(&mut self) {
        self.idle_since = Instant::now();
        self.silence.rest();
    }

    /// Lets go of the connection's state, so that whoever waits for something from it learns that it is over.
    pub(super) fn abandon(&mut self) {
        self.connection = None;
        self.ended = true;
    }

    /// Sends `request` and returns the head of the response, with the body still to come over this connection. Waits for it
    /// no longer than `timeout` after the last piece of the request.
    pub(super) async fn exchange(
        &mut self,
        request: Request<RequestBody>,
        progress: Option<&Arc<Progress>>,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Failed> {
        // The answer is handed over inside this task, by polling the connection: it needs no wake-up, and must not
        // lose one to the scheduler's budget either.
        self.silence.begin(timeout);
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let answer = poll_fn(|cx| {
            let mut nobody = Context::from_waker(Waker::noop());
            let ended = match (self.ended, &mut self.connection) {
                (false, Some(connection)) => connection.poll_without_shutdown(cx).is_ready(),
                _ => true,
            };
            self.ended = ended;
            if let Poll::Ready(answer) = answer.as_mut().poll(&mut nobody) {
                return Poll::Ready(answer.map_err(|failure| failed(failure, progress)));
            }
            if ended {
                // A request that was never taken up comes back only when the connection is gone.
                self.connection = None;
                if let Poll::Ready(answer) = answer.as_mut().poll(&mut nobody) {
                    return Poll::Ready(answer.map_err(|failure| failed(failure, progress)));
                }
                return Poll::Ready(Err(Failed {
                    kind: UpstreamErrorKind::BrokenBeforeHead,
                    detail: "the connection ended before a response came",
                    cause: None,
                    unsent: None,
                }));
            }
            ready!(self.silence.poll_over(cx, progress));
            Poll::Ready(Err(Failed {
                kind: UpstreamErrorKind::FirstByteTimeout,
                detail: "no response came in time",
                cause: None,
                unsent: None,
            }))
        })
        .await;
        if let Ok(response) = &answer
            && let Some(kept) = response.headers().get("keep-alive").and_then(kept_for)
        {
            self.kept_for = Some(kept);
        }
        answer
    }

    /// Returns the bare connection and what was already read from it, after it has ended in an upgrade.
    pub(super) fn into_upgraded(self) -> Option<(Stream, Bytes)> {
        let parts = self.connection?.into_parts();
        Some((parts.io.into_inner(), parts.read_buf))
    }
}

/// Returns how long a connection can be trusted to stay open, by a header such as `Keep-Alive: timeout=5`: a little less.
fn kept_for(header: &HeaderValue) -> Option<Duration> {
    let parameters = header.to_str().ok()?.split(',');
    let mut named = parameters.filter_map(|parameter| parameter.trim().split_once('='));
    let (_, seconds) = named.find(|(name, _)| name.eq_ignore_ascii_case("timeout"))?;
    let timeout = Duration::from_secs(seconds.trim().parse::<u32>().ok()?.into());
    Some(timeout - (timeout / 2).min(Duration::from_secs(1)))
}

fn failed(
    failure: hyper::client::conn::TrySendError<Request<RequestBody>>,
    progress: Option<&Arc<Progress>>,
) -> Failed {
    let mut failure = failure;
    let unsent = failure.take_message().map(Box::new);
    let error = failure.into_error();
    let (kind, detail) = classify(&error, progress);
    Failed { kind, detail, cause: Some(error.into()), unsent }
}

/// Returns what `error`, that came in place of a response's head, means.
pub(super) fn classify(
    error: &hyper::Error,
    progress: Option<&Arc<Progress>>,
) -> (UpstreamErrorKind, &'static str) {
    let body_failed = progress.is_some_and(|progress| progress.failed());
    if body_failed || error.is_body_write_aborted() {
        (UpstreamErrorKind::RequestBody, "the request's body broke off or is malformed")
    } else if error.is_parse() {
        (UpstreamErrorKind::BadResponse, "the node sent no HTTP response, or one past the limits")
    } else {
        (UpstreamErrorKind::BrokenBeforeHead, "the connection broke before a response came")
    }
}

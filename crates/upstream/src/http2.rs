//! The HTTP/2 connections of one node. Many requests share each, and a task of its own drives it.
//!
//! A request goes to the connection with the fewest streams. If that is full, another one is
//! opened, up to the bound. Beyond it requests queue inside the connection until the node allows
//! another stream.

use super::connect::{ConnectError, Connector, Stream};
use super::error::UpstreamErrorKind;
use super::fault::Failed;
use super::request::BoxError;
use super::request::{Progress, RequestBody};
use super::timer::Silence;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, Connection, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// Time between two pings on a connection in use.
const PING_EVERY: Duration = Duration::from_secs(20);
/// The longest wait for the answer to a ping; after it the connection counts as dead.
const PONG_WITHIN: Duration = Duration::from_secs(10);

/// Streams opened before the node has said how many it allows. Further ones wait inside the
/// connection, so that the node refuses none.
const STREAMS_AT_FIRST: usize = 1;
/// A connection that still allows only [`STREAMS_AT_FIRST`] streams after this time really allows
/// no more.
const SETTINGS_WITHIN: Duration = Duration::from_secs(1);

/// The connections to one node.
pub(super) struct SharedPool {
    open: Mutex<Vec<Shared>>,
    /// Held while a connection is being opened, so that a burst of requests opens one connection,
    /// not one each.
    opening: tokio::sync::Mutex<()>,
    limits: Limits,
}

/// The bounds of a [`SharedPool`].
pub(super) struct Limits {
    pub(super) connections_max: usize,
    pub(super) streams_max: usize,
    pub(super) idle_age: Duration,
    pub(super) max_head_bytes: usize,
    pub(super) first_byte_timeout: Duration,
}

/// A connection in the pool.
struct Shared {
    sender: SendRequest<RequestBody>,
    streams: Arc<Streams>,
    /// About how long its requests will wait for a response.
    timeout: Duration,
    idle_since: Instant,
}

/// How many streams of a connection are in use, and the connection itself, which knows how many its
/// node allows.
struct Streams {
    used: AtomicUsize,
    opened: Instant,
    /// Its driver holds the lock for the time of a poll; others hold it to ask what the node
    /// allows. `None` once the connection is over.
    connection: Mutex<Option<Connection<TokioIo<Stream>, RequestBody, TokioExecutor>>>,
}

/// The right to one stream of a connection.
pub(super) struct StreamPermit {
    sender: SendRequest<RequestBody>,
    streams: Arc<Streams>,
    silence: Silence,
}

impl SharedPool {
    /// Returns a pool without connections.
    pub(super) fn new(limits: Limits) -> Self {
        SharedPool { open: Mutex::new(Vec::new()), opening: tokio::sync::Mutex::new(()), limits }
    }

    /// Returns a stream of the least used connection; opens a connection if that one is full.
    pub(super) async fn lease(
        &self,
        connector: &Connector,
        fresh: bool,
    ) -> Result<(StreamPermit, bool), ConnectError> {
        if !fresh && let Some(lease) = self.roomy() {
            return Ok((lease, true));
        }
        // A request that queues behind an opening that hangs gives up with it, so that it does not
        // wait for a second one.
        let Ok(_opening) = tokio::time::timeout(connector.timeout(), self.opening.lock()).await else {
            let detail = "the HTTP/2 connection to the node was not open in time";
            return Err(ConnectError { kind: UpstreamErrorKind::ConnectTimeout, detail, cause: None });
        };
        // Another request may have opened a connection meanwhile.
        if !fresh && let Some(lease) = self.roomy() {
            return Ok((lease, true));
        }
        if self.count() >= self.limits.connections_max.max(1)
            && let Some(lease) = self.least_used(usize::MAX)
        {
            return Ok((lease, true));
        }
        let shared = open(connector.connect().await?, &self.limits).await?;
        let lease = shared.lease();
        self.lock().push(shared);
        Ok((lease, false))
    }

    /// Returns a stream of a connection over `stream`; no other request shares it, and it ends with
    /// the stream.
    pub(super) async fn open_alone(&self, stream: Stream) -> Result<StreamPermit, ConnectError> {
        Ok(open(stream, &self.limits).await?.lease())
    }

    /// Returns how many connections are open.
    pub(super) fn count(&self) -> usize {
        let mut open = self.lock();
        open.retain(|shared| !shared.sender.is_closed());
        open.len()
    }

    /// Drops connections that had no stream for too long; they then send GOAWAY and close.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.lock().retain_mut(|shared| {
            if shared.streams.used.load(Relaxed) > 0 {
                shared.idle_since = now;
            }
            !shared.sender.is_closed() && now.duration_since(shared.idle_since) < self.limits.idle_age
        });
    }

    fn roomy(&self) -> Option<StreamPermit> {
        self.least_used(self.limits.streams_max.max(1))
    }

    /// Returns a stream of the least used connection, if that has fewer than `streams_max` and
    /// fewer than its node allows.
    fn least_used(&self, streams_max: usize) -> Option<StreamPermit> {
        let mut open = self.lock();
        open.retain(|shared| !shared.sender.is_closed());
        let least = open.iter_mut().min_by_key(|shared| shared.streams.used.load(Relaxed))?;
        let room = streams_max == usize::MAX
            || least.streams.used.load(Relaxed) < streams_max.min(least.streams.allowed());
        room.then(|| {
            least.idle_since = Instant::now();
            least.lease()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shared>> {
        // A panic while it was held leaves the list whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    /// Returns how many streams the node allows at once; no limit while the node has not named one.
    fn allowed(&self) -> usize {
        let allowed = self.connection().as_ref().map_or(0, Connection::current_max_send_streams);
        let unsaid = allowed == STREAMS_AT_FIRST && self.opened.elapsed() < SETTINGS_WITHIN;
        if unsaid { usize::MAX } else { allowed }
    }

    /// Drives the connection; ready once it is over.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.connection();
        let Some(connection) = &mut *slot else { return Poll::Ready(()) };
        // Each request on the connection gets the result itself.
        let _ = ready!(Pin::new(connection).poll(cx));
        *slot = None;
        Poll::Ready(())
    }

    fn connection(&self) -> MutexGuard<'_, Option<Connection<TokioIo<Stream>, RequestBody, TokioExecutor>>> {
        // A panic in the driver leaves a connection that nothing drives; its requests run into
        // their timeouts.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn lease(&self) -> StreamPermit {
        self.streams.used.fetch_add(1, Relaxed);
        let silence = Silence::new(self.timeout);
        StreamPermit { sender: self.sender.clone(), streams: Arc::clone(&self.streams), silence }
    }
}

impl StreamPermit {
    /// Returns the stream's timer, for whatever the caller waits for.
    pub(super) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    /// Sends `request` and returns the head of the response; the body follows. Waits for the head
    /// no longer than `timeout` after the last piece of the request.
    pub(super) async fn exchange(
        &mut self,
        request: Request<RequestBody>,
        progress: Option<&Arc<Progress>>,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Failed> {
        self.silence.begin(timeout);
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(|mut failure| {
                    let unsent = failure.take_message().map(Request::into_body);
                    let error = failure.into_error();
                    let (kind, detail) = classify(&error, progress);
                    Failed { unsent, ..Failed::new(kind, detail).caused_by(error) }
                }));
            }
            self.silence
                .poll_over(cx, progress)
                .map(|()| Err(Failed::new(UpstreamErrorKind::FirstByteTimeout, "no response came in time")))
        })
        .await
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.streams.used.fetch_sub(1, Relaxed);
    }
}

/// Returns what `error`, which came instead of a response's head, means.
fn classify(error: &hyper::Error, progress: Option<&Arc<Progress>>) -> (UpstreamErrorKind, &'static str) {
    let body_failed = progress.is_some_and(|progress| progress.failed());
    if body_failed || error.is_body_write_aborted() {
        (UpstreamErrorKind::RequestBody, "the request's body broke off or is malformed")
    } else if error.is_parse() {
        (UpstreamErrorKind::BadResponse, "the node sent no HTTP response, or one past the limits")
    } else {
        (UpstreamErrorKind::BrokenBeforeHead, "the connection broke before a response came")
    }
}

async fn open(stream: Stream, limits: &Limits) -> Result<Shared, ConnectError> {
    let head_max = u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX);
    let handshake = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .max_header_list_size(head_max)
        .initial_max_send_streams(STREAMS_AT_FIRST)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, connection) = handshake.map_err(|error| ConnectError {
        kind: UpstreamErrorKind::Connect,
        detail: "the HTTP/2 connection to the node broke while it was set up",
        cause: Some(BoxError::from(error)),
    })?;
    let streams = Arc::new(Streams {
        used: AtomicUsize::new(0),
        opened: Instant::now(),
        connection: Mutex::new(Some(connection)),
    });
    let driven = Arc::clone(&streams);
    // The task ends with the connection, or when the pool and the last stream have dropped their
    // senders.
    tokio::spawn(poll_fn(move |cx| driven.poll(cx)));
    Ok(Shared { sender, streams, timeout: limits.first_byte_timeout, idle_since: Instant::now() })
}

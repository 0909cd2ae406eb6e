//! A pool of workers as a node: each request is given a worker of its own.

use super::connect::{ConnectError, Connector, Stream};
use super::error::UpstreamErrorKind;
use super::fastcgi::{FastCgi, Programs};
use super::http1::Http1;
use super::request::RequestBody;
use http::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use suimon_fastcgi::management;
use suimon_fleet::workers::WorkerId;
use suimon_params::pool::WorkerKind;
use suimon_params::upstream::{NodeAddress, NodeParams, WorkersNodeParams};
use suimon_pool::{Lease, Pool, WorkerCheck};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A kept connection is no longer used after this time: its worker may be about to close it.
const KEPT_MAX: Duration = Duration::from_secs(10);
/// Where workers that live have closed so many kept connections in a row, none is kept any more.
const CLOSED_MAX: u32 = 3;
/// Workers tried for one request, of those that cannot be connected to.
const TRIES_MAX: u32 = 3;
/// The longest that a worker may take to connect, and to answer without a page; then it is asked again.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// The same for a page: its first one takes long.
const PAGE_WITHIN: Duration = Duration::from_secs(30);
/// The largest head of an answer to that, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// The workers, and how they are spoken to.
pub(super) struct Workers {
    pub(super) pool: Pool,
    /// `None`: they speak HTTP/1.1.
    pub(super) programs: Option<Arc<Programs>>,
    /// Whether none stays, and a program is run for each request.
    pub(super) runs_once: bool,
    ready_path: Option<String>,
    /// Kept connections that were closed by workers that live.
    closed: AtomicU32,
}

/// A connection to a worker.
pub(super) enum Open {
    Kept(Box<FastCgi>),
    New(Stream),
}

/// What a request asks of the worker that it is given.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// It passes by the gate.
    pub(super) passes: bool,
    /// A worker that is not dead without the pool having heard of it, as all may be that were killed
    /// together with the one that was tried first; and a new connection to it.
    pub(super) is_fresh: bool,
    /// It may be sent again if its worker closes the connection.
    pub(super) is_replayable: bool,
}

impl Workers {
    pub(super) fn new(
        origin: std::time::Instant,
        params: &WorkersNodeParams,
        programs: Option<Programs>,
    ) -> Self {
        let pool = Pool::new(origin, params.pool.clone());
        let runs_once = params.pool.kind == WorkerKind::Cgi;
        let ready_path = params.ready_path.clone();
        let closed = AtomicU32::default();
        Workers { pool, programs: programs.map(Arc::new), runs_once, ready_path, closed }
    }

    /// Takes an idle worker and returns a connection to it: the one that was left with it, or a new
    /// one.
    pub(super) async fn open(
        &self,
        connector: &Connector,
        wanted: Wanted,
    ) -> Result<(Open, Lease), ConnectError> {
        if wanted.passes && self.pool.is_down() {
            // There are few places for what passes by the gate: none is for a wait in vain.
            return Err(self.none());
        }
        let mut last = None;
        for _ in 0..TRIES_MAX {
            let Some(lease) = self.take(connector.timeout(), wanted).await else { break };
            if let Some(connection) = self.kept(&lease, wanted) {
                return Ok((Open::Kept(connection), lease));
            }
            match connector.connect_to(lease.address()).await {
                Ok(stream) => return Ok((Open::New(stream), lease)),
                // It has just died; the pool hears of it. Without a descriptor none can be reached.
                Err(error) if error.kind == UpstreamErrorKind::GatewayFull => {
                    lease.done();
                    return Err(error);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| self.none()))
    }

    /// Returns whether workers are told to keep connections open.
    pub(super) fn keeps(&self) -> bool {
        self.closed.load(Ordering::Relaxed) < CLOSED_MAX
    }

    /// Notes that a kept connection was closed; returns whether its worker has not died of it.
    pub(super) fn note_closed(&self, worker: WorkerId) -> bool {
        let is_alive = self.pool.is_alive(worker);
        if is_alive {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
        is_alive
    }

    /// Notes that a kept connection has served another request.
    pub(super) fn note_kept(&self) {
        self.closed.store(0, Ordering::Relaxed);
    }

    /// Returns the open connection that was left with a worker, if the request may be sent over it.
    fn kept(&self, lease: &Lease, wanted: Wanted) -> Option<Box<FastCgi>> {
        let mut connection = lease.take_kept()?.into_connection::<FastCgi>()?;
        if wanted.is_fresh || !wanted.is_replayable || connection.is_stale(KEPT_MAX) {
            return None;
        }
        let is_open = connection.is_open();
        if !is_open {
            self.note_closed(lease.worker());
        }
        is_open.then_some(connection)
    }

    /// Takes a place at which a program may run.
    pub(super) async fn take_place(
        &self,
        connector: &Connector,
        passes: bool,
    ) -> Result<Lease, ConnectError> {
        self.pool.take_within(connector.timeout(), passes).await.ok_or_else(|| self.none())
    }

    /// Returns why there was no worker.
    fn none(&self) -> ConnectError {
        let (kind, detail) = if self.pool.is_down() {
            (UpstreamErrorKind::NoNode, "no worker is ready")
        } else {
            // That all are busy says nothing of the application.
            (UpstreamErrorKind::GatewayFull, "no worker was free in time")
        };
        ConnectError { kind, detail, cause: None }
    }

    async fn take(&self, within: Duration, wanted: Wanted) -> Option<Lease> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let lease = self.pool.take_within(left, wanted.passes).await?;
            // A dead one is not idle any more once it is dropped.
            if !wanted.is_fresh || lease.is_alive() {
                return Some(lease);
            }
        }
    }

    /// Starts, replaces and ends workers until `shutdown` is done and all have ended.
    pub(super) async fn run(&self, shutdown: impl Future<Output = ()>) {
        let name = Arc::clone(&self.pool.params().name);
        let asks = Arc::new(Asks {
            node: NodeParams::of_workers(name, self.programs.is_some()),
            programs: self.programs.clone(),
            path: self.ready_path.clone(),
        });
        let is_ready = move |address: Arc<NodeAddress>, check| {
            let asks = Arc::clone(&asks);
            async move { asks.ask(&address, check).await.unwrap_or(false) }
        };
        self.pool.run(is_ready, shutdown).await;
    }
}

/// How a worker is asked whether it takes requests.
struct Asks {
    node: NodeParams,
    /// `None`: it speaks HTTP/1.1.
    programs: Option<Arc<Programs>>,
    path: Option<String>,
}

impl Asks {
    /// Returns whether the worker answers as it should; `None`: not at all. Only an answer shows that
    /// it is idle: the kernel opens connections to a busy one, too.
    async fn ask(&self, address: &NodeAddress, check: WorkerCheck) -> Option<bool> {
        match &self.programs {
            Some(programs) => {
                let is_idle = within(READY_WITHIN, manages(address)).await?;
                // A page that has run is loaded, and connected to its database. One that is idle again
                // has run some.
                match self.path.as_deref().filter(|_| is_idle && check == WorkerCheck::Ready) {
                    Some(path) => within(PAGE_WITHIN, self.page(address, programs, path)).await,
                    None => Some(is_idle),
                }
            }
            None => within(PAGE_WITHIN, self.answer(address)).await,
        }
    }

    async fn page(&self, address: &NodeAddress, programs: &Programs, path: &str) -> Option<bool> {
        let stream = Connector::plain(address.clone(), READY_WITHIN).connect().await.ok()?;
        let (head, host, body) = request(Method::GET, path)?;
        let call = (programs, &programs.check(head.uri.path()));
        let mut connection = FastCgi::new(stream, &self.node, HEAD_BYTES, PAGE_WITHIN);
        let answer = connection.exchange(&head.clone().into(), call, &host, body, None, PAGE_WITHIN).await;
        Some(is_well(answer.ok()?.status))
    }

    async fn answer(&self, address: &NodeAddress) -> Option<bool> {
        let stream = Connector::plain(address.clone(), READY_WITHIN).connect().await.ok()?;
        let (method, path) = self.path.as_deref().map_or((Method::HEAD, "/"), |path| (Method::GET, path));
        let (head, host, body) = request(method, path)?;
        let mut connection = Http1::new(stream, HEAD_BYTES, PAGE_WITHIN);
        let answer = connection.exchange(&head.into(), &host, body, None, PAGE_WITHIN).await.ok()?;
        Some(is_well(answer.status) || self.path.is_none())
    }
}

/// Returns whether a FastCGI worker answers without running a program; `None`: not at all.
async fn manages(address: &NodeAddress) -> Option<bool> {
    let mut stream = Connector::plain(address.clone(), READY_WITHIN).connect().await.ok()?;
    stream.write_all(&management::ask()).await.ok()?;
    let mut answer = [0; management::ANSWER_LEAST];
    stream.read_exact(&mut answer).await.ok()?;
    Some(management::is_answer(answer))
}

/// Returns what asks for a page.
fn request(method: Method, path: &str) -> Option<(Parts, HeaderValue, RequestBody)> {
    let host = HeaderValue::from_static("localhost");
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, &host)
        .header(USER_AGENT, "suimon-ready-check")
        .header(CONNECTION, "close");
    let (head, body) = request.body(RequestBody::empty()).ok()?.into_parts();
    Some((head, host, body))
}

async fn within<T>(limit: Duration, answer: impl Future<Output = Option<T>>) -> Option<T> {
    tokio::time::timeout(limit, answer).await.ok().flatten()
}

/// Returns whether a check's answer shows that all is well.
pub(super) fn is_well(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

//! A pool of workers as a node: each request is given a worker of its own.

use super::connect::{ConnectError, Connector, Stream};
use super::error::UpstreamErrorKind;
use super::fastcgi::Programs;
use super::http1::Http1;
use super::request::RequestBody;
use http::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request};
use std::sync::Arc;
use std::time::Duration;
use suimon_fastcgi::management;
use suimon_params::upstream::{NodeAddress, WorkersNodeParams};
use suimon_pool::{Lease, Pool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Workers tried for one request, of those that cannot be connected to.
const TRIES_MAX: u32 = 3;
/// The longest that a worker may take to answer whether it is ready; then it is asked again.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// The largest head of an answer to that, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// The workers, and how they are spoken to.
pub(super) struct Workers {
    pub(super) pool: Pool,
    /// `None`: they speak HTTP/1.1.
    pub(super) programs: Option<Programs>,
    ready_path: Option<String>,
}

impl Workers {
    pub(super) fn new(
        origin: std::time::Instant,
        params: &WorkersNodeParams,
        programs: Option<Programs>,
    ) -> Self {
        let pool = Pool::new(origin, params.pool.clone());
        Workers { pool, programs, ready_path: params.ready_path.clone() }
    }

    /// Takes an idle worker and connects to it.
    pub(super) async fn open(
        &self,
        connector: &Connector,
        passes: bool,
    ) -> Result<(Stream, Lease), ConnectError> {
        let mut last = None;
        for _ in 0..TRIES_MAX {
            let Some(lease) = self.pool.take_within(connector.timeout(), passes).await else { break };
            match connector.connect_to(lease.address()).await {
                Ok(stream) => return Ok((stream, lease)),
                // It has just died; the pool hears of it. Without a descriptor none can be reached.
                Err(error) if error.kind == UpstreamErrorKind::GatewayFull => {
                    lease.done();
                    return Err(error);
                }
                Err(error) => last = Some(error),
            }
        }
        let (kind, detail) = if self.pool.count().is_down() {
            (UpstreamErrorKind::NoNode, "no worker is ready")
        } else {
            // That all are busy says nothing of the application.
            (UpstreamErrorKind::GatewayFull, "no worker was free in time")
        };
        Err(last.unwrap_or(ConnectError { kind, detail, cause: None }))
    }

    /// Starts, replaces and ends workers until `shutdown` is done and all have ended.
    pub(super) async fn run(&self, shutdown: impl Future<Output = ()>) {
        let asks = Arc::new(Asks { speaks_fastcgi: self.programs.is_some(), path: self.ready_path.clone() });
        let is_ready = move |address: Arc<NodeAddress>| {
            let asks = Arc::clone(&asks);
            async move {
                let answer = tokio::time::timeout(READY_WITHIN, asks.ask(&address)).await;
                answer.ok().flatten().unwrap_or(false)
            }
        };
        self.pool.run(is_ready, shutdown).await;
    }
}

/// How a worker is asked whether it takes requests.
struct Asks {
    speaks_fastcgi: bool,
    path: Option<String>,
}

impl Asks {
    /// Returns whether the worker answers as it should; `None`: not at all. Only an answer shows that
    /// it is idle: the kernel opens connections to a busy one, too.
    async fn ask(&self, address: &NodeAddress) -> Option<bool> {
        let mut stream = Connector::plain(address.clone(), READY_WITHIN).connect().await.ok()?;
        if self.speaks_fastcgi {
            stream.write_all(&management::ask()).await.ok()?;
            let mut answer = [0; management::ANSWER_LEAST];
            stream.read_exact(&mut answer).await.ok()?;
            return Some(management::is_answer(answer));
        }
        let (method, path) = self.path.as_deref().map_or((Method::HEAD, "/"), |path| (Method::GET, path));
        let host = HeaderValue::from_static("localhost");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &host)
            .header(USER_AGENT, "suimon-ready-check")
            .header(CONNECTION, "close");
        let (head, body) = request.body(RequestBody::empty()).ok()?.into_parts();
        let mut connection = Http1::new(stream, HEAD_BYTES, READY_WITHIN);
        let answer = connection.exchange(&head.into(), &host, body, None, READY_WITHIN).await.ok()?;
        let is_well = answer.status.is_success() || answer.status.is_redirection();
        Some(is_well || self.path.is_none())
    }
}

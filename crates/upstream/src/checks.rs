//! What goes on beside requests: health checks as the fleet asks for them, and closing connections
//! nobody uses.

use super::connect::{ConnectError, Stream};
use super::error::UpstreamErrorKind;
use super::http1::Http1;
use super::request::RequestBody;
use super::send::http2_request;
use super::{Node, Pool, Shared, Upstream};
use http::header::{CONNECTION, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode, response};
use std::sync::Arc;
use std::time::Duration;
use suimon_fleet::Checked;
use suimon_model::NodeId;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Time between two looks at the idle connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What checks call themselves.
const AGENT: HeaderValue = HeaderValue::from_static("suimon-health-check");

impl Upstream {
    /// Runs health checks and closes connections nobody uses, until `shutdown` is done. To run once
    /// beside the requests.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        let shared = &self.shared;
        let mut checks = JoinSet::new();
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due = shared.fleet().poll_timeout().map(|at| at.since(shared.now()));
            tokio::select! {
                () = &mut shutdown => return,
                _ = sweep.tick() => shared.nodes.iter().for_each(Node::sweep),
                // A check is never lost: its end is told by the check itself, also when it panics
                // or times out.
                Some(_) = checks.join_next() => {}
                // Something is due sooner than it was.
                () = shared.hurry.notified() => {}
                () = tokio::time::sleep(due.unwrap_or(SWEEP_EVERY)) => {
                    for node in shared.handle_timeout() {
                        checks.spawn(check(Arc::clone(shared), node));
                    }
                }
            }
        }
    }
}

/// Checks one node and tells the fleet, whatever comes of it.
async fn check(shared: Arc<Shared>, node: NodeId) {
    let mut verdict = CheckResult { shared, node, checked: Checked::Failed };
    let shared = &verdict.shared;
    // One that accepts connections and lets them break, as a port that is forwarded to nobody does,
    // has to answer.
    let must_answer = shared.fleet().is_doubted(node);
    verdict.checked = look(&shared.nodes[node.index()], shared, must_answer).await;
}

/// Tells the fleet what came of a check when it is dropped, so that none stays open for ever.
struct CheckResult {
    shared: Arc<Shared>,
    node: NodeId,
    checked: Checked,
}

impl Drop for CheckResult {
    fn drop(&mut self) {
        self.shared.fleet().handle_check(self.shared.now(), self.node, self.checked);
        self.shared.tell_changes();
    }
}

/// Looks at `node`, for no longer than a check may take.
async fn look(node: &Node, shared: &Shared, must_answer: bool) -> Checked {
    let timeout = shared.params.health.timeout;
    let until = Instant::now() + timeout;
    let stream = match timeout_at(until, node.connector.connect()).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(ConnectError { kind: UpstreamErrorKind::GatewayFull, detail, .. })) => {
            tracing::warn!(node = %node.params, "a node could not be checked: {detail}");
            return Checked::NotMade;
        }
        _ => return Checked::Unreached,
    };
    // Where no page is named that tells how it is, any answer shows that it is there, and so does
    // one that takes its time.
    let any_is_well = shared.params.health.path.is_none();
    let otherwise = if any_is_well { Checked::Accepted } else { Checked::Failed };
    let (method, path) = match &shared.params.health.path {
        Some(path) => (Method::GET, path.as_str()),
        None if must_answer => (Method::HEAD, "/"),
        None => return Checked::Accepted,
    };
    let request = Request::builder().method(method).uri(path);
    let Ok(request) = request.header(USER_AGENT, AGENT).body(RequestBody::empty()) else {
        return Checked::Failed;
    };
    match timeout_at(until, ask(node, shared, stream, request, timeout)).await {
        Ok(Ok(head)) if any_is_well || is_well(head.status) => Checked::Answered,
        Ok(Err(UpstreamErrorKind::BrokenBeforeHead)) => Checked::Closed,
        _ => otherwise,
    }
}

/// Sends a check's request over a connection that nobody else uses, and returns the head of the
/// answer.
async fn ask(
    node: &Node,
    shared: &Shared,
    stream: Stream,
    request: Request<RequestBody>,
    timeout: Duration,
) -> Result<response::Parts, UpstreamErrorKind> {
    let (mut head, body) = request.into_parts();
    let answer = match &node.pool {
        Pool::Http1(_) => {
            head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
            let mut connection = Http1::new(stream, shared.params.max_head_bytes, timeout);
            connection.exchange(&head.into(), &node.authority, body, None, timeout).await
        }
        Pool::Http2(pool) => {
            let Ok(mut lease) = pool.open_alone(stream).await else {
                return Err(UpstreamErrorKind::BrokenBeforeHead);
            };
            let request = http2_request(&head.into(), body, node);
            lease.exchange(request, None, timeout).await.map(|response| response.into_parts().0)
        }
    };
    answer.map_err(|failed| failed.kind)
}

fn is_well(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

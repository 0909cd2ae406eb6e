//! What goes on beside requests: health checks as the fleet asks for them, and closing connections nobody uses.

use super::http1::Http1;
use super::request::RequestBody;
use super::send::http2_request;
use super::{Node, Pool, Shared, Upstream};
use http::header::{CONNECTION, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use suimon_model::NodeId;
use tokio::task::JoinSet;

/// Time between two looks at the idle connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What checks call themselves.
const AGENT: HeaderValue = HeaderValue::from_static("suimon-health-check");

impl Upstream {
    /// Runs health checks and closes connections nobody uses, until `shutdown` is done. To run once beside the requests.
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
                // A check is never lost: its end is told by the check itself, also when it panics or times out.
                Some(_) = checks.join_next() => {}
                () = tokio::time::sleep(due.unwrap_or(SWEEP_EVERY)) => {
                    shared.fleet().handle_timeout(shared.now());
                }
            }
            for node in shared.tell_changes() {
                checks.spawn(check(Arc::clone(shared), node));
            }
        }
    }
}

/// Checks one node and tells the fleet, whatever comes of it.
async fn check(shared: Arc<Shared>, node: NodeId) {
    let mut verdict = Verdict { shared, node, passed: false };
    let shared = &verdict.shared;
    // One that accepts connections and lets them break, as a port that is forwarded to nobody does, has to answer.
    let must_answer = shared.fleet().is_lost(node);
    let passes = passes(&shared.nodes[node.index()], shared, must_answer);
    verdict.passed = tokio::time::timeout(shared.params.health.timeout, passes).await.unwrap_or(false);
}

/// Tells the fleet what came of a check when it is dropped, so that none stays open for ever.
struct Verdict {
    shared: Arc<Shared>,
    node: NodeId,
    passed: bool,
}

impl Drop for Verdict {
    fn drop(&mut self) {
        self.shared.fleet().handle_check(self.shared.now(), self.node, self.passed);
        // Fleet asks for checks only when its timeout is handled, so there are none to pass on here.
        self.shared.tell_changes();
    }
}

async fn passes(node: &Node, shared: &Shared, must_answer: bool) -> bool {
    let Ok(stream) = node.connector.connect().await else { return false };
    let (method, path) = match &shared.params.health.path {
        Some(path) => (Method::GET, path.as_str()),
        None if must_answer => (Method::HEAD, "/"),
        None => return true,
    };
    let request = Request::builder().method(method).uri(path);
    let Ok(request) = request.header(USER_AGENT, AGENT).body(RequestBody::empty()) else {
        return false;
    };
    let (mut head, body) = request.into_parts();
    let timeout = shared.params.health.timeout;
    let answer = match &node.pool {
        Pool::Http1(_) => {
            head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
            let mut connection = Http1::new(stream, shared.params.max_head_bytes, timeout);
            connection.exchange(&head, &node.authority, body, None, timeout).await
        }
        Pool::Http2(pool) => {
            let Ok(mut lease) = pool.open_alone(stream).await else { return false };
            let request = http2_request(&head, body, node);
            lease.exchange(request, None, timeout).await.map(|response| response.into_parts().0)
        }
    };
    // Where no page is named that tells how it is, any answer shows that it is there.
    let any_is_well = shared.params.health.path.is_none();
    answer.is_ok_and(|head| any_is_well || is_well(head.status))
}

fn is_well(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

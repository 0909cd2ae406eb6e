//! What runs beside requests: the health checks that the fleet asks for, and closing idle
//! connections.

use super::connect::{ConnectError, Stream};
use super::error::UpstreamErrorKind;
use super::fastcgi::FastCgi;
use super::http1::Http1;
use super::request::RequestBody;
use super::send::http2_request;
use super::workers::is_well;
use super::{Node, Pool, Shared, Upstream, agent_checks, php_watch, reports};
use http::header::{CONNECTION, HeaderValue, USER_AGENT};
use http::{Method, Request, response};
use std::sync::Arc;
use std::time::Duration;
use suimon_fleet::Checked;
use suimon_model::NodeId;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Interval of the sweeps over idle connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether a node owes answers, at least.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The `User-Agent` of checks.
const AGENT: HeaderValue = HeaderValue::from_static("suimon-health-check");

impl Upstream {
    /// Runs health checks, closes idle connections, takes load reports, asks for load and keeps the
    /// workers of a pool until `shutdown` is done and these have ended. Run it once, beside the requests.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        let (end, mut ended) = watch::channel(());
        let workers = async {
            if let Some(workers) = self.shared.workers() {
                // An end without a word is one, too.
                workers.run(async { _ = ended.changed().await }).await;
            }
        };
        let others = async {
            tokio::select! {
                () = self.run_checks(shutdown) => {}
                () = php_watch::watch(&self.shared) => {}
                () = reports::receive(&self.shared) => {}
                () = agent_checks::run(&self.shared) => {}
            }
            drop(end);
        };
        tokio::join!(workers, others);
    }

    async fn run_checks(&self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        let shared = &self.shared;
        let mut checks = JoinSet::new();
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due =
                shared.fleet().poll_timeout().map_or(LOOK_EVERY, |at| at.since(shared.now()).min(LOOK_EVERY));
            tokio::select! {
                () = &mut shutdown => return,
                _ = sweep.tick() => shared.nodes.present().iter().for_each(|node| node.sweep()),
                // The check itself reports its result, even if it panics or times out.
                Some(_) = checks.join_next() => {}
                // Something became due sooner.
                () = shared.hurry.notified() => {}
                () = tokio::time::sleep(due) => {
                    for node in shared.handle_timeout() {
                        checks.spawn(check(Arc::clone(shared), node));
                    }
                }
            }
        }
    }
}

/// Checks one node and reports any result to the fleet.
async fn check(shared: Arc<Shared>, node: NodeId) {
    let Some(at) = shared.nodes.get(node) else { return };
    let mut verdict = CheckResult { shared, node: at, checked: Checked::Failed };
    let shared = &verdict.shared;
    // A doubted node must answer: a forwarded port without a server behind it accepts connections,
    // too, and then closes them.
    let must_answer = shared.fleet().is_doubted(node);
    let began = Instant::now();
    verdict.checked = look(&verdict.node, shared, must_answer).await;
    let is_pool = verdict.node.pool.workers().is_some();
    if verdict.checked == Checked::Answered && !is_pool {
        shared.check_took.send_replace(began.elapsed());
    }
}

/// Reports the result of a check to the fleet when dropped, so that no check stays under way for
/// ever.
struct CheckResult {
    shared: Arc<Shared>,
    node: Arc<Node>,
    checked: Checked,
}

impl Drop for CheckResult {
    fn drop(&mut self) {
        {
            let mut fleet = self.shared.fleet();
            // Another node may have its place by now.
            if self.shared.nodes.has(self.node.id, &self.node) {
                fleet.handle_check(self.shared.now(), self.node.id, self.checked);
            }
        }
        self.shared.tell_changes();
    }
}

/// Checks `node` within the time limit of a check.
async fn look(node: &Node, shared: &Shared, must_answer: bool) -> Checked {
    if let Some(workers) = node.pool.workers() {
        // They are watched by their pool.
        return if workers.pool.is_down() { Checked::Unreached } else { Checked::Answered };
    }
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
    // Without a health path any answer shows that the node is there, and so does one that takes too
    // long.
    let any_is_well = shared.params.health.path.is_none();
    let (otherwise, late) =
        if any_is_well { (Checked::Accepted, Checked::Mute) } else { (Checked::Failed, Checked::TimedOut) };
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
        Ok(Err(UpstreamErrorKind::FirstByteTimeout)) | Err(_) => late,
        Ok(_) => otherwise,
    }
}

/// Sends a check's request over a connection of its own, and returns the head of the answer.
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
        Pool::Workers(_) => return Err(UpstreamErrorKind::Connect),
        Pool::FastCgi(programs) => {
            let path = head.uri.path().to_owned();
            let call = (programs, &programs.check(&path));
            let mut connection = FastCgi::new(stream, &node.params, shared.params.max_head_bytes, timeout);
            connection.exchange(&head.into(), call, &node.authority, body, None, timeout).await
        }
    };
    answer.map_err(|failed| failed.kind)
}

//! The upstream side: sends a request to one of the application's nodes and returns the response as
//! it arrives.
//!
//! - [`Upstream::send`]: picks a node, takes or opens a connection, sends, and retries if that is
//!   certainly safe.
//! - [`UpstreamBody`]: the response's body. Reading it drives the connection; at its end the
//!   connection returns to the pool.
//! - [`Upstream::run`]: what runs beside requests: health checks, and closing idle connections.
//! - [`Upstream::view`]: the present state of every node.
//! - [`Upstream::listen_for_reports`]: takes what nodes report of their load.
//!
//! HTTP/1.1 and FastCGI connections have no task of their own: the request that uses one polls it,
//! so dropping the request cancels it. HTTP/2 connections are shared, and each is driven by a task.
//! `suimon-fleet` picks the node, behind a lock that is held for nanoseconds.
//!
//! A request is sent again in two cases only. Either nothing of it was written. Or all of this is
//! true: it is GET, HEAD or OPTIONS without a body; it was sent on a connection used before, or
//! there is another node; and the connection closed before any of the response arrived, or the node hangs
//! and is ejected for that. The second
//! case happens once, on a new connection, as the request itself may break the application; twice
//! where workers die meanwhile that have nothing to do with it. It has a budget, so that an application
//! that dies is not asked for everything twice ([`suimon_fleet`]). At most [`TRIES_MAX`] tries are made,
//! the last on a new connection.

mod affinity;
mod agent_checks;
mod agent_reply;
mod answer;
mod body;
mod cgi;
mod checks;
mod connect;
mod drain;
mod error;
mod fastcgi;
mod fault;
mod guard;
mod head;
mod http1;
mod http2;
mod incoming;
mod nodes;
mod outgoing;
mod php;
mod php_watch;
mod pool;
pub mod report_keys;
mod report_socket;
mod reports;
mod request;
mod retries;
mod send;
mod timer;
mod tls;
mod view;
mod wire;
mod workers;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(any(test, fuzzing))]
pub(crate) use http1::decoded;

pub use body::{UpgradedIo, UpstreamBody};
pub use error::{Blame, Unsent, UpstreamError, UpstreamErrorKind};
pub use head::{NodePin, RequestClient, RequestHead};
pub use report_socket::LoadReportCounts;
pub use request::BoxError;
pub use send::{Sending, TRIES_MAX};
pub use suimon_fastcgi::php_status::PhpStatus;
use suimon_params::upstream::{NodeAddress, NodeParams, Protocol, Scheme, UpstreamParams};
pub use view::{NodeReportView, UpstreamNodeView};

use affinity::SessionCookie;
use agent_reply::{AgentCheckCounts, SaidWeight};
use bytes::Bytes;
use connect::Connector;
use fastcgi::Programs;
use guard::{Asked, Guard};
use http::HeaderValue;
use http_body::Body;
use http2::SharedPool;
use nodes::Nodes;
use php::PhpSeen;
use pool::IdlePool;
use report_socket::{OrcaCounts, Receiver};
use request::RequestBody;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
pub use suimon_fleet::RetryCounts;
use suimon_fleet::{AsksFor, Balance, Change, Fleet, Output, Pick, Served, SessionKey, SessionSaid, Why};
use suimon_model::{Instant, NodeId, RouteId};
use tokio::sync::{Notify, watch};
use workers::Workers;

/// The application's nodes and the connections to them. All clones share them.
#[derive(Clone)]
pub struct Upstream {
    shared: Arc<Shared>,
}

/// What all requests share.
struct Shared {
    origin: std::time::Instant,
    params: UpstreamParams,
    fleet: Mutex<Fleet>,
    nodes: Nodes<Node>,
    /// What keeps sessions of the application at their nodes, if anything does.
    affinity: Option<SessionCookie>,
    /// The node whose workers the gateway starts, if there is one. It never goes.
    workers: Option<Arc<Node>>,
    /// How many nodes are up.
    up: watch::Sender<u32>,
    /// Whether any node is up.
    is_up: watch::Sender<bool>,
    /// Whether any node is up whose last connection could be opened.
    is_reached: watch::Sender<bool>,
    /// Wakes [`Upstream::run`] when a node's check becomes due sooner.
    hurry: Notify,
    /// What the last health check that was answered took.
    check_took: watch::Sender<Duration>,
    /// What takes load reports, if anything does.
    reports: OnceLock<Receiver>,
    /// Load reports in responses.
    orca: OrcaCounts,
    /// Load that nodes told when they were asked.
    agent_checks: AgentCheckCounts,
}

/// One node: how to reach it, and the connections to it.
struct Node {
    id: NodeId,
    params: NodeParams,
    authority: HeaderValue,
    connector: Connector,
    pool: Pool,
    php: PhpSeen,
    said_weight: SaidWeight,
    /// Wakes the requests that wait for an answer of it and may be sent again, once it is known that it hangs;
    /// and the others once it has answered nothing for as long as the shortest ejection.
    hangs: Notify,
    hangs_on: Notify,
}

enum Pool {
    Http1(IdlePool),
    Http2(SharedPool),
    /// A connection carries one request.
    FastCgi(Programs),
    Workers(Box<Workers>),
}

impl Upstream {
    /// Returns the upstream side over `params.nodes`. Opens no connection yet. [`Upstream::run`]
    /// must run beside it.
    ///
    /// # Errors
    /// A sentence about no nodes, too many nodes, or TLS parameters that cannot be used.
    pub fn new(params: UpstreamParams) -> Result<Self, String> {
        Upstream::since(std::time::Instant::now(), params)
    }

    /// As [`Upstream::new`], with time counted from `origin`, as on the gateway's clock.
    ///
    /// # Errors
    /// As of [`Upstream::new`].
    pub fn since(origin: std::time::Instant, params: UpstreamParams) -> Result<Self, String> {
        if params.nodes.is_empty() && !params.grows {
            return Err("no nodes: name at least one, such as http://127.0.0.1:8080".to_owned());
        }
        let mut fleet = Fleet::new(fleet_params(&params));
        let mut nodes = Vec::with_capacity(params.nodes.len());
        for node in &params.nodes {
            let id = fleet.add_node(Instant::ORIGIN).map_err(|full| full.to_string())?;
            nodes.push(Arc::new(Node::new(id, origin, node, &params)?));
        }
        let workers = nodes.iter().find(|node| node.pool.workers().is_some()).cloned();
        let has_nodes = !nodes.is_empty();
        let up = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let shared = Shared {
            origin,
            affinity: params.affinity.as_ref().map(SessionCookie::new),
            params,
            fleet: Mutex::new(fleet),
            nodes: Nodes::new(nodes),
            workers,
            up: watch::Sender::new(up),
            is_up: watch::Sender::new(has_nodes),
            is_reached: watch::Sender::new(has_nodes),
            hurry: Notify::new(),
            check_took: watch::Sender::new(Duration::ZERO),
            reports: OnceLock::new(),
            orca: OrcaCounts::default(),
            agent_checks: AgentCheckCounts::default(),
        };
        Ok(Upstream { shared: Arc::new(shared) })
    }

    /// Sends a request to a node, other than `avoid` if another is up, and returns the response;
    /// its body follows.
    ///
    /// `head` must be in origin form, without hop-by-hop headers except `Connection: upgrade` with
    /// its `Upgrade`. After a `101` the body is the raw connection:
    /// [`UpstreamBody::into_upgraded`]. The future is small. Dropping it, or the body of the
    /// response before its end, cancels the request at the node as far as HTTP allows.
    ///
    /// # Errors
    /// Every [`UpstreamErrorKind`] except those of a response's body, which come from
    /// [`UpstreamBody`].
    pub fn send<B>(&self, head: impl Into<RequestHead>, body: B, avoid: Option<NodeId>) -> Sending
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (body, progress) = RequestBody::new(body);
        Box::pin(send::send(Arc::clone(&self.shared), head.into(), body, progress, avoid, 0))
    }

    /// Sends a request again that reached no node.
    pub fn send_again(&self, unsent: Unsent) -> Sending {
        let Unsent { head, body, progress, losses } = unsent;
        Box::pin(send::send(Arc::clone(&self.shared), head, body, progress, None, losses))
    }

    /// Waits until some node is up and can be connected to, as far as is known.
    pub async fn reached(&self) {
        // `shared` owns the sender, so it exists.
        let _ = self.shared.is_reached.subscribe().wait_for(|is_reached| *is_reached).await;
    }

    /// Says whether a node could be used, but for its number.
    ///
    /// # Errors
    /// A sentence: an address that cannot be used.
    pub fn check_node(&self, node: &NodeParams) -> Result<(), String> {
        Node::new(NodeId(0), self.shared.origin, node, &self.shared.params).map(drop)
    }

    /// Takes in a node that serves from now on, and returns its id.
    ///
    /// # Errors
    /// A sentence: too many nodes, or an address that cannot be used.
    pub fn add_node(&self, node: &NodeParams) -> Result<NodeId, String> {
        let shared = &self.shared;
        let name = node.to_string();
        let mut node = Node::new(NodeId(0), shared.origin, node, &shared.params)?;
        let id = {
            let mut fleet = shared.fleet();
            let id = fleet.add_node(shared.now()).map_err(|full| full.to_string())?;
            node.id = id;
            shared.nodes.set(id, Some(Arc::new(node)));
            shared.name_reporter(id, Some(name));
            id
        };
        shared.hurry.notify_one();
        shared.tell_changes();
        Ok(id)
    }

    /// Returns whether any node speaks HTTP/2, so that both sides of a request may send at the same
    /// time.
    pub fn speaks_http2(&self) -> bool {
        self.shared.nodes.any(|node| matches!(node.pool, Pool::Http2(_)))
    }

    /// Returns whether a request's body must have a known length: FastCGI has no other way to tell a
    /// program where it ends.
    pub fn needs_length(&self) -> bool {
        self.shared.nodes.any(|node| node.pool.programs().is_some())
    }

    /// Returns whether all requests of a client's connection go to one node, so that heads must have a
    /// [`NodePin`].
    pub fn pins_connections(&self) -> bool {
        self.shared.params.balance == Balance::Paper && !self.shared.nodes.is_single()
    }

    /// Returns whether bodies should be whole before a request is sent: a worker has one request at a
    /// time, and would wait for the client.
    pub fn wants_whole_bodies(&self) -> bool {
        self.pool().is_some()
    }

    /// Returns whether a process is run for each request.
    pub fn runs_once(&self) -> bool {
        self.shared.workers().is_some_and(|workers| workers.runs_once)
    }

    /// Returns the pool whose workers take the requests, if there is one.
    pub fn pool(&self) -> Option<&suimon_pool::Pool> {
        self.shared.workers().map(|workers| &workers.pool)
    }

    /// Returns whether any node is up.
    pub fn is_up(&self) -> bool {
        self.shared.fleet().is_up()
    }

    /// Returns a receiver that holds what the last health check that was answered took, and is
    /// notified of each.
    pub fn watch_checks(&self) -> watch::Receiver<Duration> {
        self.shared.check_took.subscribe()
    }

    /// Returns a receiver that holds how many nodes are up, and is notified of changes.
    pub fn watch_up_count(&self) -> watch::Receiver<u32> {
        self.shared.up.subscribe()
    }

    /// Returns a receiver that holds whether any node is up, and is notified of changes.
    pub fn watch_up(&self) -> watch::Receiver<bool> {
        self.shared.is_up.subscribe()
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("nodes", &self.shared.params.nodes).finish_non_exhaustive()
    }
}

impl Shared {
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    fn fleet(&self) -> MutexGuard<'_, Fleet> {
        // A panic under the lock leaves counts that are wrong by one at most.
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workers(&self) -> Option<&Workers> {
        self.workers.as_ref()?.pool.workers()
    }

    /// Picks a node for a request and takes a place at it. `is_first`: it is the first for its request.
    fn pick(
        self: &Arc<Self>,
        is_first: bool,
        avoid: Option<NodeId>,
        head: &RequestHead,
        session: Option<SessionKey>,
    ) -> Option<(Pick, Guard)> {
        let (now, pin) = (self.now(), head.pin.as_ref());
        let RequestHead { route, is_new_path, .. } = *head;
        let mut asked = Asked { route, is_new_path, is_bound: false, is_answered: false };
        let asks = asked.asks();
        let (pick, changed) = {
            let mut fleet = self.fleet();
            if is_first {
                fleet.handle_request(now, head.route);
            }
            let again = pin.and_then(NodePin::node).and_then(|node| fleet.pick_again(now, asks, node, avoid));
            let pick = match (again, session) {
                (Some(pick), _) => pick,
                (None, Some(session)) => fleet.pick_for(now, asks, session, avoid)?,
                (None, None) => fleet.pick(now, asks, avoid)?,
            };
            // Under the lock, so that requests of a connection that come at once go to one node, too.
            if let Some(pin) = pin {
                pin.set(pick.node);
            }
            (pick, fleet.has_output())
        };
        if changed {
            self.tell_changes();
        }
        // It has a request, so nothing else is at its place.
        let node = self.nodes.get(pick.node)?;
        asked.is_bound = pick.reason.is_bound();
        let guard = Guard { shared: Arc::clone(self), node, asked, worker: None };
        Some((pick, guard))
    }

    fn note_answer(&self, node: NodeId, asks: AsksFor) {
        let changed = {
            let mut fleet = self.fleet();
            let was_doubted = fleet.is_doubted(node);
            fleet.handle_answer(self.now(), node, asks);
            was_doubted || fleet.has_output()
        };
        if changed {
            self.tell_changes();
        }
    }

    /// Notes what an answer says of the session of its request.
    fn note_session(&self, node: NodeId, asked: Option<SessionKey>, said: SessionSaid) {
        if asked.is_none() && said == SessionSaid::Nothing {
            return;
        }
        let changed = {
            let mut fleet = self.fleet();
            fleet.handle_session(self.now(), node, asked, said);
            fleet.has_output()
        };
        if changed {
            self.tell_changes();
        }
    }

    /// Notes how long a node took for the head of an answer.
    fn note_served(
        &self,
        (node, is_bound): (NodeId, bool),
        since: Instant,
        route: Option<RouteId>,
        is_good: bool,
    ) {
        let Some(route) = route.filter(|_| !self.nodes.is_single()) else { return };
        let now = self.now();
        self.fleet().handle_served(now, node, &Served { route, took: now.since(since), is_good, is_bound });
    }

    /// Notes how long a request took of which the client was waited for, too.
    fn note_took(&self, since: Instant, route: Option<RouteId>) {
        if self.nodes.is_single() {
            return;
        }
        let now = self.now();
        self.fleet().handle_took(now, route, now.since(since));
    }

    fn note_failure(&self, node: NodeId) {
        self.fleet().handle_failure(self.now(), node);
        self.tell_changes();
    }

    fn note_unreached(&self, node: NodeId) {
        self.fleet().handle_unreached(self.now(), node);
        self.hurry.notify_one();
        self.tell_changes();
    }

    fn note_lost(&self, node: NodeId) {
        self.fleet().handle_lost(self.now(), node);
        self.hurry.notify_one();
    }

    /// Lets the fleet do what is due, and returns the nodes to check.
    fn handle_timeout(&self) -> Vec<NodeId> {
        let outputs: Vec<Output> = {
            let mut fleet = self.fleet();
            fleet.handle_timeout(self.now());
            // Under the same lock: another reader of outputs would drop a check, and the fleet
            // needs each one's result.
            std::iter::from_fn(|| fleet.poll_output()).collect()
        };
        self.tell_up();
        let checks = outputs.into_iter().filter_map(|output| match output {
            Output::Check(node) => Some(node),
            other => {
                self.tell_output(&other);
                None
            }
        });
        checks.collect()
    }

    /// Logs changes of nodes, and publishes whether any is up.
    fn tell_changes(&self) {
        self.tell_up();
        loop {
            // The lock is not held while logging: the log may be slow.
            let Some(output) = self.fleet().poll_output() else { return };
            self.tell_output(&output);
        }
    }

    fn tell_output(&self, output: &Output) {
        match output {
            // Only `handle_timeout` produces checks, and it takes them under its lock.
            Output::Check(_) | Output::Proven(_) => {}
            Output::Changed(change) => self.tell(change),
            Output::Hangs(node) => {
                if let Some(node) = self.nodes.get(*node) {
                    // Both: it may have been out for another reason already, when it was found to hang.
                    node.hangs.notify_waiters();
                    node.hangs_on.notify_waiters();
                }
            }
            Output::Released { node, sessions } => {
                let Some(at) = self.nodes.get(*node) else { return };
                tracing::warn!(node = %at.params, sessions, "{sessions} sessions that were at a node go elsewhere");
                // More of them are told of later, together.
                self.hurry.notify_one();
            }
        }
    }

    fn tell_up(&self) {
        self.up.send_if_modified(|was| {
            let up = self.fleet().up();
            std::mem::replace(was, up) != up
        });
        // The watch's lock is held while the fleet is read, so that the last reading is the last
        // one published.
        self.is_up.send_if_modified(|was| {
            let is_up = self.fleet().is_up();
            std::mem::replace(was, is_up) != is_up
        });
        self.is_reached.send_if_modified(|was| {
            let is_reached = self.fleet().is_reached();
            std::mem::replace(was, is_reached) != is_reached
        });
    }

    fn tell(&self, change: &Change) {
        let Some(node) = self.nodes.get(change.node) else { return };
        if change.why == Why::Silent {
            node.hangs.notify_waiters();
        }
        tracing::warn!(
            node = %node.params,
            from = change.from.code(),
            to = change.to.code(),
            reason = change.why.code(),
            lasts_s = change.lasts.as_secs_f64(),
            "a node is now {}: {}",
            change.to.code(),
            change.why.explain(),
        );
    }
}

impl Node {
    fn new(
        id: NodeId,
        origin: std::time::Instant,
        node: &NodeParams,
        params: &UpstreamParams,
    ) -> Result<Self, String> {
        let authority = HeaderValue::from_str(&node.authority())
            .map_err(|_| format!("{node}: the host has characters that cannot stand in a Host header"))?;
        let programs = (node.scheme == Scheme::FastCgi).then(|| {
            let programs = params.fastcgi.as_ref().map(Programs::new);
            programs
                .ok_or_else(|| format!("{node}: a FastCGI node needs to know which program answers a path"))
        });
        let programs = programs.transpose()?;
        let pool = match (node.protocol, programs) {
            (_, programs) if matches!(node.address, NodeAddress::Workers(_)) => {
                let workers =
                    params.workers.as_ref().ok_or_else(|| format!("{node}: there is no such pool"))?;
                Pool::Workers(Box::new(Workers::new(origin, workers, programs)))
            }
            (_, Some(programs)) => Pool::FastCgi(programs),
            (Protocol::Http1, None) => Pool::Http1(IdlePool::new(params.pool_idle_max, params.pool_idle_age)),
            (Protocol::Http2, None) => Pool::Http2(SharedPool::new(http2::Limits {
                connections_max: params.h2_connections_max,
                streams_max: params.h2_streams_max,
                idle_age: params.pool_idle_age,
                max_head_bytes: params.max_head_bytes,
                first_byte_timeout: params.first_byte_timeout,
            })),
        };
        let connector = Connector::new(node, &params.tls, params.connect_timeout)?;
        Ok(Node {
            id,
            params: node.clone(),
            authority,
            connector,
            pool,
            php: PhpSeen::default(),
            said_weight: SaidWeight::default(),
            hangs: Notify::new(),
            hangs_on: Notify::new(),
        })
    }

    /// Closes connections that were idle for too long.
    fn sweep(&self) {
        match &self.pool {
            Pool::Http1(pool) => pool.sweep(),
            Pool::Http2(pool) => pool.sweep(),
            Pool::FastCgi(_) | Pool::Workers(_) => {}
        }
    }

    /// Returns the connections kept open: idle ones (HTTP/1.1), all (HTTP/2).
    fn pooled(&self) -> usize {
        match &self.pool {
            Pool::Http1(pool) => pool.len(),
            Pool::Http2(pool) => pool.count(),
            Pool::FastCgi(_) | Pool::Workers(_) => 0,
        }
    }
}

impl Pool {
    fn workers(&self) -> Option<&Workers> {
        if let Pool::Workers(workers) = self { Some(workers) } else { None }
    }

    /// Returns the programs of those that speak FastCGI.
    fn programs(&self) -> Option<&Programs> {
        match self {
            Pool::FastCgi(programs) => Some(programs),
            Pool::Workers(workers) => workers.programs.as_deref(),
            Pool::Http1(_) | Pool::Http2(_) => None,
        }
    }
}

fn fleet_params(params: &UpstreamParams) -> suimon_fleet::Params {
    let health = &params.health;
    let checks = (!health.interval.is_zero()).then_some(suimon_fleet::CheckParams {
        interval: health.interval,
        down_after: health.down_after,
        up_after: health.up_after,
    });
    suimon_fleet::Params {
        checks,
        ejection: params.ejection.clone(),
        balance: params.balance,
        slow_start: params.slow_start,
        affinity: params
            .affinity
            .as_ref()
            .map(|affinity| suimon_fleet::AffinityParams { idle: affinity.idle }),
        retry_share: params.retry_share,
        seed: params.seed,
    }
}

#[cfg(test)]
mod tests;

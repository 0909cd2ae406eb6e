//! The proxy as a whole: bound, run, looked at, drained.

mod found;
mod handover;
mod kept;
mod learned;
mod lines;
mod nodes;
mod overrides;
mod pools;
mod sharing;
mod sockets;
mod start_error;
mod workers;

pub use handover::{BegunSession, HandedOver, Handover};
pub use lines::{LineCommand, LineError, LineReport};
pub(crate) use overrides::has_nodes;
pub use pools::{PoolCommand, PoolError, PoolReport};
pub use sockets::{Listening, Sockets, datagrams_of, listener_of};
pub use start_error::StartError;

use crate::backend::Backend;
use crate::gatekeeper::Gatekeeper;
use crate::gateway::Gateway;
use crate::nodes_report::NodesReport;
use crate::pipeline::{Core, Parts};
use crate::request_record::RequestNotes;
use crate::telemetry::{LearnedView, Telemetry, View};
use found::Follower;
use handover::{Asked, Keeping, handovers};
use kept::{LineStore, restore_lines};
use learned::{LearnedStore, LearnedWorkers, StartedWith, recall};
use sharing::Sharer;
use sockets::listen;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use suimon_downstream::connections::{CloseRequest, Connections};
use suimon_downstream::listener::{Accepting, Acceptor};
use suimon_downstream::tls::Certificate;
use suimon_downstream::watch::Watcher;
use suimon_identity::identify::Identifier;
use suimon_identity::keys::{self, Keys};
use suimon_identity::lease::Leases;
use suimon_identity::session_tags::SessionTags;
use suimon_model::{KindId, PoolId, SessionId};
use suimon_params::{KINDS_MAX, Params};
use suimon_routes::{SHARES, Table};
use suimon_upstream::{LoadReportCounts, Upstream, UpstreamNodeView, report_keys};
use suimon_waiting_room::{Pages, WaitingRoom, read_template};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// The least that a health check took grows by this part with each check.
const LEAST_FORGETS: u32 = 1000;

/// A proxy that holds its listening sockets but accepts nobody yet.
#[derive(Debug)]
pub struct Server {
    gateway: Arc<Gateway>,
    plain: Option<Arc<TcpListener>>,
    tls: Option<(Arc<TcpListener>, Arc<Certificate>)>,
    connections: Arc<Connections>,
    begun: StartedWith,
    handover: Handover,
    handovers: mpsc::Receiver<Asked>,
}

/// A look at a running proxy, for reports. Clones see the same one.
#[derive(Clone, Debug)]
pub struct Observer {
    gateway: Arc<Gateway>,
}

impl Server {
    /// Returns everything for which [`Server::bind`] refuses these parameters, each with the key of
    /// the setting it is about. Binds, makes and changes nothing.
    pub fn check(params: &Params) -> Vec<(&'static str, StartError)> {
        let mut refused: Vec<(&'static str, StartError)> = Vec::new();
        let mut note =
            |key, checked: Result<(), StartError>| refused.extend(checked.err().map(|error| (key, error)));
        note("listen", check(params));
        if let Some(sharing) = &params.sharing {
            for (key, why) in sharing::check(sharing) {
                note(key, Err(StartError::Params(why)));
            }
        }
        if let Some(path) = &params.lease.keys_file {
            note("lease.keys", Keys::check(path).map_err(StartError::Keys));
        }
        if let Some((_, keys)) = load_reports(params) {
            let keys = report_keys::open(keys);
            note("upstream.load_reports.keys", keys.map(drop).map_err(StartError::LoadReportKeys));
        }
        let names = params.sessions.kinds.iter().map(|kind| kind.name.as_str());
        note(
            "session",
            Keys::fresh().map_err(StartError::Keys).and_then(|keys| leases(keys, 1, names).map(drop)),
        );
        note(
            "waiting_room.template",
            read_template(&params.waiting_room).map(drop).map_err(StartError::Params),
        );
        let has_several = params.upstreams().filter(|upstream| upstream.workers.is_some()).count() > 1;
        for upstream in params.upstreams() {
            for pool in upstream.workers.iter().map(|workers| &workers.pool) {
                let name = if has_several { format!("{}: ", pool.name) } else { String::new() };
                for fault in suimon_pool::check(pool) {
                    note("pool", Err(StartError::Params(format!("{name}{fault}"))));
                }
            }
            note("upstream", Upstream::new(upstream.clone()).map(drop).map_err(StartError::Params));
        }
        note("upstream.nodes_file", found::check(params).map_err(StartError::Params));
        let tls = params.listen.tls.as_ref();
        note("listen.tls.cert", tls.map(Certificate::load).transpose().map(drop).map_err(StartError::Tls));
        refused
    }

    /// Binds the listening sockets and reads certificates and keys. Must be called inside the
    /// runtime that will run it.
    ///
    /// # Errors
    /// See [`StartError`]; each names the thing and the remedy. Nothing stays bound then.
    pub fn bind(params: Params) -> Result<Server, StartError> {
        Server::bind_with(params, Sockets::default(), None)
    }

    /// As [`Server::bind`], with sockets that are open already. `begun`: the sessions of a gateway that
    /// hands over to this one, if one does.
    ///
    /// # Errors
    /// As of [`Server::bind`].
    pub fn bind_with(
        mut params: Params,
        sockets: Sockets,
        begun: Option<&[BegunSession]>,
    ) -> Result<Server, StartError> {
        if let Some((_, error)) = Server::check(&params).into_iter().next() {
            return Err(error);
        }
        let keys = match &params.lease.keys_file {
            Some(path) => Keys::open(path),
            None => Keys::fresh(),
        };
        let mut secret = [0; 32];
        keys::fill_random(&mut secret).map_err(StartError::Keys)?;
        let names = params.sessions.kinds.iter().map(|kind| kind.name.as_str());
        let life = u32::try_from(params.lease.life.as_secs()).unwrap_or(u32::MAX).max(1);
        let keys = keys.map_err(StartError::Keys)?;
        let session_tags = SessionTags::of(&keys);
        let leases = leases(keys.clone(), life, names)?;
        let tags = leases.tags();
        let identifier = Identifier::new(&params.sessions, leases, params.limits.session_cookies, secret);

        if params.sharing.is_some() || begun.is_some() {
            // Two gateways with one seed would give two visitors the same session.
            let mut seed = [0; 8];
            keys::fill_random(&mut seed).map_err(StartError::Keys)?;
            params.gate.seed = u64::from_le_bytes(seed);
        }
        let keeper = Gatekeeper::new(params.gate.clone(), params.routes.discovered_mode);
        let pass_page = params.waiting_room.pass.as_ref().map(|pass| pass.page.clone());
        let table = Table::new(&params.routes).with_pass_page(pass_page);
        let kinds = params.sessions.kinds.iter().map(|kind| kind.name.clone()).collect();
        let telemetry = Arc::new(Telemetry::new(table.capacity(), kinds));
        for kind in &params.sessions.kinds {
            keeper.declare_kind(&kind.name, kind.gate.clone());
        }
        if params.sharing.is_some() {
            keeper.share();
        }
        let template = read_template(&params.waiting_room).map_err(StartError::Params)?;
        let lines = restore_lines(&params, &keeper)?;
        let has_room = lines.iter().any(Option::is_some);
        let pages = Arc::new(Pages::of(&params.waiting_room, template, has_room));
        let waiting_room = has_room.then(|| {
            let of = lines.iter().map(|line| line.as_ref().map(|line| line.of)).collect();
            let waiting_room = WaitingRoom::new(&params.waiting_room, Arc::clone(&pages), &keys, tags, of);
            for (index, line) in lines.into_iter().enumerate() {
                let (Some(line), kind) = (line, KindId(index as u32)) else { continue };
                identifier.leases().end_all(kind, line.leases_ended);
                if let Some(said) = line.said {
                    waiting_room.say(kind, &said);
                }
            }
            for (index, _) in params.sessions.kinds.iter().enumerate() {
                let kind = KindId(index as u32);
                let saved = keeper.saved_line(kind);
                let seed = saved
                    .and_then(|saved| saved.lots.or(saved.lotteries.last().map(|lottery| lottery.seed())));
                waiting_room.commit(kind, seed);
            }
            waiting_room
        });
        let others: [_; SHARES] = std::array::from_fn(|_| keeper.declare_other("other", PoolId(0)));
        telemetry.name_route("other", others[0]);
        for route in &params.routes.declared {
            let (name, pool) = (route.name(), params.routes.pool_of(route));
            telemetry.name_route(&name, keeper.declare_route(&name, route.mode, pool));
        }
        for (pool, routes) in (1..).map(PoolId).zip(&params.routes.pools) {
            let name = routes.other();
            telemetry.name_route(&name, keeper.declare_other(&name, pool));
        }
        keeper.declare_services(&params);

        let origin = keeper.clock().origin();
        let upstreams = params.upstreams().map(|upstream| Upstream::since(origin, upstream.clone()));
        let upstreams = upstreams.collect::<Result<Vec<_>, _>>().map_err(StartError::Params)?;
        keeper.begin_with_nodes(upstreams.first().map_or(0, |first| *first.watch_up_count().borrow()));
        let certificate =
            params.listen.tls.as_ref().map(Certificate::load).transpose().map_err(StartError::Tls)?;
        let backlog = params.listen.backlog;
        let Sockets { plain, tls, load_reports: reports } = sockets;
        let plain = params.listen.plain.map(|address| listen(plain, address, backlog)).transpose()?;
        let tls = match (&params.listen.tls, certificate) {
            (Some(params), Some(certificate)) => {
                Some((listen(tls, params.address, backlog)?, Arc::new(certificate)))
            }
            _ => None,
        };
        if let Some((address, keys)) = load_reports(&params) {
            let keys = report_keys::open(keys).map_err(StartError::LoadReportKeys)?;
            let bound = upstreams.first().map(|upstream| match reports {
                Some(socket) => upstream.listen_for_reports_by(socket, keys),
                None => upstream.listen_for_reports(address, keys),
            });
            bound.transpose().map_err(|error| StartError::LoadReports(address, error))?;
        }
        let address = params.listen.plain.or(params.listen.tls.as_ref().map(|tls| tls.address));
        let watcher = Watcher::new();
        // It fails where sockets would: when descriptors or memory run out.
        let watcher = watcher.map_err(|error| StartError::Listen(address.expect("checked above"), error))?;
        let kind_of = |name: &str| params.sessions.kinds.iter().position(|kind| kind.name == name);
        keeper.reopen(
            begun
                .into_iter()
                .flatten()
                .filter_map(|(kind, session)| Some((KindId(kind_of(kind)? as u32), SessionId(*session)))),
        );
        // The addresses are ours now, and so is the file that goes with them.
        let begun = recall(&params, &keeper, &table, &telemetry);
        // Last of what can fail, so that a failed start leaves no file behind.
        if let Some(recording) = &params.record {
            keeper.begin_recording(recording).map_err(StartError::Record)?;
        }
        let backend =
            Backend::new(&params, Arc::clone(&keeper), upstreams, Arc::clone(&telemetry), session_tags);
        let watcher = Arc::new(watcher);
        let displaced = backend.telemetry.connections_displaced();
        let connections = Connections::new(params.limits.connections, displaced);
        let core = Core::new(params, Parts { table, identifier, waiting_room, pages, backend, watcher });
        let (handover, handovers) = handovers(Listening {
            plain: plain.as_ref().map(Arc::downgrade),
            tls: tls.as_ref().map(|(listener, _)| Arc::downgrade(listener)),
            application: core.backend().upstream(PoolId(0)).clone(),
        });
        let gateway = Gateway::new(core);
        Ok(Server { gateway, plain, tls, connections, begun, handover, handovers })
    }

    /// Returns the address of the plain listener, with the port it really has.
    pub fn plain_address(&self) -> Option<SocketAddr> {
        self.plain.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Returns the UDP address at which nodes report their load, with the port it really has.
    pub fn load_reports_address(&self) -> Option<SocketAddr> {
        self.gateway.core().backend().upstream(PoolId(0)).reports_address()
    }

    /// Returns the address of the TLS listener, with the port it really has.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// Takes note of requests from now on. Once, and before the first of them.
    pub fn note_requests(&self, notes: RequestNotes) {
        // A second time would change what is noted of a request on its way.
        let _ = self.gateway.core().backend().notes.set(notes);
    }

    /// Returns what hands the proxy over to another process while it runs.
    pub fn handover(&self) -> Handover {
        self.handover.clone()
    }

    /// Returns a look at the proxy, which stays good while it runs and after.
    pub fn observer(&self) -> Observer {
        Observer { gateway: Arc::clone(&self.gateway) }
    }

    /// Serves until `shutdown` is ready or another process goes on, then drains: accepts no
    /// connection, refuses newcomers, lets what is under way end, and returns once the last connection
    /// is closed, or after the drain time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (accepting_tell, accepting_told) = watch::channel(Accepting::Yes);
        // Else there would always be one who may ask for a handover.
        let (mut handovers, _) = (self.handovers, self.handover);
        let core = self.gateway.core();
        let backend = Arc::clone(core.backend());
        let mut background = JoinSet::new();
        let keeper = Arc::clone(&backend.keeper);
        background.spawn(async move { keeper.tick().await });
        self.gateway.own_overrides();
        let gateway = Arc::clone(&self.gateway);
        background.spawn(async move { gateway.tend_overrides().await });
        let waited_for = Arc::clone(&backend);
        background.spawn(async move { waited_for.make_room().await });
        let watcher = Arc::clone(&core.rules().watcher);
        background.spawn(async move {
            if let Err(error) = watcher.run().await {
                tracing::error!("client disconnects may be noticed late from now on: {error}");
            }
        });
        let lines = LineStore::new(&self.gateway);
        let sharer = core.params().sharing.clone().map(|params| Sharer::new(&params, &backend));
        let sharer = sharer.transpose();
        let (stop_sharing, stopped) = watch::channel(false);
        let sharing = match sharer {
            Ok(Some(sharer)) => Some(tokio::spawn(sharer.join().await.run(stopped))),
            Ok(None) => None,
            // It was checked before it was bound.
            Err(why) => {
                tracing::error!("nothing is shared: {why}");
                None
            }
        };
        let learned_workers = LearnedWorkers::of(&self.begun, core.params());
        let learned = LearnedStore::new(&core, self.begun, learned_workers.clone());
        let mut keeping = Keeping::begin(lines, learned);
        // Visitors come for what takes most requests. A pool of some routes that is down, or up alone,
        // is no reason to stop the line, or to move it.
        let application = backend.upstream(PoolId(0));
        let (keeper, mut is_up) = (Arc::clone(&backend.keeper), application.watch_up());
        background.spawn(async move {
            loop {
                let now = *is_up.borrow_and_update();
                keeper.application(now);
                if is_up.changed().await.is_err() {
                    return;
                }
            }
        });
        let (keeper, mut up) = (Arc::clone(&backend.keeper), application.watch_up_count());
        background.spawn(async move {
            loop {
                let now_there = *up.borrow_and_update();
                keeper.nodes(now_there);
                if up.changed().await.is_err() {
                    return;
                }
            }
        });
        // Workers of pools are not checked, only nodes.
        let (gateway, mut took) = (Arc::clone(&self.gateway), application.watch_checks());
        background.spawn(async move {
            let mut least = Duration::MAX;
            while took.changed().await.is_ok() {
                let took = *took.borrow_and_update();
                // It forgets slowly: an application that was moved may be further away now.
                least = took.min(least.saturating_add(least / LEAST_FORGETS));
                let core = gateway.core();
                if core.params().services.lag_guard {
                    core.backend().keeper.lag(took.saturating_sub(least));
                }
            }
        });
        let (end_upstreams, ended) = watch::channel(());
        let mut upstreams = JoinSet::new();
        for ((id, upstream), params) in backend.upstreams().zip(core.params().upstreams()) {
            let (upstream, mut ended) = (upstream.clone(), ended.clone());
            // An end without a word is one, too.
            upstreams.spawn(async move { upstream.run(async { _ = ended.changed().await }).await });
            if let Some(params) = params.workers.clone() {
                let learned = learned_workers.clone();
                background.spawn(workers::tell_gate(Arc::clone(&backend), id));
                background.spawn(workers::keep_size(Arc::clone(&backend), id, params, learned));
            }
        }
        if let Some(params) = &core.params().node_discovery {
            // Whoever comes first finds nodes there, if there are any.
            let follower = Follower::begin(backend.upstream(PoolId(0)), params).await;
            let mut ended = ended.clone();
            upstreams.spawn(follower.run(async move { _ = ended.changed().await }));
        }
        if let Some(params) = core.params().nodes.clone() {
            let provider = suimon_cluster::provider(&params);
            let (backend, mut ended) = (Arc::clone(&backend), ended.clone());
            let end = async move { _ = ended.changed().await };
            upstreams.spawn(async move { nodes::keep(backend, params, provider, end).await });
        }
        drop(ended);

        let mut accepting = JoinSet::new();
        let acceptor = |certificate| {
            let connections = Arc::clone(&self.connections);
            Acceptor::new(Arc::clone(&self.gateway), certificate, connections, accepting_told.clone())
        };
        if let Some(listener) = self.plain {
            accepting.spawn(acceptor(None).run(listener));
        }
        if let Some((listener, certificate)) = self.tls {
            let watched = Arc::clone(&certificate);
            background.spawn(async move { watched.watch().await });
            accepting.spawn(acceptor(Some(certificate)).run(listener));
        }

        let mut shutdown = pin!(shutdown);
        let is_handed_over = loop {
            let asked = tokio::select! {
                biased;
                () = &mut shutdown => break false,
                Some(asked) = handovers.recv() => asked,
            };
            let parts = handover::Parts {
                gateway: &self.gateway,
                keeper: &backend.keeper,
                recording: core.params().record.as_ref(),
                kinds: core.kinds(),
                accepting: &accepting_tell,
                connections: &self.connections,
                application,
                keeping: &mut keeping,
            };
            if parts.hand_over(asked).await {
                break true;
            }
        };
        let timeouts = self.gateway.core().params().timeouts.clone();
        let drain_max = if is_handed_over { timeouts.drain_taken_over } else { timeouts.drain };
        let since = Instant::now();
        if is_handed_over {
            tracing::info!(
                "draining: another process has taken over; waiting for requests and connections to finish"
            );
            handover::last_call(&self.connections, drain_max).await;
        } else {
            tracing::info!(
                "draining: no new connections or newcomers; waiting for requests and connections to finish"
            );
            backend.keeper.drain();
            accepting_tell.send_replace(Accepting::Ended);
            while accepting.join_next().await.is_some() {}
            // Whoever drains for too long is killed, and then nothing is lost.
            keeping.finish().await;
        }
        self.connections.tell(CloseRequest::End);
        let left = drain_max.saturating_sub(since.elapsed());
        let closed = tokio::time::timeout(left, self.connections.gone()).await;
        if closed.is_err() {
            let left = backend.telemetry.view(Duration::ZERO, 0, backend.keeper.snapshot()).connections_open;
            tracing::warn!(connections = left, "timeouts.drain is over; closing the remaining connections");
        }
        accepting.shutdown().await;
        background.shutdown().await;
        stop_sharing.send_replace(true);
        if let Some(sharing) = sharing {
            let _ = sharing.await;
        }
        drop(end_upstreams);
        // They end once the workers of their pools have.
        while upstreams.join_next().await.is_some() {}
        if !is_handed_over {
            keeping.finish().await;
        }
        let keeper = Arc::clone(&backend.keeper);
        // It waits for the disk. Should it panic, there is nothing left to do here.
        let _ = tokio::task::spawn_blocking(move || keeper.end_recording()).await;
    }
}

impl Observer {
    /// Puts other settings in force, all or none, and forgets nothing that was learned. Those that
    /// are bound, opened or counted on from the start stay as they were: listeners, the
    /// application's nodes and how they are spoken to, files that state is kept in, and what is
    /// given to people in line (`docs/settings.md` marks each).
    ///
    /// # Errors
    /// If the kinds of session, their waiting rooms or the declared routes are others, which takes
    /// a restart, or a file that the settings name cannot be used. Nothing is changed then.
    pub fn adopt(&self, params: Params) -> Result<(), StartError> {
        self.gateway.adopt(params)
    }

    /// Returns whether [`Observer::adopt`] would put other settings in force.
    ///
    /// # Errors
    /// As it does.
    pub fn may_adopt(&self, params: &Params) -> Result<(), StartError> {
        self.gateway.may_adopt(params)
    }

    /// Returns everything that can be seen of the proxy now.
    pub fn view(&self) -> View {
        let backend = self.backend();
        let uptime = backend.keeper.clock().elapsed();
        let view = backend.telemetry.view(uptime, backend.budget.held(), backend.keeper.snapshot());
        let recording = self.gateway.core().params().record.as_ref().map(|_| backend.keeper.is_recording());
        View { spooled_bytes: backend.spools.bytes(), recording, ..view }
    }

    /// Returns what was learned of the application and its visitors.
    pub fn learned(&self) -> LearnedView {
        let core = self.gateway.core();
        let backend = core.backend();
        LearnedView {
            uptime: backend.keeper.clock().elapsed(),
            routes: backend.telemetry.route_names(),
            kinds: core.kinds().to_vec(),
            gate: backend.keeper.learned(),
        }
    }

    /// Returns every node of the application as it stands.
    pub fn upstream(&self) -> Vec<UpstreamNodeView> {
        let of = |(pool, upstream): (PoolId, &Upstream)| {
            upstream.view().into_iter().map(move |node| UpstreamNodeView { pool, ..node }).collect::<Vec<_>>()
        };
        self.backend().upstreams().flat_map(of).collect()
    }

    /// Returns how the nodes stand that come and go; `None`: none do.
    pub fn nodes(&self) -> Option<NodesReport> {
        self.backend().nodes.borrow().clone()
    }

    /// Returns how many load reports of nodes came, by what became of them.
    pub fn load_report_counts(&self) -> LoadReportCounts {
        self.backend().upstream(PoolId(0)).load_report_counts()
    }

    /// Returns how often the gate was called because it was time to: it stands still only if the gate
    /// does.
    pub fn ticks(&self) -> u64 {
        self.backend().keeper.ticks()
    }

    /// Returns whether requests can be served: some node is thought to be well.
    pub fn is_ready(&self) -> bool {
        self.backend().is_up()
    }

    fn backend(&self) -> Arc<Backend> {
        Arc::clone(self.gateway.core().backend())
    }
}

/// Returns where nodes report their load, and the file of the keys that is needed for it.
fn load_reports(params: &Params) -> Option<(SocketAddr, &Path)> {
    let reports = &params.upstream.load_reports;
    reports.listen.zip(reports.keys_file.as_deref())
}

fn check(params: &Params) -> Result<(), StartError> {
    let fault = |text: &str| Err(StartError::Params(text.to_owned()));
    if params.listen.plain.is_none() && params.listen.tls.is_none() {
        return fault("no address to listen on: name a plain one, one with TLS, or both");
    }
    if params.sessions.kinds.len() > KINDS_MAX {
        return fault("too many kinds of session: at most 64 are allowed");
    }
    if params.limits.connections == 0
        || params.limits.connections > Semaphore::MAX_PERMITS.min(u32::MAX as usize)
    {
        return fault("the limit of connections must be at least 1 and below 2^29");
    }
    Ok(())
}

fn leases<'a>(keys: Keys, life: u32, names: impl Iterator<Item = &'a str>) -> Result<Leases, StartError> {
    Leases::new(keys, life, names).map_err(|(one, other)| {
        StartError::Params(format!(
            "session kinds {one:?} and {other:?} cannot be told apart in leases; rename one"
        ))
    })
}

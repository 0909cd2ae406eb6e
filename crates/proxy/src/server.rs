//! The proxy as a whole: bound, run, looked at, drained.

mod begun;
mod embedded;
mod found;
mod handover;
mod keeping;
mod kept;
mod learned;
mod lines;
mod nodes;
mod overrides;
mod pools;
mod running;
mod sharing;
mod site;
mod sockets;
mod start_error;
mod workers;

pub use begun::BegunSession;
pub use embedded::{Door, Embedded, THIS_PROCESS};
pub use handover::{HandedOver, Handover};
pub use lines::{LineCommand, LineError, LineReport};
pub(crate) use overrides::has_nodes;
pub use pools::{PoolCommand, PoolError, PoolReport};
pub use sockets::{Listening, Sockets, datagrams_of, listener_of};
pub use start_error::StartError;

use crate::backend::Backend;
use crate::gateway::Gateway;
use crate::https::ListenerPorts;
use crate::nodes_report::NodesReport;
use crate::request_record::RequestNotes;
use crate::sites::Sites;
use crate::telemetry::{LearnedView, View};
use handover::{Asked, handovers};
use learned::StartedWith;
use running::{Application, RunningSite};
use site::{Common, SiteDraft};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use suimon_downstream::connections::{CloseRequest, Connections};
use suimon_downstream::listener::{Accepting, Acceptor};
use suimon_downstream::tls::Certificate;
use suimon_downstream::watch::Watcher;
use suimon_identity::keys::Keys;
use suimon_model::PoolId;
use suimon_params::{Params, SITES_MAX, Site, SiteMatch};
use suimon_routes::MAIN_SITE;
use suimon_upstream::{LoadReportCounts, RetryCounts, Upstream, UpstreamNodeView};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// A proxy that holds its listening sockets but accepts nobody yet.
#[derive(Debug)]
pub struct Server {
    sites: Arc<Sites>,
    /// By site.
    begun: Vec<StartedWith>,
    watcher: Arc<Watcher>,
    plain: Option<Arc<TcpListener>>,
    tls: Option<(Arc<TcpListener>, Arc<Certificate>)>,
    connections: Arc<Connections>,
    handover: Handover,
    handovers: mpsc::Receiver<Asked>,
}

/// A look at one site of a running proxy, for reports. Clones see the same one.
#[derive(Clone, Debug)]
pub struct Observer {
    gateway: Arc<Gateway>,
    sites: Arc<Sites>,
}

impl Server {
    /// Returns everything for which [`Server::bind`] refuses these parameters, each with the key of
    /// the setting it is about. Binds, makes and changes nothing.
    pub fn check(params: &Params) -> Vec<(String, StartError)> {
        let mut refused: Vec<(String, StartError)> = Vec::new();
        let mut note = |key: &str, checked: Result<(), StartError>| {
            refused.extend(checked.err().map(|error| (key.to_owned(), error)));
        };
        note("listen", check(params));
        if let Some(path) = &params.lease.keys_file {
            note("lease.keys", Keys::check(path).map_err(StartError::Keys));
        }
        let certificate = params.listen.tls.as_ref().map(|tls| Certificate::load(tls, &params.sites));
        note("listen.tls.cert", certificate.transpose().map(drop).map_err(StartError::Tls));
        note("site", site::check_tags(params));
        for (index, site) in params.all_sites().enumerate() {
            let prefix = index.checked_sub(1).map_or(String::new(), |index| format!("site[{index}]."));
            refused
                .extend(site::check(site).into_iter().map(|(key, error)| (format!("{prefix}{key}"), error)));
        }
        refused
    }

    /// Binds the listening sockets and reads certificates and keys. Must be called inside the
    /// runtime that will run it.
    ///
    /// # Errors
    /// See [`StartError`]; each names the thing and the remedy. Nothing stays bound, and no file of state is
    /// changed then.
    pub fn bind(params: Params) -> Result<Server, StartError> {
        Server::bind_with(params, Sockets::default(), None)
    }

    /// As [`Server::bind`], with sockets that are open already. `begun`: the sessions of a gateway that
    /// hands over to this one, if one does.
    ///
    /// # Errors
    /// As of [`Server::bind`].
    pub fn bind_with(
        params: Params,
        sockets: Sockets,
        begun: Option<&[BegunSession]>,
    ) -> Result<Server, StartError> {
        if let Some((_, error)) = Server::check(&params).into_iter().next() {
            return Err(error);
        }
        let mut common = Common::new(&params)?;
        let takes: Vec<_> = params.sites.iter().map(|site| site.takes.clone()).collect();
        let listen = params.listen.clone();
        let connections_max = params.limits.connections;
        let certificate = listen.tls.as_ref().map(|tls| Certificate::load(tls, &params.sites));
        let certificate = certificate.transpose().map_err(StartError::Tls)?;
        let drafts = by_site(params).into_iter().enumerate();
        let drafts = drafts.map(|(index, params)| SiteDraft::new(index, params, &common, begun));
        let drafts = drafts.collect::<Result<Vec<_>, _>>()?;
        let backlog = listen.backlog;
        let Sockets { plain, tls, load_reports } = sockets;
        let plain = listen.plain.map(|address| sockets::listen(plain, address, backlog)).transpose()?;
        let tls = match (&listen.tls, certificate) {
            (Some(params), Some(certificate)) => {
                Some((sockets::listen(tls, params.address, backlog)?, Arc::new(certificate)))
            }
            _ => None,
        };
        let port = |listener: &TcpListener| listener.local_addr().ok().map(|address| address.port());
        common.ports = ListenerPorts {
            plain: plain.as_deref().and_then(port),
            tls: tls.as_ref().and_then(|(listener, _)| port(listener)),
        };
        // The addresses are ours now, and so are the files that go with them.
        let (mut gateways, mut started) = (Vec::new(), Vec::new());
        let mut load_reports = load_reports;
        for draft in drafts {
            let main = gateways.first().map(|main: &Arc<Gateway>| main.core());
            let (gateway, begun) = draft.begin(&common, load_reports.take(), main.as_deref(), begun)?;
            gateways.push(gateway);
            started.push(begun);
        }
        site::begin_recordings(&gateways)?;
        let sites = Arc::new(Sites::new(gateways, takes));
        let main = sites.main().core();
        let connections = Connections::new(connections_max, main.telemetry().connections_displaced());
        let (handover, handovers) = handovers(Listening {
            plain: plain.as_ref().map(Arc::downgrade),
            tls: tls.as_ref().map(|(listener, _)| Arc::downgrade(listener)),
            application: main.backend().upstream(PoolId(0)).clone(),
        });
        if let Some((_, certificate)) = &tls {
            sites.show(certificate);
        }
        let watcher = common.watcher;
        Ok(Server { sites, begun: started, watcher, plain, tls, connections, handover, handovers })
    }

    /// Returns the address of the plain listener, with the port it really has.
    pub fn plain_address(&self) -> Option<SocketAddr> {
        self.plain.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Returns the UDP address at which nodes report their load, with the port it really has.
    pub fn load_reports_address(&self) -> Option<SocketAddr> {
        self.sites.main().core().backend().upstream(PoolId(0)).reports_address()
    }

    /// Returns the address of the TLS listener, with the port it really has.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// Takes note of requests from now on. Once, and before the first of them.
    pub fn note_requests(&self, notes: &RequestNotes) {
        self.sites.note_requests(notes);
    }

    /// Returns what hands the proxy over to another process while it runs.
    pub fn handover(&self) -> Handover {
        self.handover.clone()
    }

    /// Returns a look at the main site, which stays good while the proxy runs and after.
    pub fn observer(&self) -> Observer {
        Observer { gateway: Arc::clone(self.sites.main()), sites: Arc::clone(&self.sites) }
    }

    /// Serves until `shutdown` is ready or another process goes on, then drains: accepts no
    /// connection, refuses newcomers, lets what is under way end, and returns once the last connection
    /// is closed, or after the drain time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (accepting_tell, accepting_told) = watch::channel(Accepting::Yes);
        // Else there would always be one who may ask for a handover.
        let (mut handovers, _) = (self.handovers, self.handover);
        let mut background = JoinSet::new();
        background.spawn(async move {
            if let Err(error) = self.watcher.run().await {
                tracing::error!("client disconnects may be noticed late from now on: {error}");
            }
        });
        // All at once: one that waits for its nodes keeps no other waiting.
        let begin = |(gateway, begun): (&Arc<Gateway>, StartedWith)| {
            tokio::spawn(RunningSite::begin(Arc::clone(gateway), begun.kept(), Application::Elsewhere))
        };
        let begins: Vec<_> = self.sites.all().zip(self.begun).map(begin).collect();
        let mut sites = Vec::new();
        for begin in begins {
            sites.push(begin.await.expect("a site that cannot begin is a fault of ours"));
        }

        let mut accepting = JoinSet::new();
        let acceptor = |certificate| {
            let connections = Arc::clone(&self.connections);
            Acceptor::new(Arc::clone(&self.sites), certificate, connections, accepting_told.clone())
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
                sites: &mut sites,
                accepting: &accepting_tell,
                connections: &self.connections,
            };
            if parts.hand_over(asked).await {
                break true;
            }
        };
        let timeouts = self.sites.main().core().params().timeouts.clone();
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
            sites.iter().for_each(RunningSite::drain);
            accepting_tell.send_replace(Accepting::Ended);
            while accepting.join_next().await.is_some() {}
            for site in &mut sites {
                // Whoever drains for too long is killed, and then nothing is lost.
                site.write_state().await;
            }
        }
        self.connections.tell(CloseRequest::End);
        let left = drain_max.saturating_sub(since.elapsed());
        let closed = tokio::time::timeout(left, self.connections.gone()).await;
        if closed.is_err() {
            let left = self.sites.main().core().telemetry().connections_open();
            tracing::warn!(connections = left, "timeouts.drain is over; closing the remaining connections");
        }
        accepting.shutdown().await;
        background.shutdown().await;
        let mut ends = JoinSet::new();
        for site in sites {
            ends.spawn(site.end(is_handed_over));
        }
        while ends.join_next().await.is_some() {}
    }
}

impl Observer {
    /// Returns looks at all sites: at this one's first.
    pub fn sites(&self) -> Vec<Observer> {
        let of = |gateway: &Arc<Gateway>| Observer {
            gateway: Arc::clone(gateway),
            sites: Arc::clone(&self.sites),
        };
        self.sites.all().map(of).collect()
    }

    /// Returns what each site beside the main one takes, in their order.
    pub fn takes(&self) -> Arc<Vec<SiteMatch>> {
        self.sites.takes()
    }

    /// Returns the name of the site; `None`: it is the main one.
    pub fn site(&self) -> Option<String> {
        self.gateway.core().params().site.clone()
    }

    /// Puts other settings in force, at all sites, all or none, and forgets nothing that was learned. Those that
    /// are bound, opened or counted on from the start stay as they were: listeners, the
    /// application's nodes and how they are spoken to, files that state is kept in, and what is
    /// given to people in line (`docs/settings.md` marks each).
    ///
    /// # Errors
    /// If the kinds of session, their waiting rooms or the declared routes are others, which takes
    /// a restart, or a file that the settings name cannot be used. Nothing is changed then.
    pub fn adopt(&self, params: Params) -> Result<(), StartError> {
        self.sites.adopt(params)
    }

    /// Returns whether [`Observer::adopt`] would put other settings in force.
    ///
    /// # Errors
    /// As it does.
    pub fn may_adopt(&self, params: &Params) -> Result<(), StartError> {
        self.sites.may_adopt(params)
    }

    /// Returns everything that can be seen of the proxy now.
    pub fn view(&self) -> View {
        let backend = self.backend();
        let uptime = backend.keeper.clock().elapsed();
        let view = backend.telemetry.view(uptime, backend.budget.held(), backend.keeper.snapshot());
        let recording = self.gateway.core().params().record.as_ref().map(|_| backend.keeper.is_recording());
        // Connections are the gateway's.
        let connections_open = self.sites.main().core().telemetry().connections_open();
        let retries = backend.upstreams().map(|(_, upstream)| upstream.retry_counts());
        let retries = retries.fold(RetryCounts::default(), RetryCounts::and);
        View { connections_open, spooled_bytes: backend.spools.bytes(), recording, retries, ..view }
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

/// Returns the parameters of each site, those of the main one first.
fn by_site(params: Params) -> Vec<Params> {
    let behind = |site: &Site| site.params.clone().behind(&params);
    let mut all: Vec<_> = params.sites.iter().map(behind).collect();
    all.insert(MAIN_SITE, Params { sites: Vec::new(), ..params });
    all
}

fn check(params: &Params) -> Result<(), StartError> {
    let fault = |text: &str| Err(StartError::Params(text.to_owned()));
    if params.listen.plain.is_none() && params.listen.tls.is_none() {
        return fault("no address to listen on: name a plain one, one with TLS, or both");
    }
    if params.sites.len() > SITES_MAX {
        return fault("too many sites: at most 32 are allowed beside the main one");
    }
    if params.limits.connections == 0
        || params.limits.connections > Semaphore::MAX_PERMITS.min(u32::MAX as usize)
    {
        return fault("the limit of connections must be at least 1 and below 2^29");
    }
    Ok(())
}

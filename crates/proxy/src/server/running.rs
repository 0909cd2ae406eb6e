//! One site of a gateway while it runs: what goes on beside its requests.

use super::begun::BegunSession;
use super::found::Follower;
use super::keeping::Keeping;
use super::kept::LineStore;
use super::learned::{LearnedStore, LearnedWorkers, StartedWith};
use super::sharing::Sharer;
use super::{nodes, workers};
use crate::backend::Backend;
use crate::gateway::Gateway;
use std::sync::Arc;
use std::time::Duration;
use suimon_model::PoolId;
use suimon_upstream::Upstream;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The least that a health check took grows by this part with each check.
const LEAST_FORGETS: u32 = 1000;

/// Where requests are worked on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Application {
    /// At nodes, which are looked after.
    Elsewhere,
    /// In this process, which is up as long as it asks.
    Here,
}

/// See the module.
#[derive(Debug)]
pub(super) struct RunningSite {
    gateway: Arc<Gateway>,
    backend: Arc<Backend>,
    keeping: Keeping,
    background: JoinSet<()>,
    sharing: Option<JoinHandle<()>>,
    stop_sharing: watch::Sender<bool>,
    upstreams: JoinSet<()>,
    end_upstreams: watch::Sender<()>,
}

impl RunningSite {
    /// Begins all that goes on beside requests. Returns once whoever comes first finds nodes and a
    /// share, as far as there are any.
    pub(super) async fn begin(gateway: Arc<Gateway>, begun: StartedWith, application: Application) -> Self {
        let core = gateway.core();
        let backend = Arc::clone(core.backend());
        let mut background = JoinSet::new();
        let keeper = Arc::clone(&backend.keeper);
        background.spawn(async move { keeper.tick().await });
        gateway.own_overrides();
        let tended = Arc::clone(&gateway);
        background.spawn(async move { tended.tend_overrides().await });
        let waited_for = Arc::clone(&backend);
        background.spawn(async move { waited_for.make_room().await });
        let lines = LineStore::new(&gateway);
        let (stop_sharing, stopped) = watch::channel(false);
        let sharing = share(&backend, core.params().sharing.as_ref(), stopped).await;
        let learned_workers = LearnedWorkers::of(&begun, core.params());
        let learned = LearnedStore::new(&core, begun, learned_workers.clone());
        let keeping = Keeping::begin(lines, learned);
        let (end_upstreams, ended) = watch::channel(());
        let mut upstreams = JoinSet::new();
        if application == Application::Here {
            return RunningSite {
                gateway,
                backend,
                keeping,
                background,
                sharing,
                stop_sharing,
                upstreams,
                end_upstreams,
            };
        }
        watch_nodes(&gateway, &mut background);
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
        RunningSite { gateway, backend, keeping, background, sharing, stop_sharing, upstreams, end_upstreams }
    }

    /// Stops for another process: takes no newcomer, draws no number, writes and records nothing more.
    /// All state is in the files then.
    pub(super) async fn stop(&mut self) {
        let keeper = Arc::clone(&self.backend.keeper);
        // It waits for the disk.
        let _ = tokio::task::spawn_blocking(move || keeper.end_recording()).await;
        self.backend.keeper.hand_over();
        self.gateway.hand_over_overrides();
        self.application().pause_reports(true);
        self.keeping.finish().await;
    }

    /// Goes on after all, as the other process does not.
    pub(super) fn go_on(&mut self) {
        self.keeping.go_on();
        self.application().pause_reports(false);
        self.backend.keeper.take_back();
        self.gateway.take_overrides_back();
        if let Some(recording) = &self.gateway.core().params().record
            && let Err(error) = self.backend.keeper.begin_recording(recording)
        {
            tracing::error!("the recording has ended and cannot be begun again: {error}");
        }
    }

    /// Returns the sessions that have begun.
    pub(super) fn sessions(&self) -> impl Iterator<Item = BegunSession> {
        let core = self.gateway.core();
        self.backend.keeper.sessions_begun().into_iter().filter_map(move |(kind, id)| {
            let kind = core.kinds().get(kind.index())?.name.clone();
            Some(BegunSession { site: core.params().site.clone(), kind, session: id.0 })
        })
    }

    /// Refuses newcomers.
    pub(super) fn drain(&self) {
        self.backend.keeper.drain();
    }

    /// Writes what outlives the process, once no number is drawn any more.
    pub(super) async fn write_state(&mut self) {
        self.keeping.finish().await;
    }

    /// Ends what goes on. `is_handed_over`: the files of state are another process's.
    pub(super) async fn end(mut self, is_handed_over: bool) {
        self.background.shutdown().await;
        self.stop_sharing.send_replace(true);
        if let Some(sharing) = self.sharing {
            let _ = sharing.await;
        }
        drop(self.end_upstreams);
        // They end once the workers of their pools have.
        while self.upstreams.join_next().await.is_some() {}
        if !is_handed_over {
            self.keeping.finish().await;
        }
        let keeper = Arc::clone(&self.backend.keeper);
        // It waits for the disk. Should it panic, there is nothing left to do here.
        let _ = tokio::task::spawn_blocking(move || keeper.end_recording()).await;
    }

    fn application(&self) -> &Upstream {
        self.backend.upstream(PoolId(0))
    }
}

/// Begins to share with other gateways, if that is asked for.
async fn share(
    backend: &Arc<Backend>,
    params: Option<&suimon_params::SharingParams>,
    stopped: watch::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    match Sharer::new(params?, backend) {
        Ok(sharer) => Some(tokio::spawn(sharer.join().await.run(stopped))),
        // It was checked before it was bound.
        Err(why) => {
            tracing::error!("nothing is shared: {why}");
            None
        }
    }
}

/// Tells the gate whether the application is up, how many of its nodes are, and how far their health
/// checks lag.
fn watch_nodes(gateway: &Arc<Gateway>, background: &mut JoinSet<()>) {
    let core = gateway.core();
    let backend = core.backend();
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
    let (gateway, mut took) = (Arc::clone(gateway), application.watch_checks());
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
}

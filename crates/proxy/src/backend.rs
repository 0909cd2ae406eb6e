//! What an exchange needs of the gateway: the way to the application, and places for clients that
//! are waited for meanwhile.

use crate::gatekeeper::Gatekeeper;
use crate::nodes_report::NodesReport;
use crate::request_record::RequestNotes;
use crate::returns::Returns;
use crate::telemetry::Telemetry;
use std::sync::{Arc, OnceLock};
use suimon_downstream::budget::Budget;
use suimon_downstream::spool::Spools;
use suimon_downstream::uploads::{KEPT_MAX, Uploads};
use suimon_identity::session_tags::SessionTags;
use suimon_model::PoolId;
use suimon_params::Params;
use suimon_upstream::Upstream;
use tokio::sync::watch;

/// See the module.
#[derive(Debug)]
pub(crate) struct Backend {
    /// What the site is called; `None`: it is the main one.
    pub(crate) site: Option<Arc<str>>,
    pub(crate) keeper: Arc<Gatekeeper>,
    /// By pool: the first takes what no other does.
    upstreams: Vec<Upstream>,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Requests that could reach no node, and wait for the application's return.
    pub(crate) returns: Arc<Returns>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) spools: Arc<Spools>,
    /// Requests in the application whose clients are waited for in the middle of their bodies, ...
    pub(crate) uploads: Arc<Uploads>,
    /// ... or of their answers, ...
    pub(crate) held_answers: Arc<Uploads>,
    /// ... and calls, whose two sides take turns.
    pub(crate) calls: Arc<Uploads>,
    /// Requests before the application whose bodies are kept in files until they are whole.
    pub(crate) kept: Arc<Uploads>,
    /// By pool, how many workers it has because an operator says so; `None`: its law finds the number.
    fixed_sizes: Vec<watch::Sender<Option<u32>>>,
    /// How the nodes stand that come and go; `None`: none do.
    pub(crate) nodes: watch::Sender<Option<NodesReport>>,
    /// What sessions are called in logs.
    pub(crate) session_tags: SessionTags,
    /// What is noted of requests; nothing, unless it is said before the first.
    pub(crate) notes: OnceLock<RequestNotes>,
}

impl Backend {
    /// Returns what exchanges need where nobody is waited for yet. `upstreams`: by pool, at least one.
    /// `main`: that of the main site, unless this is it: memory for slow clients is the gateway's.
    pub(crate) fn new(
        params: &Params,
        keeper: Arc<Gatekeeper>,
        upstreams: Vec<Upstream>,
        telemetry: Arc<Telemetry>,
        session_tags: SessionTags,
        main: Option<&Backend>,
    ) -> Arc<Self> {
        let limits = &params.limits;
        let of_main = |of: fn(&Backend) -> &Arc<Uploads>| main.map(|main| Arc::clone(of(main)));
        Arc::new(Backend {
            site: params.site.as_deref().map(Into::into),
            keeper,
            fixed_sizes: upstreams.iter().map(|_| watch::Sender::default()).collect(),
            upstreams,
            telemetry,
            returns: Arc::default(),
            budget: main.map_or_else(|| Budget::new(limits.buffered_bytes), |main| Arc::clone(&main.budget)),
            spools: main.map_or_else(|| Spools::new(&params.spool), |main| Arc::clone(&main.spools)),
            uploads: of_main(|main| &main.uploads).unwrap_or_else(|| Uploads::shared(limits.slow_uploads)),
            held_answers: Uploads::new(usize::MAX),
            calls: of_main(|main| &main.calls).unwrap_or_else(|| Uploads::new(limits.slow_uploads)),
            kept: of_main(|main| &main.kept).unwrap_or_else(|| Uploads::shared(KEPT_MAX)),
            nodes: watch::Sender::new(None),
            session_tags,
            notes: OnceLock::new(),
        })
    }

    /// Returns the way to the application for the requests of a pool.
    pub(crate) fn upstream(&self, pool: PoolId) -> &Upstream {
        self.upstreams.get(pool.index()).unwrap_or(&self.upstreams[0])
    }

    /// Returns every way to the application, with its pool.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = (PoolId, &Upstream)> {
        (0..).map(PoolId).zip(&self.upstreams)
    }

    /// Returns how many workers a pool has because an operator says so.
    pub(crate) fn fixed_size(&self, pool: PoolId) -> &watch::Sender<Option<u32>> {
        &self.fixed_sizes[pool.index()]
    }

    /// Returns whether the application is up: what takes the requests that have no other pool.
    pub(crate) fn is_up(&self) -> bool {
        self.upstreams[0].is_up()
    }
}

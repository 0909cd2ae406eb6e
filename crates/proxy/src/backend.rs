//! What an exchange needs of the gateway: the way to the application, and places for clients that
//! are waited for meanwhile.

use crate::gatekeeper::Gatekeeper;
use crate::returns::Returns;
use crate::telemetry::Telemetry;
use std::sync::Arc;
use suimon_downstream::budget::Budget;
use suimon_downstream::spool::Spools;
use suimon_downstream::uploads::{KEPT_MAX, Uploads};
use suimon_params::Params;
use suimon_upstream::Upstream;
use tokio::sync::watch;

/// See the module.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) keeper: Arc<Gatekeeper>,
    pub(crate) upstream: Upstream,
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
    /// How many workers the pool has because an operator says so; `None`: its law finds the number.
    pub(crate) fixed_size: watch::Sender<Option<u32>>,
}

impl Backend {
    /// Returns what exchanges need where nobody is waited for yet.
    pub(crate) fn new(
        params: &Params,
        keeper: Arc<Gatekeeper>,
        upstream: Upstream,
        telemetry: Arc<Telemetry>,
    ) -> Arc<Self> {
        Arc::new(Backend {
            keeper,
            upstream,
            telemetry,
            returns: Arc::default(),
            budget: Budget::new(params.limits.buffered_bytes),
            spools: Spools::new(&params.spool),
            uploads: Uploads::shared(params.limits.slow_uploads),
            held_answers: Uploads::new(usize::MAX),
            calls: Uploads::new(params.limits.slow_uploads),
            kept: Uploads::shared(KEPT_MAX),
            fixed_size: watch::Sender::default(),
        })
    }
}

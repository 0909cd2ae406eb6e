//! The operator's listener: metrics, state, health. It reads and never changes anything.
//!
//! | path | what |
//! |---|---|
//! | `/metrics` | numbers, in Prometheus' text format; names in `names.rs` |
//! | `/api/state` | everything at one moment as JSON: [`State`] |
//! | `/api/learned` | what was learned of visitors and application, as JSON: [`Learned`] |
//! | `/healthz` | 200 as long as the process answers |
//! | `/readyz` | 200 if new visitors should be sent here; else 503 and why |
//!
//! It has no password, so it listens on loopback by default and answers only to hosts it knows: an address, `localhost`, or
//! a name from the settings. A page in an operator's browser that points a name of its own at this address is refused.

mod guard;
mod learned;
mod listener;
mod metrics;
mod names;
mod process;
mod routes;
mod state;
mod text;

pub use learned::{
    Learned, LearnedKind, LearnedNext, LearnedPlace, LearnedRoute, LearnedThink, LearnedTimes, LearnedVisits,
};
pub use listener::CONNECTIONS_MAX;
pub use names::{LEARNED_PATH, STATE_PATH};
pub use routes::{Params, serve};
pub use state::{DecisionState, KindState, NodeState, Percentiles, Refusals, RouteState, State, Totals};

use suimon_proxy::upstream::UpstreamNodeView;
use suimon_proxy::{LearnedView, View};

/// Where the numbers come from.
pub trait Source: Send + Sync + 'static {
    /// Returns everything that can be seen of the proxy now.
    fn view(&self) -> View;
    /// Returns what was learned of the application and its visitors.
    fn learned(&self) -> LearnedView;
    /// Returns every node of the application as it stands.
    fn nodes(&self) -> Vec<UpstreamNodeView>;
    /// Returns whether the gateway is shutting down.
    fn is_draining(&self) -> bool;
}

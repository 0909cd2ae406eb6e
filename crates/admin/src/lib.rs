//! The operator's listener: metrics, state, health, and what an operator says to the waiting room
//! and to the pools of workers.
//!
//! | path | what |
//! |---|---|
//! | `/` | the dashboard, where a browser asks; else every path with what is there |
//! | `/metrics` | numbers, in Prometheus' text format or OpenMetrics; names in `names.rs`, all of them in `docs/metrics.md` |
//! | `/api/state` | everything at one moment as JSON: [`State`] |
//! | `/api/sites` | the sites behind the gateway in one line each: [`SitesAnswer`] |
//! | `/api/history` | the last quarter of an hour by seconds, or the last day by minutes: [`HistoryState`] |
//! | `/api/events` | [`LiveState`] each second, as server-sent events |
//! | `/api/learned` | what was learned of visitors and application, as JSON: [`Learned`] |
//! | `/api/waiting-room` | the lines, as JSON: [`LineState`]; and by POST what they are told: [`LineRequest`] |
//! | `/api/pool` | the pools of workers, as JSON: [`PoolAnswer`]; and by POST what they are told: [`PoolRequest`] |
//! | `/api/override` | what an operator overrides for a while, as JSON: [`OverrideAnswer`]; and by POST what is to be overridden, or released: [`OverrideRequest`] |
//! | `/api/config` | the settings in force, as TOML; and by POST others, with [`ConfigAnswer`] as the answer |
//! | `/api/openapi.json` | all of this, as an OpenAPI document |
//! | `/healthz` | 200 as long as the process answers |
//! | `/readyz` | 200 if new visitors should be sent here; else 503 and why |
//!
//! What is a site's is asked for with `?site=NAME`; without it, the answer is the main site's.
//!
//! On loopback it answers everybody who is there, unless a token or client certificates are asked
//! for; on a Unix socket whoever can open it; others only what is public ([`Access`]). It answers only
//! to hosts it knows: an address, `localhost`, or a name from the settings. A page in an operator's
//! browser that points a name of its own at this address is refused, and so is one that sends something
//! here from elsewhere.

mod access;
mod asked;
mod config;
mod dashboard;
mod document;
mod events;
mod guard;
mod history;
mod learned;
mod listener;
mod load_reports;
mod logs;
mod metrics;
mod names;
mod nodes;
mod observed;
#[cfg(feature = "schema")]
mod openapi;
mod overrides;
mod pool;
mod process;
mod request;
mod routes;
mod scaling;
mod services;
mod sharing;
mod shown;
mod sites;
mod state;
mod sums;
mod text;
mod tls;
mod verdict;
mod waiting_room;
mod windows;

pub use access::{Access, AccessParams, TOKEN_CHARS_MIN, Token};
pub use config::{CONFIG_BYTES_MAX, Config, ConfigAnswer, ConfigChange, ConfigFault, ConfigState};
pub use document::metrics_document;
pub use events::LiveState;
pub use history::{HistoryState, RouteSample, Sample};
pub use learned::{
    Learned, LearnedKind, LearnedNext, LearnedRoute, LearnedThink, LearnedTimes, LearnedTransitions,
    LearnedVisits,
};
pub use listener::{AdminListener, CONNECTIONS_MAX, HANDSHAKES_MAX, UnixBeside};
pub use load_reports::{LoadReportsState, NodeReportState};
pub use logs::{LogCounts, Passed};
pub use names::{
    CONFIG_PATH, EVENTS_PATH, HISTORY_PATH, LEARNED_PATH, OPENAPI_PATH, OVERRIDE_PATH, POOL_PATH, SITES_PATH,
    STATE_PATH, WAITING_ROOM_PATH,
};
pub use nodes::{NodeState, PhpState};
pub use observed::{Beside, sites_of};
#[cfg(feature = "schema")]
pub use openapi::openapi_document;
pub use overrides::{
    OVERRIDE_SECONDS, OverrideAnswer, OverrideRequest, OverrideState, PINNED_LIMIT_MAX, WHO_CHARS_MAX,
    WHY_CHARS_MAX,
};
pub use pool::{
    Auto, PoolAnswer, PoolChangeState, PoolDetails, PoolOrder, PoolRequest, PoolSize, PoolState, PoolTotals,
    WorkerState,
};
pub use routes::{Params, Watch, metrics_text, serve};
pub use scaling::{ScalingChange, ScalingState};
pub use services::ServiceState;
pub use sharing::SharingState;
pub use sites::{Site, SiteState, SitesAnswer};
pub use state::{
    DecisionState, KindState, Percentiles, Rates, RecalledState, Refusals, RouteState, State, Totals,
    WaitState, verdict_now,
};
pub use tls::{Tls, TlsFiles, TlsInUse};
pub use verdict::Verdict;

pub use waiting_room::{INVITES_MAX, LineAnswer, LineOrder, LineRequest, LineState};

use std::time::Duration;
use suimon_proxy::UpstreamNodeView;
use suimon_proxy::{LearnedView, LineCommand, LineError, LineReport, LoadReportCounts, View};
use suimon_proxy::{NodesReport, PoolCommand, PoolError, PoolReport};
use suimon_proxy::{Override, OverrideError, OverrideOrder};

/// The source of a site's numbers. What is the gateway's, the main site's tells.
pub trait Source: Send + Sync + 'static {
    /// Returns everything that can be seen of the proxy now.
    fn view(&self) -> View;
    /// Returns what was learned of the application and its visitors.
    fn learned(&self) -> LearnedView;
    /// Returns every node of the application as it stands.
    fn nodes(&self) -> Vec<UpstreamNodeView>;
    /// Returns what was told of requests in logs and traces, and what was dropped.
    fn logs(&self) -> LogCounts {
        LogCounts::default()
    }
    /// Returns how many load reports of nodes came, by what became of them.
    fn load_reports(&self) -> LoadReportCounts {
        LoadReportCounts::default()
    }
    /// Returns every line of the waiting room.
    fn lines(&self) -> Vec<LineReport>;
    /// Does what an operator says to the line of the kind of this name, or to all.
    ///
    /// # Errors
    /// If there is no such line, or the system gives no random bytes.
    fn command_line(&self, kind: Option<&str>, command: &LineCommand) -> Result<(), LineError>;
    /// Returns new invitations to a line, each as it stands in the query of a link.
    ///
    /// # Errors
    /// As `command_line` does.
    fn invite(&self, kind: Option<&str>, count: usize, life: Duration) -> Result<Vec<String>, LineError>;
    /// Returns every pool of workers, with what has happened since the change of this number, which is
    /// left out; they count up from 1.
    fn pools(&self, since: u64) -> Vec<PoolReport>;
    /// Does what an operator says to the pool of this name, or to all.
    ///
    /// # Errors
    /// If there is no such pool, or it cannot have so many workers.
    fn command_pool(&self, name: Option<&str>, command: PoolCommand) -> Result<(), PoolError>;
    /// Returns the overrides in force.
    fn overrides(&self) -> Vec<Override> {
        Vec::new()
    }
    /// Puts an override in force.
    ///
    /// # Errors
    /// If there is no such route or node, or it cannot be overridden so.
    fn override_with(&self, order: OverrideOrder) -> Result<(), OverrideError> {
        Err(OverrideError::NoSuchRoute(order.what.to_string()))
    }
    /// Ends an override before its time, because `who` says so.
    ///
    /// # Errors
    /// If there is none of this number.
    fn release(&self, id: u64, who: &str) -> Result<(), OverrideError> {
        let _ = who;
        Err(OverrideError::NoSuch(id))
    }
    /// Returns the settings in force; `None`: they cannot be read or replaced here.
    fn config(&self) -> Option<Config> {
        None
    }
    /// Returns where the settings in force are from.
    fn config_state(&self) -> Option<ConfigState> {
        self.config().map(|config| config.state)
    }
    /// Puts the settings in `text` in force, all or none; or, with `dry_run`, only says what would
    /// change. May block.
    fn adopt_config(&self, text: &str, dry_run: bool) -> ConfigAnswer {
        let _ = text;
        ConfigAnswer { dry_run, ..ConfigAnswer::default() }
    }
    /// Returns how the nodes stand that come and go; `None`: none do.
    fn scaling(&self) -> Option<NodesReport>;
    /// Returns whether the gateway is shutting down.
    fn is_draining(&self) -> bool;
}

//! Which law is in force, and the numbers of those that have numbers to set.

use suimon_model::Duration;

/// How a route's limit is found.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum RouteLawKind {
    /// Paired windows, one probing route at a time, one objective for the whole host.
    #[default]
    Paired,
    /// The paper's ±1 rule on each route's own throughput.
    Seed(SeedRouteParams),
}

suimon_model::saved_enum!(RouteLawKind { 0 = Paired, 1 = Seed(params) });

/// The numbers of the paper's page rule that the paper leaves open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeedRouteParams {
    /// The limit to start from.
    pub initial: u32,
    /// Length of a throughput window.
    pub period: Duration,
}

suimon_model::saved_struct!(SeedRouteParams { initial, period });

impl Default for SeedRouteParams {
    fn default() -> Self {
        SeedRouteParams { initial: 5, period: Duration::from_secs(2) }
    }
}

/// How sessions are let in.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum SessionLawKind {
    /// Flow control by the visits that admitted sessions still have to make.
    #[default]
    Flow,
    /// The paper's threshold rule on the mean route queue.
    Seed(SeedSessionParams),
    /// A fixed number of sessions at once; the rest is refused.
    Static {
        /// Sessions under way at once, at least 1.
        sessions: u32,
    },
    /// Everybody is let in; only the routes' gates hold.
    Open,
}

impl SessionLawKind {
    /// Returns its name, as it is in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            SessionLawKind::Flow => "flow",
            SessionLawKind::Seed(_) => "seed",
            SessionLawKind::Static { .. } => "static",
            SessionLawKind::Open => "open",
        }
    }
}

suimon_model::saved_enum!(SessionLawKind { 0 = Flow, 1 = Seed(params), 2 = Static { sessions }, 3 = Open });

/// The numbers of the paper's session rule that the paper leaves open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeedSessionParams {
    /// Mean queue length at which the interval begins to grow.
    pub threshold: f64,
    /// Added to the interval in each period at or over the threshold.
    pub up: Duration,
    /// Taken from the interval in each period under the threshold.
    pub down: Duration,
    /// Time between two decisions.
    pub period: Duration,
}

suimon_model::saved_struct!(SeedSessionParams { threshold, up, down, period });

impl Default for SeedSessionParams {
    fn default() -> Self {
        SeedSessionParams {
            threshold: 3.0,
            up: Duration::from_millis(50),
            down: Duration::from_millis(50),
            period: Duration::from_secs(1),
        }
    }
}

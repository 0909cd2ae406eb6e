//! What the gate has learned of the application and its visitors, for playing them elsewhere.

use crate::api::RouteMode;
use suimon_model::RouteId;

/// Everything that was learned. Computed on request, from what the laws rest on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Learned {
    /// Processor cores the application is assumed to have.
    pub cores: u32,
    /// Time between an answer and the session's next request, of all kinds together.
    pub think: Option<Think>,
    /// By [`RouteId`].
    pub routes: Vec<LearnedRoute>,
    /// By [`suimon_model::KindId`].
    pub kinds: Vec<LearnedKind>,
}

/// The last think times.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Think {
    /// How many.
    pub count: usize,
    /// Their mean, seconds.
    pub mean: f64,
    /// Their coefficient of variation.
    pub variation: f64,
    /// Their quantiles [`Think::QUANTILES`], seconds.
    pub quantiles: [f64; Think::QUANTILES.len()],
}

impl Think {
    /// The quantiles told.
    pub const QUANTILES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];
}

/// Times in the application.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServiceTimeStats {
    /// How many.
    pub count: u64,
    /// Their mean, seconds.
    pub mean: f64,
    /// Their coefficient of variation.
    pub variation: f64,
}

/// One route.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LearnedRoute {
    /// What the gate does here.
    pub mode: RouteMode,
    /// The limit now; `None` where none is held.
    pub limit: Option<u32>,
    /// Time in the application of all requests that made progress.
    pub took: Option<ServiceTimeStats>,
    /// The same, of those that had a core of their own when they began and when they ended: what a
    /// request takes by itself.
    pub took_alone: Option<ServiceTimeStats>,
    /// Share of the ended requests that failed, since the start.
    pub errors: f64,
    /// Completions per second under full load; `None` if it never had that.
    pub saturated: Option<f64>,
}

/// One kind of session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LearnedKind {
    /// Sessions that ended and were learned from.
    pub ended: u64,
    /// Newcomers per second in the last minutes, including refused ones and those who came again.
    pub newcomers_per_second: Option<f64>,
    /// Sessions admitted per second in the last minutes.
    pub admitted_per_second: Option<f64>,
    /// Newcomers refused since the start.
    pub refused: u64,
    /// Seconds a visitor waits for one answer.
    pub patience: f64,
    /// `declared`, `learned`, `recalled` (from another run) or `assumed`.
    pub patience_source: &'static str,
    /// By [`RouteId`]: visits a session makes in all.
    pub visits: Vec<f64>,
    /// Where a session can be; places where none was seen are left out.
    pub transitions: Vec<LearnedTransitions>,
}

/// What comes next where a session stands.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LearnedTransitions {
    /// The route of its last request; `None`: it has made none yet.
    pub after: Option<RouteId>,
    /// How often a session stood here.
    pub seen: u64,
    /// The routes that came next, and their shares.
    pub next: Vec<(RouteId, f64)>,
    /// The share of sessions that ended here.
    pub ended_share: f64,
}

//! What a run of several gateways has shown.

use suimon_model::Instant;
use suimon_workload::Counts;

/// How a second of a run was.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct GatewaysSecond {
    /// Sessions begun.
    pub begun: u64,
    /// Sessions completed.
    pub completed: u64,
    /// By how much the most requests of one route that were in the application at once exceeded its
    /// limit.
    pub over: u32,
    /// The limit that was exceeded by that.
    pub limit: u32,
    /// Gateways on their safe share.
    pub safe: u32,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct GatewaysResult {
    /// What the visitors saw in the measured window, ...
    pub counts: Counts,
    /// ... and how long it is, seconds.
    pub seconds: f64,
    /// Sessions begun in the window.
    pub begun: u64,
    /// Second by second, from the start.
    pub series: Vec<GatewaysSecond>,
    /// Requests of begun sessions that were refused or sent to the line.
    pub sent_back: u64,
    /// Visitors in line who were told that their place is over.
    pub places_lost: u64,
    /// Places drawn in the normal lane, as their visitors are told: when, and which number.
    pub drawn: Vec<(Instant, u64)>,
    /// Sessions that began from the line: when their place was drawn, and when they began.
    pub from_line: Vec<(Instant, Instant)>,
    /// Hash of everything that happened.
    pub trace: u64,
}

impl GatewaysResult {
    /// Returns sessions completed per second of the window.
    pub fn goodput(&self) -> f64 {
        self.counts.sessions_completed as f64 / self.seconds
    }

    /// Returns sessions begun per second of the window.
    pub fn begun_per_second(&self) -> f64 {
        self.begun as f64 / self.seconds
    }
}

//! What requests show about one node: several failures in a row eject it, each time for twice as
//! long.
//!
//! A node that returns is on probation: its first failure ejects it again at once, its first answer
//! ends the probation. Once it has answered for as long as its last ejection took, the next
//! ejection is short again.

use crate::EjectionParams;
use suimon_model::{Duration, Instant};

/// The most doublings of the ejection time, whatever its bound: 2^20 times any base exceeds every
/// sensible bound.
const LEVEL_MAX: u32 = 20;

/// One node's failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ejection {
    failures: u32,
    probation: bool,
    /// Ejections without a healthy stretch between them.
    level: u32,
    until: Option<Instant>,
    lasted: Duration,
    returned: Instant,
}

impl Ejection {
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    pub(crate) fn is_out(&self) -> bool {
        self.until.is_some()
    }

    pub(crate) fn failures_in_a_row(&self) -> u32 {
        self.failures
    }

    /// Returns whether the node is back from an ejection and has answered nothing since.
    pub(crate) fn is_on_probation(&self) -> bool {
        self.probation
    }

    /// Folds in an answer.
    pub(crate) fn answer(&mut self, now: Instant) {
        self.failures = 0;
        self.probation = false;
        if self.level > 0 && self.until.is_none() && now.since(self.returned) >= self.lasted {
            self.level = 0;
        }
    }

    /// Folds in `times` failures, at least one, and returns whether there are now too many.
    /// Failures during an ejection change nothing.
    pub(crate) fn failed(&mut self, times: u32, params: &EjectionParams) -> bool {
        if self.is_out() || params.after == 0 {
            return false;
        }
        self.failures = self.failures.saturating_add(times);
        self.probation || self.failures >= params.after
    }

    /// Ejects the node at `now` and returns for how long.
    pub(crate) fn eject(&mut self, now: Instant, params: &EjectionParams) -> Duration {
        let lasts = params.base.saturating_mul(1 << self.level).min(params.max);
        self.level = (self.level + 1).min(LEVEL_MAX);
        self.until = Some(now + lasts);
        self.lasted = lasts;
        lasts
    }

    /// Returns whether the node's ejection has ended by `now`; if so, it is back, on probation.
    pub(crate) fn ends(&mut self, now: Instant) -> bool {
        let over = self.until.is_some_and(|until| until <= now);
        if over {
            self.end(now);
        }
        over
    }

    /// Ends the ejection, however long it would last; the node is on probation.
    pub(crate) fn end(&mut self, now: Instant) {
        self.until = None;
        self.failures = 0;
        self.probation = true;
        self.returned = now;
    }
}

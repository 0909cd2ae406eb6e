//! What active checks say about one node: so many failures in a row and it is down, so many passes and it is up again.

use crate::CheckParams;
use suimon_model::{Duration, Instant, Rng};

/// How far an interval is stretched or shortened by chance, so that checks of many nodes and gateways do not fall together.
const JITTER: f64 = 0.1;

/// One node's checks.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    up: bool,
    /// Results in a row that speak against `up`.
    against: u32,
    due: Instant,
    under_way: bool,
}

impl Health {
    /// Returns a node thought to be up, its first check somewhere in the first interval.
    pub(crate) fn new(now: Instant, checks: Option<&CheckParams>, rng: &mut Rng) -> Self {
        let due = match checks {
            Some(checks) => now + checks.interval.mul_f64(rng.uniform()),
            None => Instant::FAR_FUTURE,
        };
        Health { up: true, against: 0, due, under_way: false }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// Returns when the next check is due, if none is under way and there is to be one.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.under_way && self.due < Instant::FAR_FUTURE).then_some(self.due)
    }

    /// Returns whether a check is to be made now. If so, it counts as under way.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let begins = self.due().is_some_and(|due| due <= now);
        self.under_way |= begins;
        begins
    }

    /// Folds in one result and returns whether the node went up or down by it. One that was not asked for is ignored.
    pub(crate) fn finish(&mut self, now: Instant, passed: bool, checks: &CheckParams, rng: &mut Rng) -> bool {
        if !std::mem::take(&mut self.under_way) {
            return false;
        }
        self.due = now + jittered(checks.interval, rng);
        if passed == self.up {
            self.against = 0;
            return false;
        }
        self.against += 1;
        let needed = if self.up { checks.down_after } else { checks.up_after };
        if self.against < needed.max(1) {
            return false;
        }
        self.up = passed;
        self.against = 0;
        true
    }
}

fn jittered(interval: Duration, rng: &mut Rng) -> Duration {
    interval.mul_f64(rng.between(1.0 - JITTER, 1.0 + JITTER))
}

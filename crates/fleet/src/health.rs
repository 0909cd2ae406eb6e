//! What active checks show about one node: several failures in a row make it down, several passes
//! in a row make it up again.

use crate::CheckParams;
use suimon_model::{Duration, Instant, Rng};

/// The random variation of an interval, so that checks of many nodes and gateways do not coincide.
const JITTER: f64 = 0.1;
/// The longest interval for a node that is out of reach, or may be: requests that wait for it
/// continue as soon as it is back.
const AWAY_EVERY: Duration = Duration::from_secs(1);
/// The delay of the next check after a node has answered again, or a request did not reach it.
const CONFIRM_AFTER: Duration = Duration::from_millis(250);

/// One node's checks.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    up: bool,
    /// Results in a row that contradict `up`.
    against: u32,
    due: Instant,
    under_way: bool,
    /// When the last check ended.
    looked: Instant,
}

impl Health {
    /// Returns a node assumed to be up, with its first check at a random time in the first
    /// interval.
    pub(crate) fn new(now: Instant, checks: Option<&CheckParams>, rng: &mut Rng) -> Self {
        let due = match checks {
            Some(checks) => now + checks.interval.mul_f64(rng.uniform()),
            None => Instant::FAR_FUTURE,
        };
        Health { up: true, against: 0, due, under_way: false, looked: Instant::ORIGIN }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// Returns when the next check is due; `None` if one is under way or none is planned.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.under_way && self.due < Instant::FAR_FUTURE).then_some(self.due)
    }

    /// Returns whether a check must be made now. If so, it counts as under way.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let begins = self.due().is_some_and(|due| due <= now);
        self.under_way |= begins;
        begins
    }

    /// Makes the next check soon: a request or a check did not reach the node.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.due = self.due.min(now + CONFIRM_AFTER);
    }

    /// Makes the next check at once, but at most one per second: a request was lost on the node.
    /// Each check costs the node a request, and a client that can cause one loss can cause any
    /// number.
    pub(crate) fn look(&mut self, now: Instant) {
        self.due = self.due.min(now.max(self.looked + AWAY_EVERY));
    }

    /// Repeats the check under way soon: it had no result.
    pub(crate) fn put_off(&mut self, now: Instant, checks: Option<&CheckParams>) {
        if std::mem::take(&mut self.under_way) {
            self.due = now + checks.map_or(AWAY_EVERY, |checks| AWAY_EVERY.min(checks.interval));
        }
    }

    /// Folds in one result and returns whether it makes the node up or down. A result that nobody
    /// asked for is ignored. `lost`: requests do not reach the node.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        passed: bool,
        checks: Option<&CheckParams>,
        lost: bool,
        rng: &mut Rng,
    ) -> bool {
        if !std::mem::take(&mut self.under_way) {
            return false;
        }
        self.looked = now;
        let Some(checks) = checks else {
            self.due = if lost { now + AWAY_EVERY } else { Instant::FAR_FUTURE };
            return false;
        };
        let changes = passed != self.up;
        self.against = if changes { self.against + 1 } else { 0 };
        let needed = if self.up { checks.down_after } else { checks.up_after };
        let changed = changes && self.against >= needed.max(1);
        if changed {
            self.up = passed;
            self.against = 0;
        }
        let pause = match (self.up, self.against) {
            (true, 0) if !lost => jittered(checks.interval, rng),
            (false, 1..) => CONFIRM_AFTER.min(checks.interval),
            _ => AWAY_EVERY.min(checks.interval),
        };
        self.due = now + pause;
        changed
    }
}

fn jittered(interval: Duration, rng: &mut Rng) -> Duration {
    interval.mul_f64(rng.between(1.0 - JITTER, 1.0 + JITTER))
}

//! What active checks say about one node: after some failures in a row it is down, after some
//! passes in a row it is up again.

use crate::CheckParams;
use suimon_model::{Duration, Instant, Rng};

/// How far an interval is stretched or shortened by chance, so that checks of many nodes and
/// gateways do not fall together.
const JITTER: f64 = 0.1;
/// A node that is out of reach, or may be, is looked at this often at least: those who wait for it
/// begin again when it is back.
const AWAY_EVERY: Duration = Duration::from_secs(1);
/// One that has answered again, or that a request did not reach, is looked at so soon.
const CONFIRM_AFTER: Duration = Duration::from_millis(250);

/// One node's checks.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    up: bool,
    /// Results in a row that speak against `up`.
    against: u32,
    due: Instant,
    under_way: bool,
    /// When the last one ended.
    looked: Instant,
}

impl Health {
    /// Returns a node thought to be up, its first check somewhere in the first interval.
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

    /// Looks at the node again soon: a request or a check did not reach it.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.due = self.due.min(now + CONFIRM_AFTER);
    }

    /// Looks at the node at once, unless that was done just now: a request was lost on it. Each
    /// costs the node a request, and a client that knows how to lose one can lose any number.
    pub(crate) fn look(&mut self, now: Instant) {
        self.due = self.due.min(now.max(self.looked + AWAY_EVERY));
    }

    /// Makes the check that is under way again soon: nothing was found out by it.
    pub(crate) fn put_off(&mut self, now: Instant, checks: Option<&CheckParams>) {
        if std::mem::take(&mut self.under_way) {
            self.due = now + checks.map_or(AWAY_EVERY, |checks| AWAY_EVERY.min(checks.interval));
        }
    }

    /// Folds in one result and returns whether the node went up or down by it. One that was not
    /// asked for is ignored. `lost`: requests do not reach it.
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

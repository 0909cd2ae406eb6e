//! When the memory is looked at: at intervals, and soon after workers have been started. A look may
//! cost a share of a core and no more; how long it waits for its turn does not count.

use std::time::{Duration, Instant};

/// The least time from one look to the next, and the least after a worker has become ready.
const EVERY: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(100);
/// The time from one look to the next, as a multiple of the CPU time of a look.
const EVERY_COSTS: u32 = 50;
const SOON_COSTS: u32 = 10;

/// When the next look is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// `None`: one is under way.
    due: Option<Instant>,
    /// When the last one ended, and its CPU time.
    ended: Instant,
    cost: Duration,
    /// Whether there is a worker that it has not seen.
    is_stale: bool,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Pace { due: Some(now + EVERY), ended: now, cost: Duration::ZERO, is_stale: false }
    }

    /// Returns when the next look is due; `None`: one is under way.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes that a look begins.
    pub(crate) fn begin(&mut self) {
        (self.due, self.is_stale) = (None, false);
    }

    /// Notes that a look has ended that took this CPU time.
    pub(crate) fn end(&mut self, now: Instant, cost: Duration) {
        (self.ended, self.cost) = (now, cost);
        let pause = if self.is_stale { SOON.max(cost * SOON_COSTS) } else { EVERY.max(cost * EVERY_COSTS) };
        self.due = Some(now + pause);
    }

    /// Notes that another worker is ready.
    pub(crate) fn hurry(&mut self) {
        self.is_stale = true;
        let soon = self.ended + SOON.max(self.cost * SOON_COSTS);
        self.due = self.due.map(|due| due.min(soon));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_look_is_as_rare_as_it_is_costly_however_long_it_waited() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.begin();
        assert_eq!(pace.due(), None);
        let ended = start + ms(5000);
        pace.end(ended, ms(2));
        assert_eq!(pace.due(), Some(ended + ms(1000)));
        pace.end(ended, ms(100));
        assert_eq!(pace.due(), Some(ended + ms(5000)));
    }

    #[test]
    fn a_worker_that_it_has_not_seen_brings_it_forward() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.hurry();
        assert_eq!(pace.due(), Some(start + ms(100)));
        pace.begin();
        pace.hurry();
        assert_eq!(pace.due(), None, "one at a time");
        pace.end(start + ms(300), ms(30));
        assert_eq!(pace.due(), Some(start + ms(600)), "it may have come too late for that one");
        pace.begin();
        pace.end(start + ms(700), ms(30));
        assert_eq!(pace.due(), Some(start + ms(2200)));
    }
}

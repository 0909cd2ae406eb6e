//! What a node tells of its load, corrected for its age.
//!
//! A load that was told a while ago is the same for everybody who is told it, so all send to the same
//! node until it tells the next. So what was sent since counts as if it had been told:
//!
//! ```text
//! load = told + sent since it was told                               for three periods at most
//! ```
//!
//! *Units*: requests, or connections. *Source*: P4 §3.1 for loads that are told by datagrams; that old
//! ones hurt, Mitzenmacher 2000.

use suimon_model::{Duration, Instant};

/// A load that is older than so many periods says nothing.
pub(crate) const PERIODS: u32 = 3;

/// The load of one node, as it was told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToldLoad {
    load: f64,
    sequence: u64,
    at: Instant,
    every: Duration,
    sent: u32,
}

impl ToldLoad {
    /// Returns a load that is told for the first time, and will be `every` so often.
    pub fn new(now: Instant, sequence: u64, load: f64, every: Duration) -> Self {
        ToldLoad { load, sequence, at: now, every, sent: 0 }
    }

    /// Takes a further one; returns whether it is newer than the last.
    pub fn handle_report(&mut self, now: Instant, sequence: u64, load: f64) -> bool {
        let is_newer = sequence > self.sequence;
        if is_newer {
            (self.load, self.sequence, self.at, self.sent) = (load, sequence, now, 0);
        }
        is_newer
    }

    /// Notes that the node was sent something.
    pub fn handle_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
    }

    /// Returns the load as it was told; `None`: that is too long ago.
    pub fn told(&self, now: Instant) -> Option<f64> {
        (now.since(self.at) <= self.every.saturating_mul(PERIODS)).then_some(self.load)
    }

    /// Returns the load, with what was sent since; `None`: too long ago.
    pub fn load(&self, now: Instant) -> Option<f64> {
        Some(self.told(now)? + f64::from(self.sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    fn at(second: f64) -> Instant {
        Instant::ORIGIN + seconds(second)
    }

    #[test]
    fn what_was_sent_since_counts_until_the_next_report() {
        let mut told = ToldLoad::new(at(0.0), 1, 4.0, seconds(1.0));
        told.handle_sent();
        told.handle_sent();
        assert_eq!((told.told(at(0.5)), told.load(at(0.5))), (Some(4.0), Some(6.0)));
        assert!(told.handle_report(at(1.0), 2, 5.0));
        assert_eq!(told.load(at(1.0)), Some(5.0));
    }

    #[test]
    fn a_report_that_comes_late_or_twice_is_ignored() {
        let mut told = ToldLoad::new(at(0.0), 7, 4.0, seconds(1.0));
        for sequence in [0, 6, 7] {
            assert!(!told.handle_report(at(0.5), sequence, 0.0));
        }
        assert_eq!(told.load(at(0.5)), Some(4.0));
    }

    #[test]
    fn after_three_periods_it_says_nothing() {
        let told = ToldLoad::new(at(0.0), 1, 4.0, seconds(1.0));
        assert_eq!((told.load(at(3.0)), told.load(at(3.1))), (Some(4.0), None));
    }
}

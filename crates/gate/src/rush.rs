//! Whether newcomers arrive so fast, right now, that the gate may close within a moment.
//!
//! The rate of newcomers is known after two seconds, but a rush arrives within a tenth of one. So
//! newcomers are also counted in a leaky bucket that empties at the share of the law's rate that
//! counts as near its limit. It is full at half a second's worth of that rate; in the first
//! seconds, when the rate is a guess, a second visitor right behind the first.

use suimon_model::Instant;

/// From this share of the possible admission rate on, newcomers may soon have to wait.
pub(crate) const CLOSE_SHARE: f64 = 0.5;
/// How long a gate is new, seconds, counted from its first newcomer.
const NEW_SECONDS: f64 = 5.0;
/// What counts as a rush at a new gate: more than one newcomer at a time.
const FULL_NEW: f64 = 1.5;
/// Seconds' worth of the law's rate that fill the bucket later, and the least number that does: as
/// many may arrive at once by chance.
const FULL_SECONDS: f64 = 0.5;
const FULL_MIN: f64 = 4.0;
/// Newcomers per second that a new gate takes for few, where the law knows no rate.
const FEW_PER_SECOND: f64 = 1.0;

/// The bucket.
#[derive(Clone, Debug)]
pub(crate) struct Rush {
    level: f64,
    at: Instant,
    first: Option<Instant>,
}

suimon_model::saved_struct!(Rush { level, at, first });

impl Rush {
    pub(crate) fn new(now: Instant) -> Self {
        Rush { level: 0.0, at: now, first: None }
    }

    /// Takes note of a newcomer; `rate`: sessions per second that could begin, if that is known.
    pub(crate) fn note(&mut self, now: Instant, rate: Option<f64>) {
        self.first.get_or_insert(now);
        self.level = self.level_at(now, rate) + 1.0;
        self.at = now;
    }

    /// Returns whether it is full.
    pub(crate) fn is_on(&self, now: Instant, rate: Option<f64>) -> bool {
        let is_new = self.first.is_some_and(|first| now.secs_since(first) < NEW_SECONDS);
        let full = match rate {
            _ if is_new => FULL_NEW,
            Some(rate) => (FULL_SECONDS * rate).max(FULL_MIN),
            // For a law that does not know its rate nothing is predicted.
            None => return false,
        };
        self.level_at(now, rate) > full
    }

    /// Returns seconds since the first newcomer, if there was one.
    pub(crate) fn age(&self, now: Instant) -> Option<f64> {
        self.first.map(|first| now.secs_since(first))
    }

    fn level_at(&self, now: Instant, rate: Option<f64>) -> f64 {
        let drain = rate.map_or(FEW_PER_SECOND, |rate| CLOSE_SHARE * rate);
        (self.level - drain * now.secs_since(self.at)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    fn at(secs: f64) -> Instant {
        Instant::ORIGIN + seconds(secs)
    }

    #[test]
    fn at_a_new_gate_the_second_visitor_on_the_heels_of_the_first_is_a_rush() {
        let mut rush = Rush::new(at(0.0));
        rush.note(at(100.0), Some(2.0));
        assert!(!rush.is_on(at(100.0), Some(2.0)), "one visitor is none");
        rush.note(at(100.01), Some(2.0));
        assert!(rush.is_on(at(100.01), Some(2.0)));
        assert!(!rush.is_on(at(101.0), Some(2.0)), "it is over");
    }

    #[test]
    fn later_it_takes_more_than_come_at_once_by_chance() {
        let mut rush = Rush::new(at(0.0));
        rush.note(at(0.0), Some(20.0));
        (0..10).for_each(|_| rush.note(at(60.0), Some(20.0)));
        assert!(!rush.is_on(at(60.0), Some(20.0)), "half a second's worth");
        rush.note(at(60.0), Some(20.0));
        assert!(rush.is_on(at(60.0), Some(20.0)));
        assert!(!rush.is_on(at(60.0), None), "of a law that does not know nothing is foreseen");
    }
}

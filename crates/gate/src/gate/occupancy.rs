//! How many requests are in the application, now and on average over the life of each.

use suimon_model::Instant;

/// Requests in the application, counted and integrated over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    count: usize,
    /// Their number integrated over time, seconds, until `at`.
    seconds: f64,
    at: Instant,
}

suimon_model::saved_struct!(Occupancy { count, seconds, at });

impl Occupancy {
    /// Returns that of an empty application.
    pub(super) const fn new(now: Instant) -> Self {
        Occupancy { count: 0, seconds: 0.0, at: now }
    }

    /// Returns how many are there.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) fn enters(&mut self, now: Instant) {
        self.pass(now);
        self.count += 1;
    }

    pub(super) fn leaves(&mut self, now: Instant) {
        self.pass(now);
        self.count -= 1;
    }

    /// Returns the number integrated over time until the last change, to be given to
    /// [`mean_since`](Occupancy::mean_since) later.
    pub(super) const fn mark(&self) -> f64 {
        self.seconds
    }

    /// Returns the mean number from the change at `begin`, where [`mark`](Occupancy::mark) was
    /// `mark`, to the last change.
    pub(super) fn mean_since(&self, begin: Instant, mark: f64) -> f64 {
        let passed = self.at.secs_since(begin);
        if passed > 0.0 { (self.seconds - mark) / passed } else { self.count as f64 }
    }

    fn pass(&mut self, now: Instant) {
        self.seconds += self.count as f64 * now.secs_since(self.at);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    #[test]
    fn the_mean_counts_who_came_and_went_in_between() {
        let at = |second: f64| Instant::ORIGIN + seconds(second);
        let mut inside = Occupancy::new(at(0.0));
        inside.enters(at(10.0));
        let mark = inside.mark();
        // Another one was there for two seconds of ten.
        inside.enters(at(14.0));
        inside.leaves(at(16.0));
        inside.leaves(at(20.0));
        assert!((inside.mean_since(at(10.0), mark) - 1.2).abs() < 1e-9);
        assert_eq!(inside.count(), 0);
    }

    #[test]
    fn what_took_no_time_was_with_those_who_are_there() {
        let mut inside = Occupancy::new(Instant::ORIGIN);
        inside.enters(Instant::ORIGIN);
        inside.enters(Instant::ORIGIN);
        assert!((inside.mean_since(Instant::ORIGIN, inside.mark()) - 2.0).abs() < 1e-9);
    }
}

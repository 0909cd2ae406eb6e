//! Means of a run queue over the past.
//!
//! A run queue is looked at every 10 ms, as far as the one who looks gets a processor. On a busy
//! machine it looks late, and a plain mean would be of the quiet moments. So each look counts for
//! the time since the one before.

use std::collections::VecDeque;
use suimon_model::{Duration, Instant};

/// The most looks that are kept.
pub const SAMPLES_MAX: usize = 256;
/// The longest past that is asked for.
pub const PAST: Duration = Duration::from_secs(1);

/// Looks at a run queue over the past second.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    looks: VecDeque<(Instant, u32)>,
}

impl Samples {
    /// Folds in a look: so many tasks ran or could.
    pub fn push(&mut self, now: Instant, tasks: u32) {
        self.looks.push_back((now, tasks));
        let begins = now - PAST;
        // The one before the second begins the first look in it.
        while self.looks.len() > SAMPLES_MAX || self.looks.get(1).is_some_and(|(at, _)| *at <= begins) {
            self.looks.pop_front();
        }
    }

    /// Returns the last look, in tasks; 0 if there was none.
    pub fn last(&self) -> u32 {
        self.looks.back().map_or(0, |(_, tasks)| *tasks)
    }

    /// Returns the mean number of tasks over `past` before the last look, or over what is known of it.
    pub fn mean(&self, past: Duration) -> f64 {
        let Some((last, tasks)) = self.looks.back() else { return 0.0 };
        let begins = *last - past;
        let (mut work, mut time) = (0.0, 0.0);
        for ((before, _), (at, tasks)) in self.looks.iter().zip(self.looks.iter().skip(1)) {
            let lasted = at.secs_since((*before).max(begins));
            work += lasted * f64::from(*tasks);
            time += lasted;
        }
        if time > 0.0 { work / time } else { f64::from(*tasks) }
    }

    /// Returns the same in thousandths of a task, as reports have it.
    pub fn mean_milli(&self, past: Duration) -> u32 {
        // A conversion from float saturates.
        (1000.0 * self.mean(past)).round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(5) + Duration::from_millis(ms)
    }

    #[test]
    fn a_mean_is_of_the_past_that_is_asked_for() {
        let mut samples = Samples::default();
        assert_eq!((samples.last(), samples.mean_milli(PAST)), (0, 0));
        samples.push(at(0), 8);
        assert_eq!(samples.mean_milli(PAST), 8000, "one look is all that is known");
        for step in 1..=100 {
            samples.push(at(10 * step), if step > 90 { 10 } else { 0 });
        }
        assert_eq!(samples.last(), 10);
        assert_eq!(samples.mean_milli(Duration::from_millis(100)), 10_000);
        assert_eq!(samples.mean_milli(PAST), 1000);
    }

    #[test]
    fn a_look_that_came_late_counts_for_the_time_it_was_late() {
        let mut samples = Samples::default();
        samples.push(at(0), 0);
        samples.push(at(10), 0);
        samples.push(at(100), 10);
        assert_eq!(samples.mean_milli(Duration::from_millis(100)), 9000);
    }

    proptest! {
        #[test]
        fn a_mean_lies_between_the_least_and_the_most(looks in proptest::collection::vec((0u64..300, 0u32..1000), 1..600)) {
            let (mut samples, mut now) = (Samples::default(), 0);
            for (step, tasks) in &looks {
                now += step;
                samples.push(at(now), *tasks);
                prop_assert!(samples.looks.len() <= SAMPLES_MAX);
            }
            let most = looks.iter().map(|(_, tasks)| *tasks).max().unwrap_or(0);
            for past in [10, 100, 1000] {
                let mean = samples.mean(Duration::from_millis(past));
                prop_assert!((0.0..=f64::from(most) + 1e-9).contains(&mean), "{mean}");
            }
        }
    }
}

//! X: how much a route completes when it has all it can take.
//!
//! *Law*: the average (weight 0.3) of throughput over windows in which somebody waited for more than 90 % of the
//! time; raised at once by any window that did better. Before the first such window: limit ÷ service time.
//! *Units*: completions per second. *Limits*: a window is at least 2 s and 8 completions.
//! *Regimes*: below saturation nothing is learned downward, as throughput is then only what was asked for.

use crate::statistics::Average;
use crate::window::{Meter, Reading, Window};
use suimon_model::Instant;

/// The least length of a window, seconds.
const SECONDS_MIN: f64 = 2.0;
/// The fewest completions in a window.
const COMPLETIONS_MIN: u64 = 8;
/// Share of the time somebody must have waited for the window to show what the route can do.
const SATURATED: f64 = 0.9;
/// Saturated windows needed for what they did to be told, and the least weight of the newest.
const SATURATED_WINDOWS_MIN: u64 = 4;
const SATURATED_WEIGHT: f64 = 0.05;

/// Learns X of one route.
#[derive(Clone, Debug)]
pub struct Capacity {
    measured: Average,
    saturated: Average,
    begin: Reading,
    /// The same with trials.
    begin_all: Reading,
}

suimon_model::saved_struct!(Capacity { measured, saturated, begin, begin_all });

impl Capacity {
    /// Returns what is known at `now`: nothing.
    pub fn new(now: Instant) -> Self {
        let begin = Reading { at: now, ..Reading::default() };
        Capacity {
            measured: Average::new(0.3),
            saturated: Average::new(SATURATED_WEIGHT),
            begin,
            begin_all: begin,
        }
    }

    /// Looks at the meter; folds in a window when one is complete. `lessened`: for a trial the route runs at a lower limit than it could; what
    /// is done then counts for what it did, not for X.
    pub fn tick(&mut self, now: Instant, meter: &Meter, lessened: bool) {
        if let Some(window) = complete(&mut self.begin_all, now, meter)
            && is_saturated(&window)
        {
            self.saturated.fold(window.throughput());
        }
        if lessened {
            self.begin = meter.read(now);
        } else if let Some(window) = complete(&mut self.begin, now, meter) {
            if is_saturated(&window) {
                self.measured.fold(window.throughput());
            } else {
                self.measured.raise(window.throughput());
            }
        }
    }

    /// Returns completions per second over the saturated windows alone, once there were a few: what the route really did when it
    /// had all it could take. X itself follows the best of windows, which is right for letting in and too high for a forecast.
    pub fn saturated(&self) -> Option<f64> {
        self.saturated.get().filter(|_| self.saturated.count() >= SATURATED_WINDOWS_MIN)
    }

    /// Returns X in completions per second: measured, or else what `limit` requests of `service_seconds` each would give;
    /// `None` if nothing at all is known.
    pub fn per_second(&self, limit: Option<u32>, service_seconds: Option<f64>) -> Option<f64> {
        self.measured.get().or_else(|| {
            let (limit, service) = (limit?, service_seconds?);
            (service > 0.0).then(|| f64::from(limit) / service)
        })
    }
}

/// Returns the window that began with `begin`, if it is long enough, and begins the next.
fn complete(begin: &mut Reading, now: Instant, meter: &Meter) -> Option<Window> {
    let window = meter.since(begin, now);
    let is_complete = window.seconds >= SECONDS_MIN && window.progressed + window.failed >= COMPLETIONS_MIN;
    is_complete.then(|| {
        *begin = meter.read(now);
        window
    })
}

fn is_saturated(window: &Window) -> bool {
    window.queued_share() > SATURATED && window.progressed > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    fn second(n: u32) -> Instant {
        Instant::ORIGIN + seconds(f64::from(n))
    }

    fn play(capacity: &mut Capacity, meter: &mut Meter, from: u32, waiting: usize, per_second: u32) {
        meter.load(second(from), 1, waiting);
        for n in from + 1..=from + 10 {
            (0..per_second).for_each(|_| meter.end(0.1, true));
            capacity.tick(second(n), meter, false);
        }
    }

    #[test]
    fn only_saturated_windows_lower_what_a_route_can_do() {
        let (mut capacity, mut meter) = (Capacity::new(second(0)), Meter::new(second(0)));
        assert_eq!(capacity.per_second(Some(2), Some(0.1)), Some(20.0));
        play(&mut capacity, &mut meter, 0, 5, 8);
        assert!((capacity.per_second(None, None).unwrap() - 8.0).abs() < 1e-9);
        play(&mut capacity, &mut meter, 10, 0, 5);
        assert!(
            (capacity.per_second(None, None).unwrap() - 8.0).abs() < 1e-9,
            "asked for less, not able to less"
        );
        play(&mut capacity, &mut meter, 20, 0, 12);
        assert!(
            (capacity.per_second(None, None).unwrap() - 12.0).abs() < 1e-9,
            "did better, so can do better"
        );
        play(&mut capacity, &mut meter, 30, 5, 6);
        assert!(capacity.per_second(None, None).unwrap() < 8.5);
        let saturated = capacity.saturated().unwrap();
        assert!(
            (6.5..7.5).contains(&saturated),
            "what was done in the windows at 8 and at 6 alone: {saturated}"
        );
    }

    #[test]
    fn what_is_done_at_a_lower_limit_on_trial_says_nothing_of_what_could_be_done() {
        let (mut capacity, mut meter) = (Capacity::new(second(0)), Meter::new(second(0)));
        play(&mut capacity, &mut meter, 0, 5, 8);
        for n in 11..=20 {
            (0..4).for_each(|_| meter.end(0.1, true));
            capacity.tick(second(n), &meter, true);
        }
        assert!((capacity.per_second(None, None).unwrap() - 8.0).abs() < 1e-9);
        let saturated = capacity.saturated().unwrap();
        assert!(saturated < 7.0, "but it was done, and that is told: {saturated}");
    }
}

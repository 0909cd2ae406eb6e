//! Gradient2: the recent service time against the long-term one.
//!
//! *Law*. At the end of every window, with m the limit, S its mean service time, L the exponential
//! mean of S over 600 windows (the plain mean of the first 10), and n the most in the application:
//!
//! ```text
//! L/S > 2     L ← 0.95 · L                              what was learned in an overload is forgotten     (1)
//! n < m/2     m stays
//! g = clamp(1.5 · L/S, ½, 1)                                                                             (2)
//! m ← 0.8 · m + 0.2 · (g · m + 4)                                                                        (3)
//! ```
//!
//! *Signals*: mean service times. *Units*: seconds, requests. *Limits*: [`BOUNDS`]. *Regimes*: idle
//! and lightly used routes keep their limit. Failures count like any answer. *Source*:
//! `Gradient2Limit` of Netflix's concurrency-limits as documented there: tolerance 1.5, queue 4,
//! smoothing 0.2, long window 600, limits 20 to 200. Its "current average" is that of
//! `WindowedLimit`: 1 s and 10 samples. There a window with fewer samples is discarded, and a page
//! of less than 10 requests per second never learns; here it stays open.

use super::per_route::{Batch, Bounds, Sample, SingleLimit};
use suimon_model::{Instant, Signals};

/// The published limits.
pub(super) const BOUNDS: Bounds = Bounds { initial: 20, least: 20, most: 200 };
/// The short service time may be this many times the long one before the limit falls.
const TOLERANCE: f64 = 1.5;
/// Requests allowed to queue in the application.
const QUEUE: f64 = 4.0;
/// The weight of a new limit.
const SMOOTHING: f64 = 0.2;
/// The least gradient: at most half of the limit is taken away, before smoothing.
const GRADIENT_MIN: f64 = 0.5;
/// Windows of the long mean, and of the plain mean at its beginning.
const LONG_WINDOWS: u32 = 600;
const WARM_UP_WINDOWS: u32 = 10;
/// The ratio of the long mean to the short one above which the long mean is reduced, and by how
/// much.
const DRIFTED: f64 = 2.0;
const DECAY: f64 = 0.95;
/// The least length of a window, seconds, and the fewest ends in it.
const WINDOW_SECONDS: f64 = 1.0;
const WINDOW_SAMPLES: u32 = 10;

/// The rule for one route.
#[derive(Clone, Debug)]
pub(super) struct Gradient2 {
    bounds: Bounds,
    estimate: f64,
    window: Batch,
    windows: u32,
    long: f64,
    short: f64,
    gradient: f64,
}

impl Gradient2 {
    pub(super) fn new(bounds: Bounds) -> Self {
        Gradient2 {
            bounds,
            estimate: f64::from(bounds.initial),
            window: Batch::default(),
            windows: 0,
            long: 0.0,
            short: 0.0,
            gradient: 1.0,
        }
    }

    /// Folds in the mean service time of a window during which up to `in_flight` were in the
    /// application.
    fn on_window(&mut self, short: f64, in_flight: u32) {
        self.windows = (self.windows + 1).min(LONG_WINDOWS);
        let weight = if self.windows <= WARM_UP_WINDOWS {
            1.0 / f64::from(self.windows)
        } else {
            2.0 / f64::from(LONG_WINDOWS + 1)
        };
        self.short = short;
        self.long += weight * (short - self.long);
        if self.long > DRIFTED * short {
            self.long *= DECAY;
        }
        if f64::from(in_flight) < self.estimate / 2.0 || short <= 0.0 {
            return;
        }
        self.gradient = (TOLERANCE * self.long / short).clamp(GRADIENT_MIN, 1.0);
        let wanted = self.gradient * self.estimate + QUEUE;
        self.estimate = self.bounds.hold((1.0 - SMOOTHING) * self.estimate + SMOOTHING * wanted);
    }
}

impl SingleLimit for Gradient2 {
    fn begin(&mut self, now: Instant, _stream: u64) {
        self.window = Batch::new(now);
    }

    fn limit(&self) -> u32 {
        self.bounds.whole(self.estimate)
    }

    fn signals(&self) -> Signals {
        Signals::none()
            .with("service", self.short)
            .with("long_service", self.long)
            .with("gradient", self.gradient)
    }

    fn on_end(&mut self, now: Instant, sample: &Sample) {
        self.window.fold(sample);
        if now.secs_since(self.window.begin) >= WINDOW_SECONDS && self.window.ends >= WINDOW_SAMPLES {
            let window = std::mem::replace(&mut self.window, Batch::new(now));
            self.on_window(window.service / f64::from(window.ends), window.in_flight_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Bench;

    /// Returns the law at limit 100 after 20 windows of 0.1 s.
    fn settled() -> Gradient2 {
        let mut law = Gradient2::new(Bounds { initial: 100, ..BOUNDS });
        (0..20).for_each(|_| law.on_window(0.1, 0));
        law
    }

    fn after(short: f64, in_flight: u32) -> f64 {
        let mut law = settled();
        law.on_window(short, in_flight);
        law.estimate
    }

    #[test]
    fn within_the_tolerance_it_grows_by_a_fifth_of_the_queue() {
        assert!((after(0.1, 100) - 100.8).abs() < 1e-9);
        assert!((after(0.149, 100) - 100.8).abs() < 1e-9);
    }

    #[test]
    fn over_the_tolerance_it_falls_and_at_most_by_a_tenth_a_window() {
        let twice = after(0.2, 100);
        assert!((85.0..100.0).contains(&twice), "{twice}");
        assert!((after(90.0, 100) - 90.8).abs() < 1e-9);
    }

    #[test]
    fn it_does_not_move_while_the_limit_is_half_empty() {
        assert!((after(0.1, 49) - 100.0).abs() < 1e-9);
        assert!((after(0.2, 49) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_mean_from_an_overload_is_let_down() {
        let mut law = settled();
        let slowly = |law: &mut Gradient2| {
            (0..20).for_each(|_| law.on_window(0.045, 0));
            law.long
        };
        let decayed = slowly(&mut law);
        assert!(decayed < 0.1 * DECAY, "below half of the long mean it decays: {decayed}");
        let mut near = settled();
        (0..20).for_each(|_| near.on_window(0.055, 0));
        assert!(near.long > 0.1 * DECAY, "above half it follows its mean only: {}", near.long);
    }

    #[test]
    fn a_window_is_a_second_and_ten_ends() {
        // 5 ends per second, one at a time: a window takes two seconds.
        let mut bench = Bench::new(Gradient2::new(Bounds { least: 1, initial: 1, ..BOUNDS }), |_| 0.2);
        let limits = bench.saturated(1.75);
        assert!(limits.iter().all(|m| *m == 1), "{limits:?}");
        let limits = bench.saturated(10.0);
        assert!(limits.last() > Some(&1), "{limits:?}");
    }
}

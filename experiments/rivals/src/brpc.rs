//! The auto limiter of brpc: the best rate times the service time without load, plus some room to
//! explore.
//!
//! *Law*. At the end of every window, with S its mean service time and X its ends per second:
//!
//! ```text
//! S₀ ← S if unknown;  0.1 · S + 0.9 · S₀ if S < S₀                                              (1)
//! X₀ ← X if X > X₀;   else 0.01 · X + 0.99 · X₀                                                 (2)
//! m  ← X₀ · (2.3 · S₀ − S)                                                                      (3)
//! ```
//!
//! Every 25 to 50 s instead of (3): m ← ⌈0.75 · m⌉, nothing is counted for 2S, and then S₀ is
//! unknown. The time of failures counts in S, but failures do not count as ends; a window of
//! failures alone halves m.
//!
//! *Signals*: mean service times and ends per second. *Units*: seconds, requests. *Limits*:
//! [`bounds`]. *Regimes*: an idle route keeps its limit; an S₀ learned too high under load comes
//! down at each re-measurement.
//!
//! *Source*: the document of Apache brpc's `auto_concurrency_limiter` for (1) to (3), α = 0.3 and
//! the quarter; its flags for the rest: start at 40, windows of 1 s or 200 samples, 50 s, the
//! number of workers as the minimum. There a window of less than 100 samples is discarded, so a
//! page with less than 100 requests per second never learns; here it stays open until it has
//! [`WINDOW_SAMPLES_MIN`].
//!
//! Later code has S₀ · X₀ · (1 + e) for (3), e from 0.06 to 0.3 in steps, and takes a tenth instead
//! of a quarter. It was tried here on a host that only queues, with a queue that never empties and
//! times that vary. X₀ was then a maximum of noise, e stayed high, and m grew at every
//! re-measurement without end; the document's form came down. So the document's form is the rival.

use super::per_route::{Batch, Bounds, Sample, SingleLimit};
use suimon_model::{Duration, Instant, Rng, Signals, seconds};

/// The weight of a lower S in S₀; that of a lower X in X₀ is a tenth of it.
const WEIGHT: f64 = 0.1;
const RATE_WEIGHT: f64 = WEIGHT / 10.0;
/// 2 + α: S may be this many times S₀ before the limit is zero.
const ROOM: f64 = 2.3;
/// The share of the limit that remains while the service time without load is measured.
const REDUCED: f64 = 0.75;
/// The longest time between two such measurements; the shortest is half of it.
const MEASURE_EVERY: Duration = Duration::from_secs(50);
/// Service times to wait until requests that queued in the application have left it.
const DRAIN: f64 = 2.0;
/// The least length of a window, seconds, and the fewest samples in it, ...
const WINDOW_SECONDS: f64 = 1.0;
const WINDOW_SAMPLES_MIN: u32 = 100;
/// ... and this many samples end it at once.
const WINDOW_SAMPLES_MAX: u32 = 200;
/// The highest limit; brpc has none.
const LIMIT_MAX: u32 = 1000;
/// The source of the random times between measurements.
const SEED: u64 = 0x4252_5043;

/// Returns the published limits with a worker for each of `cores` cores.
pub(super) const fn bounds(cores: u32) -> Bounds {
    Bounds { initial: 40, least: cores, most: LIMIT_MAX }
}

/// The limiter of one route.
#[derive(Clone, Debug)]
pub(super) struct Brpc {
    bounds: Bounds,
    limit: u32,
    unloaded: Option<f64>,
    rate: f64,
    service: f64,
    window: Batch,
    /// Until when requests that queued in the application leave it.
    draining: Option<Instant>,
    measure_at: Instant,
    rng: Rng,
}

impl Brpc {
    pub(super) fn new(bounds: Bounds) -> Self {
        Brpc {
            bounds,
            limit: bounds.initial,
            unloaded: None,
            rate: 0.0,
            service: 0.0,
            window: Batch::default(),
            draining: None,
            measure_at: Instant::ORIGIN,
            rng: Rng::new(SEED),
        }
    }

    fn schedule(&mut self, now: Instant) {
        let longest = MEASURE_EVERY.as_secs_f64();
        self.measure_at = now + seconds(self.rng.between(longest / 2.0, longest));
    }

    /// Folds in the mean service time and the ends per second of a window, and returns the
    /// resulting limit.
    fn on_window(&mut self, service: f64, rate: f64) -> f64 {
        self.service = service;
        let unloaded = match self.unloaded {
            Some(known) if service < known => WEIGHT * service + (1.0 - WEIGHT) * known,
            Some(known) => known,
            None => service,
        };
        self.unloaded = Some(unloaded);
        self.rate = if rate > self.rate { rate } else { self.rate + RATE_WEIGHT * (rate - self.rate) };
        self.rate * (ROOM * unloaded - service)
    }
}

impl SingleLimit for Brpc {
    fn begin(&mut self, now: Instant, stream: u64) {
        self.window = Batch::new(now);
        self.rng = Rng::stream(SEED, stream);
        self.schedule(now);
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn signals(&self) -> Signals {
        Signals::none()
            .with("service", self.service)
            .with("unloaded_service", self.unloaded.unwrap_or(0.0))
            .with("rate_max", self.rate)
    }

    fn on_end(&mut self, now: Instant, sample: &Sample) {
        if let Some(until) = self.draining {
            if now < until {
                return;
            }
            self.draining = None;
            self.unloaded = None;
            self.window = Batch::new(now);
            self.schedule(now);
        }
        self.window.fold(sample);
        let long_enough =
            now.secs_since(self.window.begin) >= WINDOW_SECONDS && self.window.ends >= WINDOW_SAMPLES_MIN;
        if !long_enough && self.window.ends < WINDOW_SAMPLES_MAX {
            return;
        }
        let window = std::mem::replace(&mut self.window, Batch::new(now));
        let good = window.ends - window.failed;
        let limit = f64::from(self.limit);
        if good == 0 {
            self.limit = self.bounds.whole(limit / 2.0);
            return;
        }
        let wanted = self.on_window(window.service / f64::from(good), window.throughput(now));
        if now >= self.measure_at {
            self.draining = Some(now + seconds(DRAIN * self.service));
            self.limit = self.bounds.whole((limit * REDUCED).ceil());
        } else {
            self.limit = self.bounds.whole(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, sample};

    /// 10 at once without a queue, capacity 100/s.
    fn pool(n: u32) -> f64 {
        0.1 * (f64::from(n) / 10.0).max(1.0)
    }

    fn bench(initial: u32) -> Bench {
        Bench::new(Brpc::new(Bounds { initial, ..bounds(2) }), pool)
    }

    #[test]
    fn it_settles_a_little_over_the_bandwidth_delay_product() {
        let mut bench = bench(40);
        bench.asked(8, 5.0);
        let limits = bench.saturated(20.0);
        assert!(limits[40..].iter().all(|m| (10..=14).contains(m)), "{limits:?}");
    }

    #[test]
    fn a_limit_learned_under_load_comes_down_with_each_measurement() {
        let mut bench = bench(40);
        let early = bench.saturated(20.0);
        assert!(early.last() > Some(&36), "nothing tells it that 40 is too many: {early:?}");
        let late = bench.saturated(1500.0);
        assert!(late.last() < Some(&20), "{late:?}");
    }

    #[test]
    fn it_measures_by_taking_a_quarter_and_forgets_the_old_time_without_load() {
        let mut law = Brpc::new(bounds(2));
        law.begin(Instant::ORIGIN, 0);
        let late = Instant::ORIGIN + MEASURE_EVERY;
        (0..100).for_each(|_| law.on_end(late, &sample(0.5, 40)));
        assert_eq!((law.limit, law.unloaded), (30, Some(0.5)));
        (0..200).for_each(|_| law.on_end(late + seconds(0.9), &sample(9.0, 40)));
        assert_eq!((law.limit, law.unloaded), (30, Some(0.5)), "a request that still leaves tells nothing");
        (0..100).for_each(|n| law.on_end(late + seconds(1.1 + 0.02 * f64::from(n)), &sample(0.7, 30)));
        assert!(law.unloaded.is_some_and(|known| (known - 0.7).abs() < 1e-9), "{:?}", law.unloaded);
    }

    /// Returns the law after a window of 100, `failed` of them failures.
    fn after(failed: usize) -> Brpc {
        let mut law = Brpc::new(bounds(2));
        law.begin(Instant::ORIGIN, 0);
        let now = Instant::ORIGIN + seconds(1.0);
        (0..100).for_each(|n| law.on_end(now, &Sample { failed: n < failed, ..sample(0.1, 40) }));
        law
    }

    #[test]
    fn failures_make_times_look_worse_and_nothing_but_failures_halves() {
        assert!((after(0).service - 0.1).abs() < 1e-9);
        assert!((after(50).service - 0.2).abs() < 1e-9);
        assert_eq!(after(100).limit, 20);
    }
}

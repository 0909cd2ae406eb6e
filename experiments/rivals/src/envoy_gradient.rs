//! The gradient controller of Envoy: present service times against service times at the least
//! concurrency.
//!
//! *Law*. While measuring, the limit is the least possible, and S₀ is the median of [`MEASURED`]
//! requests that started since. Otherwise, at the end of each window, with m the limit and S the
//! median of the window:
//!
//! ```text
//! g = clamp(1.25 · S₀/S, ½, 2)                                                                  (1)
//! m ← g·m + √(g·m)                                                                              (2)
//! ```
//!
//! It measures at the start, every 60 s plus up to 15 %, and after 5 consecutive windows at the
//! least limit; then the previous limit is in force again. Requests that started before a
//! measurement are ignored after it.
//!
//! *Signals*: medians of service times. *Units*: seconds, requests. *Limits*: [`BOUNDS`].
//! *Regimes*: a window without ends decides nothing. Otherwise it does not matter whether the limit
//! was in use, so it grows to the maximum on a route that is hardly used. *Source*: the
//! documentation and settings of Envoy's adaptive concurrency filter: 50 requests at concurrency 3,
//! buffer 25 %, median, at most 1000; the window of 100 ms is that of its example.

use super::per_route::{Bounds, Sample, SingleLimit};
use suimon_model::{Duration, Instant, Rng, Signals, seconds};

/// The published limits; it starts by measuring, at the least limit.
pub(super) const BOUNDS: Bounds = Bounds { initial: 3, least: 3, most: 1000 };
/// Requests whose median is the service time at the least concurrency.
const MEASURED: usize = 50;
/// Time between two measurements, and the most random addition to it, as a share.
const MEASURE_EVERY: Duration = Duration::from_secs(60);
const JITTER: f64 = 0.15;
/// By how much S may exceed S₀ before the limit falls, as a share.
const BUFFER: f64 = 0.25;
/// The length of a window.
const WINDOW: Duration = Duration::from_millis(100);
/// The quantile that stands for a window.
const QUANTILE: f64 = 0.5;
/// The most samples of a window.
const SAMPLES_MAX: usize = 256;
const GRADIENT_MIN: f64 = 0.5;
const GRADIENT_MAX: f64 = 2.0;
/// Consecutive windows at the least limit after which it measures again.
const FLOORED_MAX: u32 = 5;
/// The source of the jitter's random numbers.
const SEED: u64 = 0x454E_564F;

/// The controller of one route.
#[derive(Clone, Debug)]
pub(super) struct EnvoyGradient {
    bounds: Bounds,
    limit: u32,
    phase: Phase,
    /// Requests that started before this are ignored.
    epoch: Instant,
    /// Service times of this window, the newest [`SAMPLES_MAX`].
    samples: Vec<f64>,
    window_end: Instant,
    unloaded: f64,
    service: f64,
    gradient: f64,
    floored: u32,
    rng: Rng,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// At the least limit; `before` is in force again when S₀ is known.
    Measuring { before: u32 },
    /// Until it is time to measure again.
    Steady { until: Instant },
}

impl EnvoyGradient {
    pub(super) fn new(bounds: Bounds) -> Self {
        EnvoyGradient {
            bounds,
            limit: bounds.least,
            phase: Phase::Measuring { before: bounds.initial },
            epoch: Instant::ORIGIN,
            samples: vec![],
            window_end: Instant::ORIGIN,
            unloaded: 0.0,
            service: 0.0,
            gradient: 1.0,
            floored: 0,
            rng: Rng::new(SEED),
        }
    }

    fn measure(&mut self, now: Instant) {
        self.phase = Phase::Measuring { before: self.limit };
        self.limit = self.bounds.least;
        self.epoch = now;
        self.samples.clear();
        self.floored = 0;
    }

    fn measured(&mut self, now: Instant, before: u32) {
        self.unloaded = quantile(&self.samples).unwrap_or(self.unloaded);
        self.limit = before;
        let jitter = MEASURE_EVERY.as_secs_f64() * self.rng.between(0.0, JITTER);
        self.phase = Phase::Steady { until: now + MEASURE_EVERY + seconds(jitter) };
        self.open_window(now);
    }

    fn open_window(&mut self, now: Instant) {
        self.samples.clear();
        self.window_end = now + WINDOW;
    }

    fn close_window(&mut self, now: Instant) {
        let service = quantile(&self.samples).filter(|service| *service > 0.0);
        self.open_window(now);
        let Some(service) = service else { return };
        self.service = service;
        self.gradient = (self.unloaded * (1.0 + BUFFER) / service).clamp(GRADIENT_MIN, GRADIENT_MAX);
        let limit = self.gradient * f64::from(self.limit);
        self.limit = self.bounds.whole(limit + limit.sqrt());
        self.floored = if self.limit == self.bounds.least { self.floored + 1 } else { 0 };
        if self.floored >= FLOORED_MAX {
            self.measure(now);
        }
    }

    /// Does all that is due.
    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Measuring { before } if self.samples.len() >= MEASURED => self.measured(now, before),
            Phase::Steady { until } if now >= until => self.measure(now),
            Phase::Steady { .. } if now >= self.window_end => self.close_window(now),
            Phase::Measuring { .. } | Phase::Steady { .. } => {}
        }
    }
}

impl SingleLimit for EnvoyGradient {
    fn begin(&mut self, now: Instant, stream: u64) {
        self.epoch = now;
        self.rng = Rng::stream(SEED, stream);
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn signals(&self) -> Signals {
        Signals::none()
            .with("service", self.service)
            .with("unloaded_service", self.unloaded)
            .with("gradient", self.gradient)
            .with("measuring", f64::from(u8::from(matches!(self.phase, Phase::Measuring { .. }))))
    }

    fn on_end(&mut self, now: Instant, sample: &Sample) {
        if sample.started >= self.epoch {
            if self.samples.len() == SAMPLES_MAX {
                self.samples.remove(0);
            }
            self.samples.push(sample.service);
        }
        self.advance(now);
    }

    fn on_tick(&mut self, now: Instant) {
        self.advance(now);
    }
}

/// Returns the [`QUANTILE`] of `samples`, or `None` if there are none.
fn quantile(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(QUANTILE * last as f64).round() as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Bench;
    use suimon_model::Record;

    /// 20 at once without a queue, capacity 200/s.
    fn pool(n: u32) -> f64 {
        0.1 * (f64::from(n) / 20.0).max(1.0)
    }

    fn signal(record: &Record, name: &str) -> f64 {
        record.signals.iter().find(|(other, _)| *other == name).map_or(f64::NAN, |(_, value)| value)
    }

    #[test]
    fn it_measures_at_three_and_then_finds_where_service_times_rise() {
        let mut bench = Bench::new(EnvoyGradient::new(BOUNDS), pool);
        // 50 requests, 3 at once, 0.1 s each.
        let limits = bench.saturated(1.5);
        assert!(limits.iter().all(|m| *m == 3), "{limits:?}");
        let limits = bench.saturated(30.0);
        // At rest: g·m + √(g·m) = m with g = 1.25 · 20/m, which is m = 30.
        assert!(limits[60..].iter().all(|m| (26..=34).contains(m)), "{limits:?}");
    }

    #[test]
    fn every_minute_it_measures_at_three_and_returns_to_the_limit_from_before() {
        let mut bench = Bench::new(EnvoyGradient::new(BOUNDS), pool);
        bench.saturated(80.0);
        let late = bench.records.iter().filter(|record| record.at > Instant::ORIGIN + seconds(61.0));
        let pins: Vec<&Record> = late.filter(|record| record.old < 3.5 || record.new < 3.5).collect();
        let [down, up] = pins.as_slice() else { panic!("one measurement, seen {pins:?}") };
        assert!((down.new - 3.0).abs() < 1e-9 && (up.old - 3.0).abs() < 1e-9);
        assert!((down.old - up.new).abs() < 1e-9, "{} before, {} after", down.old, up.new);
        let begun = down.at.as_secs_f64();
        assert!((61.0..72.0).contains(&begun), "a minute and up to 15 % after the first, {begun}");
    }

    #[test]
    fn requests_from_before_a_measurement_do_not_enter_it() {
        let mut bench = Bench::new(EnvoyGradient::new(BOUNDS), pool);
        bench.saturated(80.0);
        // Thirty were in the application at its start, at 0.15 s each; three at once take 0.1 s.
        let last = bench.records.iter().rev().find(|record| record.old < 3.5).expect("it has measured");
        assert!((signal(last, "unloaded_service") - 0.1).abs() < 1e-6);
    }

    #[test]
    fn at_the_floor_it_measures_again_and_heals() {
        let mut bench = Bench::new(EnvoyGradient::new(BOUNDS), pool);
        bench.saturated(20.0);
        // Everything takes five times as long, but there is enough room: the limit falls to the
        // floor, is measured anew there and rises.
        bench.set_service(|n| 5.0 * pool(n));
        let limits = bench.saturated(35.0);
        assert!(limits.contains(&3), "{limits:?}");
        assert!(limits.last() > Some(&20), "before the minute is over: {limits:?}");
    }
}

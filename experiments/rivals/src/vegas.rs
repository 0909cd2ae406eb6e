//! Vegas: the concurrency that keeps a short queue in the application, judged by the best service
//! time.
//!
//! *Law*. At every end, with m the limit, S the service time, S₀ the best one, n the number in the
//! application when the request started, and λ = max(1, ⌊log₁₀ m⌋):
//!
//! ```text
//! every j·30·m ends, j uniform in [½, 1), or if S < S₀:   S₀ ← S, and nothing else            (1)
//! q = ⌈m (1 − S₀/S)⌉                                       requests queued in the application  (2)
//! failed         m ← m − λ
//! 2n < m         m stays
//! q ≤ λ          m ← m + 6λ
//! q < 3λ         m ← m + λ
//! q > 6λ         m ← m − λ                                 between 3λ and 6λ it stays          (3)
//! ```
//!
//! *Signals*: single service times. *Units*: seconds, requests. *Limits*: [`BOUNDS`]. *Regimes*:
//! idle and lightly used routes keep their limit; it drifts when (1) takes a best time under load.
//! *Source*: `VegasLimit` of Netflix's concurrency-limits as documented there: α = 3λ, β = 6λ,
//! threshold λ, probe multiplier 30, smoothing 1, limits 20 to 1000; after TCP Vegas (Brakmo &
//! Peterson, 1995).

use super::per_route::{Bounds, Sample, SingleLimit};
use suimon_model::{Instant, Rng, Signals};

/// The published limits. The floor is 1.
pub(super) const BOUNDS: Bounds = Bounds { initial: 20, least: 1, most: 1000 };
/// α: below this many λ in the queue, up by λ.
const ALPHA: u32 = 3;
/// β: above this many λ in the queue, down by λ. Also the step up while hardly any are queued.
const BETA: u32 = 6;
/// The most ends per unit of limit after which the best service time is measured anew.
const PROBE_MULTIPLIER: f64 = 30.0;
/// The source of the jitter's random numbers.
const SEED: u64 = 0x5645_4741;

/// The rule for one route.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    bounds: Bounds,
    limit: u32,
    best: Option<f64>,
    service: f64,
    queue: u32,
    since_probe: u32,
    jitter: f64,
    rng: Rng,
}

impl Vegas {
    pub(super) fn new(bounds: Bounds) -> Self {
        Vegas {
            bounds,
            limit: bounds.initial,
            best: None,
            service: 0.0,
            queue: 0,
            since_probe: 0,
            jitter: 1.0,
            rng: Rng::new(SEED),
        }
    }

    fn probe_is_due(&self) -> bool {
        self.jitter * PROBE_MULTIPLIER * f64::from(self.limit) <= f64::from(self.since_probe)
    }
}

impl SingleLimit for Vegas {
    fn begin(&mut self, _now: Instant, stream: u64) {
        self.rng = Rng::stream(SEED, stream);
        self.jitter = self.rng.between(0.5, 1.0);
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn signals(&self) -> Signals {
        Signals::none()
            .with("service", self.service)
            .with("best_service", self.best.unwrap_or(0.0))
            .with("queue", f64::from(self.queue))
    }

    fn on_end(&mut self, _now: Instant, sample: &Sample) {
        self.service = sample.service;
        self.since_probe += 1;
        if self.probe_is_due() {
            self.jitter = self.rng.between(0.5, 1.0);
            self.since_probe = 0;
            self.best = Some(sample.service);
            return;
        }
        let Some(best) = self.best.filter(|best| *best <= sample.service && sample.service > 0.0) else {
            self.best = Some(sample.service);
            return;
        };
        let unit = self.limit.ilog10().max(1);
        self.queue = (f64::from(self.limit) * (1.0 - best / sample.service)).ceil() as u32;
        let limit = if sample.failed {
            self.limit.saturating_sub(unit)
        } else if 2 * sample.in_flight < self.limit {
            self.limit
        } else if self.queue <= unit {
            self.limit + BETA * unit
        } else if self.queue < ALPHA * unit {
            self.limit + unit
        } else if self.queue > BETA * unit {
            self.limit.saturating_sub(unit)
        } else {
            self.limit
        };
        self.limit = limit.clamp(self.bounds.least, self.bounds.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, sample};

    /// Returns the limit after a best time of 0.1 at a limit of 20, and then one end.
    fn after(next: Sample) -> u32 {
        let mut law = Vegas::new(BOUNDS);
        law.on_end(Instant::ORIGIN, &sample(0.1, 20));
        law.on_end(Instant::ORIGIN, &next);
        law.limit()
    }

    #[test]
    fn the_queue_told_from_the_best_time_moves_the_limit() {
        assert_eq!(after(sample(0.1, 20)), 26, "nobody is queued: up by β");
        assert_eq!(after(sample(0.11, 20)), 21, "2 queued, below α: up by one");
        assert_eq!(after(sample(0.125, 20)), 20, "4 queued, between α and β: it holds");
        assert_eq!(after(sample(0.2, 20)), 19, "10 queued, above β: down by one");
    }

    #[test]
    fn it_does_not_grow_while_the_limit_is_half_empty() {
        assert_eq!(after(sample(0.1, 9)), 20);
        assert_eq!(after(sample(0.1, 10)), 26);
    }

    #[test]
    fn a_failure_lowers_it() {
        assert_eq!(after(Sample { failed: true, ..sample(0.11, 20) }), 19);
    }

    /// Returns the limits from `initial` on in the second after the best time was learned; 20 at
    /// once do not queue.
    fn second_from(initial: u32) -> Vec<u32> {
        let law = Vegas::new(Bounds { initial, ..BOUNDS });
        let mut bench = Bench::new(law, |n| 0.1 * (f64::from(n) / 20.0).max(1.0));
        bench.asked(10, 1.0);
        bench.saturated(1.0)
    }

    #[test]
    fn it_holds_with_alpha_to_beta_requests_queued_and_falls_with_more() {
        assert_eq!(second_from(24), [24; 4]);
        let limits = second_from(60);
        assert!(limits.iter().any(|m| *m < 30), "{limits:?}");
    }

    #[test]
    fn measuring_the_best_time_under_load_makes_it_drift_up() {
        let mut law = Vegas::new(BOUNDS);
        law.on_end(Instant::ORIGIN, &sample(0.1, 20));
        let before = law.best;
        // 4 queued: the limit would stay for ever, but for the probe after 30 · 20 ends at the
        // latest.
        (0..600).for_each(|_| law.on_end(Instant::ORIGIN, &sample(0.125, 20)));
        assert_eq!((before, law.best), (Some(0.1), Some(0.125)));
    }
}

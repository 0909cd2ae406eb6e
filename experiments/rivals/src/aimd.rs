//! AIMD: one more for each good answer, a tenth less for each timeout or failure.
//!
//! *Law*. At every end, with m the limit and n the number in the application when the request
//! started:
//!
//! ```text
//! failed, or service > timeout       m ← ⌊0.9 · m⌋                                             (1)
//! else, if 2n ≥ m                    m ← m + 1                                                 (2)
//! ```
//!
//! *Signals*: single service times and failures. *Units*: seconds, requests. *Limits*: [`BOUNDS`].
//! *Regimes*: idle and lightly used routes keep their limit, by the condition of (2). *Source*:
//! `AIMDLimit` of Netflix's concurrency-limits, as its documentation and builder describe it:
//! timeout 5 s, backoff 0.9, limits 20 to 200. A "drop" there is a request that hit a timeout or
//! another's limit; here it is a failure.

use super::per_route::{Bounds, Sample, SingleLimit};
use suimon_model::{Instant, Signals};

/// The published limits.
pub(super) const BOUNDS: Bounds = Bounds { initial: 20, least: 20, most: 200 };
/// What a timeout leaves of the limit, as a share.
const BACKOFF: f64 = 0.9;
/// Seconds in the application after which a request counts as timed out.
const TIMEOUT: f64 = 5.0;

/// The rule for one route.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    bounds: Bounds,
    limit: u32,
    service: f64,
}

impl Aimd {
    pub(super) fn new(bounds: Bounds) -> Self {
        Aimd { bounds, limit: bounds.initial, service: 0.0 }
    }
}

impl SingleLimit for Aimd {
    fn limit(&self) -> u32 {
        self.limit
    }

    fn signals(&self) -> Signals {
        Signals::none().with("service", self.service).with("timeout", TIMEOUT)
    }

    fn on_end(&mut self, _now: Instant, sample: &Sample) {
        self.service = sample.service;
        let limit = f64::from(self.limit);
        if sample.failed || sample.service > TIMEOUT {
            self.limit = self.bounds.whole(limit * BACKOFF);
        } else if 2 * sample.in_flight >= self.limit {
            self.limit = self.bounds.whole(limit + 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    fn after(samples: &[Sample]) -> u32 {
        let mut law = Aimd::new(Bounds { initial: 40, ..BOUNDS });
        samples.iter().for_each(|sample| law.on_end(Instant::ORIGIN, sample));
        law.limit()
    }

    #[test]
    fn a_good_answer_adds_one_only_while_half_the_limit_is_in_use() {
        assert_eq!(after(&[sample(0.1, 20)]), 41);
        assert_eq!(after(&[sample(0.1, 19)]), 40);
    }

    #[test]
    fn a_timeout_or_a_failure_takes_a_tenth_even_when_little_is_in_use() {
        assert_eq!(after(&[sample(5.1, 1)]), 36);
        assert_eq!(after(&[Sample { failed: true, ..sample(0.1, 1) }]), 36);
        assert_eq!(after(&[sample(5.0, 1)]), 40, "at the timeout is not over it");
    }

    #[test]
    fn it_stays_within_its_bounds() {
        assert_eq!(after(&[sample(9.0, 40); 50]), 20);
        assert_eq!(after(&[sample(0.1, 200); 500]), 200);
    }
}

//! Whether the engine is asked at all: after some failures in a row it is left alone for a while that
//! grows, with jitter, so that gateways do not come back all at once.

use crate::FAILURES;
use std::time::Duration;
use suimon_model::{Instant, Rng};

/// The first pause, and the longest: what the engine's return costs at most.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Clone, Debug)]
pub struct Breaker {
    failures: u32,
    pause: Duration,
    closed_until: Option<Instant>,
    rng: Rng,
}

impl Breaker {
    /// Returns a breaker that lets through; `seed`: of its jitter.
    pub fn new(seed: u64) -> Self {
        Breaker { failures: 0, pause: PAUSE_MIN, closed_until: None, rng: Rng::new(seed) }
    }

    /// Returns whether the engine may be asked at `now`.
    pub fn lets_through(&self, now: Instant) -> bool {
        self.closed_until.is_none_or(|until| now >= until)
    }

    /// Takes note that it has answered.
    pub fn succeeded(&mut self) {
        (self.failures, self.pause, self.closed_until) = (0, PAUSE_MIN, None);
    }

    /// Takes note at `now` that it has not.
    pub fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.closed_until = Some(now + self.pause.mul_f64(self.rng.between(0.75, 1.25)));
            self.pause = (2 * self.pause).min(PAUSE_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_closes_after_some_failures_for_longer_each_time_and_opens_with_a_success() {
        let mut breaker = Breaker::new(7);
        let mut now = Instant::ORIGIN;
        (1..FAILURES).for_each(|_| breaker.failed(now));
        assert!(breaker.lets_through(now));
        let mut pauses = vec![];
        for _ in 0..8 {
            breaker.failed(now);
            let closed = now;
            while !breaker.lets_through(now) {
                now += Duration::from_millis(1);
            }
            pauses.push(now.since(closed));
        }
        assert!(pauses[0] <= PAUSE_MIN.mul_f64(1.26) && pauses[1] > pauses[0], "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= PAUSE_MAX.mul_f64(1.26)), "{pauses:?}");
        breaker.succeeded();
        assert!(breaker.lets_through(now));
    }
}

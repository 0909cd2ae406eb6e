//! A fixed number of sessions per second, evenly paced; other newcomers wait in line.
//!
//! *Law*. A session may begin 1/rate after the one before it.
//!
//! *Signals*: none. *Units*: sessions per second. *Regimes*: none; idle time is not made up for.
//! *Limits*: the rate is at least [`RATE_MIN`]. *Source*: what the owner of a site enters in a
//! commercial waiting room ("new users per minute", "visitors per second"), spread evenly.

use suimon_control::{AdmissionDecision, AdmissionInputs, LastRoute, SessionLaw};
use suimon_model::{Duration, Instant, seconds};

/// The lowest rate: a session in a bit more than a quarter of an hour.
const RATE_MIN: f64 = 0.001;

/// The rule for one kind.
#[derive(Clone, Debug)]
pub(super) struct FixedRate {
    per_second: f64,
    next: Instant,
}

impl FixedRate {
    pub(super) fn new(per_second: f64, now: Instant) -> Self {
        FixedRate { per_second: per_second.max(RATE_MIN), next: now }
    }
}

impl SessionLaw for FixedRate {
    fn may_admit(&mut self, now: Instant, _outlook: &AdmissionInputs<'_>) -> AdmissionDecision {
        if now < self.next { AdmissionDecision::NotBefore(self.next) } else { AdmissionDecision::Now }
    }

    fn admitted(&mut self, now: Instant, _entry: LastRoute) {
        self.next = now + seconds(self.interval());
    }

    fn predicted_wait(&self, now: Instant, ahead: usize) -> Duration {
        self.next.since(now) + seconds(ahead as f64 * self.interval())
    }

    fn interval(&self) -> f64 {
        1.0 / self.per_second
    }

    fn rate(&self) -> Option<f64> {
        Some(self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_control::Visits;

    /// Returns how many sessions begin in `secs` seconds from `from` on, if the line is never
    /// empty.
    fn begun(law: &mut FixedRate, from: f64, secs: f64) -> usize {
        let visits = Visits::default();
        let inputs = AdmissionInputs {
            visits: &visits,
            routes: &[],
            kinds: &[],
            patience: 60.0,
            waiting: 9,
            active: 0,
            entry: LastRoute::START,
            shared: None,
        };
        let (mut now, end) = (Instant::ORIGIN + seconds(from), Instant::ORIGIN + seconds(from + secs));
        let mut begun = 0;
        while now < end {
            match law.may_admit(now, &inputs) {
                AdmissionDecision::Now => {
                    law.admitted(now, LastRoute::START);
                    begun += 1;
                }
                AdmissionDecision::NotBefore(next) => now = next,
                held => panic!("{held:?} is not of this law"),
            }
        }
        begun
    }

    #[test]
    fn it_lets_in_its_rate_and_what_was_not_used_is_gone() {
        let mut law = FixedRate::new(2.5, Instant::ORIGIN);
        assert_eq!(begun(&mut law, 0.0, 10.0), 25);
        assert_eq!(begun(&mut law, 100.0, 10.0), 25);
        assert_eq!(law.rate(), Some(2.5));
    }

    #[test]
    fn the_wait_foreseen_is_the_place_in_line_over_the_rate() {
        let mut law = FixedRate::new(2.0, Instant::ORIGIN);
        assert_eq!(law.predicted_wait(Instant::ORIGIN, 0), Duration::ZERO);
        law.admitted(Instant::ORIGIN, LastRoute::START);
        assert_eq!(law.predicted_wait(Instant::ORIGIN, 0), seconds(0.5));
        assert_eq!(law.predicted_wait(Instant::ORIGIN + seconds(0.25), 6), seconds(3.25));
    }
}

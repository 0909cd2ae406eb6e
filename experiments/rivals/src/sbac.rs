//! Session-based admission control: newcomers are turned away while the processors are too busy.
//!
//! *Law*. At the end of every interval of 1 s, with U the utilisation measured in it:
//!
//! ```text
//! Û ← (1 − k) · Û + k · U                                                                       (1)
//! Û > 0.95    every newcomer of the next interval is refused; else every one is let in          (2)
//! ```
//!
//! *Signals*: processor utilisation, averaged over the ticks. *Units*: shares, seconds. *Regimes*:
//! none of its own. Admitted sessions are never refused. *Limits*: nobody waits at this gate; the
//! rate has no bound while it is open. *Source*: Cherkasova & Phaal, "Session based admission
//! control" (HPL-98-119; IWQoS '99; IEEE Transactions on Computers 51(6), 2002): threshold 95 %,
//! interval 1 s. k is 1 for their responsive and small for their stable controller; [`WEIGHT`] is
//! between them.

use suimon_control::{AdmissionDecision, AdmissionInputs, SessionLaw};
use suimon_model::{Duration, Instant, KindId, Quantity, Reason, Record, Signals, Subject};
use suimon_sim::Utilisation;

/// The utilisation above which newcomers are refused.
const THRESHOLD: f64 = 0.95;
/// The time between two decisions.
const INTERVAL: Duration = Duration::from_secs(1);
/// k: the weight of the newest utilisation.
const WEIGHT: f64 = 0.5;

/// The rule for one kind.
#[derive(Clone, Debug)]
pub(super) struct Sbac {
    kind: KindId,
    cpu: Utilisation,
    observed: f64,
    closed: bool,
    begin: Instant,
    sum: f64,
    readings: u32,
}

impl Sbac {
    pub(super) fn new(kind: KindId, cpu: Utilisation, now: Instant) -> Self {
        Sbac { kind, cpu, observed: 0.0, closed: false, begin: now, sum: 0.0, readings: 0 }
    }
}

impl SessionLaw for Sbac {
    fn may_admit(&mut self, _now: Instant, _outlook: &AdmissionInputs<'_>) -> AdmissionDecision {
        if self.closed { AdmissionDecision::Refuse } else { AdmissionDecision::Now }
    }

    fn on_tick(&mut self, now: Instant, _outlook: &AdmissionInputs<'_>, out: &mut Vec<Record>) {
        self.sum += self.cpu.get();
        self.readings += 1;
        if now.since(self.begin) < INTERVAL {
            return;
        }
        let measured = self.sum / f64::from(self.readings);
        (self.begin, self.sum, self.readings) = (now, 0.0, 0);
        self.observed += WEIGHT * (measured - self.observed);
        let old = self.interval();
        let closed = self.observed > THRESHOLD;
        if closed != self.closed {
            self.closed = closed;
            out.push(Record {
                at: now,
                subject: Subject::Kind(self.kind),
                quantity: Quantity::Interval,
                old,
                new: self.interval(),
                reason: Reason::Rival,
                signals: Signals::none()
                    .with("utilisation", measured)
                    .with("utilisation_mean", self.observed)
                    .with("threshold", THRESHOLD),
            });
        }
    }

    fn predicted_wait(&self, now: Instant, _ahead: usize) -> Duration {
        if self.closed { (self.begin + INTERVAL).since(now) } else { Duration::ZERO }
    }

    fn interval(&self) -> f64 {
        if self.closed { INTERVAL.as_secs_f64() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_control::Visits;
    use suimon_model::seconds;

    /// Plays quarters of a second with one utilisation per second; returns whether a newcomer was
    /// admitted during each following second.
    fn admitted_after(utilisations: &[f64]) -> Vec<bool> {
        let (cpu, visits, mut out) = (Utilisation::default(), Visits::default(), vec![]);
        let mut law = Sbac::new(KindId(0), cpu.clone(), Instant::ORIGIN);
        let inputs = AdmissionInputs {
            visits: &visits,
            routes: &[],
            kinds: &[],
            patience: 60.0,
            waiting: 0,
            active: 0,
            entry: suimon_control::LastRoute::START,
            shared: None,
        };
        let mut admitted = vec![];
        for (second, utilisation) in utilisations.iter().enumerate() {
            cpu.set(*utilisation);
            for quarter in 1..=4 {
                let now = Instant::ORIGIN + seconds(second as f64 + 0.25 * f64::from(quarter));
                law.on_tick(now, &inputs, &mut out);
            }
            admitted.push(law.may_admit(Instant::ORIGIN, &inputs) == AdmissionDecision::Now);
        }
        let changes = 1 + admitted.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(out.len(), changes - usize::from(admitted[0]), "each change is recorded");
        admitted
    }

    #[test]
    fn over_the_threshold_newcomers_are_refused_until_it_is_seen_to_be_over() {
        // Averages: 0.50, 0.75, 0.875, 0.9375, 0.96875, then half of it.
        assert_eq!(admitted_after(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]), [true, true, true, true, false, true]);
    }

    #[test]
    fn at_the_threshold_everybody_is_let_in() {
        assert_eq!(admitted_after(&[0.95; 60]), [true; 60]);
    }

    #[test]
    fn what_is_over_between_two_ends_of_intervals_changes_nothing() {
        let (cpu, visits, mut out) = (Utilisation::default(), Visits::default(), vec![]);
        let mut law = Sbac { observed: 1.0, ..Sbac::new(KindId(0), cpu.clone(), Instant::ORIGIN) };
        let inputs = AdmissionInputs {
            visits: &visits,
            routes: &[],
            kinds: &[],
            patience: 60.0,
            waiting: 0,
            active: 0,
            entry: suimon_control::LastRoute::START,
            shared: None,
        };
        cpu.set(1.0);
        law.on_tick(Instant::ORIGIN + seconds(0.75), &inputs, &mut out);
        assert_eq!(law.may_admit(Instant::ORIGIN, &inputs), AdmissionDecision::Now);
        law.on_tick(Instant::ORIGIN + seconds(1.0), &inputs, &mut out);
        assert_eq!(law.may_admit(Instant::ORIGIN, &inputs), AdmissionDecision::Refuse);
        assert_eq!(law.predicted_wait(Instant::ORIGIN + seconds(1.25), 3), seconds(0.75));
    }
}

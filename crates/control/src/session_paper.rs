//! The paper's session rule, exactly: a threshold on the mean route queue moves the admission
//! interval.
//!
//! *Law*. Every period T, with a = mean length of the queues of the kind's routes:
//!
//! ```text
//! a ≥ threshold:  interval += up        a < threshold:  interval −= down                      (1)
//! ```
//!
//! and one newcomer begins per interval. *Units*: requests, seconds. *Limits*: 0 to
//! [`INTERVAL_MAX`] seconds. *Regimes*: none of its own; no history is used. *Source*: Matsunuma et
//! al. 2006, §3.2 and §3.3; threshold and increments are "customisable" there and
//! [`PaperSessionParams`] here.

use crate::session::{AdmissionDecision, AdmissionInputs, SessionLaw, interval_record};
use crate::visits::LastRoute;
use suimon_model::persist::{Persist, Unsavable, Writer};
use suimon_model::{Duration, Instant, KindId, Reason, Record, Signals, seconds};

/// The numbers of the paper's session rule that the paper leaves open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PaperSessionParams {
    /// Mean queue length at which the interval begins to grow.
    pub threshold: f64,
    /// Added to the interval in each period at or over the threshold.
    pub up: Duration,
    /// Taken from the interval in each period under the threshold.
    pub down: Duration,
    /// Time between two decisions.
    pub period: Duration,
}

suimon_model::saved_struct!(PaperSessionParams { threshold, up, down, period });

impl Default for PaperSessionParams {
    fn default() -> Self {
        PaperSessionParams {
            threshold: 3.0,
            up: Duration::from_millis(50),
            down: Duration::from_millis(50),
            period: Duration::from_secs(1),
        }
    }
}

/// The longest interval, seconds: a gate that is shut for longer than patience is shut.
const INTERVAL_MAX: f64 = 60.0;
/// The least portion of what begins that a gateway has: an interval is finite.
const PORTION_MIN: f64 = 1e-3;
/// Visits per session above which a route belongs to the kind.
const VISITS_MIN: f64 = 0.01;

/// The rule for one kind.
#[derive(Clone, Debug)]
pub struct PaperSessions {
    kind: KindId,
    params: PaperSessionParams,
    interval: f64,
    last: Option<Instant>,
    decided: Instant,
}

suimon_model::saved_struct!(PaperSessions { kind, params, interval, last, decided });

impl PaperSessions {
    /// Returns the rule with the gate open.
    pub fn new(kind: KindId, params: PaperSessionParams, now: Instant) -> Self {
        PaperSessions { kind, params, interval: params.up.as_secs_f64(), last: None, decided: now }
    }
}

impl SessionLaw for PaperSessions {
    fn fits(&self, kind: KindId, _routes: usize) -> bool {
        self.kind == kind
    }

    fn save(&self, out: &mut Writer) -> Result<(), Unsavable> {
        Persist::save(self, out);
        Ok(())
    }

    fn may_admit(&mut self, now: Instant, inputs: &AdmissionInputs<'_>) -> AdmissionDecision {
        let portion = inputs.shared.map_or(1.0, |shared| shared.portion.max(PORTION_MIN));
        match self.last.map(|last| last + seconds(self.interval / portion)) {
            Some(next) if next > now => AdmissionDecision::NotBefore(next),
            _ => AdmissionDecision::Now,
        }
    }

    fn admitted(&mut self, now: Instant, _entry: LastRoute) {
        self.last = Some(now);
    }

    fn has_enough_for(&self, _outlook: &AdmissionInputs<'_>, others: u64) -> bool {
        self.interval == 0.0 || others == 0
    }

    fn on_tick(&mut self, now: Instant, inputs: &AdmissionInputs<'_>, out: &mut Vec<Record>) {
        if now.since(self.decided) < self.params.period {
            return;
        }
        self.decided = now;
        // Before any session has ended, every route that exists is taken to belong to the kind.
        let unknown = inputs.visits.ended(self.kind) == 0;
        let belongs = |route: &suimon_model::RouteId| {
            unknown || inputs.visits.per_session(self.kind, *route) > VISITS_MIN
        };
        let queues: Vec<f64> = inputs
            .visits
            .routes()
            .filter(belongs)
            .map(|route| inputs.routes[route.index()].waiting as f64)
            .collect();
        let mean = queues.iter().sum::<f64>() / queues.len().max(1) as f64;
        let old = self.interval;
        let reason = if mean >= self.params.threshold {
            self.interval += self.params.up.as_secs_f64();
            Reason::QueuesLong
        } else {
            self.interval -= self.params.down.as_secs_f64();
            Reason::QueuesShort
        };
        self.interval = self.interval.clamp(0.0, INTERVAL_MAX);
        if (self.interval - old).abs() > 1e-12 {
            let signals = Signals::none().with("mean_queue", mean).with("threshold", self.params.threshold);
            out.push(interval_record(now, self.kind, old, self.interval, reason, signals));
        }
    }

    fn interval(&self) -> f64 {
        self.interval
    }

    fn predicted_wait(&self, _now: Instant, ahead: usize) -> Duration {
        seconds((ahead + 1) as f64 * self.interval)
    }

    fn rate(&self) -> Option<f64> {
        (self.interval > 0.0).then(|| 1.0 / self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::RouteInputs;
    use crate::visits::Visits;

    #[test]
    fn the_interval_follows_the_mean_queue_against_the_threshold() {
        let mut visits = Visits::default();
        (0..2).for_each(|_| visits.add_route());
        visits.add_kind();
        let mut rule = PaperSessions::new(KindId(0), PaperSessionParams::default(), Instant::ORIGIN);
        let mut out = vec![];
        let mut play = |rule: &mut PaperSessions, at: f64, queues: [usize; 2]| {
            let routes = queues.map(|waiting| RouteInputs { waiting, ..RouteInputs::default() });
            let inputs = AdmissionInputs {
                visits: &visits,
                routes: &routes,
                kinds: &[],
                patience: 60.0,
                waiting: 9,
                active: 0,
                entry: LastRoute::START,
                shared: None,
            };
            rule.on_tick(Instant::ORIGIN + seconds(at), &inputs, &mut out);
            rule.interval()
        };
        assert!((play(&mut rule, 1.0, [0, 6]) - 0.10).abs() < 1e-9, "mean 3 is at the threshold");
        assert!((play(&mut rule, 1.5, [9, 9]) - 0.10).abs() < 1e-9, "the period is not over");
        assert!((play(&mut rule, 2.0, [9, 9]) - 0.15).abs() < 1e-9);
        assert!((play(&mut rule, 3.0, [0, 5]) - 0.10).abs() < 1e-9);
        for n in 4..10 {
            play(&mut rule, f64::from(n), [0, 0]);
        }
        assert!(rule.interval() == 0.0);
    }

    #[test]
    fn one_newcomer_begins_per_interval() {
        let mut rule = PaperSessions::new(KindId(0), PaperSessionParams::default(), Instant::ORIGIN);
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
        assert_eq!(rule.may_admit(Instant::ORIGIN, &inputs), AdmissionDecision::Now);
        rule.admitted(Instant::ORIGIN, LastRoute::START);
        let next = Instant::ORIGIN + seconds(0.05);
        assert_eq!(rule.may_admit(Instant::ORIGIN, &inputs), AdmissionDecision::NotBefore(next));
        assert_eq!(rule.may_admit(next, &inputs), AdmissionDecision::Now);
    }
}

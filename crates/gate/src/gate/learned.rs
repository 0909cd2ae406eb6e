//! Gathering what was learned.

use super::Gate;
use super::route_gate::Route;
use crate::kinds::KindGate;
use crate::learned::{Learned, LearnedKind, LearnedRoute, LearnedTransitions, ServiceTimeStats, Think};
use suimon_control::{DecayingHistogram, LastRoute, Moments};
use suimon_model::{KindId, RouteId};

/// Shares below this are left out: they were seen once and long ago.
const SHARE_MIN: f64 = 1e-3;

impl Gate {
    /// Returns what was learned of the application and its visitors. Takes some microseconds per
    /// route: for reports, not for a request.
    pub fn learned(&self) -> Learned {
        Learned {
            cores: self.params.cores,
            think: think(self.visits.think_times()),
            routes: (0u32..)
                .zip(&self.routes)
                .map(|(id, route)| self.learned_route(RouteId(id), route))
                .collect(),
            kinds: self.kinds.iter().map(|kind| self.learned_kind(kind)).collect(),
        }
    }

    fn learned_route(&self, id: RouteId, route: &Route) -> LearnedRoute {
        let ended = route.counts.completed + route.counts.abandoned + route.counts.failed;
        LearnedRoute {
            mode: route.mode,
            limit: self.limit(id),
            took: took(&route.took),
            took_alone: took(&route.took_alone),
            errors: if ended > 0 { route.counts.failed as f64 / ended as f64 } else { 0.0 },
            saturated: route.capacity.saturated(),
        }
    }

    fn learned_kind(&self, kind: &KindGate) -> LearnedKind {
        let places = std::iter::once(None).chain(self.visits.routes().map(Some));
        LearnedKind {
            ended: self.visits.ended(kind.id),
            newcomers_per_second: kind.came.per_second(),
            admitted_per_second: kind.begun.per_second(),
            refused: kind.refused,
            patience: kind.patience(),
            patience_source: kind.patience_source(),
            visits: self.visits.routes().map(|route| self.visits.per_session(kind.id, route)).collect(),
            transitions: places.filter_map(|after| self.learned_transitions(kind.id, after)).collect(),
        }
    }

    /// Returns what comes next there, if anybody was seen there.
    fn learned_transitions(&self, kind: KindId, after: Option<RouteId>) -> Option<LearnedTransitions> {
        let (seen, shares) = self.visits.next(kind, after.map_or(LastRoute::START, LastRoute::at));
        let next = (0u32..).map(RouteId).zip(shares.iter().copied()).filter(|(_, share)| *share >= SHARE_MIN);
        let ended_share = (1.0 - shares.iter().sum::<f64>()).clamp(0.0, 1.0);
        (seen > 0).then(|| LearnedTransitions { after, seen, next: next.collect(), ended_share })
    }
}

fn took(times: &Moments) -> Option<ServiceTimeStats> {
    let mean = times.mean()?;
    Some(ServiceTimeStats { count: times.count(), mean, variation: times.variation() })
}

/// Returns what is known of these times, if there are any.
fn think(times: &DecayingHistogram) -> Option<Think> {
    let (mean, variation) = times.mean_and_variation()?;
    let quantiles = Think::QUANTILES.map(|q| times.quantile(q).unwrap_or(mean));
    Some(Think { count: usize::try_from(times.count()).unwrap_or(usize::MAX), mean, variation, quantiles })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Arrival, KindParams, Membership, Output, Params, RouteMode};
    use suimon_model::{Instant, Outcome, SessionId, seconds};

    const COST: f64 = 0.2;

    /// Asks, and has it answered after `took` seconds; returns the session.
    fn visit(gate: &mut Gate, at: f64, route: RouteId, session: Option<SessionId>, took: f64) -> SessionId {
        let now = Instant::ORIGIN + seconds(at);
        let kind = KindId(0);
        let membership = match session {
            None => Membership::Newcomer(kind),
            Some(session) => Membership::Member { kind, session, leased: true, ends: false },
        };
        gate.handle_arrival(now, Arrival { route, session: Some(membership) });
        let Some(Output::Start(start)) = gate.poll_output() else { panic!("nobody else is there") };
        gate.handle_end(now + seconds(took), start.permit, Outcome::Completed);
        start.session.expect("it is in one").1
    }

    fn pass(gate: &mut Gate, until: f64) {
        while let Some(next) = gate.poll_timeout().filter(|next| *next <= Instant::ORIGIN + seconds(until)) {
            gate.handle_timeout(next);
            while gate.poll_output().is_some() {}
        }
    }

    #[test]
    fn visitors_and_application_are_told_as_they_were() {
        let start = Instant::ORIGIN;
        let mut gate = Gate::new(Params { cores: 1, ..Params::default() }, start);
        let routes = [0, 1].map(|_| gate.declare_route(start, RouteMode::Enforce));
        gate.declare_kind(start, KindParams::default());
        assert_eq!((gate.learned().think, gate.learned().kinds[0].transitions.len()), (None, 0));
        // A front page, and for two in three a second page a second later: 30 sessions, one every
        // two seconds.
        for number in 0..30 {
            let at = 2.0 * f64::from(number);
            pass(&mut gate, at);
            let session = visit(&mut gate, at, routes[0], None, COST);
            if number % 3 != 0 {
                visit(&mut gate, at + COST + 1.0, routes[1], Some(session), 2.0 * COST);
            }
        }
        pass(&mut gate, 120.0);
        let learned = gate.learned();
        let think = learned.think.expect("some came back");
        assert_eq!(think.count, 20);
        assert!(
            (think.mean - 1.0).abs() < 0.1 && think.variation < 0.1 && (think.quantiles[2] - 1.0).abs() < 0.1
        );
        let kind = &learned.kinds[0];
        assert_eq!((kind.ended, kind.refused, kind.patience_source), (30, 0, "assumed"));
        let begin = kind.transitions.iter().find(|place| place.after.is_none()).expect("all began");
        assert_eq!((begin.next[0].0, begin.ended_share), (routes[0], 0.0));
        let front =
            kind.transitions.iter().find(|place| place.after == Some(routes[0])).expect("all were there");
        assert!(
            (front.ended_share - 1.0 / 3.0).abs() < 0.1 && (front.next[0].1 - 2.0 / 3.0).abs() < 0.1,
            "{front:?}"
        );
        let alone = |route: usize| learned.routes[route].took_alone.expect("nobody else was there");
        assert!((alone(0).mean - COST).abs() < 1e-6 && (alone(1).mean - 2.0 * COST).abs() < 1e-6);
        assert_eq!((alone(0).count, alone(1).count, learned.routes[0].saturated), (30, 20, None));
        let came = kind.newcomers_per_second.expect("windows are over");
        assert!(
            came > 0.05 && kind.admitted_per_second == Some(came),
            "half a second a while, then none: {came}"
        );
    }

    #[test]
    fn only_who_had_a_core_is_told_to_have_been_alone() {
        let start = Instant::ORIGIN;
        let mut gate = Gate::new(Params { cores: 1, ..Params::default() }, start);
        let route = gate.declare_route(start, RouteMode::Off);
        let arrival = Arrival { route, session: None };
        let mut tokens: Vec<_> = (0..2)
            .map(|_| {
                gate.handle_arrival(start, arrival);
                match gate.poll_output() {
                    Some(Output::Start(start)) => start.permit,
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        // The first had company at its end, the second at its beginning.
        for (seconds_later, permit) in (1..).zip(tokens.drain(..)) {
            gate.handle_end(start + seconds(f64::from(seconds_later)), permit, Outcome::Completed);
        }
        let learned = gate.learned();
        assert_eq!(learned.routes[0].took.map(|took| took.count), Some(2));
        assert_eq!(learned.routes[0].took_alone, None);
    }
}

//! What is known, given away, and a gate that begins with it.

use super::Gate;
use super::route_gate::Route;
use crate::api::RouteMode;
use crate::kinds::KindGate;
use crate::knowledge::{Knowledge, KnownKind, KnownRoute, RecalledCapacity, RecalledPatience, RouteSample};
use crate::learned::ServiceTimeStats;
use suimon_control::{KnownMean, Moments, Trust};
use suimon_model::{Duration, Instant, RouteId};

impl Gate {
    /// Returns what another process can begin with, for [`Gate::recall`]. Takes some microseconds
    /// per route: for saving it, not for a request.
    pub fn knowledge(&self) -> Knowledge {
        let routes = (0u32..).zip(&self.routes).map(|(id, route)| KnownRoute {
            came: route.counts.offered,
            law: self.law.knowledge(RouteId(id)).or(route.before_fixed),
            capacity: route.known_capacity(),
            took: known(&route.took),
            took_alone: known(&route.took_alone),
        });
        Knowledge {
            routes: routes.collect(),
            kinds: self.kinds.iter().map(KindGate::knowledge).collect(),
            visits: self.visits.knowledge(),
        }
    }

    /// Begins with what another gate knew, `age` ago. To be called when the routes and kinds it
    /// names are declared, and before any request; what it says of others is left out, and so are
    /// impossible values.
    ///
    /// Nothing recalled is more than a starting point: averages count for few observations, fewer
    /// with age; limits are where the search starts; a capacity holds until one is measured, and
    /// grows while it holds newcomers back from free slots.
    pub fn recall(&mut self, now: Instant, knowledge: &Knowledge, age: Duration) {
        debug_assert!(
            self.requests.iter().next().is_none(),
            "what is under way rests on what was known before"
        );
        let trust = Trust::after(age);
        self.visits.recall(&knowledge.visits, trust);
        for (index, known) in knowledge.routes.iter().enumerate().take(self.routes.len()) {
            let route = &mut self.routes[index];
            match (&known.law, route.mode.fixed()) {
                (Some(law), Some(fixed)) => route.before_fixed = Some(trust.in_route(law, fixed)),
                (Some(law), None) => self.law.recall(RouteId(index as u32), law, trust),
                (None, _) => {}
            }
            route.recalled = known.capacity.and_then(|capacity| RecalledCapacity::new(capacity, trust, now));
            recall(&mut route.took, known.took, trust);
            recall(&mut route.took_alone, known.took_alone, trust);
        }
        for (kind, known) in self.kinds.iter_mut().zip(&knowledge.kinds) {
            kind.recall(known, trust);
        }
        self.look_at_routes(now);
    }

    /// Compares recalled capacities with what is seen, and forgets those of routes where one was
    /// measured.
    pub(super) fn doubt_recalled(&mut self, now: Instant) {
        if self.routes.iter().all(|route| route.recalled.is_none()) {
            return;
        }
        let is_held = self.kinds.iter().any(|kind| kind.holds() && kind.waiting() > 0);
        for index in 0..self.routes.len() {
            let id = RouteId(index as u32);
            let (limit, delay) = (self.limit(id), self.visits.delay(id));
            let route = &mut self.routes[index];
            if route.capacity.measured().is_some() {
                route.recalled = None;
            }
            let is_free =
                route.queue.ahead() == 0 && limit.is_none_or(|limit| route.in_flight < limit as usize);
            let seconds = super::tick::VIEW_SECONDS;
            let seen = RouteSample { rate: route.view_rate, seconds, is_held, is_free, delay };
            if let Some(recalled) = &mut route.recalled {
                recalled.doubt(now, seen);
            }
        }
    }
}

impl Route {
    /// Returns X: measured here, or recalled.
    pub(super) fn capacity_per_second(&self) -> Option<f64> {
        let measured = self.capacity.measured().map(|measured| measured.per_second);
        measured.or(self.recalled.map(|recalled| recalled.per_second))
    }

    /// Returns seconds since the route was seen to do X. What is recalled is doubted while it
    /// lasts, and so never too old.
    pub(super) fn capacity_age(&self, now: Instant) -> f64 {
        match (self.capacity.measured(), self.recalled) {
            (Some(measured), _) => now.secs_since(measured.at),
            (None, Some(_)) => 0.0,
            (None, None) => f64::INFINITY,
        }
    }

    /// Returns X as far as it was measured, here or in the run whose knowledge this one began with.
    pub(super) fn known_capacity(&self) -> Option<KnownMean> {
        let recalled = |recalled: RecalledCapacity| KnownMean {
            value: recalled.per_second,
            observations: recalled.observations,
        };
        let measured = self.capacity.measured().map(|measured| RecalledCapacity::known(measured.per_second));
        measured
            .or(self.recalled.map(recalled))
            .filter(|_| matches!(self.mode, RouteMode::Enforce | RouteMode::Fixed(_)))
    }
}

impl KindGate {
    fn knowledge(&self) -> KnownKind {
        let recalled = self.recalled.map(|patience| patience.seconds);
        KnownKind { patience: self.learner.learned().or(recalled), law: self.law.knowledge() }
    }

    fn recall(&mut self, known: &KnownKind, trust: Trust) {
        self.recalled = known.patience.and_then(|seconds| RecalledPatience::new(seconds, trust));
        if let Some(law) = &known.law {
            self.law.recall(law, trust);
        }
    }
}

fn known(times: &Moments) -> Option<ServiceTimeStats> {
    Some(ServiceTimeStats { count: times.count(), mean: times.mean()?, variation: times.variation() })
}

fn recall(times: &mut Moments, known: Option<ServiceTimeStats>, trust: Trust) {
    if let Some(ServiceTimeStats { count, mean, variation }) = known {
        times.recall(KnownMean { value: mean, observations: count }, variation, trust);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Arrival, KindParams, Membership, Output, Params, Start};
    use proptest::prelude::*;
    use suimon_control::{
        KnownDistribution, RouteKnowledge, RouteVisits, SessionKnowledge, VisitsAfter, VisitsKnowledge,
    };
    use suimon_model::{KindId, Outcome, seconds};

    const KIND: KindId = KindId(0);
    const FRESH: Duration = Duration::ZERO;
    /// Whatever was known, a newcomer to an idle application begins within this many seconds.
    const SERVED_WITHIN: u32 = 120;

    fn at(secs: f64) -> Instant {
        Instant::ORIGIN + seconds(secs)
    }

    fn gate() -> (Gate, [RouteId; 2]) {
        let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
        let routes = [0, 1].map(|_| gate.declare_route(Instant::ORIGIN, RouteMode::Enforce));
        gate.declare_kind(Instant::ORIGIN, KindParams::default());
        (gate, routes)
    }

    fn next_start(gate: &mut Gate) -> Option<Start> {
        std::iter::from_fn(|| gate.poll_output()).find_map(|output| match output {
            Output::Start(start) => Some(start),
            _ => None,
        })
    }

    /// Returns when a newcomer who arrives at `begin`, and comes again whenever refused, goes to
    /// the application.
    fn first_answer(gate: &mut Gate, route: RouteId, begin: Instant) -> Option<(Instant, Start)> {
        let newcomer = Arrival { route, session: Some(Membership::Newcomer(KIND)) };
        gate.handle_arrival(begin, newcomer);
        (0..4 * SERVED_WITHIN).find_map(|tick| {
            let now = begin + seconds(0.25 * f64::from(tick));
            gate.handle_timeout(now);
            while let Some(output) = gate.poll_output() {
                match output {
                    Output::Start(start) => return Some((now, start)),
                    Output::Refuse(_) => {
                        gate.handle_arrival(now, newcomer);
                    }
                    _ => {}
                }
            }
            None
        })
    }

    /// Plays sessions that ask for each route once, a second apart, and take `took` seconds each
    /// time.
    fn play(gate: &mut Gate, routes: [RouteId; 2], sessions: u32, took: f64) {
        for number in 0..sessions {
            let begin = 4.0 * f64::from(number);
            let newcomer = Some(Membership::Newcomer(KIND));
            gate.handle_arrival(at(begin), Arrival { route: routes[0], session: newcomer });
            let first = next_start(gate).expect("nobody else is there");
            gate.handle_end(at(begin + took), first.permit, Outcome::Completed);
            let (kind, session) = first.session.expect("it began one");
            let member = Some(Membership::Member { kind, session, leased: true, ends: true });
            gate.handle_arrival(at(begin + took + 1.0), Arrival { route: routes[1], session: member });
            let second = next_start(gate).expect("nobody else is there");
            gate.handle_end(at(begin + 2.0 * took + 1.0), second.permit, Outcome::Completed);
            (0..12).for_each(|tick| gate.handle_timeout(at(begin + 1.0 + 0.25 * f64::from(tick))));
            while gate.poll_output().is_some() {}
        }
    }

    #[test]
    fn what_one_gate_knew_the_next_begins_with_and_hands_on() {
        let (mut before, routes) = gate();
        play(&mut before, routes, 60, 0.2);
        let known = before.knowledge();
        assert_eq!(known.routes[1].came, 60);
        let (mut after, _) = gate();
        after.recall(Instant::ORIGIN, &known, FRESH);
        let (was, is) = (before.learned(), after.learned());
        assert_eq!(is.kinds[0].visits.len(), 2);
        for (was, is) in was.kinds[0].visits.iter().zip(&is.kinds[0].visits) {
            assert!((was - is).abs() < 1e-6, "{was} {is}");
        }
        for (was, is) in was.routes.iter().zip(&is.routes) {
            assert_eq!(was.limit, is.limit);
            assert!((was.took.unwrap().mean - is.took.unwrap().mean).abs() < 1e-9);
        }
        assert!((is.think.unwrap().mean - 1.0).abs() < 0.1);
        let next = after.knowledge();
        assert_eq!(next.routes[0].law.unwrap().limit, known.routes[0].law.unwrap().limit);
        assert!(next.visits.kinds[0].iter().all(|place| place.seen <= 20), "it counts for little: {next:?}");
        assert_eq!(after.snapshot(Instant::ORIGIN).sessions, 0);
    }

    #[test]
    fn a_gate_that_began_with_knowledge_is_saved_and_goes_on_like_any_other() {
        let (mut before, routes) = gate();
        play(&mut before, routes, 60, 0.2);
        let mut known = before.knowledge();
        known.routes[1].capacity = Some(KnownMean { value: 7.0, observations: 8 });
        known.kinds[0].patience = Some(9.0);
        let (mut gate, _) = gate();
        gate.recall(Instant::ORIGIN, &known, FRESH);
        assert_eq!(gate.learned().kinds[0].patience_source, "recalled");
        let saved = gate.save().unwrap();
        let (mut twin, _) = Gate::restore(Params::default(), &saved).unwrap();
        for gate in [&mut gate, &mut twin] {
            play(gate, routes, 30, 0.3);
        }
        assert_eq!(gate.trace(), twin.trace());
        assert_eq!(gate.save().unwrap(), twin.save().unwrap());
    }

    #[test]
    fn a_capacity_is_handed_on_with_less_and_less_weight() {
        let mut known = Knowledge {
            routes: vec![KnownRoute {
                capacity: Some(KnownMean { value: 7.0, observations: 8 }),
                ..KnownRoute::default()
            }],
            ..Knowledge::default()
        };
        for day in 0..3 {
            let (mut gate, _) = gate();
            gate.recall(Instant::ORIGIN, &known, Duration::from_secs(24 * 3600));
            known = gate.knowledge();
            let capacity = known.routes[0].capacity.expect("it is believed for three days");
            assert_eq!((capacity.value as u32, capacity.observations), (7, 4 >> day));
        }
        let (mut gate, _) = gate();
        gate.recall(Instant::ORIGIN, &known, Duration::from_secs(48 * 3600));
        assert_eq!(gate.knowledge().routes[0].capacity, None);
    }

    /// Any number at all.
    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), 0.0..10.0, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)]
    }

    fn mean() -> impl Strategy<Value = KnownMean> {
        (number(), any::<u64>()).prop_map(|(value, observations)| KnownMean { value, observations })
    }

    fn visits() -> impl Strategy<Value = VisitsKnowledge> {
        let list = || prop::collection::vec((any::<u32>().prop_map(|id| RouteId(id % 3)), number()), 0..4);
        let place = (prop::option::of(any::<u32>().prop_map(RouteId)), any::<u64>(), list(), list(), mean());
        let place = place.prop_map(|(after, seen, further, next, returned)| VisitsAfter {
            after,
            seen,
            further,
            next,
            returned: [returned; suimon_control::STAGES],
        });
        let route = (mean(), number(), number());
        let route = route.prop_map(|(visits, delay, rank)| RouteVisits { visits, delay, rank });
        (
            prop::collection::vec(route, 0..4),
            prop::collection::vec(prop::collection::vec(place, 0..4), 0..3),
            any::<u64>(),
            prop::collection::vec((number(), number()), 0..5),
        )
            .prop_map(|(routes, kinds, count, shares)| VisitsKnowledge {
                routes,
                kinds,
                thinks: KnownDistribution { count, shares },
            })
    }

    fn knowledge() -> impl Strategy<Value = Knowledge> {
        let law = (any::<u32>(), any::<bool>(), mean(), number(), number());
        let law = law.prop_map(|(limit, settled, service, least, share)| RouteKnowledge {
            limit,
            settled,
            service: Some(service),
            service_least: Some(least),
            share: Some(share),
        });
        let took = || {
            let took = (any::<u64>(), number(), number());
            took.prop_map(|(count, mean, variation)| Some(ServiceTimeStats { count, mean, variation }))
        };
        let route = (prop::option::of(law), prop::option::of(mean()), took(), took());
        let route = route.prop_map(|(law, capacity, took, took_alone)| KnownRoute {
            came: 1,
            law,
            capacity,
            took,
            took_alone,
        });
        let kind = (number(), number()).prop_map(|(patience, rate)| KnownKind {
            patience: Some(patience),
            law: Some(SessionKnowledge { rate }),
        });
        (prop::collection::vec(route, 0..4), prop::collection::vec(kind, 0..3), visits())
            .prop_map(|(routes, kinds, visits)| Knowledge { routes, kinds, visits })
    }

    proptest! {
        #[test]
        fn whatever_it_is_told_a_gate_serves(known in knowledge(), days in 0_u64..4) {
            let (mut gate, routes) = gate();
            gate.recall(Instant::ORIGIN, &known, Duration::from_secs(days * 24 * 3600));
            for route in routes {
                prop_assert!(gate.limit(route).is_some_and(|limit| limit >= 1));
            }
            for number in 0..8 {
                let begin = at(200.0 * f64::from(number));
                let (since, start) = first_answer(&mut gate, routes[0], begin).expect("nobody else is there");
                gate.handle_end(since + seconds(0.1), start.permit, Outcome::Completed);
            }
            let told = gate.knowledge();
            for route in told.routes {
                prop_assert!(route.capacity.is_none_or(|capacity| capacity.value.is_finite()));
            }
        }
    }
}

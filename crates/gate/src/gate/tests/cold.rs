//! The first seconds of a gate that knows nothing.

use super::lines::{at, pass};
use super::*;
use suimon_control::AdmissionDecision;

/// Lets nobody in for an hour; whether it knows what it does is told.
#[derive(Debug)]
struct Shut {
    is_cold: bool,
}

impl SessionLaw for Shut {
    fn may_admit(&mut self, now: Instant, _outlook: &AdmissionInputs<'_>) -> AdmissionDecision {
        AdmissionDecision::NotBefore(now + seconds(3600.0))
    }

    fn rate(&self) -> Option<f64> {
        Some(1.0)
    }

    fn is_cold(&self) -> bool {
        self.is_cold
    }

    fn predicted_wait(&self, _now: Instant, ahead: usize) -> Duration {
        seconds((ahead + 1) as f64)
    }
}

fn in_line() -> KindParams {
    KindParams { line: Some(suimon_line::Params::default()), ..KindParams::default() }
}

/// Returns what became of 100 who came at once, and of those held when the first had come seven
/// seconds ago, and then nine.
fn fate_of_a_hundred(is_cold: bool) -> [(usize, usize); 3] {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
    let kind = gate.declare_kind_with_law(Instant::ORIGIN, in_line(), Box::new(Shut { is_cold }));
    pass(&mut gate, at(1.0));
    let count = |seen: &[Output]| {
        let is_sent_away = |output: &&Output| matches!(output, Output::Refuse(_) | Output::Wait(_));
        seen.iter().filter(is_sent_away).count()
    };
    let mut at_once = vec![];
    for _ in 0..100 {
        gate.handle_arrival(at(1.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
        at_once.extend(std::iter::from_fn(|| gate.poll_output()));
    }
    let before = (count(&at_once), gate.waiting);
    let later = pass(&mut gate, at(8.0));
    let later = (count(&later), gate.waiting);
    let last = pass(&mut gate, at(10.0));
    [before, later, (count(&last), gate.waiting)]
}

#[test]
fn who_comes_to_a_gate_that_knows_nothing_is_held_until_it_knows() {
    let [at_once, later, (last, still)] = fate_of_a_hundred(true);
    assert_eq!((at_once, later), ((0, 100), (0, 100)));
    assert!(last >= 60 && last + still == 100, "those whose turn is far: {last}, {still}");
    let [(sent_away, held), ..] = fate_of_a_hundred(false);
    assert!(sent_away >= 60 && sent_away + held == 100, "a law that knows is believed: {sent_away}");
}

#[test]
fn no_more_are_held_for_that_than_a_bound() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
    let law = Box::new(Shut { is_cold: true });
    let kind = gate.declare_kind_with_law(Instant::ORIGIN, in_line(), law);
    for _ in 0..2000 {
        gate.handle_arrival(at(0.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
    }
    assert_eq!(gate.waiting, crate::kinds::BLIND_MAX);
    pass(&mut gate, at(2.0));
    assert_eq!(gate.waiting, crate::kinds::BLIND_MAX, "that there is no room for more sends nobody away");
}

#[test]
fn a_route_begins_with_the_limit_of_another_where_its_requests_were() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let shared = gate.declare_mixed_route(Instant::ORIGIN, RouteMode::Enforce);
    let found = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let arrival = Arrival { route: shared, session: None };
    (0..20).for_each(|_| _ = gate.handle_arrival(at(0.1), arrival));
    let _tokens = started(&mut gate);
    pass(&mut gate, at(4.0));
    let limit = |gate: &Gate, route: RouteId| gate.snapshot(at(4.0)).routes[route.index()].limit;
    assert!(limit(&gate, shared) > Some(8), "nothing ends, nobody suffers: {:?}", limit(&gate, shared));
    assert_eq!(limit(&gate, found), Some(2));
    gate.begin_with_limit_of(found, shared);
    assert_eq!(limit(&gate, found), limit(&gate, shared));
}

#[test]
fn a_route_is_shared_under_another_law_too() {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let shared = gate.declare_mixed_route(Instant::ORIGIN, RouteMode::Enforce);
    let found = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    gate.adopt(at(1.0), &Params { cores: 8, ..Params::default() }.into());
    assert!(gate.law.is_mixed(shared) && !gate.law.is_mixed(found));
}

/// Returns how fast the gate takes a route to go on at which ten quick answers were seen, and now
/// forty who are not answered wait for one another.
fn rate_seen_beside_polls(is_mixed: bool) -> f64 {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let declare = if is_mixed { Gate::declare_mixed_route } else { Gate::declare_route };
    let route = declare(&mut gate, Instant::ORIGIN, RouteMode::Enforce);
    let arrival = Arrival { route, session: None };
    for tenth in 0..10 {
        let now = at(f64::from(tenth) / 10.0);
        gate.handle_arrival(now, arrival);
        started(&mut gate)
            .into_iter()
            .for_each(|start| gate.handle_end(now, start.permit, Outcome::Completed));
    }
    (0..40).for_each(|_| _ = gate.handle_arrival(at(1.0), arrival));
    let _tokens = started(&mut gate);
    pass(&mut gate, at(2.5));
    assert!(gate.snapshot(at(2.5)).routes[0].waiting > 2);
    gate.inputs[route.index()].rate
}

#[test]
fn whoever_waits_at_a_shared_route_for_somebody_of_another_sort_holds_no_newcomer_back() {
    // At a rate that says nothing of them it would take many seconds until all have begun, and
    // until then nobody else would be admitted.
    assert!(rate_seen_beside_polls(true) == 0.0);
    assert!(rate_seen_beside_polls(false) > 0.0);
}

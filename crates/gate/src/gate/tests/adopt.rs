//! Other settings, put in force while somebody waits and somebody is in the application.

use super::*;
use crate::knowledge::{Knowledge, KnownRoute};
use suimon_control::RouteKnowledge;

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

#[test]
fn other_parameters_leave_what_they_do_not_change_and_begin_anew_what_they_do() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let first = started(&mut gate).pop().unwrap();
    let waits = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let params = Params { session_law: SessionLawKind::Static(2), cores: 4, ..Params::default() };
    gate.adopt(Instant::ORIGIN, &params.into());
    gate.handle_end(Instant::ORIGIN, first.permit, Outcome::Completed);
    let next = started(&mut gate).pop().expect("who waited goes on");
    assert_eq!(next.request, waits);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(
        matches!(gate.poll_output(), Some(Output::Refuse(Refusal { reason: Reason::WorkToCome, .. }))),
        "two sessions are all there may be now"
    );
    gate.handle_end(Instant::ORIGIN, next.permit, Outcome::Completed);
}

#[test]
fn a_limit_that_is_raised_lets_in_at_once_those_who_wait_and_one_that_is_found_begins_with_it() {
    let (mut gate, route, _) = fixed(2);
    for _ in 0..5 {
        gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: None });
    }
    let first = started(&mut gate);
    assert_eq!(first.len(), 2);
    let now = at(1.0);
    let set = |gate: &mut Gate, mode: RouteMode| {
        let params = gate.params().clone();
        gate.adopt(now, &Adoption { params, routes: vec![(route, mode)], kinds: vec![] });
        started(gate).len()
    };
    assert_eq!(set(&mut gate, RouteMode::Fixed(Limit::of(4))), 2, "two more have a slot");
    assert_eq!(gate.limit(route), Some(4));
    assert_eq!(set(&mut gate, RouteMode::Enforce), 0);
    assert_eq!(gate.limit(route), Some(4), "it is found from now on, and begins there");
    assert_eq!(set(&mut gate, RouteMode::Observe), 1, "nobody waits where nobody is held");
    assert_eq!(gate.load(route), (0, 5));
    for start in first {
        gate.handle_end(now, start.permit, Outcome::Completed);
    }
    assert_eq!(gate.load(route), (0, 3));
    assert_eq!(set(&mut gate, RouteMode::Fixed(Limit::of(1))), 0, "whoever is inside stays");
    assert_eq!(gate.load(route), (0, 3));
}

#[test]
fn a_kind_that_is_no_longer_held_back_begins_at_once() {
    let law = SessionLawKind::Static(1);
    let mut gate = Gate::new(Params { session_law: law, ..Params::default() }, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let kind = gate.declare_kind(
        Instant::ORIGIN,
        KindParams { line: Some(suimon_line::Params::default()), ..KindParams::default() },
    );
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    let first = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let held = gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert_eq!(started(&mut gate).iter().map(|start| start.request).collect::<Vec<_>>(), [first]);
    assert!(gate.is_held(held));
    let params = gate.params().clone();
    let kinds = vec![(kind, KindParams { mode: KindMode::Off, line: None, ..KindParams::default() })];
    gate.adopt(at(0.1), &Adoption { params, kinds, routes: vec![] });
    assert_eq!(started(&mut gate).iter().map(|start| start.request).collect::<Vec<_>>(), [held]);
    assert!(gate.line(kind).is_some(), "the line is never taken from those who wait in it");
}

#[test]
fn whoever_starts_is_told_how_long_each_gate_held_it_and_what_the_limit_was() {
    let law = SessionLawKind::Static(1);
    let mut gate = Gate::new(Params { session_law: law, ..Params::default() }, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Fixed(Limit::of(1)));
    let kind = gate.declare_kind(
        Instant::ORIGIN,
        KindParams { line: Some(suimon_line::Params::default()), ..KindParams::default() },
    );
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let first = started(&mut gate).pop().unwrap();
    assert_eq!((first.waited, first.held), (Duration::ZERO, Duration::ZERO));
    assert_eq!((first.limit, first.in_flight), (Some(1), 1));
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let params = gate.params().clone();
    let kinds = vec![(kind, KindParams { mode: KindMode::Off, line: None, ..KindParams::default() })];
    gate.adopt(at(0.1), &Adoption { params, kinds, routes: vec![] });
    assert_eq!(gate.load(route), (1, 1), "its session has begun, and it waits for the slot");
    gate.handle_end(at(0.5), first.permit, Outcome::Completed);
    let next = started(&mut gate).pop().expect("the slot is free");
    assert_eq!((next.waited, next.held), (seconds(0.5), seconds(0.1)));
    assert_eq!((next.limit, next.in_flight), (Some(1), 1));
}

/// A gate that has learned the limit 24 of its route, which it finds.
fn learned() -> (Gate, RouteId) {
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let law = RouteKnowledge { settled: true, service_least: Some(0.1), ..RouteKnowledge::of_limit(24) };
    let known = Knowledge {
        routes: vec![KnownRoute { law: Some(law), ..KnownRoute::default() }],
        ..Knowledge::default()
    };
    gate.recall(Instant::ORIGIN, &known, Duration::ZERO);
    gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: None });
    let start = started(&mut gate).pop().expect("nobody else is there");
    gate.handle_end(at(0.2), start.permit, Outcome::Completed);
    (gate, route)
}

fn set(gate: &mut Gate, route: RouteId, mode: RouteMode) {
    let params = gate.params().clone();
    gate.adopt(at(1.0), &Adoption { params, routes: vec![(route, mode)], kinds: vec![] });
}

#[test]
fn what_was_learned_of_a_route_is_there_again_when_its_limit_is_fixed_no_longer() {
    let (mut gate, route) = learned();
    let before = gate.knowledge();
    set(&mut gate, route, RouteMode::Fixed(Limit::of(3)));
    assert_eq!(gate.limit(route), Some(3));
    assert_eq!(gate.knowledge(), before, "it is handed on meanwhile");
    set(&mut gate, route, RouteMode::Fixed(Limit::of(5)));
    let bytes = gate.save().expect("its laws can be saved");
    let (twin, _) = Gate::restore(gate.params().clone(), &bytes).expect("it is sound");
    for mut gate in [gate, twin] {
        set(&mut gate, route, RouteMode::Enforce);
        assert_eq!((gate.limit(route), gate.knowledge()), (Some(24), before.clone()));
        // Whatever was fixed since is of no account any more.
        set(&mut gate, route, RouteMode::Observe);
        assert_eq!(gate.knowledge(), before);
    }
}

#[test]
fn what_was_learned_of_a_route_outlives_a_process_in_which_its_limit_is_fixed() {
    let (mut gate, route) = learned();
    set(&mut gate, route, RouteMode::Fixed(Limit::of(3)));
    let next = |known: &Knowledge, age: Duration| {
        let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
        let route = gate.declare_route(Instant::ORIGIN, RouteMode::Fixed(Limit::of(3)));
        gate.recall(Instant::ORIGIN, known, age);
        assert_eq!(gate.limit(route), Some(3));
        gate
    };
    let (day, known) = (Duration::from_secs(24 * 3600), gate.knowledge());
    let mut soon = next(&known, Duration::ZERO);
    assert_eq!(soon.knowledge().routes[0].law, known.routes[0].law);
    // Of two days ago a quarter is believed: 3 × 8^¼.
    let mut later = next(&next(&known, day).knowledge(), day);
    for gate in [&mut soon, &mut later] {
        set(gate, route, RouteMode::Enforce);
    }
    assert_eq!((soon.limit(route), later.limit(route)), (Some(24), Some(5)));
}

#[test]
fn each_route_whose_limit_is_fixed_or_found_again_keeps_its_own_requests() {
    let mut gate = Gate::new(Params { cores: 8, ..Params::default() }, Instant::ORIGIN);
    let routes = [3, 4].map(|limit| {
        let route = gate.declare_route(Instant::ORIGIN, RouteMode::Fixed(Limit::of(limit)));
        (0..limit).for_each(|_| _ = gate.handle_arrival(Instant::ORIGIN, Arrival { route, session: None }));
        route
    });
    let running = started(&mut gate);
    let routes_of = |gate: &Gate| routes.map(|route| (gate.limit(route), gate.load(route)));
    let adopt = |gate: &mut Gate, modes: [RouteMode; 2]| {
        let (params, routes) = (gate.params().clone(), routes.into_iter().zip(modes).collect());
        gate.adopt(at(1.0), &Adoption { params, routes, kinds: vec![] });
        routes_of(gate)
    };
    assert_eq!(adopt(&mut gate, [RouteMode::Enforce; 2]), [(Some(3), (0, 3)), (Some(4), (0, 4))]);
    let one = RouteMode::Fixed(Limit::of(1));
    assert_eq!(adopt(&mut gate, [one; 2]), [(Some(1), (0, 3)), (Some(1), (0, 4))]);
    for start in running {
        gate.handle_end(at(2.0), start.permit, Outcome::Completed);
    }
    assert_eq!(routes_of(&gate), [(Some(1), (0, 0)); 2]);
}

#[test]
fn a_number_of_sessions_that_is_lowered_is_reached_one_by_one_as_others_begin() {
    let (mut gate, route, kind) = fixed(100);
    let visit = |gate: &mut Gate, second: f64| {
        let session = Some(Membership::Newcomer(kind));
        gate.handle_arrival(at(second), Arrival { route, session });
        let start = started(gate).pop().expect("there are slots for all");
        gate.handle_end(at(second), start.permit, Outcome::Completed);
        gate.snapshot(at(second)).sessions
    };
    (0..40).for_each(|second| _ = visit(&mut gate, f64::from(second)));
    let params = Params { sessions_max: 10, ..gate.params().clone() };
    gate.adopt(at(40.0), &params.into());
    assert_eq!(gate.snapshot(at(40.0)).sessions, 40, "not all at once: there may be millions");
    let after: Vec<_> = (41..80).map(|second| visit(&mut gate, f64::from(second))).collect();
    let expected: Vec<_> = (10..40).rev().chain([10; 9]).collect();
    assert_eq!(after, expected);
}

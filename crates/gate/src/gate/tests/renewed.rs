//! A number of a route that is given to another one.

use super::*;
use crate::api::Counts;
use suimon_model::Limit;

fn at(seconds: u32) -> Instant {
    Instant::ORIGIN + Duration::from_secs(u64::from(seconds))
}

/// A gate with two routes; a session has asked for both and has ended.
fn used() -> (Gate, [RouteId; 2], KindId) {
    let params = Params { session_law: SessionLawKind::Open, ..Params::default() };
    let mut gate = Gate::new(params, at(0));
    let routes =
        [gate.declare_route(at(0), RouteMode::Enforce), gate.declare_route(at(0), RouteMode::Enforce)];
    let kind = gate.declare_kind(at(0), KindParams::default());
    for route in routes {
        let session = Membership::Member { kind, session: SessionId(7), leased: true, ends: false };
        gate.handle_arrival(at(1), Arrival { route, session: Some(session) });
        let permit = started(&mut gate).pop().unwrap().permit;
        gate.handle_end(at(2), permit, Outcome::Completed);
    }
    gate.handle_session_signal(at(3), SessionId(7), SessionSignal::Ends);
    gate.handle_timeout(at(3));
    (gate, routes, kind)
}

#[test]
fn nothing_is_known_of_the_route_that_gets_another_s_number() {
    let (mut gate, [kept, given], kind) = used();
    gate.renew_route(at(4), given, RouteMode::Fixed(Limit::of(3)));
    gate.handle_timeout(at(5));
    let view = gate.snapshot(at(5));
    assert_eq!((gate.limit(given), view.routes[1].counts), (Some(3), Counts::default()));
    assert_eq!(view.routes[0].counts.completed, 1, "others keep what is known of them");
    let seen = |route| gate.visits.per_session(kind, route);
    assert!((seen(kept) - 1.0).abs() < 1e-9 && seen(given) == 0.0, "{} {}", seen(kept), seen(given));
    assert!(gate.visits.next(kind, suimon_control::LastRoute::at(kept)).1[given.index()] == 0.0);
    let bytes = gate.save().expect("it can be saved");
    let (again, _) = Gate::restore(gate.params().clone(), &bytes).expect("it is sound");
    assert_eq!(again.snapshot(at(5)).routes[1].counts, Counts::default());
}

#[test]
fn sessions_that_stand_there_go_on() {
    let (mut gate, [kept, given], kind) = used();
    let asks = |gate: &mut Gate, now, route| {
        let session = Membership::Member { kind, session: SessionId(8), leased: true, ends: false };
        gate.handle_arrival(now, Arrival { route, session: Some(session) });
        let permit = started(gate).pop().unwrap().permit;
        gate.handle_end(now, permit, Outcome::Completed);
    };
    asks(&mut gate, at(4), given);
    gate.renew_route(at(4), given, RouteMode::Enforce);
    gate.handle_timeout(at(5));
    assert_eq!(gate.visits.under_way(kind), 1);
    asks(&mut gate, at(5), kept);
    gate.handle_timeout(at(6));
    assert_eq!(gate.visits.under_way(kind), 1);
}

#[test]
fn a_number_stays_while_somebody_is_there() {
    let (mut gate, [_, given], _) = used();
    gate.handle_arrival(at(4), Arrival { route: given, session: None });
    let permit = started(&mut gate).pop().unwrap().permit;
    assert!(!gate.is_deserted(given));
    gate.renew_route(at(5), given, RouteMode::Fixed(Limit::of(3)));
    assert_eq!(gate.snapshot(at(5)).routes[1].counts.completed, 1, "it is the same as before");
    gate.handle_end(at(6), permit, Outcome::Completed);
    assert!(gate.is_deserted(given));
}

//! Who goes first in a route's queue, and who leaves it.

use super::lines::at;
use super::*;
use suimon_model::Limit;

#[test]
fn whoever_came_first_goes_first_or_whoever_is_further_along() {
    assert_eq!(order_of_three(QueueOrder::FirstIn), ["newcomer", "another", "member"]);
    assert_eq!(order_of_three(QueueOrder::LaterInSession), ["member", "newcomer", "another"]);
}

/// Returns who started after whom, of two newcomers and a member at its second request who came in
/// this order.
fn order_of_three(order: QueueOrder) -> Vec<&'static str> {
    let (mut gate, route, kind) = fixed(1);
    gate.params.order = order;
    let now = Instant::ORIGIN;
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(now, newcomer);
    let first = started(&mut gate).pop().unwrap();
    let (_, far_along) = first.session.unwrap();
    let a = gate.handle_arrival(now, newcomer);
    let b = gate.handle_arrival(now, newcomer);
    let member = Membership::Member { kind, session: far_along, leased: true, ends: false };
    let c = gate.handle_arrival(now, Arrival { route, session: Some(member) });
    let names = [(a, "newcomer"), (b, "another"), (c, "member")];
    let (mut seen, mut permit) = (vec![], first.permit);
    while seen.len() < names.len() {
        gate.handle_end(now, permit, Outcome::Completed);
        let start = started(&mut gate).pop().unwrap();
        permit = start.permit;
        seen.extend(names.iter().filter(|(request, _)| *request == start.request).map(|(_, name)| *name));
    }
    seen
}

#[test]
fn an_orphaned_request_keeps_its_slot_until_the_application_is_done() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    let orphaned = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().unwrap();
    gate.handle_departure(Instant::ORIGIN, orphaned);
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    assert!(started(&mut gate).is_empty(), "the application still works on the first");
    let snapshot = gate.snapshot(Instant::ORIGIN);
    assert_eq!((snapshot.routes[0].orphaned, snapshot.in_flight), (1, 1));
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Abandoned);
    assert_eq!(started(&mut gate).len(), 1);
    assert_eq!(gate.snapshot(Instant::ORIGIN).routes[0].counts.abandoned, 1);
}

#[test]
fn a_client_that_leaves_the_queue_is_never_sent_on() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(Instant::ORIGIN, newcomer);
    let start = started(&mut gate).pop().unwrap();
    let leaves = gate.handle_arrival(Instant::ORIGIN, newcomer);
    let stays = gate.handle_arrival(Instant::ORIGIN, newcomer);
    gate.handle_departure(Instant::ORIGIN, leaves);
    gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed);
    let next: Vec<_> = started(&mut gate);
    assert_eq!(next.iter().map(|start| start.request).collect::<Vec<_>>(), [stays]);
    next.into_iter().for_each(|start| gate.handle_end(Instant::ORIGIN, start.permit, Outcome::Completed));
}

#[test]
fn whoever_is_inside_and_is_held_for_long_where_a_limit_is_found_is_seen() {
    for (mode, seen) in [(RouteMode::Enforce, true), (RouteMode::Fixed(Limit::of(1)), false)] {
        let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
        let route = gate.declare_route(Instant::ORIGIN, mode);
        let arrival = Arrival { route, session: None };
        assert!(!gate.holds_insider_since(at(9.0)), "nobody is");
        while gate.load(route).0 == 0 {
            gate.handle_arrival(at(1.0), arrival);
        }
        assert!(!gate.holds_insider_since(at(1.0)), "not for long");
        assert_eq!(gate.holds_insider_since(at(1.1)), seen, "{mode:?}");
    }
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    for _ in 0..3 {
        gate.handle_arrival(at(1.0), newcomer);
    }
    assert!(!gate.holds_insider_since(at(9.0)), "they are no insiders, or their limit is set");
}

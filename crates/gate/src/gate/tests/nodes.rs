//! Limits when the number of nodes changes.

use super::*;

fn at(second: f64) -> Instant {
    Instant::ORIGIN + seconds(second)
}

/// A gate with a route whose limit is found, at which `count` requests have arrived.
fn waited_for(count: usize) -> (Gate, RouteId) {
    let mut gate = Gate::new(Params::default(), at(0.0));
    let route = gate.declare_route(at(0.0), RouteMode::Enforce);
    (0..count).for_each(|_| _ = gate.handle_arrival(at(0.0), Arrival { route, session: None }));
    (gate, route)
}

#[test]
fn each_node_has_as_many_requests_as_before() {
    let (mut gate, route) = waited_for(100);
    let began = started(&mut gate).len();
    let limit = gate.limit(route).unwrap();
    assert_eq!(began, limit as usize);
    gate.handle_nodes(at(1.0), 1, 3);
    assert_eq!((gate.limit(route), started(&mut gate).len()), (Some(3 * limit), 2 * began), "at once");
    let last = *gate.snapshot(at(1.0)).records.last().unwrap();
    assert_eq!((last.reason, last.new), (Reason::Nodes, f64::from(3 * limit)));
    gate.handle_nodes(at(2.0), 3, 1);
    assert_eq!(gate.limit(route), Some(limit));
    gate.handle_nodes(at(3.0), 1_000_000, 1);
    assert_eq!(gate.limit(route), Some(1), "never none");
}

#[test]
fn nodes_that_go_and_come_back_leave_nothing_behind() {
    let (mut gate, route) = waited_for(100);
    let limit = gate.limit(route).unwrap();
    // Far fewer than there are nodes, so that no node can have its part.
    for (second, numbers) in (1..).map(f64::from).zip([[64, 1], [1, 64], [64, 3], [3, 2], [2, 1], [1, 64]]) {
        gate.handle_nodes(at(second), numbers[0], numbers[1]);
    }
    assert_eq!(gate.limit(route), Some(limit));
    let next = gate.declare_route(at(9.0), RouteMode::Enforce);
    assert_eq!(gate.limit(next), Some(limit), "as many cores as in the beginning");
}

#[test]
fn nodes_that_are_all_gone_or_as_many_as_before_say_nothing() {
    let (mut gate, route) = waited_for(100);
    let before = (gate.limit(route), gate.trace());
    for (was, is) in [(2, 0), (0, 2), (0, 0), (2, 2)] {
        gate.handle_nodes(at(1.0), was, is);
        assert_eq!((gate.limit(route), gate.trace()), before, "{was} to {is}");
    }
}

#[test]
fn a_limit_that_is_fixed_is_that_of_all_nodes() {
    let (mut gate, route, _) = fixed(4);
    gate.handle_nodes(at(1.0), 1, 3);
    assert_eq!(gate.limit(route), Some(4));
}

//! Services: caps and pauses at the gate.

use super::*;

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

fn ask(gate: &mut Gate, now: Instant, route: RouteId) {
    gate.handle_arrival(now, Arrival { route, session: None });
}

fn service(routes: &[RouteId]) -> ServiceParams {
    ServiceParams { routes: routes.to_vec(), ..ServiceParams::default() }
}

#[test]
fn a_pause_holds_each_request_for_its_time_and_wakes_the_gate_to_the_moment() {
    let (mut gate, route, _) = fixed(5);
    let paused = ServiceParams { pause: seconds(2.0), ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![paused], ..Services::default() });
    ask(&mut gate, at(0.01), route);
    ask(&mut gate, at(0.5), route);
    let leaves = gate.handle_arrival(at(0.6), Arrival { route, session: None });
    assert!(started(&mut gate).is_empty());
    gate.handle_departure(at(0.7), leaves);
    let mut now = at(0.7);
    let mut starts = vec![];
    while now < at(3.0) {
        now = gate.poll_timeout().unwrap();
        gate.handle_timeout(now);
        starts.extend(started(&mut gate).into_iter().map(|start| (now, start)));
    }
    let times: Vec<_> = starts.iter().map(|(now, _)| *now).collect();
    assert_eq!(times, [at(2.01), at(2.5)], "and who left never starts");
    assert_eq!(gate.snapshot(now).waiting, 0);
    starts.into_iter().for_each(|(_, start)| gate.handle_end(now, start.permit, Outcome::Completed));
}

#[test]
fn under_a_cap_those_who_wait_at_any_route_of_a_service_start_in_the_order_in_which_they_came() {
    let mut gate = Gate::new(Params::default(), at(0.0));
    let mode = RouteMode::Fixed(Limit::of(9));
    let (a, b) = (gate.declare_route(at(0.0), mode), gate.declare_route(at(0.0), mode));
    gate.declare_services(at(0.0), Services { services: vec![service(&[a, b])], ..Services::default() });
    // The law would give it up, as nobody is behind.
    gate.services.law = None;
    gate.services.gates[0].credit.set_cap(at(0.0), Some(0.5));
    for (secs, route) in [(0.0, a), (0.1, b), (0.2, a), (0.3, b), (0.4, b)] {
        ask(&mut gate, at(secs), route);
    }
    let (mut now, mut order, mut running) = (at(0.4), vec![], started(&mut gate));
    assert_eq!(running.len(), 1, "half a slot has room for one at a time");
    while order.len() < 4 {
        running.drain(..).for_each(|start| {
            now += seconds(0.1);
            gate.handle_end(now, start.permit, Outcome::Completed);
        });
        now = gate.poll_timeout().unwrap().max(now);
        gate.handle_timeout(now);
        running.extend(started(&mut gate));
        order.extend(running.iter().map(|start| start.waited));
    }
    assert!(
        order.is_sorted_by(|earlier, later| earlier < later),
        "{order:?}: each came later, and waited longer"
    );
    running.into_iter().for_each(|start| gate.handle_end(now, start.permit, Outcome::Completed));
}

#[test]
fn other_services_take_the_place_of_those_before_and_who_was_paused_goes_on() {
    let (mut gate, route, _) = fixed(5);
    let paused = ServiceParams { pause: seconds(60.0), ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![paused], ..Services::default() });
    ask(&mut gate, at(0.0), route);
    assert!(started(&mut gate).is_empty());
    gate.declare_services(at(1.0), Services::default());
    let start = started(&mut gate).pop().expect("nothing holds it any more");
    assert_eq!(start.waited, seconds(1.0));
    gate.handle_end(at(1.0), start.permit, Outcome::Completed);
}

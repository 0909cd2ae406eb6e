//! One session's budget of requests: clients that share a lease share the budget.

use super::lines::at;
use super::*;
use suimon_model::Limit;

const LEASE: SessionId = SessionId(7);

fn member(kind: KindId, session: SessionId) -> Membership {
    Membership::Member { kind, session, leased: true, ends: false }
}

/// Ends what is in the application, one after another, and returns who goes in instead.
fn go_on(gate: &mut Gate, now: Instant, mut permit: Permit, count: usize) -> (Vec<RequestId>, Permit) {
    let mut seen = vec![];
    for _ in 0..count {
        gate.handle_end(now, permit, Outcome::Completed);
        let start = started(gate).pop().expect("somebody waits");
        seen.push(start.request);
        permit = start.permit;
    }
    (seen, permit)
}

#[test]
fn a_hundred_who_share_a_lease_have_eight_requests_at_once_before_others() {
    let (mut gate, route, kind) = fixed(1);
    let now = at(0.0);
    gate.handle_arrival(now, Arrival { route, session: Some(Membership::Newcomer(kind)) });
    let permit = started(&mut gate).pop().unwrap().permit;
    let shared: Vec<_> = (0..100)
        .map(|_| gate.handle_arrival(now, Arrival { route, session: Some(member(kind, LEASE)) }))
        .collect();
    let others: Vec<_> = (100..120)
        .map(|id| gate.handle_arrival(now, Arrival { route, session: Some(member(kind, SessionId(id))) }))
        .collect();
    let (seen, permit) = go_on(&mut gate, now, permit, 120);
    assert_eq!(seen[..8], shared[..8]);
    assert_eq!(seen[8..28], others, "everybody else first");
    assert_eq!(seen[28..], shared[8..], "then the rest, of whom nobody is refused");
    gate.handle_end(now, permit, Outcome::Completed);
}

#[test]
fn what_one_session_has_waiting_is_bounded_and_others_wait_as_before() {
    let (mut gate, route, kind) = fixed(1);
    let now = at(0.0);
    let arrival = |session| Arrival { route, session: Some(member(kind, session)) };
    for _ in 0..1000 {
        gate.handle_arrival(now, arrival(LEASE));
    }
    let outputs: Vec<_> = std::iter::from_fn(|| gate.poll_output()).collect();
    let refused = outputs.iter().filter(|output| matches!(output, Output::Refuse(_))).count();
    assert_eq!((refused, gate.snapshot(now).waiting), (744, 255));
    gate.handle_arrival(now, arrival(SessionId(8)));
    assert!(gate.poll_output().is_none(), "another visitor waits");
    assert_eq!(gate.snapshot(now).waiting, 256);
}

#[test]
fn a_hundred_requests_may_come_at_once_and_five_a_second_after_that() {
    let (mut gate, route, kind) = fixed(1);
    // Each is answered before the next comes, so that never two are there at once.
    let asks = |gate: &mut Gate, now: Instant| {
        gate.handle_arrival(now, Arrival { route, session: Some(Membership::Newcomer(kind)) });
        let first = started(gate).pop().unwrap();
        let shared = gate.handle_arrival(now, Arrival { route, session: Some(member(kind, LEASE)) });
        let other = gate.handle_arrival(now, Arrival { route, session: Some(member(kind, SessionId(8))) });
        let (seen, permit) = go_on(gate, now, first.permit, 2);
        gate.handle_end(now, permit, Outcome::Completed);
        assert!(seen == [shared, other] || seen == [other, shared]);
        seen[0] == shared
    };
    let goes_first = |gate: &mut Gate, now, count: usize| (0..count).filter(|_| asks(gate, now)).count();
    // The other one has as many, so each round costs both the same: from here on only the lease's
    // is looked at.
    assert_eq!(goes_first(&mut gate, at(0.0), 100), 100);
    gate.handle_session_signal(at(0.0), SessionId(8), SessionSignal::Ends);
    assert_eq!(goes_first(&mut gate, at(0.0), 50), 0);
    gate.handle_session_signal(at(2.0), SessionId(8), SessionSignal::Ends);
    assert_eq!(goes_first(&mut gate, at(2.0), 50), 10);
    gate.handle_session_signal(at(1000.0), SessionId(8), SessionSignal::Ends);
    assert_eq!(goes_first(&mut gate, at(1000.0), 100), 100, "and no more than that is saved up");
    gate.handle_session_signal(at(1000.0), SessionId(8), SessionSignal::Ends);
    assert_eq!(goes_first(&mut gate, at(1000.0), 10), 0);
}

#[test]
fn whoever_pays_has_no_more_of_it() {
    let (mut gate, route, kind) = fixed(1);
    let now = at(0.0);
    gate.handle_arrival(now, Arrival { route, session: Some(member(kind, LEASE)) });
    let permit = started(&mut gate).pop().unwrap().permit;
    gate.handle_session_signal(now, LEASE, SessionSignal::Checkout);
    let paying: Vec<_> = (0..20)
        .map(|_| gate.handle_arrival(now, Arrival { route, session: Some(member(kind, LEASE)) }))
        .collect();
    let other = gate.handle_arrival(now, Arrival { route, session: Some(member(kind, SessionId(8))) });
    let (seen, permit) = go_on(&mut gate, now, permit, 21);
    assert_eq!((&seen[..7], seen[7], &seen[8..]), (&paying[..7], other, &paying[7..]));
    gate.handle_end(now, permit, Outcome::Completed);
}

#[test]
fn what_goes_beyond_a_budget_keeps_nobody_else_out() {
    let now = at(0.0);
    let params = Params { session_law: SessionLawKind::Open, waiting_max: 50, ..Params::default() };
    let mut gate = Gate::new(params, now);
    let route = gate.declare_route(now, RouteMode::Fixed(Limit::of(1)));
    let kind = gate.declare_kind(now, KindParams::default());
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    gate.handle_arrival(now, newcomer);
    let permit = started(&mut gate).pop().unwrap().permit;
    let shared: Vec<_> = (0..100)
        .map(|_| gate.handle_arrival(now, Arrival { route, session: Some(member(kind, LEASE)) }))
        .collect();
    let counted = gate.visits.remaining(route);
    assert!(
        (counted - 9.0).abs() < 1e-9,
        "{counted}: eight, and the one in the application, are work to come"
    );
    let comes = gate.handle_arrival(now, newcomer);
    assert!(gate.poll_output().is_none(), "a hundred requests of one lease do not fill a gate for fifty");
    let (seen, permit) = go_on(&mut gate, now, permit, 101);
    assert_eq!((&seen[..8], seen[8]), (&shared[..8], comes));
    gate.handle_end(now, permit, Outcome::Completed);
    let counted = gate.visits.remaining(route);
    assert!(counted.abs() < 1e-9, "{counted}: nothing is left");
}

#[test]
fn what_goes_beyond_a_budget_teaches_nothing_of_what_sessions_do() {
    let (mut gate, route, kind) = fixed(1000);
    let asks = |gate: &mut Gate, count: usize| -> Vec<Permit> {
        let mut tokens = vec![];
        for _ in 0..count {
            gate.handle_arrival(at(0.0), Arrival { route, session: Some(member(kind, LEASE)) });
            tokens.extend(started(gate).into_iter().map(|start| start.permit));
        }
        tokens
    };
    // All at once: eight are what one visitor may have in the application.
    let tokens = asks(&mut gate, 60);
    tokens.into_iter().for_each(|permit| gate.handle_end(at(0.1), permit, Outcome::Completed));
    gate.handle_session_signal(at(0.2), LEASE, SessionSignal::Ends);
    let learned = gate.visits.per_session(kind, route);
    assert!((learned - 8.0).abs() < 1e-9, "{learned} visits of one session");
}

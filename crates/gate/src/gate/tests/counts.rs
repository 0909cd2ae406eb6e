//! What is counted for those who look.

use super::lines::{at, pass};
use super::*;
use crate::api::GateState;

/// A gate with a maximum of `sessions` sessions, with one route without a limit and one kind with a
/// line.
fn fixed(sessions: u32) -> (Gate, RouteId, KindId) {
    let params = Params { session_law: SessionLawKind::Static(sessions), ..Params::default() };
    let mut gate = Gate::new(params, at(0.0));
    let route = gate.declare_route(at(0.0), RouteMode::Off);
    let line = Some(suimon_line::Params::default());
    let kind = gate.declare_kind(at(0.0), KindParams { line, ..KindParams::default() });
    (gate, route, kind)
}

/// Lets one newcomer in.
fn begins(gate: &mut Gate, now: Instant, route: RouteId, kind: KindId) -> Start {
    gate.handle_arrival(now, Arrival { route, session: Some(Membership::Newcomer(kind)) });
    match gate.poll_output() {
        Some(Output::Start(start)) => start,
        other => panic!("{other:?}"),
    }
}

fn kind_view(gate: &Gate, now: Instant) -> crate::api::KindView {
    gate.snapshot(now).kinds[0].clone()
}

#[test]
fn whoever_is_shown_a_place_is_counted_apart_from_those_who_are_refused() {
    let (mut gate, route, kind) = fixed(1);
    let _inside = begins(&mut gate, at(0.0), route, kind);
    for _ in 0..3 {
        gate.handle_arrival(at(1.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
        // The first is called and held.
        let _ = gate.poll_output();
    }
    pass(&mut gate, at(20.0));
    gate.handle_arrival(at(20.0), Arrival { route, session: Some(Membership::WithoutLine(kind)) });
    assert!(matches!(gate.poll_output(), Some(Output::Refuse(_))));
    let view = gate.snapshot(at(20.0));
    assert_eq!((view.routes[0].placed, view.routes[0].counts.refused), (3, 4));
    assert_eq!(view.kinds[0].refused, 1, "one was sent away without a place");
    assert_eq!(view.kinds[0].newcomers, 5);
}

#[test]
fn a_gate_with_all_its_sessions_taken_says_that_it_is_full_and_why() {
    let (mut gate, route, kind) = fixed(1);
    assert_eq!(kind_view(&gate, at(0.0)).gate_state, GateState::Open);
    let inside = begins(&mut gate, at(0.0), route, kind);
    pass(&mut gate, at(1.0));
    let view = kind_view(&gate, at(1.0));
    assert_eq!(
        (view.gate_state, view.open, view.sessions_max, view.remembered),
        (GateState::Full, false, Some(1), 1)
    );
    assert!(gate.snapshot(at(1.0)).records.is_empty(), "nobody waits for it");

    for _ in 0..9 {
        gate.handle_arrival(at(1.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
    }
    while gate.poll_output().is_some() {}
    let trace = gate.trace();
    pass(&mut gate, at(2.0));
    let records = gate.snapshot(at(2.0)).records;
    assert_eq!(records.iter().map(|record| record.reason).collect::<Vec<_>>(), [Reason::SessionsFull]);
    assert_eq!(records[0].signals.iter().next(), Some(("sessions", 1.0)));
    assert_eq!(gate.trace(), trace, "nobody has decided anything");

    gate.handle_end(at(2.0), inside.permit, Outcome::Completed);
    pass(&mut gate, at(2.5));
    assert_eq!(gate.snapshot(at(2.5)).records.len(), 1, "it is told once");
}

#[test]
fn where_somebody_waits_in_line_the_gate_is_not_open() {
    let (mut gate, route, kind) = fixed(1);
    let (_, session) = begins(&mut gate, at(0.0), route, kind).session.unwrap();
    let mut waits = vec![];
    for _ in 0..9 {
        gate.handle_arrival(at(1.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
        if let Some(Output::Wait(wait)) = gate.poll_output() {
            waits.push(wait);
        }
    }
    assert!(!waits.is_empty());
    pass(&mut gate, at(20.0));
    gate.handle_session_signal(at(20.0), session, SessionSignal::Ends);
    let view = kind_view(&gate, at(20.0));
    assert_eq!((view.gate_state, view.open, view.remembered), (GateState::Paced, false, 0));
}

#[test]
fn a_newcomer_of_now_is_told_more_than_those_who_are_held_wait() {
    // Two begin per second; forty did, so that the line knows the pace.
    let (mut gate, route, kind) = super::lines::lined(super::lines::Metered::new(40, 2.0));
    for _ in 0..40 {
        begins(&mut gate, at(0.0), route, kind);
    }
    for _ in 0..200 {
        gate.handle_arrival(at(0.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
    }
    while gate.poll_output().is_some() {}
    pass(&mut gate, at(1.0));
    let view = kind_view(&gate, at(1.0));
    let (low, high) = view.newcomer_wait.expect("the pace is known");
    assert!(40.0 < low && low < 100.0 && high > 100.0, "some 200 at two a second: {low} to {high}");
    assert!(view.predicted_wait_seconds < 5.0, "{}", view.predicted_wait_seconds);
}

#[test]
fn sessions_are_counted_by_how_they_ended() {
    let mut gate = Gate::new(Params { session_law: SessionLawKind::Open, ..Params::default() }, at(0.0));
    let route = gate.declare_route(at(0.0), RouteMode::Off);
    let kind = gate.declare_kind(at(0.0), KindParams::default());
    let session = |gate: &mut Gate, ending| {
        let Start { permit, session, .. } = begins(gate, at(0.0), route, kind);
        gate.handle_end(at(0.1), permit, ending);
        session.unwrap().1
    };
    let says_goodbye = session(&mut gate, Outcome::Completed);
    session(&mut gate, Outcome::Completed);
    session(&mut gate, Outcome::Failed(Failure::ServerError));
    session(&mut gate, Outcome::Failed(Failure::Timeout));
    session(&mut gate, Outcome::Abandoned);
    let comes_again = session(&mut gate, Outcome::Failed(Failure::ServerError));
    gate.handle_session_signal(at(0.2), says_goodbye, SessionSignal::Ends);

    let member = Membership::Member { kind, session: comes_again, leased: false, ends: false };
    gate.handle_arrival(at(0.3), Arrival { route, session: Some(member) });
    let Some(Output::Start(start)) = gate.poll_output() else { panic!("members go on") };
    gate.handle_end(at(0.4), start.permit, Outcome::Completed);
    pass(&mut gate, at(60.0));
    let wanted = SessionEnds { finished: 1, silent: 2, abandoned: 1, failed: 2, reopened: 0 };
    assert_eq!((kind_view(&gate, at(60.0)).ends, kind_view(&gate, at(60.0)).active), (wanted, 0));

    gate.handle_arrival(at(60.0), Arrival { route, session: Some(member) });
    assert_eq!(kind_view(&gate, at(60.0)).ends.reopened, 1, "taken to have ended, and there again");
}

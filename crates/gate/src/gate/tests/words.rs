//! What the application says of its sessions, and what comes of it.

use super::lines::{Metered, at, lined, pass, placed, told_at_once};
use super::*;
use suimon_model::Limit;

fn begins(gate: &mut Gate, now: Instant, route: RouteId, membership: Membership) -> Start {
    gate.handle_arrival(now, Arrival { route, session: Some(membership) });
    started(gate).pop().expect("it is let in at once")
}

#[test]
fn a_session_that_has_ended_makes_room_for_the_next() {
    let params = Params { session_law: SessionLawKind::Static(1), ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let newcomer = Membership::Newcomer(kind);
    let (_, session) = begins(&mut gate, at(0.0), route, newcomer).session.unwrap();
    gate.handle_arrival(at(0.0), Arrival { route, session: Some(newcomer) });
    assert!(matches!(gate.poll_output(), Some(Output::Refuse(_))), "one is all there may be");
    gate.handle_session_signal(at(0.0), session, SessionSignal::Checkout);
    gate.handle_session_signal(at(0.0), session, SessionSignal::Weighs(3));
    gate.handle_arrival(at(0.0), Arrival { route, session: Some(newcomer) });
    assert!(matches!(gate.poll_output(), Some(Output::Refuse(_))), "no other word ends a session");
    gate.handle_session_signal(at(0.0), session, SessionSignal::Ends);
    let next = begins(&mut gate, at(0.0), route, newcomer);
    assert_ne!(next.session, Some((kind, session)));
    assert_eq!(gate.snapshot(at(0.0)).sessions, 1);
    // Said again, or of somebody nobody knows, it is nothing.
    gate.handle_session_signal(at(0.0), session, SessionSignal::Ends);
    gate.handle_session_signal(at(0.0), SessionId(4711), SessionSignal::Ends);
    assert_eq!(gate.snapshot(at(0.0)).sessions, 1);
}

#[test]
fn a_request_that_would_end_its_session_ends_it_only_if_it_is_done() {
    let params = Params { session_law: SessionLawKind::Static(1), ..Params::default() };
    let mut gate = Gate::new(params, Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
    let session = SessionId(7);
    let leaves = Membership::Member { kind, session, leased: true, ends: true };
    let failed = Outcome::Failed(Failure::ServerError);
    for (ending, sessions) in
        [(Outcome::Declined, 1), (failed, 1), (Outcome::Abandoned, 1), (Outcome::Completed, 0)]
    {
        let start = begins(&mut gate, at(0.0), route, leaves);
        gate.handle_end(at(0.0), start.permit, ending);
        assert_eq!(gate.snapshot(at(0.0)).sessions, sessions, "{ending:?}");
    }
    let counts = gate.snapshot(at(0.0)).routes[0].counts;
    assert_eq!((counts.completed, counts.failed, counts.abandoned), (2, 1, 1));
}

#[test]
fn whoever_is_held_begins_at_the_moment_another_session_ends() {
    let (mut gate, route, kind) = {
        let params = Params { session_law: SessionLawKind::Static(1), ..Params::default() };
        let mut gate = Gate::new(params, Instant::ORIGIN);
        let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
        let line = Some(suimon_line::Params::default());
        let kind = gate.declare_kind(Instant::ORIGIN, KindParams { line, ..KindParams::default() });
        (gate, route, kind)
    };
    let newcomer = Membership::Newcomer(kind);
    let (_, session) = begins(&mut gate, at(0.0), route, newcomer).session.unwrap();
    let held = gate.handle_arrival(at(0.0), Arrival { route, session: Some(newcomer) });
    assert!(gate.poll_output().is_none());
    gate.handle_session_signal(at(0.1), session, SessionSignal::Ends);
    assert_eq!(started(&mut gate).into_iter().map(|start| start.request).collect::<Vec<_>>(), [held]);
}

#[test]
fn whoever_pays_goes_first_in_every_queue() {
    let (mut gate, route, kind) = fixed(1);
    let other = gate.declare_route(Instant::ORIGIN, RouteMode::Fixed(Limit::of(1)));
    let now = Instant::ORIGIN;
    let newcomer = Membership::Newcomer(kind);
    let blocking = [route, other].map(|route| begins(&mut gate, now, route, newcomer));
    let payer = SessionId(7);
    let asks = |session| Membership::Member { kind, session, leased: true, ends: false };
    // It is in before anything is said of it.
    let first = gate.handle_arrival(now, Arrival { route, session: Some(asks(payer)) });
    gate.handle_session_signal(now, payer, SessionSignal::Checkout);
    for (route, Start { permit, .. }) in [route, other].into_iter().zip(blocking) {
        let others =
            [8, 9].map(|id| gate.handle_arrival(now, Arrival { route, session: Some(asks(SessionId(id))) }));
        let pays = gate.handle_arrival(now, Arrival { route, session: Some(asks(payer)) });
        let (mut seen, mut permit) = (vec![], Some(permit));
        while let Some(ended) = permit.take() {
            gate.handle_end(now, ended, Outcome::Completed);
            if let Some(start) = started(&mut gate).pop() {
                seen.push(start.request);
                permit = Some(start.permit);
            }
        }
        seen.retain(|request| *request != first);
        assert_eq!(seen, [pays, others[0], others[1]]);
    }
}

#[test]
fn a_session_of_weight_three_makes_the_next_one_begin_as_much_later() {
    // One begins per second, and each newcomer is held until then.
    let next_after = |weights: &[u32]| {
        let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
        let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
        let params = KindParams { hold: Some(seconds(200.0)), ..KindParams::default() };
        let kind = gate.declare_kind_with_law(Instant::ORIGIN, params, Metered::new(1, 1.0));
        let newcomer = Membership::Newcomer(kind);
        let (_, session) = begins(&mut gate, at(0.0), route, newcomer).session.unwrap();
        weights
            .iter()
            .for_each(|weight| gate.handle_session_signal(at(0.0), session, SessionSignal::Weighs(*weight)));
        gate.handle_arrival(at(0.0), Arrival { route, session: Some(newcomer) });
        let waited = pass(&mut gate, at(150.0)).into_iter().find_map(|output| match output {
            Output::Start(start) => Some(start.waited.as_secs_f64()),
            _ => None,
        });
        waited.expect("it begins at last")
    };
    for (weights, begins_at) in
        [(&[] as &[u32], 1.0), (&[1], 1.0), (&[3], 3.0), (&[3, 50], 3.0), (&[0, 50], 1.0), (&[1000], 100.0)]
    {
        let found = next_after(weights);
        assert!((found - begins_at).abs() < 1e-3, "{weights:?}: {found} s instead of {begins_at} s");
    }
}

#[test]
fn the_law_in_force_counts_a_weight_as_so_many_sessions() {
    // Until the first of many tokens is owed, nobody notices; so the times are those of a gate that
    // has none left.
    let next_after = |weight: u32| {
        let mut gate = Gate::new(Params { cores: 1, ..Params::default() }, Instant::ORIGIN);
        let route = gate.declare_route(Instant::ORIGIN, RouteMode::Off);
        let kind = gate.declare_kind(Instant::ORIGIN, KindParams::default());
        let mut last = None;
        loop {
            gate.handle_arrival(at(0.0), Arrival { route, session: Some(Membership::Newcomer(kind)) });
            let Some(start) = started(&mut gate).pop() else { break };
            last = start.session;
        }
        let (_, session) = last.expect("some begin at once");
        gate.handle_session_signal(at(0.0), session, SessionSignal::Weighs(weight));
        gate.kinds[kind.index()].next.expect("somebody is held until then").secs_since(at(0.0))
    };
    let (one, two, three) = (next_after(1), next_after(2), next_after(3));
    assert!(two - one > 0.0 && ((three - two) - (two - one)).abs() < 1e-6, "{one} {two} {three}");
}

#[test]
fn once_sold_out_everybody_who_waits_is_told_so_and_whoever_is_in_stays_in() {
    let (mut gate, route, kind) = lined(Metered::new(1, 1.0));
    let asks = |session| Arrival { route, session: Some(session) };
    let start = begins(&mut gate, at(0.0), route, Membership::Newcomer(kind));
    let (_, inside) = start.session.unwrap();
    gate.handle_command(at(0.0), kind, Command::Pause);
    gate.handle_arrival(at(0.0), asks(Membership::Newcomer(kind)));
    let position = told_at_once(&mut gate).position.unwrap();

    gate.handle_command(at(1.0), kind, Command::Close);
    assert_eq!(gate.handle_contact(at(1.0), kind, position), Some(PositionStatus::Closed));
    for session in [placed(kind, position), Membership::Newcomer(kind)] {
        gate.handle_arrival(at(1.0), asks(session));
        let told = told_at_once(&mut gate);
        assert_eq!(told.standing, PositionStatus::Closed);
        let own = matches!(session, Membership::Placed { .. }).then_some(position);
        assert_eq!(told.position, own, "no number is drawn any more");
    }
    assert!(pass(&mut gate, at(5.0)).iter().all(|output| !matches!(output, Output::Start(_))));
    let member = Membership::Member { kind, session: inside, leased: true, ends: false };
    begins(&mut gate, at(5.0), route, member);

    gate.handle_command(at(5.0), kind, Command::Move);
    pass(&mut gate, at(5.5));
    assert_eq!(
        begins(&mut gate, at(5.5), route, placed(kind, position)).session,
        Some((kind, session_of(position)))
    );
}

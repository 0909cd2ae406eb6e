//! A gate that shares the application with others.

use super::*;
use suimon_sharing::{Ended, KindPart, LaneRecord, Part, RoutePart};

/// Has this gateway follow another one, which has `in_flight` of the eight requests that there may be.
fn follow(gate: &mut Gate, now: Instant, in_flight: u32, is_settled: bool) {
    let route = RoutePart {
        key: 1,
        limit: 8,
        slots: 4,
        is_settled,
        in_flight_elsewhere: in_flight,
        waiting_elsewhere: 3,
        ended_elsewhere: Ended { progressed: 5, failed: 1, answered: 6, ..Ended::default() },
        ..RoutePart::default()
    };
    let lane = LaneRecord { lane: 0, next: 30, called: 10, expected: 2.5, people: vec![(12, 1), (30, 7)] };
    let kind = KindPart { key: 1, waiting_elsewhere: 20, lanes_elsewhere: vec![lane], ..KindPart::default() };
    let part = Part { gateways: 2, routes: vec![route], kinds: vec![kind] };
    let number = |key: u64| key as u32 - 1;
    gate.handle_part(now, &part, |key| Some(RouteId(number(key))), |key| Some(KindId(number(key))));
}

#[test]
fn nodes_are_asked_for_by_what_all_gateways_have() {
    let now = Instant::ORIGIN + seconds(1.0);
    let mut gate = Gate::new(Params::default(), Instant::ORIGIN);
    let route = gate.declare_route(Instant::ORIGIN, RouteMode::Enforce);
    let line = Some(suimon_line::Params::default());
    let kind = gate.declare_kind(Instant::ORIGIN, KindParams { line, ..KindParams::default() });
    gate.share();
    follow(&mut gate, now, 4, true);
    (0..6).for_each(|_| _ = gate.handle_arrival(now, Arrival { route, session: None }));
    assert_eq!(started(&mut gate).len(), 4, "its slots");
    let asked = gate.snapshot(now).asked();
    assert_eq!((asked.in_flight, asked.waiting), (8, 2 + 3));
    assert_eq!((asked.begun, asked.ended, asked.answered), (6 + 6, 6, 6));
    assert_eq!(asked.newcomers, [7.0 + 2.5], "those not called and those expected, each once");
    let mean = |fullness: Option<suimon_model::Fullness>| fullness.map(|fullness| fullness.mean);
    assert_eq!(mean(asked.fullness), Some(1.0), "half of it is elsewhere");
    assert_eq!(mean(asked.fullness_found), Some(1.0), "as the one that learns has found it");

    follow(&mut gate, now, 0, false);
    let asked = gate.snapshot(now).asked();
    assert_eq!((asked.in_flight, asked.ended), (4, 12), "what ended elsewhere adds up");
    gate.handle_command(now, kind, suimon_line::Command::Pause);
    assert_eq!(gate.snapshot(now).asked().newcomers, [9.5], "the line of the others moves on");
    assert_eq!((mean(asked.fullness), mean(asked.fullness_found)), (Some(0.5), None));
}

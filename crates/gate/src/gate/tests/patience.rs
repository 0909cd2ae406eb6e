//! Whose leaving teaches patience.

use super::*;
use crate::kinds::PATIENCE_MIN;

fn at(seconds: u32) -> Instant {
    Instant::ORIGIN + Duration::from_secs(u64::from(seconds))
}

fn pass(gate: &mut Gate, until: Instant) {
    while let Some(next) = gate.poll_timeout().filter(|next| *next <= until) {
        gate.handle_timeout(next);
        while gate.poll_output().is_some() {}
    }
}

#[test]
fn those_who_still_wait_count_beside_those_who_leave() {
    let (mut gate, route, kind) = fixed(1);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    let mut waiting: Vec<_> = (0..400).map(|_| gate.handle_arrival(at(0), newcomer)).collect();
    // One leaves each second: in the fortieth a tenth has left.
    for second in 1..=60 {
        gate.handle_departure(at(second), waiting.pop().unwrap());
        pass(&mut gate, at(second));
        let view = &gate.snapshot(at(second)).kinds[0];
        match view.patience_source {
            "assumed" => assert!(second <= 44, "at {second}"),
            _ => assert!(
                second >= 39 && (view.patience_seconds / 40.0 - 1.0).abs() < 0.06,
                "at {second}: {}",
                view.patience_seconds
            ),
        }
    }
}

#[test]
fn who_leaves_again_and_again_counts_once() {
    let leave = |same: bool| {
        let (mut gate, route, kind) = fixed(100);
        for number in 0..64 {
            let session = SessionId(if same { 0 } else { u64::from(number) });
            let member = Membership::Member { kind, session, leased: true, ends: false };
            let request = gate.handle_arrival(at(2 * number), Arrival { route, session: Some(member) });
            gate.handle_departure(at(2 * number + 1), request);
            pass(&mut gate, at(2 * number + 1));
        }
        pass(&mut gate, at(200));
        gate.snapshot(at(200)).kinds[0].patience_source
    };
    assert_eq!((leave(true), leave(false)), ("assumed", "learned"));
}

#[test]
fn whoever_aborts_at_once_makes_nobody_look_less_patient_than_people_are() {
    let (mut gate, route, kind) = fixed(100);
    let ms = |ms: u64| Instant::ORIGIN + Duration::from_millis(ms);
    // Each as a new visitor, of a page that takes some seconds.
    for number in 0..120_u64 {
        let came = ms(1000 * number);
        let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
        let request = gate.handle_arrival(came, newcomer);
        let permit = started(&mut gate).pop().expect("there is room").permit;
        gate.handle_departure(came + Duration::from_millis(600), request);
        gate.handle_end(came + Duration::from_millis(900), permit, Outcome::Completed);
        pass(&mut gate, came + Duration::from_millis(999));
    }
    let view = &gate.snapshot(ms(120_000)).kinds[0];
    assert_eq!((view.patience_source, view.patience_seconds), ("learned", PATIENCE_MIN));
    pass(&mut gate, at(3720));
    let view = &gate.snapshot(at(3720)).kinds[0];
    assert_eq!((view.patience_source, view.patience_seconds), ("assumed", 60.0), "nobody has left any more");
}

#[test]
fn where_most_leave_within_a_second_nobody_is_held_until_then() {
    let (mut gate, route, kind) = fixed(1);
    let ms = |ms: u64| Instant::ORIGIN + Duration::from_millis(ms);
    let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
    assert!(gate.kinds[kind.index()].hold() > 3.0, "nothing is known");
    let mut waiting = std::collections::VecDeque::new();
    for number in 0..300 {
        pass(&mut gate, ms(100 * number));
        if number >= 10
            && let Some(request) = waiting.pop_front()
        {
            gate.handle_departure(ms(100 * number), request);
        }
        waiting.push_back(gate.handle_arrival(ms(100 * number), newcomer));
    }
    let view = &gate.snapshot(ms(30_000)).kinds[0];
    assert_eq!((view.patience_source, view.patience_seconds), ("learned", PATIENCE_MIN));
    let hold = gate.kinds[kind.index()].hold();
    assert!((0.3..0.5).contains(&hold), "{hold}");
}

#[test]
fn aborts_of_a_quick_site_teach_nothing() {
    let (mut gate, route, kind) = fixed(100);
    let ms = |ms: u64| Instant::ORIGIN + Duration::from_millis(ms);
    for number in 0..512_u64 {
        let member = Membership::Member { kind, session: SessionId(number), leased: true, ends: false };
        let came = ms(100 * number);
        let request = gate.handle_arrival(came, Arrival { route, session: Some(member) });
        let permit = started(&mut gate).pop().expect("there is room").permit;
        let is_abort = number % 40 == 0;
        if is_abort {
            gate.handle_departure(came + Duration::from_millis(60), request);
        }
        gate.handle_end(
            came + Duration::from_millis(if is_abort { 90 } else { 50 }),
            permit,
            Outcome::Completed,
        );
        pass(&mut gate, came + Duration::from_millis(99));
    }
    assert_eq!(gate.snapshot(ms(60_000)).kinds[0].patience_source, "assumed");
}

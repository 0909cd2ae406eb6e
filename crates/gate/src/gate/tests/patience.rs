//! Whose leaving teaches patience.

use super::lines::Metered;
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

/// A gate at which this many newcomers begin per second.
fn paced(per_second: f64) -> (Gate, Arrival, KindId) {
    let mut gate = Gate::new(Params::default(), at(0));
    let route = gate.declare_route(at(0), RouteMode::Off);
    let kind = gate.declare_kind_with_law(at(0), KindParams::default(), Metered::new(1, per_second));
    (gate, Arrival { route, session: Some(Membership::Newcomer(kind)) }, kind)
}

fn hold(gate: &Gate, kind: KindId) -> f64 {
    gate.kinds[kind.index()].hold()
}

/// Plays newcomers ten times per second: for each tenth of a second, after how many further ones it leaves, if it does.
fn play(
    gate: &mut Gate,
    newcomer: Arrival,
    tenths: std::ops::Range<u64>,
    leaves: impl Fn(u64) -> Option<u64>,
    mut look: impl FnMut(&Gate, u64),
) {
    let mut leaving = std::collections::BTreeMap::new();
    for tenth in tenths {
        let now = Instant::ORIGIN + Duration::from_millis(100 * tenth);
        pass(gate, now);
        if let Some(request) = leaving.remove(&tenth) {
            gate.handle_departure(now, request);
        }
        let request = gate.handle_arrival(now, newcomer);
        leaving.extend(leaves(tenth).map(|later| (tenth + later, request)));
        look(gate, tenth);
    }
}

#[test]
fn where_most_leave_within_a_second_nobody_is_held_until_then() {
    let (mut gate, newcomer, kind) = paced(5.0);
    assert!(hold(&gate, kind) > 3.0, "nothing is known");
    play(&mut gate, newcomer, 1..300, |_| Some(10), |_, _| ());
    let view = &gate.snapshot(at(30)).kinds[0];
    assert_eq!((view.patience_source, view.patience_seconds), ("learned", PATIENCE_MIN));
    assert!((0.3..0.5).contains(&hold(&gate, kind)), "{}", hold(&gate, kind));
}

#[test]
fn whether_most_leave_so_soon_is_asked_anew_again_and_again() {
    let (mut gate, newcomer, kind) = paced(5.0);
    let mut usual = 0;
    play(
        &mut gate,
        newcomer,
        1..12_000,
        |_| Some(10),
        |gate, tenth| {
            usual += u32::from(tenth > 600 && hold(gate, kind) > 0.5);
        },
    );
    assert!((100..600).contains(&usual), "held as usual for {usual} of 11400 tenths of a second");
    // Nobody comes any more who could show anything.
    pass(&mut gate, at(1510));
    assert!(hold(&gate, kind) > 2.0, "{}", hold(&gate, kind));
}

#[test]
fn a_robot_that_leaves_slow_pages_makes_nobody_be_held_for_less() {
    let (mut gate, route, kind) = fixed(100);
    // Each as a new visitor, where nobody is held.
    for number in 0..120 {
        let came = at(number);
        let newcomer = Arrival { route, session: Some(Membership::Newcomer(kind)) };
        let request = gate.handle_arrival(came, newcomer);
        let permit = started(&mut gate).pop().expect("there is room").permit;
        gate.handle_departure(came + Duration::from_millis(550), request);
        gate.handle_end(came + Duration::from_millis(900), permit, Outcome::Completed);
        pass(&mut gate, came + Duration::from_millis(999));
        assert!(hold(&gate, kind) > 2.0, "{} after {number}", hold(&gate, kind));
    }
    assert_eq!(gate.snapshot(at(120)).kinds[0].patience_source, "learned");
}

#[test]
fn a_robot_among_others_who_are_held_makes_nobody_be_held_for_less() {
    let (mut gate, newcomer, kind) = paced(5.0);
    // Three of ten newcomers are the robot.
    let leaves = |tenth| (tenth % 10 < 3).then_some(6);
    play(&mut gate, newcomer, 1..1200, leaves, |gate, tenth| {
        assert!(hold(gate, kind) > 2.0, "{} after {tenth} tenths of a second", hold(gate, kind));
    });
    assert_eq!(gate.snapshot(at(120)).kinds[0].patience_source, "learned");
}

#[test]
fn whoever_leaves_just_after_being_admitted_counts_as_well() {
    let (mut gate, newcomer, kind) = paced(10.0);
    // As many as may come with each tenth of a second. They are held for 0.9 s, as nine came at once before them.
    for _ in 0..9 {
        gate.handle_arrival(at(0), newcomer);
    }
    play(&mut gate, newcomer, 1..300, |_| Some(10), |_, _| ());
    assert_eq!(
        gate.snapshot(at(30)).routes[newcomer.route.index()].counts.abandoned,
        0,
        "nobody left while held"
    );
    assert!((0.3..0.5).contains(&hold(&gate, kind)), "{}", hold(&gate, kind));
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

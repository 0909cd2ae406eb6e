//! What the line promises to the visitors in it.

use super::*;
use proptest::prelude::*;

const HOLD: f64 = 5.0;

fn second(n: f64) -> Instant {
    Instant::ORIGIN + seconds(n)
}

fn line() -> Line {
    Line::new(Params::default(), second(0.0))
}

fn draw(line: &mut Line, count: u64) -> Vec<Position> {
    (0..count).map(|_| line.draw(Lane::Normal).expect("there is room")).collect()
}

/// Lets time pass from `from` to `to`, four ticks per second.
fn pass(line: &mut Line, from: f64, to: f64, rate: f64) {
    let mut now = from;
    while now < to {
        line.tick(second(now), Some(rate), HOLD);
        now += 0.25;
    }
}

fn waiting(standing: PositionStatus) -> Wait {
    match standing {
        PositionStatus::Waiting(wait) => wait,
        other => panic!("{other:?}"),
    }
}

#[test]
fn as_many_are_called_as_begin_before_they_can_be_there() {
    let mut line = line();
    let places = draw(&mut line, 100);
    line.tick(second(0.25), Some(4.0), HOLD);
    assert_eq!(line.view().called, 38, "nine and a half seconds' worth");
    assert!(line.contact(second(1.0), places[37]).is_called());
    assert_eq!(waiting(line.contact(second(1.0), places[38])).ahead, 38);
    assert!(line.claimed(places[0]));
    assert!(line.contact(second(1.0), places[38]).is_called(), "a claim calls the next");
}

#[test]
fn where_more_may_be_let_in_at_any_moment_more_are_called_and_held() {
    let mut line = line();
    draw(&mut line, 200);
    line.be_ready_for(2.0);
    line.tick(second(0.25), Some(4.0), HOLD);
    assert_eq!((line.view().called, line.held_at_once()), (76, 40));
    line.be_ready_for(0.0);
    line.tick(second(0.5), Some(4.0), HOLD);
    assert_eq!((line.view().called, line.held_at_once()), (76, 20), "nobody is called back");
}

#[test]
fn at_a_slow_pace_a_few_are_called_all_the_same() {
    let mut line = line();
    draw(&mut line, 100);
    line.tick(second(0.25), Some(0.01), HOLD);
    assert_eq!(line.view().called, AHEAD_MIN as u64);
}

#[test]
fn before_anything_is_known_of_the_pace_no_time_is_told() {
    let mut line = line();
    let places = draw(&mut line, 100);
    places.iter().for_each(|position| _ = line.contact(second(0.0), *position));
    line.tick(second(0.25), None, HOLD);
    let wait = waiting(line.contact(second(1.0), places[50]));
    assert_eq!((wait.ahead, wait.low, wait.high), (50, Duration::ZERO, Duration::ZERO));
    let mut now = 0.25;
    for position in &places[..20] {
        line.claimed(*position);
        now += 1.0;
        line.tick(second(now), None, HOLD);
    }
    assert!(waiting(line.contact(second(now), places[99])).high > seconds(30.0));
}

#[test]
fn whoever_was_heard_of_once_only_is_called_past_but_keeps_the_place() {
    let mut line = line();
    // The first thousand never come back.
    let dead = draw(&mut line, 1000);
    let alive = draw(&mut line, 100);
    pass(&mut line, 0.0, 5.0, 2.0);
    alive.iter().for_each(|position| _ = line.contact(second(5.0), *position));
    assert_eq!(line.view().called, 19, "for some seconds anybody may still come");
    pass(&mut line, 5.0, 20.0, 2.0);
    assert!(line.contact(second(20.0), alive[9]).is_called());
    assert_eq!(waiting(line.contact(second(20.0), alive[80])).ahead, 80, "only who is there is ahead");
    assert!(line.contact(second(20.0), dead[999]).is_called(), "a late return enters at the head");
}

/// Those who have gone are called past as fast as they come to stand at the head, however many they are.
#[test]
fn as_many_enter_as_may_where_most_of_those_called_have_gone() {
    const RATE: f64 = 4.0;
    let mut line = line();
    let places = draw(&mut line, 6000);
    // All poll, so that they count as there; of five only one goes on.
    places.iter().for_each(|position| _ = line.contact(second(1.0), *position));
    let mut entered = 0;
    for quarter in 4..=400_u32 {
        let now = f64::from(quarter) / 4.0;
        line.tick(second(now), Some(RATE), HOLD);
        if quarter % 8 == 0 {
            // Who is called is at the gate two seconds later, and begins at the pace of all.
            let alive = places.iter().step_by(5).skip(entered);
            let coming: Vec<Position> = alive.copied().take((2.0 * RATE) as usize).collect();
            for position in coming {
                if line.contact(second(now), position).is_called() {
                    line.check_in(second(now), position);
                    assert!(line.claimed(position));
                    entered += 1;
                }
            }
        }
    }
    // The first are called at the pace of a line that nobody has left.
    assert!(entered as f64 >= 0.9 * RATE * 70.0, "{entered} of {} in 100 s", RATE * 100.0);
}

#[test]
fn absence_stops_being_counted_and_loses_nothing() {
    let mut line = line();
    let places = draw(&mut line, 50);
    places.iter().for_each(|position| _ = line.contact(second(1.0), *position));
    pass(&mut line, 1.0, 160.0, 0.01);
    assert!(line.contact(second(160.0), places[40]).is_called(), "everybody else has gone");
    let mut line = self::line();
    let places = draw(&mut line, 200);
    for at in 1..40 {
        pass(&mut line, f64::from(at) * 5.0, f64::from(at) * 5.0 + 5.0, 0.01);
        places
            .iter()
            .skip(1)
            .for_each(|position| _ = line.contact(second(f64::from(at) * 5.0 + 5.0), *position));
    }
    let before = waiting(line.contact(second(205.0), places[190])).ahead;
    assert!(line.contact(second(205.0), places[0]).is_called());
    let after = waiting(line.standing(second(205.0), places[190])).ahead;
    assert_eq!((before, after), (189, 190), "and is back where it was");
}

#[test]
fn a_number_begins_one_session() {
    let mut line = line();
    let places = draw(&mut line, 3);
    assert!(line.claimed(places[1]) && !line.claimed(places[1]));
    assert_eq!(line.view().admitted, 1);
    assert!(line.contact(second(1.0), places[1]).is_called(), "a visitor who comes again is told so");
    assert_eq!(line.view().present, 0, "and is not counted again");
}

#[test]
fn what_is_told_holds_people_going_on_to_give_up_and_nobody_giving_up() {
    let mut line = line();
    let places = draw(&mut line, 2000);
    places.iter().for_each(|position| _ = line.contact(second(0.0), *position));
    // Two begin per second, and a tenth of the others gives up each period, the last first.
    let (mut next, mut left) = (0, 2000.0_f64);
    for at in 0..300 {
        pass(&mut line, f64::from(at), f64::from(at) + 1.0, 2.0);
        (next..next + 2).for_each(|index| _ = line.claimed(places[index]));
        next += 2;
        left *= 1.0 - 0.1 / 75.0;
        if at % 25 == 0 {
            places[next..left as usize]
                .iter()
                .for_each(|position| _ = line.contact(second(f64::from(at)), *position));
        }
    }
    let wait = waiting(line.standing(second(300.0), places[1200]));
    let there = line.estimate.still_there(wait.ahead, line.unheard(second(300.0)));
    let (going_on, nobody) = line.estimate.wait(there, 1.0);
    assert!(going_on < nobody && going_on > nobody / 2.0, "{going_on} {nobody}");
    assert!(wait.low < seconds(going_on) && wait.high > seconds(nobody), "{going_on} {nobody} {wait:?}");
    let view = line.view();
    assert!((view.admitted_per_second - 2.0).abs() < 0.1, "{view:?}");
    // Some of those counted have gone since: between 45 and 120 seconds' worth, by where in the
    // period it is.
    let there = nobody * view.admitted_per_second / wait.ahead as f64;
    let gone = |seconds: f64| suimon_model::real::exp(-view.abandonment_per_second * seconds);
    assert!((gone(120.0)..=gone(45.0)).contains(&there), "{there}: {wait:?}, {view:?}");
}

#[test]
fn whoever_is_near_is_told_to_come_before_the_call_and_whoever_is_far_seldom() {
    assert!((poll_after(22.0, 12.0, 1) - 5.0).abs() < 1e-9, "half of the time until the call");
    assert!((poll_after(0.5, 12.0, 1) - POLL_MIN).abs() < 1e-9);
    for number in 0..1000 {
        let far = poll_after(10_000.0, 12.0, number);
        assert!((45.0..=POLL_MAX).contains(&far), "{far}");
        let middle = poll_after(100.0, 12.0, number);
        assert!((22.5..=27.5).contains(&middle), "{middle}");
    }
}

#[test]
fn a_paused_line_stands_still_and_a_closed_one_is_over_for_all() {
    let mut line = line();
    let places = draw(&mut line, 100);
    line.tick(second(0.25), Some(2.0), HOLD);
    line.command(Command::Pause);
    line.claimed(places[0]);
    pass(&mut line, 0.25, 20.0, 50.0);
    assert_eq!(line.view().called, 19);
    let PositionStatus::Paused(wait) = line.contact(second(20.0), places[50]) else {
        panic!("it stands still")
    };
    assert_eq!((wait.low, wait.poll_after), (Duration::ZERO, seconds(POLL_IDLE)));
    line.command(Command::Move);
    pass(&mut line, 20.0, 21.0, 50.0);
    assert!(line.view().called > 19);
    line.command(Command::Close);
    assert_eq!(line.contact(second(21.0), places[1]), PositionStatus::Closed);
    assert_eq!(line.draw(Lane::Normal), None);
}

#[test]
fn lots_decide_at_the_opening_who_comes_first() {
    let mut line = line();
    line.command(Command::OpenAt { at: second(60.0), lots: Some([5, 6]) });
    let places = draw(&mut line, 1000);
    pass(&mut line, 0.0, 50.0, 2.0);
    places.iter().for_each(|position| _ = line.contact(second(50.0), *position));
    assert_eq!(line.view().called, 0, "nobody is let in before");
    line.tick(second(60.0), Some(2.0), HOLD);
    let late = draw(&mut line, 10);
    pass(&mut line, 60.25, 61.0, 2.0);
    let called: Vec<u64> = places
        .iter()
        .filter(|position| line.standing(second(61.0), **position).is_called())
        .map(|position| position.number)
        .collect();
    assert_eq!(called.len(), 19);
    assert!(called.iter().any(|number| *number > 300), "not those who were first: {called:?}");
    assert_eq!(waiting(line.contact(second(61.0), late[0])).ahead, 1000, "behind all who were there");
    let again = line.clone();
    line.draw_lots([7, 8]);
    assert_eq!(line, again, "lots are drawn once");
}

#[test]
fn a_second_opening_by_lot_leaves_those_of_the_first_where_they_are() {
    let mut line = line();
    let first = draw(&mut line, 200);
    line.draw_lots([5, 6]);
    first.iter().for_each(|position| _ = line.contact(second(1.0), *position));
    pass(&mut line, 1.0, 5.0, 100.0);
    assert!(first.iter().all(|position| line.standing(second(5.0), *position).is_called()));
    first.iter().step_by(2).for_each(|position| assert!(line.claimed(*position)));
    line.command(Command::OpenAt { at: second(60.0), lots: Some([7, 8]) });
    let later = draw(&mut line, 300);
    later.iter().for_each(|position| _ = line.contact(second(50.0), *position));
    pass(&mut line, 50.0, 60.5, 1.0);
    for (index, position) in first.iter().enumerate() {
        assert_eq!(line.is_claimed(*position), index % 2 == 0, "{index}");
        let is_called = line.standing(second(61.0), *position).is_called();
        assert!(is_called, "a visitor who did not come yet enters at the head: {index}");
    }
    assert!(later.iter().all(|position| !line.is_claimed(*position)));
    let ranks: std::collections::BTreeSet<u64> =
        first.iter().chain(&later).map(|position| line.rank(*position).1).collect();
    assert_eq!(ranks.len(), 500, "nobody stands where somebody else does");
    let resumed = Line::resume(Params::default(), second(0.0), &line.saved(), 0);
    assert!(first.iter().chain(&later).all(|position| resumed.rank(*position) == line.rank(*position)));
}

#[test]
fn a_restart_keeps_the_order_and_gives_no_number_twice() {
    let mut line = line();
    let places = draw(&mut line, 100);
    pass(&mut line, 0.0, 2.0, 2.0);
    let saved = line.saved();
    let lost = draw(&mut line, 5);
    let mut line = Line::resume(Params::default(), second(0.0), &saved, 8);
    let fresh = line.draw(Lane::Normal).expect("there is room");
    assert!(fresh.number > lost[4].number);
    pass(&mut line, 0.0, 10.0, 2.0);
    assert!(line.contact(second(10.0), places[9]).is_called());
    // Of the ten called before, the one who came.
    assert_eq!(
        waiting(line.contact(second(10.0), places[60])).ahead,
        42,
        "visitors who were not called are taken to be there"
    );
    assert_eq!(
        waiting(line.contact(second(10.0), lost[4])).ahead,
        82,
        "those who drew after the last save, too, once heard of"
    );
    // Nobody else is heard of for two periods.
    for at in 1..30 {
        line.contact(second(f64::from(at) * 10.0), places[60]);
        pass(&mut line, f64::from(at) * 10.0, f64::from(at) * 10.0 + 10.0, 0.01);
    }
    assert!(line.contact(second(300.0), places[60]).is_called());
}

#[test]
fn after_a_takeover_those_who_are_back_wait_a_moment_and_no_longer_for_those_who_are_not() {
    let mut line = line();
    let places = draw(&mut line, 10);
    all_ask(&mut line, &places, 0.5);
    pass(&mut line, 0.5, 2.0, 2.0);
    let resumed = Line::resume(Params::default(), second(0.0), &line.saved(), 0);
    let waits = |line: &Line, at: f64| line.gathers(second(at), line.rank(places[3]));
    assert!(waits(&resumed, 0.5) && waits(&resumed, 4.5) && !waits(&resumed, 5.5));
    let taken_over = resumed.taken_over(second(0.0));
    assert!(waits(&taken_over, 0.5) && !waits(&taken_over, 1.5));
}

/// Has everybody ask at `at`.
fn all_ask(line: &mut Line, places: &[Position], at: f64) {
    places.iter().for_each(|position| _ = line.contact(second(at), *position));
}

#[test]
fn numbers_skipped_at_a_crash_are_nobodys_however_often_it_happens() {
    const SKIPPED: u64 = 100_000;
    let mut line = line();
    let places = draw(&mut line, 200);
    pass(&mut line, 0.0, 4.0, 1.0);
    all_ask(&mut line, &places, 4.0);
    pass(&mut line, 4.0, 12.0, 1.0);
    let mut crashed_with = Vec::new();
    for start in 0..10 {
        let at = 20.0 * f64::from(start) + 20.0;
        let saved = line.saved();
        crashed_with.extend(draw(&mut line, 1));
        line = Line::resume(Params::default(), second(at), &saved, SKIPPED);
        let view = line.view();
        // Of each crash before, one that was written and one that was not.
        let known = 2 * (crashed_with.len() as u64 - 1);
        assert_eq!((view.issued, view.present, line.waiting()), (200 + known, 200, 200), "start {start}");
        // Drawn when nothing was written any more: present as soon as it is heard of, in its place.
        let lost = *crashed_with.last().unwrap();
        assert_eq!(waiting(line.contact(second(at), lost)).ahead, 200, "start {start}");
        assert_eq!(line.view().present, 201);
        line.left(lost);
        let after = line.draw(Lane::Normal).expect("there is room");
        line.left(after);
        all_ask(&mut line, &places, at + 1.0);
        pass(&mut line, at, at + 15.0, 0.1);
    }
    let at = 300.0;
    for (index, position) in places.iter().enumerate().skip(line.view().called as usize) {
        assert_eq!(waiting(line.contact(second(at), *position)).ahead, index as u64, "the order is kept");
    }
    let fresh = line.draw(Lane::Normal).expect("there is room");
    assert_eq!(waiting(line.contact(second(at), fresh)).ahead, 200);
    assert_eq!((line.view().issued, line.view().present), (221, 201));
}

#[test]
fn once_everybody_has_gone_a_restart_leaves_nobody_in_line() {
    let mut line = line();
    let places = draw(&mut line, 300);
    pass(&mut line, 0.0, 4.0, 1.0);
    all_ask(&mut line, &places, 4.0);
    // They have gone; the gateway stops long after, and once more in between.
    pass(&mut line, 4.0, 200.0, 1.0);
    for skipped in [0, 100_000, 100_000, 0] {
        line = Line::resume(Params::default(), second(200.0), &line.saved(), skipped);
        assert_eq!((line.view().present, line.waiting(), line.has_waiters()), (0, 0, false));
        line.tick(second(200.25), Some(1.0), HOLD);
        let fresh = line.draw(Lane::Normal).expect("there is room");
        assert!(line.contact(second(200.25), fresh).is_called());
        line.left(fresh);
    }
}

#[test]
fn whoever_does_not_come_back_after_a_restart_is_waited_for_no_longer_than_a_page_is_silent() {
    let mut line = line();
    let places = draw(&mut line, 300);
    pass(&mut line, 0.0, 4.0, 1.0);
    all_ask(&mut line, &places[..200], 4.0);
    pass(&mut line, 4.0, 12.0, 1.0);
    let drew = draw(&mut line, 50);
    line = Line::resume(Params::default(), second(12.0), &line.saved(), 100_000);
    assert_eq!(line.view().present, 250, "those who had just drawn, too");
    let fresh = line.draw(Lane::Normal).expect("there is room");
    assert_eq!(waiting(line.contact(second(12.0), fresh)).ahead, 250);
    pass(&mut line, 12.0, 28.0, 0.1);
    assert_eq!(line.view().present, 201, "whose page asks within seconds is waited for no longer");
    pass(&mut line, 28.0, 12.0 + PERIOD.as_secs_f64() + 1.0, 0.1);
    assert!(line.contact(second(90.0), fresh).is_called(), "nobody else was heard of");
    assert!(line.contact(second(90.0), places[199]).is_called(), "no place is lost by that");
    assert!(line.contact(second(90.0), drew[0]).is_called());
}

#[test]
fn however_many_gaps_there_are_what_is_written_of_them_is_bounded() {
    let mut line = line();
    let places = draw(&mut line, 40_000);
    pass(&mut line, 0.0, 4.0, 0.0);
    let heard: Vec<Position> = places.iter().copied().filter(|position| position.number % 3 == 0).collect();
    all_ask(&mut line, &heard, 4.0);
    pass(&mut line, 4.0, 12.0, 0.0);
    let saved = line.saved();
    let reached = &saved.lanes[Lane::Normal.index()];
    assert!(reached.there.len() <= SavedLane::THERE_MAX, "{}", reached.there.len());
    let resumed = Line::resume(Params::default(), second(0.0), &saved, 100_000);
    let present = resumed.view().present;
    assert!((13_000..=40_000).contains(&present), "{present}");
}

#[test]
fn while_the_application_is_away_nobody_is_called_and_no_turn_is_lost() {
    let mut line = line();
    let places = draw(&mut line, 500);
    pass(&mut line, 0.0, 4.0, 2.0);
    all_ask(&mut line, &places, 4.0);
    pass(&mut line, 4.0, 14.0, 2.0);
    (0..10).for_each(|index| assert!(line.claimed(places[index])));
    pass(&mut line, 14.0, 15.0, 2.0);
    let (called, known) = (line.view().called, line.view().admitted_per_second);
    let before = waiting(line.contact(second(15.0), places[300]));
    line.application(false);
    for at in 15..75 {
        all_ask(&mut line, &places[10..], f64::from(at));
        pass(&mut line, f64::from(at), f64::from(at) + 1.0, 2.0);
        assert_eq!((line.view().called, line.view().admitted_per_second), (called, known), "{at}");
        let PositionStatus::ApplicationDown(wait) = line.contact(second(f64::from(at)), places[300]) else {
            panic!("{at}")
        };
        assert_eq!((wait.ahead, wait.low, wait.high), (before.ahead, Duration::ZERO, Duration::ZERO));
        let PositionStatus::ApplicationDown(first) = line.contact(second(f64::from(at)), places[10]) else {
            panic!("{at}")
        };
        assert_eq!((first.ahead, first.poll_after), (0, seconds(POLL_MIN)), "a called visitor polls often");
    }
    line.application(true);
    assert!(line.contact(second(75.0), places[10]).is_called());
    assert!(line.view().called <= called + 19, "no more are called than come at the pace");
    let after = waiting(line.contact(second(75.0), places[300]));
    assert!(after.ahead <= before.ahead && after.high >= before.high.mul_f64(0.9), "{after:?} {before:?}");
}

#[test]
fn an_operators_word_is_told_while_the_application_is_away() {
    let mut line = line();
    let position = draw(&mut line, 1)[0];
    line.application(false);
    assert!(matches!(line.standing(second(1.0), position), PositionStatus::ApplicationDown(_)));
    line.command(Command::Pause);
    assert!(matches!(line.standing(second(1.0), position), PositionStatus::Paused(_)));
    line.command(Command::OpenAt { at: second(9.0), lots: None });
    assert!(matches!(line.standing(second(1.0), position), PositionStatus::Opening(..)));
    line.command(Command::Close);
    assert_eq!(line.standing(second(1.0), position), PositionStatus::Closed);
}

#[test]
fn lanes_share_what_is_called_and_the_normal_one_has_its_floor() {
    let mut line = line();
    (0..1000).for_each(|_| _ = line.draw(Lane::Invited));
    draw(&mut line, 1000);
    line.tick(second(0.25), Some(20.0), HOLD);
    let saved = line.saved();
    let called = |lane: Lane| saved.lanes[lane.index()].called;
    assert_eq!((called(Lane::Invited), called(Lane::Normal)), (55, 136), "two to five of 190, rounded up");
}

#[derive(Clone, Debug)]
enum Step {
    Draw(u8),
    Contact(usize),
    Claim(usize),
    Leave(usize),
    Pass(f64, f64),
    Pause(bool),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u8..50).prop_map(Step::Draw),
        8 => any::<usize>().prop_map(Step::Contact),
        4 => any::<usize>().prop_map(Step::Claim),
        1 => any::<usize>().prop_map(Step::Leave),
        4 => (0.1..100.0, 0.0..20.0).prop_map(|(seconds, rate)| Step::Pass(seconds, rate)),
        1 => any::<bool>().prop_map(Step::Pause),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    /// Whatever happens: who was called stays called, who is earlier is called no later, and what
    /// was put away comes back as it was.
    #[test]
    fn nobody_called_is_uncalled_and_nobody_is_passed_over(steps in prop::collection::vec(step(), 0..60)) {
        use suimon_model::persist::{Reader, Persist as _, Writer};
        let (mut line, mut now, mut places) = (line(), 0.0, Vec::new());
        let mut called = 0;
        for step in steps {
            let pick = |index: usize| places.get(index % places.len().max(1)).copied();
            match step {
                Step::Draw(count) => places.extend(draw(&mut line, u64::from(count))),
                Step::Contact(index) => {
                    if let Some(position) = pick(index) {
                        let is_called = line.contact(second(now), position).is_called();
                        let called = line.saved().lanes[Lane::Normal.index()].called;
                        prop_assert_eq!(is_called, line.is_moving() && position.number < called);
                    }
                }
                // Only who was called is admitted by a gate.
                Step::Claim(index) => {
                    let called = line.saved().lanes[Lane::Normal.index()].called;
                    if let Some(position) = pick(index).filter(|position| position.number < called) {
                        line.claimed(position);
                    }
                }
                Step::Leave(index) => {
                    if let Some(position) = pick(index) {
                        line.left(position);
                    }
                }
                Step::Pass(for_seconds, rate) => {
                    pass(&mut line, now, now + for_seconds, rate);
                    now += for_seconds;
                }
                Step::Pause(is_paused) => line.command(if is_paused { Command::Pause } else { Command::Move }),
                Step::Restart => line = Line::resume(Params::default(), second(now), &line.saved(), 3),
            }
            let view = line.view();
            prop_assert!(view.called >= called && view.called <= view.issued, "{view:?}, called before: {called}");
            prop_assert!(view.expected <= view.called);
            called = view.called;
            let mut out = Writer::default();
            line.save(&mut out);
            prop_assert_eq!(Line::load(&mut Reader::new(&out.into_bytes())), Ok(line.clone()));
        }
    }
}

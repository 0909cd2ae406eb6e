use super::*;
use crate::lane::Position;
use crate::line::Params;
use suimon_model::{Instant, seconds};
use suimon_sharing::{Block, GatewayId, Numbers as Drawn};

const HOLD: f64 = 5.0;

fn second(n: f64) -> Instant {
    Instant::ORIGIN + seconds(n)
}

/// A line of one of two gateways, which may draw from `from` on.
fn line(me: u64, from: u64) -> Line {
    let mut line = Line::new(Params::default(), second(0.0));
    line.begin_sharing();
    let mut numbers = Drawn::default();
    numbers.handle_block(Block { from, to: from + 64 });
    let members = [GatewayId(1), GatewayId(2)];
    line.handle_allotment(
        Lane::Normal,
        numbers.allotment(second(0.0), 1_800_000_000, GatewayId(me), &members),
    );
    line
}

fn draw(line: &mut Line, count: u64) -> Vec<Position> {
    (0..count).map(|_| line.draw(Lane::Normal).expect("there is room")).collect()
}

fn exchange(one: &mut Line, other: &mut Line, now: f64, rate: f64) {
    for line in [&mut *one, &mut *other] {
        line.tick(second(now), Some(rate / 2.0), HOLD);
    }
    let (of_one, of_other) = (one.lane_records(), other.lane_records());
    one.handle_elsewhere(&part(of_other), Some(rate));
    other.handle_elsewhere(&part(of_one), Some(rate));
}

fn part(lanes_elsewhere: Vec<LaneRecord>) -> KindPart {
    KindPart { portion: 0.5, calls: 1.0, lanes_elsewhere, ..KindPart::default() }
}

fn called(line: &Line, places: &[Position]) -> usize {
    places.iter().filter(|place| line.standing(second(1.0), **place).is_called()).count()
}

#[test]
fn nothing_is_drawn_before_there_are_numbers() {
    let mut line = Line::new(Params::default(), second(0.0));
    line.begin_sharing();
    assert_eq!(line.draw(Lane::Normal), None);
}

#[test]
fn both_call_up_to_one_mark_whoever_has_the_earlier_numbers() {
    let (mut one, mut other) = (line(1, 0), line(2, 64));
    let (early, late) = (draw(&mut one, 30), draw(&mut other, 30));
    for step in 1..=8 {
        exchange(&mut one, &mut other, f64::from(step) * 0.25, 2.0);
    }
    let (of_early, of_late) = (called(&one, &early), called(&other, &late));
    assert!((15..30).contains(&of_early), "nine and a half seconds' worth: {of_early}");
    assert_eq!(of_late, 0, "nobody who drew later, at a gateway with as many people");
    early.iter().for_each(|place| _ = one.claimed(*place));
    for step in 9..=16 {
        exchange(&mut one, &mut other, f64::from(step) * 0.25, 2.0);
    }
    assert!(called(&other, &late) > 10, "now it is their turn");
}

#[test]
fn a_line_that_stands_still_at_one_gateway_moves_at_the_others() {
    let (mut one, mut other) = (line(1, 0), line(2, 64));
    let (early, late) = (draw(&mut one, 50), draw(&mut other, 30));
    one.application(false);
    let mut before = 0;
    for step in 1..=60 {
        exchange(&mut one, &mut other, f64::from(step) * 0.25, 2.0);
        let called = called(&other, &late);
        late[before..called].iter().for_each(|place| _ = other.claimed(*place));
        before = called;
    }
    assert_eq!(called(&one, &early), 0, "where it stands nobody is called");
    assert_eq!(before, 30, "and elsewhere nobody waits for them");

    early.iter().for_each(|place| _ = one.contact(second(15.0), *place));
    one.application(true);
    let further = draw(&mut other, 20);
    for step in 61..=68 {
        exchange(&mut one, &mut other, f64::from(step) * 0.25, 2.0);
    }
    let (of_early, of_further) = (called(&one, &early), called(&other, &further));
    assert!((10..50).contains(&of_early), "at the pace of all, not at once: {of_early}");
    assert_eq!(of_further, 0, "they are the first then");
}

#[test]
fn a_visitor_who_comes_from_another_gateway_keeps_the_place() {
    let (mut one, mut other) = (line(1, 0), line(2, 64));
    let (early, late) = (draw(&mut one, 30), draw(&mut other, 30));
    // The first gateway dies, and its visitors come to the second.
    other.tick(second(1.0), Some(0.1), HOLD);
    early.iter().for_each(|place| _ = other.contact(second(1.0), *place));
    other.handle_elsewhere(&part(vec![]), Some(0.1));
    assert!(other.standing(second(1.0), early[0]).is_called(), "the first of all");
    assert!(!other.is_claimed(early[29]) && !other.standing(second(1.0), early[29]).is_called());
    assert_eq!(called(&other, &late), 0, "those who drew later stand behind");
    assert_eq!(other.waiting(), 60, "all of them are there");
}

#[test]
fn people_at_other_gateways_are_shown_as_people_ahead() {
    let (mut one, mut other) = (line(1, 0), line(2, 64));
    draw(&mut one, 40);
    let late = draw(&mut other, 1);
    exchange(&mut one, &mut other, 0.25, 0.2);
    exchange(&mut one, &mut other, 0.5, 0.2);
    match other.standing(second(0.5), late[0]) {
        PositionStatus::Waiting(wait) => assert!((30..=40).contains(&wait.ahead), "{wait:?}"),
        status => panic!("{status:?}"),
    }
}

#[test]
fn a_number_that_was_drawn_and_never_polled_is_soon_nobodys() {
    let (mut one, mut other) = (line(1, 0), line(2, 64));
    draw(&mut one, 10);
    exchange(&mut one, &mut other, 0.25, 0.0);
    assert_eq!(one.waiting(), 10);
    one.tick(second(9.0), Some(0.0), HOLD);
    assert_eq!(one.waiting(), 0, "a page polls within seconds");
}

/// The engine is lost while most people wait at the other gateway.
#[test]
fn one_that_hears_nobody_goes_on_at_the_pace_of_all_and_does_not_call_the_end_of_the_line() {
    let (mut one, mut other) = (line(1, 0), line(2, 64));
    let (early, late) = (draw(&mut one, 60), draw(&mut other, 4));
    exchange(&mut one, &mut other, 0.25, 1.0);
    early.iter().for_each(|place| _ = one.contact(second(0.25), *place));
    late.iter().for_each(|place| _ = other.contact(second(0.25), *place));
    let part = KindPart { lanes_unseen: one.lane_records(), calls: 0.5, portion: 0.5, ..KindPart::default() };
    for quarter in 2..=40 {
        other.tick(second(f64::from(quarter) * 0.25), Some(0.5), HOLD);
        other.handle_elsewhere(&part, Some(1.0));
    }
    assert_eq!(called(&other, &late), 0, "nearly all others stand before them");
    let passed = called(&other, &early);
    assert!((10..=40).contains(&passed), "those who come from there meanwhile, in their turn: {passed}");
    // They hear of each other again: nobody is called out of turn.
    for quarter in 41..=44 {
        exchange(&mut one, &mut other, f64::from(quarter) * 0.25, 1.0);
    }
    let (early, late) = (called(&one, &early), called(&other, &late));
    assert!(early < 50 && late == 0, "{early} and {late}");
}

//! Shares of the work, and who is taken to have become slower by itself.

use super::*;

#[test]
fn a_heavy_page_is_not_taken_for_light_before_its_share_was_measured() {
    let mut law = Paired::new(2);
    let mut meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
    for (route, meter) in meters.iter_mut().enumerate() {
        law.add_route(Instant::ORIGIN, None);
        law.routes[route].slow_start = None;
        law.routes[route].service.fold(0.4);
        meter.load(Instant::ORIGIN, 2, 10);
    }
    let mut out = vec![];
    for quarter in 1..=40 {
        meters.iter_mut().for_each(|meter| meter.end(0.4, true));
        law.on_tick(Instant::ORIGIN + seconds(f64::from(quarter) * 0.25), &meters, &mut out);
    }
    assert!(out.iter().all(|record| record.reason != Reason::Headroom), "{out:?}");
    let share = law.routes[0].share;
    assert!((share - 0.5).abs() < 0.01, "each does half of the work: {share}");
}

#[test]
fn a_route_nobody_asks_for_keeps_the_share_it_had() {
    let mut law = Paired::new(2);
    let mut meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
    (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
    law.routes.iter_mut().for_each(|route| route.service.fold(0.1));
    let mut play = |law: &mut Paired, quarters: std::ops::Range<u32>, asked: &[usize]| {
        for quarter in quarters {
            asked.iter().for_each(|route| meters[*route].end(0.1, true));
            law.on_tick(Instant::ORIGIN + seconds(f64::from(quarter) * 0.25), &meters, &mut vec![]);
        }
        law.routes[1].share
    };
    assert!((play(&mut law, 1..80, &[0]) - 0.0).abs() < 1e-9 && law.routes[1].share_looks == 0);
    let share = play(&mut law, 80..160, &[0, 1]);
    assert!((share - 0.5).abs() < 0.05, "measured from its first request on: {share}");
    let before = law.routes[1].share;
    assert!((play(&mut law, 161..400, &[0]) - before).abs() < 0.02, "an idle page is as heavy as it was");
    assert!(law.routes[1].rate < 0.3, "but nobody asks for it: {}", law.routes[1].rate);
    play(&mut law, 400..640, &[]);
    assert!(law.routes[0].rate < 0.3, "nor for the other, by and by: {}", law.routes[0].rate);
}

#[test]
fn shares_are_measured_on_a_site_where_there_is_always_a_young_route() {
    let mut law = Paired::new(2);
    let mut meters = vec![];
    for quarter in 0..40 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        if quarter % 4 == 0 {
            law.add_route(now, None);
            meters.push(Meter::new(now));
        }
        law.routes[0].service.fold(0.1);
        meters[0].end(0.1, true);
        law.on_tick(now, &meters, &mut vec![]);
    }
    assert!(law.routes[0].share > 0.99, "{}", law.routes[0].share);
}

/// Returns whether a page of 50 ms that now takes a second, at a limit of 2, is taken for one that
/// has become slower by itself, beside a page that goes on taking `beside` seconds; `known`: which
/// was seen before; `newest`: what the last request took, seconds.
fn is_taken_for_slower(beside: f64, known: bool, newest: f64) -> bool {
    let mut law = Paired::new(2);
    let mut meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
    (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
    let mut play = |law: &mut Paired, quarters: std::ops::Range<u32>, took: [f64; 2], asked: &[usize]| {
        for quarter in quarters {
            for route in asked {
                (0..2).for_each(|_| meters[*route].end(took[*route], true));
            }
            law.on_tick(Instant::ORIGIN + seconds(f64::from(quarter) * 0.25), &meters, &mut vec![]);
        }
    };
    play(&mut law, 1..40, [0.05, beside], if known { &[0, 1] } else { &[0] });
    law.routes[0].newest_seconds = newest;
    play(&mut law, 40..49, [1.0, beside], &[0, 1]);
    law.routes[0].service_min > 0.5
}

#[test]
fn a_page_has_become_slower_by_itself_where_short_ones_say_that_the_machine_has_not() {
    assert!(is_taken_for_slower(0.05, true, 1.0));
    assert!(!is_taken_for_slower(5.0, true, 1.0), "a page that waits for others does not notice a thrash");
    assert!(
        !is_taken_for_slower(0.05, false, 1.0),
        "a request never seen before has nothing to compare with"
    );
}

#[test]
fn a_page_that_stood_still_for_a_moment_has_not_become_slower() {
    assert!(!is_taken_for_slower(0.05, true, 0.06));
}

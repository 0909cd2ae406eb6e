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

/// A page of 50 ms, at a limit of 2, beside another one.
struct Pages {
    law: Paired,
    meters: [Meter; 2],
    quarter: u32,
}

/// So many requests end at once, each after so many seconds, with what was asked for or at once declined.
type Ends = (u32, f64, bool);

impl Pages {
    fn new() -> Self {
        let mut law = Paired::new(2);
        (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
        Pages { law, meters: [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)], quarter: 0 }
    }

    /// Plays quarters of a second, in each of which these requests end.
    fn play(&mut self, quarters: u32, ends: [&[Ends]; 2]) {
        for _ in 0..quarters {
            self.quarter += 1;
            let now = Instant::ORIGIN + seconds(f64::from(self.quarter) * 0.25);
            for (route, ends) in (0u32..).zip(ends) {
                for (count, service, says_work) in ends {
                    (0..*count).for_each(|_| self.end(now, RouteId(route), *service, *says_work));
                }
            }
            self.law.on_tick(now, &self.meters, &mut vec![]);
        }
    }

    fn end(&mut self, now: Instant, route: RouteId, service: f64, says_work: bool) {
        let meter = &mut self.meters[route.index()];
        meter.end(service, true);
        if says_work {
            meter.answer(service);
        }
        let end = RequestEnd { route, request: RequestId(0), service, progress: true, says_work };
        self.law.on_end(now, &end, &self.meters, &mut vec![]);
    }

    /// Returns whether the page is searched as one that has become slower by itself.
    fn is_taken_for_slower(&self) -> bool {
        let route = &self.law.routes[0];
        route.slower_from.is_some() && route.slow_start.is_some()
    }
}

/// Returns whether the page is taken for slower where it takes a second now, beside one that takes `beside` seconds;
/// `known`: which was seen before.
fn is_taken_for_slower(beside: f64, known: bool) -> bool {
    let mut pages = Pages::new();
    let beside: &[Ends] = &[(2, beside, true)];
    pages.play(39, [&[(2, 0.05, true)], if known { beside } else { &[] }]);
    pages.play(9, [&[(2, 1.0, true)], beside]);
    pages.is_taken_for_slower()
}

#[test]
fn a_page_has_become_slower_by_itself_where_short_ones_say_that_the_machine_has_not() {
    assert!(is_taken_for_slower(0.05, true));
    assert!(!is_taken_for_slower(5.0, true), "a page that waits for others does not notice a thrash");
    assert!(!is_taken_for_slower(0.05, false), "a request never seen before has nothing to compare with");
}

#[test]
fn a_page_that_stood_still_for_a_moment_has_not_become_slower() {
    let quick: [&[Ends]; 2] = [&[(2, 0.05, true)]; 2];
    let mut pages = Pages::new();
    pages.play(40, quick);
    pages.play(4, [&[(2, 2.0, true)], &[(2, 0.05, true)]]);
    pages.play(4, quick);
    assert!(!pages.is_taken_for_slower(), "the look falls behind the next answers");
}

#[test]
fn the_search_of_a_standstill_that_was_taken_for_slowness_ends_when_the_page_is_quick_again() {
    let quick: [&[Ends]; 2] = [&[(2, 0.05, true)]; 2];
    let mut pages = Pages::new();
    pages.play(39, quick);
    let at_ease: [&[Ends]; 2] = [&[(2, 2.0, true)], &[(2, 0.05, true)]];
    (0..9).for_each(|_| {
        if !pages.is_taken_for_slower() {
            pages.play(1, at_ease);
        }
    });
    assert!(pages.is_taken_for_slower(), "the look falls between the standstill and the next answer");
    pages.play(16, quick);
    assert!(pages.law.routes[0].slow_start.is_none());
    // It is noticed again if it is slower in earnest.
    pages.play(16, at_ease);
    assert!(pages.is_taken_for_slower());
}

#[test]
fn quick_refusals_do_not_make_a_page_seem_quick() {
    let quick: [&[Ends]; 2] = [&[(2, 0.05, true)]; 2];
    let refused: [&[Ends]; 2] = [&[(2, 0.05, true), (50, 0.001, false)], &[(2, 0.05, true)]];
    let mut pages = Pages::new();
    pages.play(39, quick);
    pages.play(8, refused);
    pages.play(16, quick);
    assert!(!pages.is_taken_for_slower(), "it is as quick as ever");
    // Nor do they hide that it is slow.
    pages.play(16, [&[(2, 1.0, true), (50, 0.001, false)], &[(2, 0.05, true)]]);
    assert!(pages.is_taken_for_slower());
}

//! Room that is given by the time, without a trial.

use super::*;

/// Ticks through `seconds` with every slot of the only route in use, somebody waiting, and nothing
/// ending.
fn stay_full(law: &mut Paired, meter: &mut Meter, from: f64, to: f64) -> Vec<Record> {
    let mut out = vec![];
    for quarter in (4.0 * from) as u32 + 1..=(4.0 * to) as u32 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        let limit = law.limit(ROUTE);
        for id in law.routes[0].in_service.len() as u64..u64::from(limit) {
            law.on_start(now, ROUTE, RequestId(id), std::slice::from_ref(meter));
        }
        meter.load(now, limit as usize, 10);
        law.on_tick(now + seconds(0.2), std::slice::from_ref(meter), &mut out);
    }
    out
}

#[test]
fn a_page_of_which_nothing_has_ended_is_given_room_while_nobody_else_could_suffer() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(60.0);
    let mut meter = Meter::new(Instant::ORIGIN);
    stay_full(&mut law, &mut meter, 0.0, 4.0);
    let limit = law.limit(ROUTE);
    assert!((16..=256).contains(&limit), "2 doubled about every half second: {limit}");
    // Beside a route whose answers are on the way, it is taken to be in their way once there are
    // more than cores.
    let beside = |others: u64| {
        let mut law = Paired::new(2);
        (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
        answered_in(&mut law.routes[1], 0.1);
        let mut meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
        (0..2).for_each(|id| law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), &meters));
        (2..2 + others).for_each(|id| law.on_start(Instant::ORIGIN, RouteId(1), RequestId(id), &meters));
        meters[0].load(Instant::ORIGIN, 2, 10);
        (1..=16).for_each(|quarter| {
            law.on_tick(Instant::ORIGIN + seconds(f64::from(quarter) * 0.25), &meters, &mut vec![]);
        });
        law.limit(ROUTE)
    };
    assert_eq!(beside(1), 2, "nobody says that they do not suffer");
    assert_eq!(beside(0), 4, "two on two cores are in nobody's way");
}

#[test]
fn a_trial_is_not_ended_for_the_room_that_a_very_long_page_is_given_by_the_time() {
    let room_at = |trial: Option<Trial>| {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        law.set_patience(120.0);
        (law.routes[0].base, law.routes[0].limit) = (8, 8);
        law.routes[0].slow_start = None;
        answered_in(&mut law.routes[0], 8.0);
        law.routes[0].strain_elsewhere = Some(1.0);
        law.trial = trial;
        let mut meter = Meter::new(Instant::ORIGIN);
        meter.load(Instant::ORIGIN, 8, 10);
        let mut out = vec![];
        (1..40).for_each(|second| {
            law.raise(Instant::ORIGIN + seconds(f64::from(second)), ROUTE, &meter, true, &mut out);
        });
        (law.limit(ROUTE), law.probing())
    };
    assert_eq!(
        room_at(Some(Trial::new(Instant::ORIGIN, ROUTE, 8, 4, vec![8.0], vec![1.0]))),
        (8, Some(ROUTE))
    );
    let (limit, _) = room_at(None);
    assert!(limit > 8, "else it is given: {limit}");
}

/// Returns the law of 4 cores with a page of 20 s at the limit 64, whose search is over, beside a
/// short one; and the meters, with somebody waiting for it.
fn poll_beside_a_short_page() -> (Paired, [Meter; 2]) {
    let mut law = Paired::new(4);
    (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
    law.set_patience(120.0);
    let poll = &mut law.routes[0];
    (poll.base, poll.limit, poll.slow_start) = (64, 64, None);
    (poll.share, poll.pressure, poll.binding_ticks) = (0.9, 1.0, 10);
    // It takes no longer in company of 64 than in that of four: it waits for others.
    [4, 16, 64].into_iter().for_each(|company| (0..10).for_each(|_| poll.times.fold(company, 20.0)));
    poll.service.fold(20.0);
    let mut meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
    (0..64).for_each(|id| law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), &meters));
    meters[0].load(Instant::ORIGIN, 64, 10);
    (law, meters)
}

#[test]
fn a_very_long_page_that_waits_for_others_is_given_room_by_the_time_and_not_tried() {
    let (mut law, meters) = poll_beside_a_short_page();
    let mut out = vec![];
    for quarter in 1..=4 * 30 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, &meters, &mut out);
        assert!(law.probing().is_none(), "a trial of it would take minutes");
    }
    assert!(law.limit(ROUTE) > 64, "nobody says that it hurts: {}", law.limit(ROUTE));
}

#[test]
fn a_very_long_page_that_has_become_longer_is_tried() {
    let (mut law, meters) = poll_beside_a_short_page();
    (0..20).for_each(|_| law.routes[0].times.fold(128, 60.0));
    law.on_tick(Instant::ORIGIN + seconds(0.25), &meters, &mut vec![]);
    assert_eq!(law.probing(), Some(ROUTE), "it may be in its own way");
}

#[test]
fn a_very_long_page_gets_no_more_room_while_short_pages_suffer_that_were_never_alone() {
    let (mut law, mut meters) = poll_beside_a_short_page();
    let short = &mut law.routes[1];
    (0..10).for_each(|_| short.times.fold(64, 0.02));
    short.service.fold(0.02);
    for quarter in 1..=4 * 30 {
        (0..4).for_each(|_| meters[1].end(0.1, true));
        law.on_tick(Instant::ORIGIN + seconds(f64::from(quarter) * 0.25), &meters, &mut vec![]);
        assert!(law.limit(ROUTE) <= 64, "they take five times as long");
    }
}

#[test]
fn after_a_long_rest_a_search_begins_again_as_soon_as_the_first_time() {
    let mut route = route_at(32);
    let mut now = Instant::ORIGIN;
    for expected in [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0] {
        route.retried(now);
        assert!((route.retry_at.secs_since(now) - expected).abs() < 1e-6, "{expected}: {:?}", route.retry_at);
        now = route.retry_at;
    }
    now += seconds(601.0);
    route.forget_long_rest(now);
    route.retried(now);
    assert!((route.retry_at.secs_since(now) - 30.0).abs() < 1e-6);
}

#[test]
fn a_hundred_long_polls_are_no_crowd() {
    let (mut law, _) = poll_beside_a_short_page();
    law.weigh();
    assert!((law.inside() - 4.0).abs() < 0.01, "64 at ease on 4 cores ask for a 16th each: {}", law.inside());
    law.doubted_until = Some(Instant::ORIGIN + seconds(60.0));
    law.weigh();
    assert!((law.inside() - 64.0).abs() < 0.01, "where the cores are doubted they may all compute");
}

#[test]
fn short_pages_that_were_never_alone_tell_a_long_one_whether_they_suffer() {
    let raised = |now: f64| {
        let mut law = Paired::new(4);
        (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
        let short = &mut law.routes[1];
        (0..10).for_each(|_| short.times.fold(32, 0.02));
        short.service.fold(0.02);
        let mut meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
        (0..32).for_each(|id| law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), &meters));
        (law.routes[0].base, law.routes[0].limit) = (32, 32);
        meters[0].load(Instant::ORIGIN, 32, 10);
        for quarter in 1..=20 {
            (0..4).for_each(|_| meters[1].end(now, true));
            law.on_tick(Instant::ORIGIN + seconds(f64::from(quarter) * 0.25), &meters, &mut vec![]);
        }
        law.limit(ROUTE) > 32
    };
    assert!(raised(0.021), "they take what they took");
    assert!(!raised(0.1), "five times as long");
}

#[test]
fn a_light_route_of_quick_requests_is_given_room_though_nobody_waits_between_two_bursts() {
    let limit = |service: f64| {
        let mut law = Paired::new(4);
        law.add_route(Instant::ORIGIN, None);
        let quick = &mut law.routes[0];
        (quick.base, quick.limit, quick.slow_start) = (10, 10, None);
        quick.service.fold(service);
        quick.rate_max = 20_000.0;
        let mut meter = Meter::new(Instant::ORIGIN);
        for tick in 0..40 {
            let burst = Instant::ORIGIN + seconds(f64::from(tick) * 0.25);
            meter.load(burst, 10, 20);
            (0..40).for_each(|_| meter.end(service, true));
            // Of each quarter of a second somebody waits for 0.15 s.
            meter.load(burst + seconds(0.15), 0, 0);
            law.on_tick(burst + seconds(0.25), std::slice::from_ref(&meter), &mut vec![]);
            // Others do most of the work.
            law.routes[0].share = 0.0;
        }
        law.limit(ROUTE)
    };
    assert!(limit(0.000_1) > 18, "within ten seconds: {}", limit(0.000_1));
    assert_eq!(limit(0.004), 10, "longer ones are not waited for any more, as far as is seen");
}

/// Returns whether a page of 20 s in its search, full at the limit 64 on 4 cores for ten seconds,
/// is given room by the time; it was seen to take no longer in the company of `seen`, and the
/// others say what `strain` does.
fn is_raised_in_its_search(seen: u32, strain: [Option<f64>; 2]) -> bool {
    let (mut law, meters) = poll_beside_a_short_page();
    let poll = &mut law.routes[0];
    poll.times.forget();
    (0..).map(|power| 1 << power).take_while(|company| *company <= seen).for_each(|company| {
        (0..10).for_each(|_| poll.times.fold(company, 20.0));
    });
    poll.slow_start = Some(slow_start::SlowStart::new(meters[0].read(Instant::ORIGIN)));
    [poll.strain_elsewhere, poll.ease_elsewhere] = strain;
    for second in [0.0, 10.0] {
        law.raise(Instant::ORIGIN + seconds(second), ROUTE, &meters[0], true, &mut vec![]);
    }
    law.limit(ROUTE) > 64
}

#[test]
fn where_nobody_is_there_to_suffer_a_page_is_given_room_as_far_as_it_was_seen_to_wait() {
    let nobody = [None; 2];
    assert!(is_raised_in_its_search(64, nobody) && is_raised_in_its_search(32, nobody));
    assert!(!is_raised_in_its_search(16, nobody), "64 is further than 16 have shown");
    assert!(!is_raised_in_its_search(4, nobody), "with a core each nothing was shown");
}

#[test]
fn who_was_never_alone_says_too_little_of_strain_and_never_too_much() {
    assert!(is_raised_in_its_search(64, [Some(1.0), Some(1.2)]));
    assert!(
        !is_raised_in_its_search(64, [Some(0.6), Some(9.0)]),
        "a few who were quick do not outvote the rest"
    );
    assert!(!is_raised_in_its_search(64, [Some(9.0), Some(1.2)]));
}

/// Returns the limit after four seconds with every slot in use and nothing ending, at a route where
/// ten requests of 2 ms were seen.
fn limit_after_a_change_of_requests(is_mixed: bool) -> u32 {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    if is_mixed {
        law.mix(ROUTE);
    }
    law.set_patience(60.0);
    answered_in(&mut law.routes[0], 0.002);
    law.routes[0].answered_at = Some(Instant::ORIGIN);
    stay_full(&mut law, &mut Meter::new(Instant::ORIGIN), 0.0, 4.0);
    law.limit(ROUTE)
}

#[test]
fn who_comes_to_a_shared_route_is_given_room_whatever_others_took_there() {
    let limit = limit_after_a_change_of_requests(true);
    assert!((16..=256).contains(&limit), "as if nothing had been seen: {limit}");
    assert_eq!(limit_after_a_change_of_requests(false), 2, "quick requests that hang are given none");
}

#[test]
fn those_who_stay_long_in_a_shared_route_do_not_tell_that_the_application_is_strained() {
    let strain = |is_mixed: bool| {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        law.routes[0].is_mixed = is_mixed;
        answered_in(&mut law.routes[0], 0.002);
        law.routes[0].answered_at = Some(Instant::ORIGIN);
        let meter = Meter::new(Instant::ORIGIN);
        (0..4).for_each(|id| {
            law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
        });
        let now = Instant::ORIGIN + seconds(3.0);
        law.routes[0].strain(now, &meter.since(&law.routes[0].strain_begin, now), 2).is_some()
    };
    assert!(!strain(true), "they are others than those seen");
    assert!(strain(false), "these take longer than they did");
}

#[test]
fn a_burst_at_a_shared_route_that_is_over_keeps_no_other_from_room() {
    let strain_after = |is_mixed: bool, seconds_after: f64| {
        let mut law = Paired::new(2);
        (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
        law.routes[1].is_mixed = is_mixed;
        answered_in(&mut law.routes[1], 0.002);
        let mut meters = [0, 1].map(|_| Meter::new(Instant::ORIGIN));
        // It ended with twenty that took ten times as long.
        (0..20).for_each(|_| meters[1].end(0.02, true));
        let end = Instant::ORIGIN + seconds(2.0);
        law.routes[1].answered_at = Some(end);
        law.measure_strain(end, &meters);
        assert!(law.routes[0].ease_elsewhere.is_some_and(|strain| strain > 5.0));
        law.measure_strain(end + seconds(seconds_after), &meters);
        law.routes[0].ease_elsewhere.is_some()
    };
    assert!(!strain_after(true, 3.0), "nobody has been there for three seconds");
    assert!(strain_after(false, 3.0), "of a page where few come it holds for longer");
}

#[test]
fn where_others_suffer_those_who_stay_long_at_a_shared_route_are_no_polls() {
    let is_unlike_beside = |strain: Option<f64>| {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        law.mix(ROUTE);
        answered_in(&mut law.routes[0], 0.002);
        law.routes[0].answered_at = Some(Instant::ORIGIN);
        law.routes[0].strain_elsewhere = strain;
        law.is_unlike(Instant::ORIGIN + seconds(3.0), ROUTE)
    };
    assert!(is_unlike_beside(None) && is_unlike_beside(Some(1.1)));
    assert!(!is_unlike_beside(Some(3.0)), "they may be what is too much");
}

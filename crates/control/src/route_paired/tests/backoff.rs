//! When backoff cuts the limit, what it takes, and what it makes the law doubt.

use super::*;
use crate::route_paired::backoff::BACKOFF_FLOOR;

#[test]
fn a_page_that_takes_most_of_the_patience_by_itself_is_not_braked_for_it() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, Some(8));
    law.set_patience(15.0);
    assert!(
        (law.stay_allowed(Instant::ORIGIN, ROUTE) - 7.5).abs() < 1e-9,
        "half of the patience where nothing is known"
    );
    answered_in(&mut law.routes[0], 8.0);
    assert!(
        (law.stay_allowed(Instant::ORIGIN, ROUTE) - 12.0).abs() < 1e-9,
        "half as long again as it takes alone"
    );
    let mut quick = Paired::new(2);
    quick.add_route(Instant::ORIGIN, Some(8));
    quick.set_patience(15.0);
    answered_in(&mut quick.routes[0], 0.1);
    assert!((quick.stay_allowed(Instant::ORIGIN, ROUTE) - 2.25).abs() < 1e-9, "0.15 of the patience");
}

#[test]
fn requests_that_never_come_back_pull_the_brake() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    law.routes[0].base = 64;
    law.routes[0].limit = 64;
    answered_in(&mut law.routes[0], 0.1);
    let mut meter = Meter::new(Instant::ORIGIN);
    for id in 0..64 {
        law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
    }
    meter.load(Instant::ORIGIN, 64, 10);
    let mut out = vec![];
    for quarter in 1..=14 {
        law.on_tick(
            Instant::ORIGIN + seconds(f64::from(quarter) * 0.25),
            std::slice::from_ref(&meter),
            &mut out,
        );
    }
    assert_eq!(law.limit(ROUTE), 32, "once, 3 s after the start: 0.15 of the patience");
    assert_eq!(out.iter().filter(|record| record.reason == Reason::Backoff).count(), 1);
    let now = Instant::ORIGIN + seconds(4.0);
    assert!(law.routes[0].highest(now, LIMIT_MAX) < 64, "and it does not climb up there again");
    for quarter in 15..=80 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, std::slice::from_ref(&meter), &mut out);
    }
    assert_eq!(law.limit(ROUTE), 32, "those 64 are still there: a lower limit would change nothing yet");
}

#[test]
fn a_page_that_is_braked_once_an_hour_rests_no_longer_each_time() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    for hour in 0..8 {
        let begin = Instant::ORIGIN + seconds(f64::from(hour) * 3600.0);
        (law.routes[0].base, law.routes[0].limit, law.routes[0].slow_start) = (64, 64, None);
        answered_in(&mut law.routes[0], 0.1);
        let mut meter = Meter::new(begin);
        law.routes[0].reset_residence_window(begin, &meter);
        (0..64).for_each(|id| law.on_start(begin, ROUTE, RequestId(id), std::slice::from_ref(&meter)));
        meter.load(begin, 64, 10);
        let brake = begin + seconds(3.1);
        law.back_off(brake, ROUTE, &meter, &mut vec![]);
        assert_eq!(law.limit(ROUTE), 32, "hour {hour}");
        let rest = law.routes[0].retry_at.secs_since(brake);
        assert!((rest - 30.0).abs() < 1e-6, "hour {hour}: {rest} s");
        law.routes[0].in_service.clear();
    }
}

#[test]
fn an_application_that_hangs_is_not_given_back_what_the_brake_has_taken() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(60.0);
    let mut meter = Meter::new(Instant::ORIGIN);
    for id in 0..64 {
        law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
    }
    meter.load(Instant::ORIGIN, 64, 10);
    // Backoff has just been made at 64.
    (law.routes[0].base, law.routes[0].limit) = (32, 32);
    law.routes[0].full_since = Some(Instant::ORIGIN);
    for quarter in 1..=4 * 300 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, std::slice::from_ref(&meter), &mut vec![]);
        assert!(law.limit(ROUTE) <= 32, "{now:?}: nothing has ended");
    }
}

/// Makes a backoff where `inside` requests are in an application told to have 32 cores, of which
/// `ended` have ended meanwhile; returns the law, and the record of it.
fn braked_at(inside: u32, ended: u32) -> (Paired, Record) {
    let mut law = Paired::new(32);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    (law.routes[0].base, law.routes[0].limit) = (inside, inside);
    answered_in(&mut law.routes[0], 0.1);
    let mut meter = Meter::new(Instant::ORIGIN);
    for id in 0..u64::from(inside) {
        law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
    }
    meter.load(Instant::ORIGIN, inside as usize, 10);
    let mut out = vec![];
    for quarter in 1..=14 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, std::slice::from_ref(&meter), &mut out);
        if quarter == 2 {
            (0..u64::from(ended)).for_each(|id| {
                let end = RequestEnd {
                    route: ROUTE,
                    request: RequestId(id),
                    service: 0.5,
                    progress: true,
                    says_work: true,
                };
                law.on_end(now, &end, std::slice::from_ref(&meter), &mut out);
                meter.end(0.5, true);
            });
        }
    }
    let braked = out.into_iter().find(|record| record.reason == Reason::Backoff);
    (law, braked.expect("the brake was pulled"))
}

#[test]
fn where_few_stay_too_long_already_the_cores_told_are_doubted_for_ten_minutes() {
    let (mut law, record) = braked_at(64, 1);
    assert_eq!((law.limit(ROUTE), law.trusted_cores()), (32, BACKOFF_FLOOR));
    let told = record.signals.iter().find(|(name, _)| *name == "cores_believed");
    assert_eq!(told, Some(("cores_believed", 4.0)), "the record says so");
    assert_eq!(braked_at(256, 1).0.trusted_cores(), 32, "eight a core may well be too many for 32 cores");
    assert_eq!(
        braked_at(64, 0).0.trusted_cores(),
        32,
        "an application that hangs tells nothing of its cores"
    );
    let meter = Meter::new(Instant::ORIGIN);
    law.on_tick(Instant::ORIGIN + seconds(610.0), std::slice::from_ref(&meter), &mut vec![]);
    assert_eq!(law.trusted_cores(), 32, "not for ever");
}

#[test]
fn a_brake_during_a_trial_downward_takes_half_of_the_limit_under_trial() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    (law.routes[0].base, law.routes[0].limit) = (40, 20);
    law.routes[0].slow_start = None;
    law.routes[0].pressure = 1.0;
    answered_in(&mut law.routes[0], 0.1);
    law.trial = Some(Trial::new(Instant::ORIGIN, ROUTE, 40, 20, vec![0.1], vec![10.0]));
    let mut meter = Meter::new(Instant::ORIGIN);
    for id in 0..20 {
        law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
    }
    meter.load(Instant::ORIGIN, 20, 10);
    let mut out = vec![];
    for quarter in 1..=14 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, std::slice::from_ref(&meter), &mut out);
    }
    assert_eq!(law.limit(ROUTE), 10, "half of the base would be what was just too much");
    assert!(law.routes[0].highest(Instant::ORIGIN + seconds(4.0), 100) < 20, "20 was too much");
}

#[test]
fn a_brake_under_a_trial_downward_at_the_floor_takes_nothing_and_blames_no_limit() {
    let mut law = Paired::new(BACKOFF_FLOOR);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    (law.routes[0].base, law.routes[0].limit) = (2 * BACKOFF_FLOOR, BACKOFF_FLOOR);
    law.routes[0].slow_start = None;
    answered_in(&mut law.routes[0], 0.1);
    let mut meter = Meter::new(Instant::ORIGIN);
    for id in 0..u64::from(BACKOFF_FLOOR) {
        law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
    }
    meter.load(Instant::ORIGIN, BACKOFF_FLOOR as usize, 10);
    let mut out = vec![];
    for quarter in 1..=40 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.back_off(now, ROUTE, &meter, &mut out);
    }
    assert!(out.is_empty() && law.limit(ROUTE) == BACKOFF_FLOOR, "{out:?}");
    let highest = law.routes[0].highest(Instant::ORIGIN + seconds(10.0), 100);
    assert_eq!(highest, 100, "how few may be too many is not told by the least that is ever allowed");
}

#[test]
fn what_the_brake_took_is_remembered_for_longer_than_the_brake_rests() {
    let mut route = route_at(32);
    // Patience of 300 s: the next look is after 150 s.
    route.backoff_until = Instant::ORIGIN + seconds(150.0);
    route.mark_backed_off(Instant::ORIGIN, 64);
    assert!(route.highest(Instant::ORIGIN + seconds(200.0), 1000) < 64);
}

#[test]
fn a_brake_during_a_trial_upward_goes_back_to_the_base_and_remembers_what_was_tried() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    (law.routes[0].base, law.routes[0].limit) = (20, 40);
    law.routes[0].slow_start = None;
    law.routes[0].pressure = 1.0;
    answered_in(&mut law.routes[0], 0.1);
    let trial = Trial::new(Instant::ORIGIN, ROUTE, 20, 40, vec![0.1], vec![10.0]);
    law.trial = Some(trial);
    let mut meter = Meter::new(Instant::ORIGIN);
    let mut out = vec![];
    for id in 0..40 {
        law.on_start(Instant::ORIGIN, ROUTE, RequestId(id), std::slice::from_ref(&meter));
    }
    meter.load(Instant::ORIGIN, 40, 10);
    let braked = |out: &[Record]| out.iter().any(|record| record.reason == Reason::Backoff);
    let mut now = Instant::ORIGIN;
    while !braked(&out) {
        now += seconds(0.25);
        assert!(now < Instant::ORIGIN + seconds(20.0), "nobody braked");
        law.on_tick(now, std::slice::from_ref(&meter), &mut out);
    }
    assert_eq!(law.limit(ROUTE), 20, "not half of the base, of which nothing is said");
    assert!(law.probing().is_none());
    assert!(law.routes[0].highest(now, 100) < 40, "40 was much worse");
}

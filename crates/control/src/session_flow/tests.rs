//! What the session law promises, told by hand what the signals say.

use super::*;
use crate::session::{KindInputs, RouteInputs};
use crate::visits::Visits;

const SHOP: KindId = KindId(0);
const SEARCH: RouteId = RouteId(0);
const ONE: [KindInputs; 1] = [KindInputs { share: 1.0, begun: 0.0 }];

/// A route that does 4 per second of 0.4 s each, as was seen just now, and at which somebody has
/// just waited.
fn saturated() -> RouteInputs {
    RouteInputs {
        capacity: Some(4.0),
        capacity_age: 0.0,
        service: Some(0.4),
        work: Some(0.4),
        rate: 4.0,
        ..RouteInputs::default()
    }
}

/// A route that was never full.
fn never_full() -> RouteInputs {
    RouteInputs { capacity: None, capacity_age: f64::INFINITY, ..saturated() }
}

/// Sessions that search once, 12 s after they begin; enough of them have ended.
fn learned() -> Visits {
    let mut visits = Visits::default();
    visits.add_route();
    visits.add_kind();
    (0..400).for_each(|_| visits.teach(SHOP, &[(SEARCH, 12.0)]));
    visits
}

fn inputs<'a>(visits: &'a Visits, routes: &'a [RouteInputs], waiting: usize) -> AdmissionInputs<'a> {
    AdmissionInputs {
        visits,
        routes,
        kinds: &ONE,
        patience: 60.0,
        waiting,
        active: 0,
        entry: LastRoute::START,
        shared: None,
    }
}

fn second(n: f64) -> Instant {
    Instant::ORIGIN + seconds(n)
}

/// Lets `flow` admit whom it may, of 100 who wait, each quarter of a second; returns how many
/// began.
fn play(flow: &mut Flow, visits: &mut Visits, routes: &[RouteInputs], ticks: std::ops::Range<u32>) -> usize {
    let mut admitted = 0;
    for tick in ticks {
        let now = second(f64::from(tick) * 0.25);
        flow.on_tick(now, &inputs(visits, routes, 100), &mut vec![]);
        while flow.may_admit(now, &inputs(visits, routes, 100)) == AdmissionDecision::Now {
            flow.admitted(now, LastRoute::START);
            visits.begin(SHOP);
            admitted += 1;
        }
    }
    admitted
}

#[test]
fn it_fills_the_pipe_and_then_holds() {
    let (mut visits, routes) = (learned(), [saturated()]);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let admitted = play(&mut flow, &mut visits, &routes, 0..400);
    // X (δ + S + W*) = 4 · (12 + 0.4 + 1.6): nobody ever gets to search here, so no more than that
    // may be under way.
    assert!((56..=58).contains(&admitted), "{admitted}");
    let held = flow.may_admit(second(100.0), &inputs(&visits, &routes, 100));
    assert_eq!(held, AdmissionDecision::Held(Reason::WorkToCome));
    assert_eq!(flow.rate(), Some(4.0));
}

#[test]
fn what_a_page_takes_by_itself_is_no_wait() {
    // Four seconds each, as the page waits for others; X is what its visitors ask of it. Nobody
    // waits for anything.
    let (mut visits, mut routes) = (learned(), [saturated()]);
    routes[0] = RouteInputs { service: Some(4.0), ..routes[0] };
    (0..16).for_each(|_| visits.request_begins(SEARCH));
    (0..48).for_each(|_| visits.begin(SHOP));
    let foreseen = inputs(&visits, &routes, 0).foreseen(SEARCH).unwrap();
    assert!(foreseen.abs() < 1e-9, "by Little 64 are there without a wait: {foreseen}");
}

#[test]
fn an_unknown_an_old_and_an_idle_capacity_hold_nobody_back() {
    let mut visits = learned();
    (0..500).for_each(|_| visits.begin(SHOP));
    (0..1000).for_each(|_| visits.teach(SHOP, &[(SEARCH, 12.0)]));
    visits.refresh();
    let held = |route: RouteInputs| exceeded(&inputs(&visits, &[route], 100), false).is_some();
    assert!(held(saturated()));
    assert!(!held(RouteInputs { capacity: None, capacity_age: f64::INFINITY, ..saturated() }));
    assert!(!held(RouteInputs { capacity_age: 61.0, ..saturated() }));
    assert!(held(RouteInputs { idle: 12.0, ..saturated() }), "those on the way were not there yet");
    assert!(!held(RouteInputs { idle: 13.5, ..saturated() }), "nobody has waited for δ + S");
    assert!(!held(RouteInputs { bias: 200.0, ..saturated() }), "its forecasts have proved wrong");
}

#[test]
fn whatever_is_known_those_inside_come_first() {
    let visits = learned();
    let held =
        |waiting, is_wary| exceeded(&inputs(&visits, &[RouteInputs { waiting, ..never_full() }], 1), is_wary);
    assert_eq!(held(50, false), Some(SEARCH), "12.5 s of 60 are too much");
    assert_eq!(held(40, false), None);
    assert_eq!(held(16, true), Some(SEARCH), "4 s are, where it is not known who is on the way there");
    assert_eq!(held(10, true), None);
}

#[test]
fn a_route_that_is_being_searched_sets_the_pace_while_there_is_a_crowd_before_it() {
    let visits = learned();
    let rate = |waiting: usize| {
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        flow.on_tick(
            second(0.0),
            &inputs(&visits, &[RouteInputs { waiting, ..never_full() }], 100),
            &mut vec![],
        );
        flow.rate()
    };
    assert_eq!(rate(0), Some(5.0), "nobody waits: two cores and 0.4 s each set it");
    assert_eq!(rate(6), Some(5.0), "1.5 s are no crowd, as a page of 0.4 s may have 1.6 s to wait for");
    assert_eq!(rate(20), Some(CROWDED * 4.0), "a crowd shows more: a multiple of what it does");
}

#[test]
fn a_guess_that_goes_up_and_down_gives_its_tokens_once() {
    let mut visits = Visits::default();
    visits.add_route();
    visits.add_kind();
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let begun: usize = (0..50)
        .map(|turn| {
            let work = Some(if turn % 2 == 0 { 0.02 } else { 0.04 });
            let route = RouteInputs { capacity: None, work, ..saturated() };
            let moment = second(f64::from(turn) * 1e-3);
            let inputs = inputs(&visits, std::slice::from_ref(&route), 100);
            flow.on_tick(moment, &inputs, &mut vec![]);
            let admitted = (0..).take_while(|_| {
                let may = flow.may_admit(moment, &inputs) == AdmissionDecision::Now;
                if may {
                    flow.admitted(moment, LastRoute::START);
                }
                may
            });
            admitted.count()
        })
        .sum();
    // 0.2 · 60 s on 2 cores at 15 · 0.02 s per session.
    assert!((80..=81).contains(&begun), "{begun}");
}

#[test]
fn a_cold_pace_grows_faster_while_no_route_is_short() {
    // Before anybody can have come back for a second page, which would be told too.
    let rate_after_four_seconds = |idle: f64| {
        let mut visits = Visits::default();
        visits.add_route();
        visits.add_kind();
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let route = RouteInputs { capacity: None, idle, ..saturated() };
        play(&mut flow, &mut visits, &[route], 0..17);
        flow.rate().unwrap_or_default()
    };
    let (short, calm) = (rate_after_four_seconds(0.0), rate_after_four_seconds(30.0));
    assert!((2.0 * 1.05_f64.powi(3)..=2.0 * 1.05_f64.powi(5)).contains(&short), "{short}");
    assert!((2.0 * 1.10_f64.powi(3)..=2.0 * 1.10_f64.powi(5)).contains(&calm), "{calm}");
}

#[test]
fn the_worst_route_is_named_and_not_the_first() {
    let mut visits = Visits::default();
    (0..2).for_each(|_| visits.add_route());
    visits.add_kind();
    let path = [(RouteId(0), 1.0), (RouteId(1), 2.0)];
    (0..400).for_each(|_| visits.teach(SHOP, &path));
    (0..100).for_each(|_| visits.begin(SHOP));
    let slow = RouteInputs { capacity: Some(2.0), ..saturated() };
    assert_eq!(exceeded(&inputs(&visits, &[saturated(), slow], 1), false), Some(RouteId(1)));
}

#[test]
fn a_pace_that_holds_people_for_an_idle_route_is_raised_until_somebody_waits_there() {
    let mut visits = learned();
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let idle = [RouteInputs { idle: 30.0, ..saturated() }];
    let first = play(&mut flow, &mut visits, &idle, 0..40);
    let later = play(&mut flow, &mut visits, &idle, 40..160);
    assert!(later > 4 * first, "{first} in 10 s, {later} in the 30 s after them");
    flow.on_tick(second(41.0), &inputs(&visits, &[saturated()], 100), &mut vec![]);
    assert_eq!(flow.rate(), Some(4.0), "and falls back as soon as somebody does");
}

#[test]
fn kinds_share_what_there_is() {
    let mut visits = Visits::default();
    visits.add_route();
    (0..2).for_each(|_| visits.add_kind());
    for kind in [0, 1].map(KindId) {
        (0..400).for_each(|_| visits.teach(kind, &[(SEARCH, 12.0)]));
    }
    let kinds = [KindInputs { share: 0.75, begun: 3.0 }, KindInputs { share: 0.25, begun: 1.0 }];
    let rates = [0, 1].map(|kind| {
        let mut flow = Flow::new(KindId(kind), 2, second(0.0));
        let routes = [saturated()];
        flow.on_tick(
            second(1.0),
            &AdmissionInputs { kinds: &kinds, ..inputs(&visits, &routes, 9) },
            &mut vec![],
        );
        flow.rate().unwrap()
    });
    assert!((rates[0] - 3.0).abs() < 1e-9 && (rates[1] - 1.0).abs() < 1e-9, "{rates:?} of 4");
}

#[test]
fn a_cold_start_begins_with_what_patience_bears_and_then_grows_slowly() {
    let mut visits = Visits::default();
    visits.add_route();
    visits.add_kind();
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let routes = [RouteInputs { idle: 0.0, ..RouteInputs::default() }];
    let (mut admitted, mut out) = (0, vec![]);
    for tick in 0..40 {
        let now = second(f64::from(tick) * 0.25);
        flow.on_tick(now, &inputs(&visits, &routes, 50), &mut out);
        while flow.may_admit(now, &inputs(&visits, &routes, 50)) == AdmissionDecision::Now {
            flow.admitted(now, LastRoute::START);
            admitted += 1;
        }
    }
    // A fifth of 60 s of two cores, at a core-second each, and then two to three per second for 10
    // s.
    assert!((50..=66).contains(&admitted), "{admitted}");
    assert_eq!(out.first().map(|record| record.reason), Some(Reason::ColdStart));
}

#[test]
fn where_people_come_for_one_page_and_no_route_is_short_nobody_is_held() {
    let mut visits = Visits::default();
    visits.add_route();
    visits.add_kind();
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let routes = [RouteInputs { idle: f64::INFINITY, ..RouteInputs::default() }];
    for tenth in 0..3000 {
        let now = second(f64::from(tenth) * 0.01);
        flow.on_tick(now, &inputs(&visits, &routes, 0), &mut vec![]);
        // Ten per second would be five times what the cold start admits.
        if tenth % 10 == 0 && tenth > 600 {
            assert_eq!(flow.may_admit(now, &inputs(&visits, &routes, 0)), AdmissionDecision::Now, "{tenth}");
        }
        if tenth % 10 == 0 && flow.may_admit(now, &inputs(&visits, &routes, 0)) == AdmissionDecision::Now {
            flow.admitted(now, LastRoute::START);
            visits.begin(SHOP);
            visits.enter(SHOP, LastRoute::at(SEARCH));
        }
    }
}

/// Returns whether all may begin four seconds after 30 did, of whom this many have been `silent` through
/// two stages, while some wait at the page that all of them came for.
fn may_all_begin(silent: u32) -> bool {
    let (mut visits, entry) = (unknown(), LastRoute::at(RouteId(1)));
    let busy = RouteInputs { service: Some(0.05), work: Some(0.05), rate: 40.0, waiting: 15, ..never_full() };
    let routes = [busy, busy, busy];
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    flow.on_tick(second(0.0), &inputs(&visits, &routes, 100), &mut vec![]);
    for number in 0..30 {
        flow.admitted(second(0.0), entry);
        visits.begin(SHOP);
        visits.leave(SHOP, LastRoute::START, 0);
        visits.enter(SHOP, entry);
        (0..SILENT_STAGES)
            .filter(|_| number < silent)
            .for_each(|stage| visits.fall_silent(SHOP, entry, stage));
    }
    visits.refresh();
    let inputs = AdmissionInputs { entry, ..inputs(&visits, &routes, 100) };
    flow.on_tick(second(4.0), &inputs, &mut vec![]);
    (0..1000).for_each(|_| flow.admitted(second(4.0), entry));
    flow.may_admit(second(4.0), &inputs) == AdmissionDecision::Now
}

#[test]
fn enough_who_were_silent_show_that_people_come_for_one_page_and_those_who_have_just_begun_do_not() {
    assert!(may_all_begin(20));
    assert!(!may_all_begin(19));
}

#[test]
fn a_token_is_left_over_that_is_there_again_before_those_on_the_way_can_come() {
    let (visits, routes) = (learned(), [RouteInputs { idle: f64::INFINITY, ..never_full() }]);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let now = second(0.0);
    flow.on_tick(now, &inputs(&visits, &routes, 0), &mut vec![]);
    // Five sessions per second, and sixty at once.
    assert!(flow.has_left_over(now, &inputs(&visits, &routes, 1), 500), "full again in 0.15 s");
    flow.admitted(now, LastRoute::START);
    flow.admitted(now, LastRoute::START);
    assert!(flow.has_left_over(now, &inputs(&visits, &routes, 1), 100));
    (0..50).for_each(|_| flow.admitted(now, LastRoute::START));
    assert!(flow.has_left_over(now, &inputs(&visits, &routes, 1), 7));
    assert!(
        !flow.has_left_over(now, &inputs(&visits, &routes, 1), 8),
        "these come, and eight tokens are left"
    );
}

/// Returns whether the next may begin, ten seconds after the first of a hundred began: `at_polls`
/// of them wait or run at a route that looks like `polls`, `gave_up` left without an answer, and
/// the others were answered elsewhere.
fn may_begin_beside(polls: RouteInputs, at_polls: u32, gave_up: u32, stayer_polls: bool) -> bool {
    let (mut visits, entry) = (unknown(), LastRoute::at(RouteId(1)));
    let files = RouteInputs { idle: f64::INFINITY, work: Some(0.01), ..RouteInputs::default() };
    let routes = [polls, files, files];
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    flow.on_tick(second(0.0), &inputs(&visits, &routes, 100), &mut vec![]);
    for _ in 0..100 {
        flow.admitted(second(0.0), entry);
        visits.begin(SHOP);
        visits.leave(SHOP, LastRoute::START, 0);
        visits.enter(SHOP, entry);
    }
    (0..at_polls).for_each(|_| visits.request_begins(SEARCH));
    (0..gave_up).for_each(|_| visits.unanswered());
    if stayer_polls {
        visits.returned_enters(SHOP, [RouteId(1), SEARCH]);
    }
    visits.refresh();
    let inputs = inputs(&visits, &routes, 100);
    flow.on_tick(second(10.0), &inputs, &mut vec![]);
    (0..1000).for_each(|_| flow.admitted(second(10.0), entry));
    flow.may_admit(second(10.0), &inputs) == AdmissionDecision::Now
}

#[test]
fn whoever_waits_for_long_polls_shuts_nobody_out() {
    let polls = RouteInputs { idle: 0.0, waiting: 9, rate: 0.0, ..never_full() };
    assert!(may_begin_beside(polls, 40, 0, false));
    assert!(!may_begin_beside(RouteInputs { rate: 0.2, ..polls }, 40, 0, false), "something ends there");
    assert!(!may_begin_beside(RouteInputs { capacity: Some(4.0), ..saturated() }, 40, 0, false), "(2) holds");
    assert!(!may_begin_beside(polls, 70, 0, false), "hardly anybody was answered");
    assert!(!may_begin_beside(polls, 40, 30, false), "nor were those who gave up");
    assert!(!may_begin_beside(polls, 40, 0, true), "those who stay want to go there");
}

#[test]
fn what_requests_cost_is_not_forgotten_while_none_ends() {
    let mut visits = unknown();
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    (0..9).for_each(|_| visits.request_begins(RouteId(1)));
    visits.begin(SHOP);
    visits.enter(SHOP, LastRoute::at(RouteId(1)));
    let cheap = RouteInputs { work: Some(0.004), rate: 4.0, ..RouteInputs::default() };
    let mut rate = |route| {
        let routes = [RouteInputs::default(), route, RouteInputs::default()];
        flow.on_tick(second(0.0), &inputs(&visits, &routes, 0), &mut vec![]);
        flow.rate().unwrap()
    };
    let before = rate(cheap);
    assert!(before > 30.0, "two cores, 15 requests of 4 ms each: {before}");
    let idle = rate(RouteInputs { rate: 0.0, ..cheap });
    assert!((idle - before).abs() < 1e-9, "{idle}");
}

/// Nothing is known of the visitors of a shop with three routes.
fn unknown() -> Visits {
    let mut visits = Visits::default();
    (0..3).for_each(|_| visits.add_route());
    visits.add_kind();
    visits
}

/// A shop whose visitors log in and come back to search, beside `passers` who ask once for a path
/// that does not exist. All of this is known.
fn beside_passers(passers: u32) -> (Visits, LastRoute, LastRoute) {
    let mut visits = unknown();
    let (nothing, login) = (LastRoute::at(RouteId(1)), LastRoute::at(RouteId(2)));
    for _ in 0..40 {
        visits.begin(SHOP);
        [RouteId(2), SEARCH].into_iter().for_each(|route| visits.enter(SHOP, LastRoute::at(route)));
        visits.comes_back(SHOP, login, false);
        visits.returned_enters(SHOP, [RouteId(2), SEARCH]);
    }
    for _ in 0..passers {
        visits.begin(SHOP);
        visits.enter(SHOP, nothing);
        visits.stays_away(SHOP, nothing);
    }
    visits.refresh();
    (visits, nothing, login)
}

/// Two kinds of pages, of 39 and of 1 ms, and the route that `passers` per second ask for once.
fn beside(passers: u32) -> [RouteInputs; 3] {
    let cheap = RouteInputs { work: Some(0.001), rate: 1.0, idle: f64::INFINITY, ..RouteInputs::default() };
    let dear = RouteInputs { work: Some(0.039), ..cheap };
    [dear, RouteInputs { rate: f64::from(passers), ..cheap }, cheap]
}

#[test]
fn those_who_stay_pay_for_what_they_took_before_they_were_seen() {
    let (_, nothing, login) = beside_passers(0);
    let (mut visits, _, _) = beside_passers(0);
    (0..400).for_each(|_| visits.enter(SHOP, nothing));
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    // Nothing says so yet: 1.3 ms per request, some 1,200 at once.
    let routes = beside(400);
    flow.on_tick(second(0.0), &inputs(&unknown(), &routes, 5000), &mut vec![]);
    (0..120).for_each(|_| flow.admitted(second(0.0), login));
    // 40 of the 120 are back, then 100.
    let mut left = |visits: &Visits, at: f64| {
        flow.on_tick(second(at), &inputs(visits, &routes, 5000), &mut vec![]);
        flow.tokens
    };
    assert!((38.0..=42.0).contains(&left(&visits, 0.0)), "80 may begin at once, and 40 have");
    (0..80).for_each(|_| visits.begins_at(SHOP, login));
    assert!(left(&visits, 0.0) < 2.0, "40 sessions that have not come back yet count, too");
    (0..60).for_each(|_| visits.comes_back(SHOP, login, false));
    (0..20).for_each(|_| visits.stays_away(SHOP, login));
    assert!(left(&visits, 0.0) < 1.0, "more have begun than should have");
    let after = left(&visits, 4.0);
    let come = 4.0 * PACE * 2.0 / 0.3;
    assert!((after - (come - 20.0)).abs() < 1.0, "{come} have come, and 20 of them are owed: {after}");
}

#[test]
fn one_session_that_asks_often_does_not_set_the_price_of_all() {
    let (mut visits, nothing, login) = beside_passers(0);
    (0..40).for_each(|_| visits.enter(SHOP, nothing));
    let mut robot = unknown();
    (0..400).for_each(|_| robot.enter(SHOP, nothing));
    robot.comes_back(SHOP, login, false);
    robot.returned_enters(SHOP, [RouteId(2), SEARCH]);
    (0..60).for_each(|_| robot.goes_on(SHOP, SEARCH));
    let cost = |visits: &Visits| {
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        flow.cold_cost(&inputs(visits, &beside(400), 0))
    };
    assert!(cost(&robot) < 0.05, "{}", cost(&robot));
    (0..400).for_each(|_| visits.enter(SHOP, nothing));
    assert!((0.25..0.35).contains(&cost(&visits)), "{}", cost(&visits));
}

#[test]
fn a_flood_of_sessions_of_one_page_makes_those_that_stay_no_cheaper() {
    let begun = |passers: u32, at_nothing: bool| {
        let routes = beside(passers);
        let (visits, nothing, login) = beside_passers(passers);
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        let entry = if at_nothing { nothing } else { login };
        flow.on_tick(second(0.0), &inputs(&unknown(), &routes, 5000), &mut vec![]);
        (0..40).for_each(|_| flow.admitted(second(0.0), login));
        let inputs = AdmissionInputs { entry, ..inputs(&visits, &routes, 5000) };
        flow.on_tick(second(0.0), &inputs, &mut vec![]);
        (0..5000)
            .take_while(|_| {
                let may = flow.may_admit(second(0.0), &inputs) == AdmissionDecision::Now;
                flow.admitted(second(0.0), entry);
                may
            })
            .count()
    };
    // 0.2 of 60 s on two cores, at 15 visits of 20 ms each: 80 at once, and 40 of them are inside.
    // Of the passers a mean request is one of 1.3 ms.
    for passers in [0, 400] {
        assert!((38..=42).contains(&begun(passers, false)), "{passers}: {}", begun(passers, false));
    }
    assert!(
        begun(400, true) > 2_000,
        "a session that begins where nobody comes back costs next to nothing: {}",
        begun(400, true)
    );
}

#[test]
fn a_cold_start_is_slower_while_those_who_pass_by_hide_what_others_ask_for() {
    let pace = |passers: u32, capacity: Option<f64>| {
        let (visits, _, _) = beside_passers(passers);
        let mut routes = beside(passers);
        routes[0] = RouteInputs { capacity, ..routes[0] };
        let mut flow = Flow::new(SHOP, 2, second(0.0));
        flow.on_tick(second(0.0), &inputs(&visits, &routes, 0), &mut vec![]);
        (flow.tokens, flow.gained) = (0.0, 0.0);
        let rate = flow.rate;
        flow.refill(second(1.0));
        flow.tokens / rate
    };
    let is = |pace: f64, expected: f64| (pace - expected).abs() < 1e-6;
    assert!(is(pace(0, None), PACE));
    assert!(is(pace(400, None), WARY_PACE), "{}", pace(400, None));
    assert!(is(pace(400, Some(10.0)), PACE), "what those who stay ask for is known to be short");
}

#[test]
fn below_capacity_nobody_waits_and_the_interval_is_zero() {
    let (visits, routes) = (learned(), [saturated()]);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let mut out = vec![];
    for tick in 0..200 {
        let now = second(f64::from(tick) * 0.5);
        flow.on_tick(now, &inputs(&visits, &routes, 0), &mut out);
        assert_eq!(flow.may_admit(now, &inputs(&visits, &routes, 0)), AdmissionDecision::Now);
        flow.admitted(now, LastRoute::START);
    }
    assert!(flow.interval() == 0.0 && out.is_empty(), "{out:?}");
}

#[test]
fn whoever_is_told_a_time_is_never_told_now() {
    let (mut visits, mut routes) = (learned(), [saturated()]);
    // One session in fifty searches: sessions may begin by the ten thousand per second.
    (0..400).for_each(|n| visits.teach(SHOP, if n % 50 == 0 { &[(SEARCH, 12.0)] } else { &[] }));
    routes[0].capacity = Some(1e4);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    flow.on_tick(second(0.0), &inputs(&visits, &routes, 9), &mut vec![]);
    for nanos in 0..20_000 {
        let now = Instant::from_nanos(nanos);
        match flow.may_admit(now, &inputs(&visits, &routes, 9)) {
            AdmissionDecision::Now => flow.admitted(now, LastRoute::START),
            AdmissionDecision::NotBefore(next) => assert!(next > now, "at {nanos} ns"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_old_lull_does_not_make_the_line_look_slow() {
    let (visits, routes) = (learned(), [saturated()]);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let mut out = vec![];
    for n in 0..40 {
        flow.admitted(second(f64::from(n) * 30.0), LastRoute::START);
    }
    flow.on_tick(second(1200.0), &inputs(&visits, &routes, 10), &mut out);
    assert!((flow.expected_rate(second(1200.0)) - 4.0).abs() < 1e-9);
}

#[test]
fn a_crowd_at_a_site_that_was_never_full_begins_one_by_one() {
    let (mut visits, routes) = (learned(), [RouteInputs { idle: f64::INFINITY, ..never_full() }]);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    let ten_a_second = [KindInputs { share: 1.0, begun: 10.0 }];
    let calm = AdmissionInputs { kinds: &ten_a_second, ..inputs(&visits, &routes, 0) };
    flow.on_tick(second(0.0), &calm, &mut vec![]);
    // Two cores do 5 sessions per second of one search each; 10 began while nobody waited. So 3 ·
    // 10 may, and 0.2 · 60 s of them at once.
    assert_eq!(flow.rate(), Some(30.0));
    let admitted = play(&mut flow, &mut visits, &routes, 0..1);
    assert_eq!(admitted, 360, "of any number");
    // Then 1.3 · 30 per second, and the rate grows while they are what holds.
    let admitted = play(&mut flow, &mut visits, &routes, 1..5);
    assert!((39..=45).contains(&admitted), "{admitted}");
}

#[test]
fn nothing_holds_a_known_crowd_where_nothing_is_known_of_costs() {
    let (visits, routes) = (learned(), [RouteInputs { work: None, ..never_full() }]);
    let mut flow = Flow::new(SHOP, 2, second(0.0));
    flow.on_tick(second(0.0), &inputs(&visits, &routes, 0), &mut vec![]);
    for _ in 0..100_000 {
        assert_eq!(flow.may_admit(second(0.0), &inputs(&visits, &routes, 1)), AdmissionDecision::Now);
        flow.admitted(second(0.0), LastRoute::START);
    }
}

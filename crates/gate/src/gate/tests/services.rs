//! Services: caps and pauses at the gate.

use super::*;

fn at(secs: f64) -> Instant {
    Instant::ORIGIN + seconds(secs)
}

fn ask(gate: &mut Gate, now: Instant, route: RouteId) {
    gate.handle_arrival(now, Arrival { route, session: None });
}

fn service(routes: &[RouteId]) -> ServiceParams {
    ServiceParams { routes: routes.to_vec(), ..ServiceParams::default() }
}

#[test]
fn a_pause_holds_each_request_for_its_time_and_wakes_the_gate_to_the_moment() {
    let (mut gate, route, _) = fixed(5);
    let paused = ServiceParams { pause: seconds(2.0), ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![paused], ..Services::default() });
    ask(&mut gate, at(0.01), route);
    ask(&mut gate, at(0.5), route);
    let leaves = gate.handle_arrival(at(0.6), Arrival { route, session: None });
    assert!(started(&mut gate).is_empty());
    gate.handle_departure(at(0.7), leaves);
    let mut now = at(0.7);
    let mut starts = vec![];
    while now < at(3.0) {
        now = gate.poll_timeout().unwrap();
        gate.handle_timeout(now);
        starts.extend(started(&mut gate).into_iter().map(|start| (now, start)));
    }
    let times: Vec<_> = starts.iter().map(|(now, _)| *now).collect();
    assert_eq!(times, [at(2.01), at(2.5)], "and who left never starts");
    assert_eq!(gate.snapshot(now).waiting, 0);
    starts.into_iter().for_each(|(_, start)| gate.handle_end(now, start.permit, Outcome::Completed));
}

#[test]
fn under_a_cap_those_who_wait_at_any_route_of_a_service_start_in_the_order_in_which_they_came() {
    let mut gate = Gate::new(Params::default(), at(0.0));
    let mode = RouteMode::Fixed(Limit::of(9));
    let (a, b) = (gate.declare_route(at(0.0), mode), gate.declare_route(at(0.0), mode));
    gate.declare_services(at(0.0), Services { services: vec![service(&[a, b])], ..Services::default() });
    // The law would give it up, as nobody is behind.
    gate.services.law = None;
    gate.services.gates[0].credit.set_cap(at(0.0), Some(0.5));
    for (secs, route) in [(0.0, a), (0.1, b), (0.2, a), (0.3, b), (0.4, b)] {
        ask(&mut gate, at(secs), route);
    }
    let (mut now, mut order, mut running) = (at(0.4), vec![], started(&mut gate));
    assert_eq!(running.len(), 1, "half a slot has room for one at a time");
    while order.len() < 4 {
        running.drain(..).for_each(|start| {
            now += seconds(0.1);
            gate.handle_end(now, start.permit, Outcome::Completed);
        });
        now = gate.poll_timeout().unwrap().max(now);
        gate.handle_timeout(now);
        running.extend(started(&mut gate));
        order.extend(running.iter().map(|start| start.waited));
    }
    assert!(
        order.is_sorted_by(|earlier, later| earlier < later),
        "{order:?}: each came later, and waited longer"
    );
    running.into_iter().for_each(|start| gate.handle_end(now, start.permit, Outcome::Completed));
}

#[test]
fn other_services_take_the_place_of_those_before_and_who_was_paused_goes_on() {
    let (mut gate, route, _) = fixed(5);
    let paused = ServiceParams { pause: seconds(60.0), ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![paused], ..Services::default() });
    ask(&mut gate, at(0.0), route);
    assert!(started(&mut gate).is_empty());
    gate.declare_services(at(1.0), Services::default());
    let start = started(&mut gate).pop().expect("nothing holds it any more");
    assert_eq!(start.waited, seconds(1.0));
    gate.handle_end(at(1.0), start.permit, Outcome::Completed);
}

#[test]
fn another_wish_for_the_same_services_keeps_what_is_in_force() {
    let (mut gate, route, _) = fixed(5);
    let declare = |gate: &mut Gate, slowdown, pause| {
        let wish = ServiceWish { slowdown, ..ServiceWish::default() };
        let params = ServiceParams { wish, pause: seconds(pause), ..service(&[route]) };
        let mode = DegradationMode::Slowdown;
        gate.declare_services(at(0.0), Services { mode, services: vec![params] });
    };
    declare(&mut gate, 1.0, 60.0);
    ask(&mut gate, at(0.0), route);
    gate.services.gates[0].credit.set_cap(at(0.0), Some(0.5));
    declare(&mut gate, 4.0, 1.0);
    assert_eq!(gate.services.gates[0].credit.cap(), Some(0.5));
    let start = started(&mut gate).pop().expect("the pause that held it is no more");
    gate.handle_end(at(0.0), start.permit, Outcome::Completed);
}

#[test]
fn a_quick_service_has_one_more_slot_while_another_one_is_held() {
    let mut gate = Gate::new(Params::default(), at(0.0));
    let mode = RouteMode::Enforce;
    let (quick, slow) = (gate.declare_route(at(0.0), mode), gate.declare_route(at(0.0), mode));
    let services = vec![service(&[quick]), service(&[slow])];
    gate.declare_services(at(0.0), Services { services, ..Services::default() });
    let limits = |gate: &Gate| [quick, slow].map(|route| gate.limit(route).unwrap());
    let [found, of_slow] = limits(&gate);
    let mut given = |seconds: Option<f64>, cap: Option<f64>, waits: bool| {
        gate.services.gates[1].credit.set_cap(at(0.0), cap);
        gate.services.give_spare_slots(|_| seconds, |_| 1.0, |route| waits && route == slow);
        limits(&gate)
    };
    let [none, one] = [[found, of_slow], [found + 1, of_slow]];
    assert_eq!(given(Some(0.004), None, true), none);
    assert_eq!(given(Some(0.004), Some(0.5), true), one);
    assert_eq!(given(Some(0.4), Some(0.5), true), none, "no time is lost between long requests");
    assert_eq!(given(None, Some(0.5), true), none, "nothing is known of them");
    assert_eq!(given(Some(0.004), Some(0.5), false), none, "the cap holds nobody");
}

/// Two routes of one service, of which half a request may be in the application.
fn half_a_slot() -> (Gate, RouteId, RouteId, KindId) {
    let params = Params { session_law: SessionLawKind::Open, ..Params::default() };
    let mut gate = Gate::new(params, at(0.0));
    let (a, b) =
        (gate.declare_route(at(0.0), RouteMode::Enforce), gate.declare_route(at(0.0), RouteMode::Enforce));
    let kind = gate.declare_kind(at(0.0), KindParams::default());
    gate.declare_services(at(0.0), Services { services: vec![service(&[a, b])], ..Services::default() });
    // The law would give it up, as nobody is behind.
    gate.services.law = None;
    gate.services.gates[0].credit.set_cap(at(0.0), Some(0.5));
    (gate, a, b, kind)
}

fn member(kind: KindId, session: u64) -> Option<Membership> {
    Some(Membership::Member { kind, session: SessionId(session), leased: true, ends: false })
}

#[test]
fn under_a_cap_whoever_asks_for_too_much_waits_behind_others_at_every_route_of_the_service() {
    let (mut gate, a, b, kind) = half_a_slot();
    for _ in 0..20 {
        gate.handle_arrival(at(0.0), Arrival { route: a, session: member(kind, 7) });
    }
    gate.handle_arrival(at(1.0), Arrival { route: b, session: member(kind, 8) });
    let mut running = started(&mut gate);
    let (mut now, mut before) = (at(1.0), 0);
    while !running.iter().any(|start| start.session.is_some_and(|(_, session)| session == SessionId(8))) {
        before += running.len();
        running.drain(..).for_each(|start| gate.handle_end(now, start.permit, Outcome::Completed));
        now = gate.poll_timeout().expect("some wait").max(now + seconds(0.1));
        gate.handle_timeout(now);
        running.extend(started(&mut gate));
    }
    assert_eq!(before, 8, "those within the budget of a session, and none beyond");
    running.drain(..).for_each(|start| gate.handle_end(now, start.permit, Outcome::Completed));
}

#[test]
fn under_a_cap_what_one_session_has_waiting_is_bounded_though_slots_are_free() {
    let (mut gate, a, _, kind) = half_a_slot();
    for _ in 0..1000 {
        gate.handle_arrival(at(0.0), Arrival { route: a, session: member(kind, 7) });
    }
    let outputs: Vec<_> = std::iter::from_fn(|| gate.poll_output()).collect();
    let refused = outputs.iter().filter(|output| matches!(output, Output::Refuse(_))).count();
    assert_eq!((refused, gate.snapshot(at(0.0)).waiting), (744, 255));
}

#[test]
fn who_waits_under_a_cap_is_no_sign_of_an_application_that_waits_for_clients() {
    let (mut gate, a, _, _) = half_a_slot();
    (0..3).for_each(|_| ask(&mut gate, at(0.0), a));
    assert_eq!(gate.load(a).0, 2);
    assert!(!gate.holds_insider_since(at(9.0)));
}

#[test]
fn who_leaves_during_a_pause_is_gone_and_its_session_goes_on() {
    let (mut gate, route, kind) = fixed(5);
    let paused = ServiceParams { pause: seconds(1.0), ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![paused], ..Services::default() });
    gate.handle_arrival(at(0.0), Arrival { route, session: member(kind, 7) });
    gate.handle_timeout(at(1.0));
    let start = started(&mut gate).pop().expect("its pause is over");
    let leaves = gate.handle_arrival(at(1.0), Arrival { route, session: member(kind, 7) });
    assert_eq!(gate.service_views()[0].waiting, 1);
    gate.handle_departure(at(1.5), leaves);
    assert_eq!((gate.services.paused(), gate.service_views()[0].waiting), (0, 0));
    let session = gate.sessions.get(SessionId(7)).expect("it has begun");
    assert!(session.view().is_busy, "the first is still in the application");
    gate.handle_end(at(2.0), start.permit, Outcome::Completed);
}

#[test]
fn a_pause_holds_no_more_of_a_session_than_any_visitor_has() {
    let (mut gate, route, kind) = fixed(5);
    let paused = ServiceParams { pause: seconds(60.0), ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![paused], ..Services::default() });
    for request in 0..1000 {
        gate.handle_arrival(at(0.001 * f64::from(request)), Arrival { route, session: member(kind, 7) });
    }
    let refused = std::iter::from_fn(|| gate.poll_output()).filter(|it| matches!(it, Output::Refuse(_)));
    let refused = refused.count();
    assert_eq!((gate.services.paused(), refused), (256, 744));
    // Those beyond what a visitor asks for keep no others out, and go last after the pause.
    assert_eq!(gate.services.paused_ahead(), 8);
    gate.handle_arrival(at(2.0), Arrival { route, session: member(kind, 8) });
    gate.handle_timeout(at(62.5));
    let mut running = started(&mut gate);
    let mut order: Vec<bool> = running.iter().map(|start| gate.is_beyond(start.request)).collect();
    while let Some(start) = running.pop() {
        gate.handle_end(at(63.0), start.permit, Outcome::Completed);
        let next = started(&mut gate);
        order.extend(next.iter().map(|start| gate.is_beyond(start.request)));
        running.extend(next);
    }
    assert_eq!(order.len(), 257);
    assert!(!order[..9].contains(&true) && order[9..].iter().all(|beyond| *beyond), "{order:?}");
    assert_eq!((gate.services.paused(), gate.services.paused_ahead()), (0, 0));
}

#[test]
fn a_time_alone_is_the_mean_of_short_and_long_ones() {
    let (gate, route, _) = fixed(5);
    let mut route = gate.routes.into_iter().nth(route.index()).expect("it was declared");
    (0..1000).for_each(|_| route.was_alone(0.002));
    route.was_alone(3.0);
    let mean = route.took_alone.mean().expect("some were alone");
    assert!((0.002..0.006).contains(&mean), "{mean} s, of which the mean is 0.005");
    // One in ten takes a hundred milliseconds.
    (0..100_000).for_each(|number| route.was_alone(if number % 10 == 9 { 0.1 } else { 0.002 }));
    let mean = route.took_alone.mean().expect("some were alone");
    assert!((0.0112..0.0124).contains(&mean), "{mean} s, of which the mean is 0.0118");
    (0..30_000).for_each(|_| route.was_alone(0.004));
    let mean = route.took_alone.mean().expect("some were alone");
    assert!((0.0035..0.0055).contains(&mean), "{mean} s after two minutes in which it took 0.004");
}

#[test]
fn nothing_is_told_of_services_while_the_application_is_away() {
    let (mut gate, route, _) = fixed(5);
    let wish = ServiceWish { alone: Some(0.001), ..ServiceWish::default() };
    let slow = ServiceParams { wish, ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![slow], ..Services::default() });
    let ends = |gate: &mut Gate, secs: f64| {
        ask(gate, at(secs), route);
        let running = started(gate);
        running.into_iter().for_each(|it| gate.handle_end(at(secs + 0.1), it.permit, Outcome::Completed));
        gate.handle_timeout(at(secs + 0.5));
    };
    (0..20).for_each(|second| ends(&mut gate, f64::from(second)));
    let before = gate.service_views()[0].standing;
    gate.handle_application(at(20.0), false);
    (20..80).for_each(|second| gate.handle_timeout(at(f64::from(second))));
    assert_eq!(gate.service_views()[0].standing, before);
    gate.handle_application(at(80.0), true);
    (80..90).for_each(|second| ends(&mut gate, f64::from(second)));
    let after = gate.service_views()[0].standing;
    assert!((after.rate / before.rate - 1.0).abs() < 0.2, "{before:?}, {after:?}");
}

#[test]
fn quick_refusals_and_broken_uploads_do_not_look_like_speed() {
    let (mut gate, route, _) = fixed(5);
    gate.declare_services(at(0.0), Services { services: vec![service(&[route])], ..Services::default() });
    let mut now = at(0.0);
    let mut ask_for = |gate: &mut Gate, secs: f64, outcome, is_upload: bool| {
        gate.handle_arrival(now, Arrival { route, session: None });
        let start = started(gate).pop().expect("there is a slot");
        if is_upload {
            gate.handle_suspend(now + seconds(secs), start.request, Duration::ZERO);
        }
        now += seconds(secs);
        gate.handle_end(now, start.permit, outcome);
    };
    (0..20).for_each(|_| ask_for(&mut gate, 0.35, Outcome::Completed, false));
    (0..300).for_each(|_| ask_for(&mut gate, 1e-5, Outcome::Abandoned, true));
    assert!(gate.law.work(route).is_some_and(|work| work > 0.3));
    (0..300).for_each(|_| ask_for(&mut gate, 0.001, Outcome::Declined, false));
    assert!(gate.law.work(route).is_some_and(|work| work > 0.3));
    assert!(gate.alone(route).is_some_and(|alone| (alone - 0.35).abs() < 1e-6));
    (0..300).for_each(|_| ask_for(&mut gate, 0.2, Outcome::Declined, false));
    let alone = gate.alone(route).expect("it is known");
    assert!((0.2..0.34).contains(&alone), "what was declined after as much work counts: {alone}");
}

#[test]
fn a_law_that_begins_anew_measures_services_from_there() {
    let (mut gate, route, _) = fixed(5);
    gate.declare_services(at(0.0), Services { services: vec![service(&[route])], ..Services::default() });
    for second in 0..100 {
        gate.handle_arrival(at(f64::from(second)), Arrival { route, session: None });
        let start = started(&mut gate).pop().expect("there is a slot");
        gate.handle_end(at(f64::from(second) + 0.9), start.permit, Outcome::Completed);
    }
    let params = Params { cores: gate.params.cores + 1, ..gate.params.clone() };
    gate.adopt(at(100.0), &Adoption { params, ..Adoption::default() });
    let begin = gate.services.gates[0].routes[0].1;
    let window = gate.meters[route.index()].since(&begin, at(101.0));
    assert!(window.mean_in_flight() >= 0.0 && (window.seconds - 1.0).abs() < 1e-9, "{window:?}");
}

/// A service whose pauses are inside, of one route with five slots.
fn paused_inside(pause_ratio: f64) -> (Gate, RouteId) {
    let (mut gate, route, _) = fixed(5);
    let params = ServiceParams { pause_ratio, pauses: PausePlace::Inside, ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![params], ..Services::default() });
    (gate, route)
}

#[test]
fn a_request_is_told_the_ratio_of_a_service_that_pauses_inside_and_starts_at_once() {
    let (mut gate, route) = paused_inside(2.0);
    for _ in 0..3 {
        ask(&mut gate, at(0.0), route);
    }
    let starts = started(&mut gate);
    assert_eq!(starts.iter().map(|start| start.pause_ratio).collect::<Vec<_>>(), [2.0; 3]);
    starts.into_iter().for_each(|start| gate.handle_end(at(1.0), start.permit, Outcome::Completed));
}

#[test]
fn what_the_application_says_it_has_paused_is_no_work() {
    let (mut gate, route) = paused_inside(2.0);
    for second in 0..9 {
        let now = at(f64::from(second));
        ask(&mut gate, now, route);
        let start = started(&mut gate).pop().unwrap();
        gate.handle_paused(start.request, seconds(0.6));
        gate.handle_end(now + seconds(0.9), start.permit, Outcome::Completed);
    }
    let reached = gate.service_views()[0].inside_ratio.expect("it was told");
    assert!((reached - 2.0).abs() < 1e-9, "{reached}");
    let alone = gate.alone(route).expect("each had a core of its own");
    assert!((alone - 0.3).abs() < 1e-9, "{alone}");
}

/// Plays one request that stays for `stay` seconds, of which the application says that `paused` were
/// pauses; returns how many seconds of work requests come to since then, on average.
fn plays(gate: &mut Gate, route: RouteId, [begins, stay, paused]: [f64; 3]) -> f64 {
    ask(gate, at(begins), route);
    let start = started(gate).pop().unwrap();
    gate.handle_paused(start.request, seconds(paused));
    gate.handle_end(at(begins + stay), start.permit, Outcome::Completed);
    gate.routes[route.index()].took.mean().unwrap()
}

#[test]
fn no_more_is_believed_of_pauses_than_the_told_ratio_explains() {
    let (mut gate, route) = paused_inside(2.0);
    let work = plays(&mut gate, route, [0.0, 0.9, 600.0]);
    assert!((work - 0.3).abs() < 1e-5, "two thirds of its stay are explained: {work}");
    for second in 1..50 {
        let work = plays(&mut gate, route, [f64::from(second), 0.9, 600.0]);
        assert!(work > 0.17, "work is never talked away: {work}");
    }
    let reached = gate.service_views()[0].inside_ratio.expect("it was told");
    assert!(reached < 4.1, "{reached}");
}

#[test]
fn nothing_is_believed_of_pauses_where_nothing_was_told() {
    let (mut gate, route, _) = fixed(5);
    let work = plays(&mut gate, route, [0.0, 0.9, 0.6]);
    assert!((work - 0.9).abs() < 1e-9, "a route without a service: {work}");
    let (mut gate, route) = paused_inside(0.0);
    let work = plays(&mut gate, route, [0.0, 0.9, 0.6]);
    assert!((work - 0.9).abs() < 1e-9, "a service without a cap: {work}");
    assert_eq!(gate.service_views()[0].inside_ratio, None);
}

#[test]
fn a_pause_that_the_request_before_has_left_over_is_no_work() {
    let (mut gate, route) = paused_inside(2.0);
    for round in 0..9 {
        let begins = 3.0 * f64::from(round);
        plays(&mut gate, route, [begins, 0.3, 0.0]);
        let work = plays(&mut gate, route, [begins + 1.0, 1.5, 1.2]);
        assert!((work - 0.3).abs() < 1e-5, "each has worked for 0.3 s: {work}");
    }
}

#[test]
fn a_cap_is_kept_inside_and_what_is_not_paused_there_is_held_around() {
    let (mut gate, route) = paused_inside(0.0);
    gate.services.law = None;
    gate.services.gates[0].credit.set_cap(at(0.0), Some(0.25));
    let mut now = at(0.0);
    let mut passes = |confirms: bool| {
        ask(&mut gate, now, route);
        ask(&mut gate, now, route);
        let first = started(&mut gate);
        assert_eq!(
            (first.len(), first[0].pause_ratio),
            (1, 3.0),
            "a cap of a quarter is one that works a quarter"
        );
        let took = if confirms { seconds(2.0) } else { seconds(0.5) };
        let ends = now + took;
        for start in first {
            if confirms {
                gate.handle_paused(start.request, seconds(1.5));
            }
            gate.handle_end(ends, start.permit, Outcome::Completed);
        }
        let mut second = started(&mut gate);
        let mut began = ends;
        while second.is_empty() {
            began = gate.poll_timeout().unwrap();
            gate.handle_timeout(began);
            second = started(&mut gate);
        }
        // Nothing is owed by what has worked and paused; it ends without leaving anything behind.
        for start in second {
            gate.handle_paused(start.request, seconds(0.0));
            gate.handle_end(began, start.permit, Outcome::Completed);
        }
        let held = began.secs_since(ends);
        now = began + seconds(100.0);
        held
    };
    assert!(passes(true) < 0.01, "its pause is over with it");
    let held = passes(false);
    assert!((held - 1.5).abs() < 0.01, "half a second of work, and its pause after it: {held}");
}

#[test]
fn a_ratio_is_held_around_by_what_requests_were_seen_to_take() {
    let (mut gate, route, _) = fixed(5);
    let params = ServiceParams { pause_ratio: 2.0, ..service(&[route]) };
    gate.declare_services(at(0.0), Services { services: vec![params], ..Services::default() });
    let mut now = at(0.0);
    let mut held = 0.0;
    for _ in 0..20 {
        ask(&mut gate, now, route);
        let mut starts = started(&mut gate);
        let asked = now;
        while starts.is_empty() {
            now = gate.poll_timeout().unwrap();
            gate.handle_timeout(now);
            starts = started(&mut gate);
        }
        held = now.secs_since(asked);
        let start = starts.pop().unwrap();
        assert_eq!(start.pause_ratio.to_bits(), 0, "the application has nothing to do with it");
        let ends = now + seconds(0.4);
        while gate.poll_timeout().unwrap() < ends {
            now = gate.poll_timeout().unwrap();
            gate.handle_timeout(now);
        }
        now = ends;
        gate.handle_end(now, start.permit, Outcome::Completed);
    }
    assert!((held - 0.8).abs() < 0.02, "{held}");
}

#[test]
fn services_that_are_replaced_keep_count_of_who_pauses_inside() {
    let (mut gate, route) = paused_inside(2.0);
    ask(&mut gate, at(0.0), route);
    let start = started(&mut gate).pop().unwrap();
    let other = ServiceParams { name: "other".to_owned(), ..service(&[route]) };
    gate.declare_services(at(1.0), Services { services: vec![other], ..Services::default() });
    let (restored, permits) =
        Gate::restore(gate.params.clone(), &gate.save().unwrap()).expect("its counts are right");
    assert_eq!((permits.len(), restored.services.gates[0].credit.in_flight()), (1, 1));
    gate.handle_end(at(2.0), start.permit, Outcome::Completed);
    assert_eq!(gate.services.gates[0].credit.pausing(), 0);
    permits.into_iter().for_each(drop);
}

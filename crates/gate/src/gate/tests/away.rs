//! An application that does not answer: who is called, who waits for it, and how it goes on.

use super::lines::{Metered, at, lined, pass, placed, told_at_once};
use super::*;
use crate::gate::away::{AWAITED_MAX, AWAITING_MAX, AWAITING_OF_SESSION_MAX};

/// Somebody with a place, whose page asks when it was told to and goes to the gate when it is
/// called.
struct Waiter {
    position: Position,
    asks: f64,
    /// Whether it is held or has begun.
    is_at_gate: bool,
}

/// A line of people before a gate that admits a fixed number per second.
struct Crowd {
    gate: Gate,
    route: RouteId,
    kind: KindId,
    now: f64,
    waiters: Vec<Waiter>,
    asked: BTreeMap<RequestId, usize>,
    /// Who began, and when.
    began: Vec<(f64, u64)>,
    running: Vec<(f64, Permit)>,
}

impl Crowd {
    fn new(per_second: f64) -> Crowd {
        let (gate, route, kind) = lined(Metered::new(2, per_second));
        Crowd {
            gate,
            route,
            kind,
            now: 0.0,
            waiters: vec![],
            asked: BTreeMap::new(),
            began: vec![],
            running: vec![],
        }
    }

    /// Has `count` newcomers come, each of whom gets a place or begins.
    fn come(&mut self, count: usize) {
        for _ in 0..count {
            let session = Some(Membership::Newcomer(self.kind));
            let request = self.gate.handle_arrival(at(self.now), Arrival { route: self.route, session });
            self.asked.insert(request, usize::MAX);
            self.hear();
        }
    }

    fn hear(&mut self) {
        while let Some(output) = self.gate.poll_output() {
            self.take(output);
        }
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Start(start) => {
                let who = self.asked.remove(&start.request).unwrap();
                let number = self.waiters.get(who).map_or(u64::MAX, |waiter| waiter.position.number);
                self.began.push((self.now, number));
                self.running.push((self.now + 0.2, start.permit));
            }
            Output::Wait(waits) => {
                let who = self.asked.remove(&waits.request).unwrap();
                let asks = self.now + 2.0 + (self.waiters.len() % 7) as f64 / 7.0;
                match self.waiters.get_mut(who) {
                    Some(waiter) => (waiter.is_at_gate, waiter.asks) = (false, asks),
                    None => {
                        self.waiters.push(Waiter {
                            position: waits.position.unwrap(),
                            asks,
                            is_at_gate: false,
                        });
                    }
                }
            }
            Output::Refuse(refusal) => panic!("{refusal:?}"),
            Output::Decided(_) | Output::Resumed(_) => {}
        }
    }

    /// Lets time pass, a sixteenth of a second at a time.
    fn pass(&mut self, until: f64) {
        while self.now < until {
            self.now += 1.0 / 16.0;
            for output in pass(&mut self.gate, at(self.now)) {
                self.take(output);
            }
            let (over, running) =
                std::mem::take(&mut self.running).into_iter().partition(|(end, _)| *end <= self.now);
            self.running = running;
            for (_, permit) in over as Vec<(f64, Permit)> {
                self.gate.handle_end(at(self.now), permit, Outcome::Completed);
            }
            for who in 0..self.waiters.len() {
                self.act(who);
            }
            self.hear();
        }
    }

    fn act(&mut self, who: usize) {
        let waiter = &mut self.waiters[who];
        if waiter.is_at_gate {
            return;
        }
        if waiter.asks > self.now {
            return;
        }
        let Some(standing) = self.gate.handle_contact(at(self.now), self.kind, waiter.position) else {
            return;
        };
        let wait = match standing {
            PositionStatus::Called(_) => {
                waiter.is_at_gate = true;
                let session = Some(placed(self.kind, waiter.position));
                let request = self.gate.handle_arrival(at(self.now), Arrival { route: self.route, session });
                self.asked.insert(request, who);
                return self.hear();
            }
            PositionStatus::ApplicationDown(wait)
            | PositionStatus::Paused(wait)
            | PositionStatus::Waiting(wait) => wait,
            other => panic!("{other:?}"),
        };
        waiter.asks = self.now + wait.poll_after.as_secs_f64();
    }

    fn began_after(&self, at: f64) -> usize {
        self.began.iter().filter(|(when, _)| *when > at).count()
    }
}

#[test]
fn a_minute_without_an_application_calls_nobody_and_the_first_is_in_within_two_seconds_of_its_return() {
    let mut crowd = Crowd::new(4.0);
    crowd.come(500);
    crowd.pass(30.0);
    let (before, called) = (crowd.began.len(), crowd.gate.line(crowd.kind).unwrap().view().called);
    assert!(before > 40, "{before}");
    crowd.gate.handle_application(at(30.0), false);
    // A newcomer who comes now gets a place, and nobody begins.
    crowd.come(20);
    crowd.pass(90.0);
    let view = crowd.gate.line(crowd.kind).unwrap().view();
    assert_eq!((crowd.began.len(), view.called, view.away), (before, called, true));
    crowd.gate.handle_application(at(90.0), true);
    crowd.hear();
    crowd.pass(92.0);
    assert!(crowd.began_after(90.0) > 0, "nobody is in");
    crowd.pass(100.0);
    let after = crowd.began_after(90.0);
    assert!((20..=45).contains(&after), "{after} began in ten seconds at a pace of four a second");
    crowd.pass(300.0);
    let places: BTreeSet<u64> = crowd.began.iter().map(|(_, number)| *number).collect();
    let all = crowd.waiters.iter().filter(|waiter| places.contains(&waiter.position.number)).count();
    assert_eq!(all, crowd.waiters.len(), "nobody has lost a place");
    let records = crowd.gate.snapshot(at(300.0)).records;
    let told: Vec<_> = records.iter().filter(|it| it.quantity == suimon_model::Quantity::Moving).collect();
    assert_eq!(
        told.iter().map(|it| it.reason).collect::<Vec<_>>(),
        [Reason::ApplicationDown, Reason::ApplicationUp]
    );
}

#[test]
fn whoever_came_while_it_was_away_does_not_begin_all_at_once() {
    // The law knows of no bound, and one per second began before.
    let now = at(0.0);
    let params = Params { session_law: SessionLawKind::Open, ..Params::default() };
    let mut gate = Gate::new(params, now);
    let route = gate.declare_route(now, RouteMode::Off);
    let line = Some(suimon_line::Params::default());
    let kind = gate.declare_kind(now, KindParams { line, ..KindParams::default() });
    let mut crowd = Crowd { gate, route, kind, ..Crowd::new(1.0) };
    for _ in 0..20 {
        crowd.come(1);
        crowd.pass(crowd.now + 1.0);
    }
    assert_eq!(crowd.began.len(), 20, "nobody waits");
    crowd.gate.handle_application(at(crowd.now), false);
    crowd.come(500);
    crowd.pass(80.0);
    assert_eq!(crowd.began.len(), 20);
    crowd.gate.handle_application(at(80.0), true);
    crowd.hear();
    crowd.pass(82.0);
    assert!((1..=60).contains(&crowd.began_after(80.0)), "{}", crowd.began_after(80.0));
    crowd.pass(180.0);
    assert_eq!(crowd.began_after(80.0), 500);
}

/// Plays a minute in which nobody is called, with three hundred in line, and then a quarter of one in
/// which sixteen come per second. Returns how many began in it, and how many of those who came in it.
fn after_a_stop(stop: impl Fn(&mut Crowd), go: impl Fn(&mut Crowd)) -> (usize, usize) {
    let mut crowd = Crowd::new(10.0);
    crowd.come(1);
    stop(&mut crowd);
    crowd.come(300);
    crowd.pass(60.0);
    go(&mut crowd);
    crowd.hear();
    while crowd.now < 75.0 {
        crowd.come(1);
        crowd.pass(crowd.now + 1.0 / 16.0);
    }
    let late = crowd.began.iter().filter(|(when, number)| *when > 60.0 && *number > 301);
    (crowd.began_after(60.0), late.count())
}

#[test]
fn whoever_comes_after_a_stop_begins_after_those_who_have_waited_for_its_end() {
    let outage = after_a_stop(
        |crowd| crowd.gate.handle_application(at(0.0), false),
        |crowd| crowd.gate.handle_application(at(60.0), true),
    );
    let pause = after_a_stop(
        |crowd| _ = crowd.gate.handle_command(at(0.0), crowd.kind, Command::Pause),
        |crowd| _ = crowd.gate.handle_command(at(60.0), crowd.kind, Command::Move),
    );
    for (all, late) in [outage, pause] {
        assert!(all > 20, "{all}");
        assert_eq!(late, 0, "of {all}");
    }
}

#[test]
fn requests_of_begun_sessions_wait_for_the_application_without_a_slot() {
    let (mut gate, route, kind) = lined(Metered::new(4, 1.0));
    let member =
        |session| Membership::Member { kind, session: SessionId(session), leased: true, ends: false };
    let asks = |session| Arrival { route, session: Some(session) };
    gate.handle_application(at(1.0), false);
    let waits = gate.handle_arrival(at(1.0), asks(member(7)));
    let leaves = gate.handle_arrival(at(1.0), asks(member(8)));
    assert!(!std::iter::from_fn(|| gate.poll_output()).any(|it| !matches!(it, Output::Decided(_))));
    let seen = gate.snapshot(at(1.0));
    assert_eq!((seen.waiting, seen.in_flight, seen.routes[0].waiting), (2, 0, 0));
    gate.handle_departure(at(2.0), leaves);
    assert_eq!(gate.snapshot(at(2.0)).waiting, 1);
    gate.handle_application(at(5.0), true);
    let started = std::iter::from_fn(|| gate.poll_output()).find_map(|output| match output {
        Output::Start(start) => Some(start),
        _ => None,
    });
    let started = started.expect("it is sent as soon as there is an application");
    assert_eq!((started.request, started.waited), (waits, seconds(4.0)));
    gate.handle_end(at(5.1), started.permit, Outcome::Completed);

    // For as long as is worth it, and then the truth; the session goes on.
    gate.handle_application(at(6.0), false);
    let waits = gate.handle_arrival(at(6.0), asks(member(7)));
    let told = pass(&mut gate, at(6.0 + AWAITED_MAX + 1.0));
    let told: Vec<_> = told.iter().filter(|it| matches!(it, Output::Refuse(it) if it.request == waits && it.reason == Reason::ApplicationDown)).collect();
    assert_eq!(told.len(), 1);
    assert!(gate.begun(SessionId(7)).is_some());
}

#[test]
fn no_more_wait_for_an_application_than_may() {
    let (mut gate, route, kind) = lined(Metered::new(4, 1.0));
    gate.handle_application(at(1.0), false);
    while gate.poll_output().is_some() {}
    for number in 0..AWAITING_MAX as u64 + 5 {
        let session =
            Some(Membership::Member { kind, session: SessionId(number), leased: true, ends: false });
        gate.handle_arrival(at(1.0), Arrival { route, session });
    }
    let refused =
        std::iter::from_fn(|| gate.poll_output()).filter(|it| matches!(it, Output::Refuse(_))).count();
    assert_eq!((gate.snapshot(at(1.0)).waiting, refused), (AWAITING_MAX, 5));
}

#[test]
fn no_session_takes_the_room_of_the_others_who_wait_for_an_application() {
    let mut gate = Gate::new(Params::default(), at(0.0));
    let route = gate.declare_route(at(0.0), RouteMode::Off);
    let kind = gate.declare_kind(at(0.0), KindParams::default());
    gate.handle_application(at(1.0), false);
    while gate.poll_output().is_some() {}
    let member =
        |session| Membership::Member { kind, session: SessionId(session), leased: true, ends: false };
    let come = |gate: &mut Gate, session| {
        let request = gate.handle_arrival(at(1.0), Arrival { route, session: Some(member(session)) });
        let refused = std::iter::from_fn(|| gate.poll_output()).find_map(|output| match output {
            Output::Refuse(refusal) => Some(refusal.reason),
            _ => None,
        });
        (request, refused)
    };
    let greedy: Vec<_> = (0..AWAITING_OF_SESSION_MAX + 3).map(|_| come(&mut gate, 7)).collect();
    let waits = AWAITING_OF_SESSION_MAX as usize;
    assert!(greedy[..waits].iter().all(|(_, refused)| refused.is_none()), "{greedy:?}");
    assert!(greedy[waits..].iter().all(|(_, refused)| *refused == Some(Reason::ApplicationDown)));
    assert_eq!(come(&mut gate, 8).1, None, "another one's waits");

    // Also in a gate that was put away meanwhile, and one that leaves makes room for one.
    let bytes = gate.save().unwrap();
    let (mut gate, _) = Gate::restore(gate.params().clone(), &bytes).unwrap();
    assert!(come(&mut gate, 7).1.is_some());
    gate.handle_departure(at(1.0), greedy[0].0);
    assert_eq!((come(&mut gate, 7).1, come(&mut gate, 7).1), (None, Some(Reason::ApplicationDown)));

    // Nobody is counted any more once it is back, nor once they were told that it is not.
    for is_back in [true, false] {
        if is_back {
            gate.handle_application(at(1.0), true);
            gate.handle_application(at(1.0), false);
        } else {
            pass(&mut gate, at(1.0 + AWAITED_MAX + 1.0));
        }
        while gate.poll_output().is_some() {}
        assert!((0..waits).all(|_| come(&mut gate, 7).1.is_none()), "back: {is_back}");
    }
}

#[test]
fn a_newcomer_without_a_line_is_told_the_truth_and_begins_nothing() {
    let now = at(0.0);
    let mut gate = Gate::new(Params::default(), now);
    let route = gate.declare_route(now, RouteMode::Off);
    let kind = gate.declare_kind(now, KindParams::default());
    gate.handle_application(now, false);
    while gate.poll_output().is_some() {}
    gate.handle_arrival(now, Arrival { route, session: Some(Membership::Newcomer(kind)) });
    let Some(Output::Refuse(refusal)) = gate.poll_output() else { panic!("it is told at once") };
    assert_eq!(refusal.reason, Reason::ApplicationDown);
    assert!(refusal.retry_after >= seconds(3.0) && gate.snapshot(now).kinds[0].admitted == 0);

    let (mut gate, route, kind) = lined(Metered::new(4, 1.0));
    gate.handle_application(now, false);
    while gate.poll_output().is_some() {}
    gate.handle_arrival(now, Arrival { route, session: Some(Membership::Newcomer(kind)) });
    let told = told_at_once(&mut gate);
    assert!(
        told.position.is_some() && matches!(told.standing, PositionStatus::ApplicationDown(_)),
        "with a line it gets a place"
    );
    assert_eq!(gate.snapshot(now).kinds[0].admitted, 0);
}

#[test]
fn whoever_is_silent_while_there_is_no_application_has_not_left() {
    let (mut gate, route, kind) = lined(Metered::new(100, 100.0));
    let member =
        |session| Membership::Member { kind, session: SessionId(session), leased: true, ends: false };
    let asks = |gate: &mut Gate, now: f64, session: u64| {
        gate.handle_arrival(at(now), Arrival { route, session: Some(member(session)) });
        for start in started(gate) {
            gate.handle_end(at(now), start.permit, Outcome::Completed);
        }
    };
    for round in 0..20 {
        (0..50).for_each(|session| asks(&mut gate, f64::from(round), session));
        pass(&mut gate, at(f64::from(round) + 0.9));
    }
    gate.handle_application(at(20.0), false);
    // A visitor from another gateway, who is told that there is no application, has not shown what
    // visitors ask for.
    gate.handle_arrival(at(21.0), Arrival { route, session: Some(member(77)) });
    pass(&mut gate, at(620.0));
    let ends = |gate: &Gate| gate.snapshot(at(620.0)).kinds[0].ends;
    assert_eq!(ends(&gate).silent + ends(&gate).failed, 0, "{:?}", ends(&gate));
    let before = gate.visits.ended(kind);
    gate.handle_application(at(620.0), true);
    pass(&mut gate, at(620.5));
    assert_eq!(
        (gate.visits.ended(kind), gate.visits.under_way(kind)),
        (before, 51),
        "they have just been heard of"
    );
    // A visitor who is silent from now on has left.
    pass(&mut gate, at(1800.0));
    assert_eq!((gate.visits.ended(kind), gate.visits.under_way(kind)), (before + 50, 0));
}

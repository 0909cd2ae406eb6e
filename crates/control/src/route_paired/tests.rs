//! The law in a closed loop with a host whose best concurrency is known.

use super::brake::BRAKE_FLOOR;
use super::*;
use crate::window::Meter;
use suimon_model::Rng;

/// A host by the Universal Scalability Law: work goes at n / (1 + s(n−1) + k·n(n−1)), best at n* = √((1−s)/k).
struct Host {
    contention: f64,
    coherence: f64,
}

impl Host {
    fn with_best(best: f64) -> Self {
        let contention = 0.1;
        Host { contention, coherence: (1.0 - contention) / (best * best) }
    }

    fn speed(&self, n: usize) -> f64 {
        let n = n as f64;
        n / (1.0 + self.contention * (n - 1.0) + self.coherence * n * (n - 1.0))
    }

    fn peak(&self) -> f64 {
        (1..=LIMIT_MAX as usize).map(|n| self.speed(n)).fold(0.0, f64::max)
    }
}

/// One route with always somebody waiting.
struct Loop {
    law: Paired,
    meter: Meter,
    host: Host,
    /// Mean work of a request, seconds.
    work: f64,
    rng: Rng,
    variation: f64,
    now: Instant,
    next_tick: Instant,
    next_id: u64,
    /// Coefficient of variation of the shares that the host gives its requests.
    uneven: f64,
    running: Vec<Running>,
    done: Vec<f64>,
    out: Vec<Record>,
    failing: bool,
}

/// A request in the host: what is left of its work, and its part when the host is shared out.
struct Running {
    request: RequestId,
    left: f64,
    weight: f64,
    start: Instant,
}

const ROUTE: RouteId = RouteId(0);
const WORK: f64 = 0.1;

impl Loop {
    fn new(host: Host, variation: f64, seed: u64) -> Self {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        Loop {
            law,
            meter: Meter::new(Instant::ORIGIN),
            host,
            work: WORK,
            rng: Rng::new(seed),
            variation,
            uneven: 0.0,
            now: Instant::ORIGIN,
            next_tick: Instant::ORIGIN,
            next_id: 0,
            running: vec![],
            done: vec![],
            out: vec![],
            failing: false,
        }
    }

    fn run(&mut self, until: f64) {
        let until = Instant::ORIGIN + seconds(until);
        while self.now < until {
            while self.running.len() < self.law.limit(ROUTE) as usize {
                self.start();
            }
            let weights: f64 = self.running.iter().map(|running| running.weight).sum();
            let each = self.host.speed(self.running.len()) / weights;
            let least = self
                .running
                .iter()
                .map(|running| running.left / running.weight)
                .fold(f64::INFINITY, f64::min);
            let next = (self.now + seconds(least / each)).min(self.next_tick);
            let passed = next.secs_since(self.now) * each;
            self.running.iter_mut().for_each(|running| running.left -= passed * running.weight);
            self.now = next;
            self.end_done();
            if self.now >= self.next_tick {
                self.law.on_tick(self.now, std::slice::from_ref(&self.meter), &mut self.out);
                self.next_tick = self.now + seconds(0.25);
            }
        }
    }

    fn start(&mut self) {
        self.next_id += 1;
        let id = RequestId(self.next_id);
        let work = if self.failing { 0.001 } else { self.rng.lognormal(self.work, self.variation) };
        let weight = self.rng.lognormal(1.0, self.uneven);
        self.running.push(Running { request: id, left: work, weight, start: self.now });
        self.law.on_start(self.now, ROUTE, id, std::slice::from_ref(&self.meter));
        self.meter.load(self.now, self.running.len(), 100);
    }

    fn end_done(&mut self) {
        while let Some(index) = self.running.iter().position(|running| running.left <= 1e-7) {
            let Running { request, start, .. } = self.running.swap_remove(index);
            let service = self.now.secs_since(start);
            let progress = !self.failing;
            self.meter.end(service, progress);
            self.meter.load(self.now, self.running.len(), 100);
            let end = RequestEnd { route: ROUTE, request, service, progress };
            self.law.on_end(self.now, &end, std::slice::from_ref(&self.meter), &mut self.out);
            self.done.push(self.now.as_secs_f64());
        }
    }

    /// Throughput from `from` to `to` seconds as a share of the host's best.
    fn share(&self, from: f64, to: f64) -> f64 {
        let count = self.done.iter().filter(|at| (from..to).contains(*at)).count() as f64;
        count * self.work / (to - from) / self.host.peak()
    }
}

#[test]
fn it_finds_the_best_concurrency_and_stays_there() {
    for best in [4.0, 10.0, 30.0] {
        for seed in 1..=4 {
            let mut closed = Loop::new(Host::with_best(best), 0.2, seed);
            closed.run(400.0);
            let (soon, late) = (closed.share(15.0, 60.0), closed.share(200.0, 400.0));
            assert!(
                late >= 0.95,
                "n* {best} seed {seed}: {late:.3} of the best, limit {}",
                closed.law.limit(ROUTE)
            );
            assert!(soon >= 0.88, "n* {best} seed {seed}: {soon:.3} of the best in the first minute");
        }
    }
}

#[test]
fn a_host_that_shares_unevenly_does_not_mislead_it() {
    for seed in 1..=4 {
        let mut closed = Loop::new(Host::with_best(30.0), 0.2, seed);
        closed.uneven = 1.5;
        closed.run(400.0);
        let late = closed.share(200.0, 400.0);
        assert!(late >= 0.95, "seed {seed}: {late:.3} of the best, limit {}", closed.law.limit(ROUTE));
    }
}

#[test]
fn it_follows_a_best_that_moves() {
    for seed in 1..=4 {
        let mut closed = Loop::new(Host::with_best(20.0), 0.2, seed);
        closed.run(200.0);
        closed.host = Host::with_best(5.0);
        closed.run(500.0);
        let late = closed.share(350.0, 500.0);
        assert!(late >= 0.93, "seed {seed}: {late:.3} of the new best, limit {}", closed.law.limit(ROUTE));
    }
}

#[test]
fn a_quick_route_is_not_held_for_nothing() {
    // From two at once on it is busy: more bring no more, and less takes nothing from anybody.
    let mut closed = Loop::new(Host { contention: 0.98, coherence: 0.0 }, 0.2, 1);
    closed.work = 0.000_1;
    closed.run(60.0);
    let limit = closed.law.limit(ROUTE);
    assert!(
        (14..=30).contains(&limit),
        "10,000 a second: about 20 of them take 2 ms, and {limit} are let in"
    );
    closed.out.clear();
    closed.run(80.0);
    assert!(closed.out.len() <= 30, "{} limits in 20 s: it does not come to rest", closed.out.len());
}

#[test]
fn a_quick_route_that_suffers_from_company_is_held_all_the_same() {
    for seed in 1..=4 {
        let mut closed = Loop::new(Host::with_best(6.0), 0.2, seed);
        closed.work = 0.001;
        closed.run(60.0);
        let late = closed.share(30.0, 60.0);
        assert!(late >= 0.93, "seed {seed}: {late:.3} of the best, limit {}", closed.law.limit(ROUTE));
    }
}

#[test]
fn quick_errors_do_not_look_like_speed() {
    let mut closed = Loop::new(Host::with_best(4.0), 0.2, 1);
    closed.run(100.0);
    let before = closed.law.limit(ROUTE);
    closed.failing = true;
    closed.run(130.0);
    assert!(closed.law.limit(ROUTE) <= 2 * before, "{before} became {}", closed.law.limit(ROUTE));
}

/// Has `route` answer some requests in so many seconds, each alone in the application.
fn answered_in(route: &mut Route, seconds: f64) {
    for _ in 0..10 {
        route.service.fold(seconds);
        route.times.fold(1, seconds);
    }
}

/// Ticks through `seconds` with every slot of the only route in use, somebody waiting, and nothing ending.
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
    // Beside a route whose answers are on the way, it is taken to be in their way once there are more than cores.
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
fn a_page_that_takes_most_of_the_patience_by_itself_is_not_braked_for_it() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, Some(8));
    law.set_patience(15.0);
    assert!((law.stay_allowed(ROUTE) - 7.5).abs() < 1e-9, "half of the patience where nothing is known");
    answered_in(&mut law.routes[0], 8.0);
    assert!((law.stay_allowed(ROUTE) - 12.0).abs() < 1e-9, "half as long again as it takes alone");
    let mut quick = Paired::new(2);
    quick.add_route(Instant::ORIGIN, Some(8));
    quick.set_patience(15.0);
    answered_in(&mut quick.routes[0], 0.1);
    assert!((quick.stay_allowed(ROUTE) - 2.25).abs() < 1e-9, "0.15 of the patience");
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
    assert_eq!(out.iter().filter(|record| record.reason == Reason::Brake).count(), 1);
    let now = Instant::ORIGIN + seconds(4.0);
    assert!(law.routes[0].highest(now, LIMIT_MAX) < 64, "and it does not climb up there again");
    for quarter in 15..=80 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, std::slice::from_ref(&meter), &mut out);
    }
    assert_eq!(law.limit(ROUTE), 32, "those 64 are still there: a lower limit would change nothing yet");
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
    // The brake has just been pulled at 64.
    (law.routes[0].base, law.routes[0].limit) = (32, 32);
    law.routes[0].full_since = Some(Instant::ORIGIN);
    for quarter in 1..=4 * 300 {
        let now = Instant::ORIGIN + seconds(f64::from(quarter) * 0.25);
        law.on_tick(now, std::slice::from_ref(&meter), &mut vec![]);
        assert!(law.limit(ROUTE) <= 32, "{now:?}: nothing has ended");
    }
}

/// Pulls the brake where `inside` requests are in an application told to have 32 cores, of which `ended` have ended meanwhile; returns the law, and the record of it.
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
            (0..ended).for_each(|_| meter.end(0.5, true));
        }
    }
    let braked = out.into_iter().find(|record| record.reason == Reason::Brake);
    (law, braked.expect("the brake was pulled"))
}

#[test]
fn where_few_stay_too_long_already_the_cores_told_are_doubted_for_ten_minutes() {
    let (mut law, record) = braked_at(64, 1);
    assert_eq!((law.limit(ROUTE), law.trusted_cores()), (32, BRAKE_FLOOR));
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
    law.routes[0].fast = None;
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
fn what_the_brake_took_is_remembered_for_longer_than_the_brake_rests() {
    let mut route = route_at(32);
    // Patience of 300 s: the next look is after 150 s.
    route.brake_until = Instant::ORIGIN + seconds(150.0);
    route.braked(Instant::ORIGIN, 64);
    assert!(route.highest(Instant::ORIGIN + seconds(200.0), 1000) < 64);
}

#[test]
fn a_trial_at_a_route_that_nobody_waits_for_any_more_keeps_no_other_from_its_own() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.routes[0].fast = None;
    law.routes[0].pressure = 1.0;
    law.trial = Some(Trial::new(Instant::ORIGIN, ROUTE, 2, 4, vec![60.0], vec![0.01]));
    let mut meter = Meter::new(Instant::ORIGIN);
    meter.load(Instant::ORIGIN, 1, 0);
    let mut tick = |second: u32| {
        let now = Instant::ORIGIN + seconds(f64::from(second));
        law.on_tick(now, std::slice::from_ref(&meter), &mut vec![]);
        law.probing()
    };
    let ended = (1..600).find(|second| tick(*second).is_none());
    assert!(ended.is_some_and(|second| (5..60).contains(&second)), "{ended:?}: its windows take 40 minutes");
}

#[test]
fn a_trial_is_not_ended_for_the_room_that_a_very_long_page_is_given_by_the_time() {
    let room_at = |trial: Option<Trial>| {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        law.set_patience(120.0);
        (law.routes[0].base, law.routes[0].limit) = (8, 8);
        law.routes[0].fast = None;
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

#[test]
fn a_route_nobody_waits_for_is_left_alone() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    let mut meter = Meter::new(Instant::ORIGIN);
    let mut out = vec![];
    for n in 0..4000u32 {
        let now = Instant::ORIGIN + seconds(f64::from(n) * 0.25);
        law.on_start(now, ROUTE, RequestId(u64::from(n)), std::slice::from_ref(&meter));
        meter.load(now, 1, 0);
        let end = RequestEnd { route: ROUTE, request: RequestId(u64::from(n)), service: 0.1, progress: true };
        meter.end(0.1, true);
        meter.load(now + seconds(0.1), 0, 0);
        law.on_end(now + seconds(0.1), &end, std::slice::from_ref(&meter), &mut out);
        law.on_tick(now + seconds(0.2), std::slice::from_ref(&meter), &mut out);
    }
    assert!(out.is_empty() && law.limit(ROUTE) == 2 && law.probing().is_none());
}

fn route_at(base: u32) -> Route {
    Route::new(Meter::new(Instant::ORIGIN).read(Instant::ORIGIN), base, true)
}

#[test]
fn a_limit_that_was_much_worse_is_not_tried_again_for_a_minute_and_nothing_beyond_half_way_to_it() {
    let now = Instant::ORIGIN;
    let mut route = route_at(8);
    route.lose(now, 16);
    assert_eq!(route.next_probe(now, 100, 2), Some(11), "the geometric middle of 8 and 16");
    assert_eq!(route.next_probe(now + seconds(61.0), 100, 2), Some(16));
    route.up = false;
    route.lose(now, 4);
    assert_eq!(route.next_probe(now, 100, 2), Some(6), "and of 8 and 4");
    route.base = 20;
    route.up = true;
    route.forget_passed();
    assert_eq!(route.next_probe(now, 100, 2), Some(40), "the base has passed it");
}

#[test]
fn at_a_limit_between_two_that_were_much_worse_there_is_nothing_to_try() {
    let now = Instant::ORIGIN;
    let mut route = route_at(2);
    route.lose(now, 3);
    route.lose(now, 1);
    assert_eq!(route.next_probe(now, 100, 2), None);
}

#[test]
fn a_brake_during_a_trial_upward_goes_back_to_the_base_and_remembers_what_was_tried() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.set_patience(20.0);
    (law.routes[0].base, law.routes[0].limit) = (20, 40);
    law.routes[0].fast = None;
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
    let braked = |out: &[Record]| out.iter().any(|record| record.reason == Reason::Brake);
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

/// Returns the law of 4 cores with a page of 20 s at the limit 64, whose search is over, beside a short one; and the meters, with somebody waiting for it.
fn poll_beside_a_short_page() -> (Paired, [Meter; 2]) {
    let mut law = Paired::new(4);
    (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
    law.set_patience(120.0);
    let poll = &mut law.routes[0];
    (poll.base, poll.limit, poll.fast) = (64, 64, None);
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

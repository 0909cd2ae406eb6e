//! The law in a closed loop with a host whose best concurrency is known.

use super::*;
use crate::window::Meter;
use suimon_model::Rng;

mod backoff;
mod odds;
mod shares;
mod untried_raise;

/// A host by the Universal Scalability Law: work goes at n / (1 + s(n−1) + k·n(n−1)), best at n* =
/// √((1−s)/k).
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
            if progress {
                self.meter.answer(service);
            }
            self.meter.load(self.now, self.running.len(), 100);
            let end = RequestEnd { route: ROUTE, request, service, progress, says_work: progress };
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
    for (cores, work) in [(2, 0.001), (1, 0.000_07), (64, 0.000_07)] {
        for seed in 1..=4 {
            let mut closed = Loop::new(Host::with_best(6.0), 0.2, seed);
            closed.law = Paired::new(cores);
            closed.law.add_route(Instant::ORIGIN, None);
            closed.work = work;
            closed.run(60.0);
            let (late, limit) = (closed.share(30.0, 60.0), closed.law.limit(ROUTE));
            assert!(late >= 0.93, "{work} s, seed {seed}: {late:.3} of the best, limit {limit}");
            assert!(limit <= 12, "{work} s, seed {seed}: {limit}");
        }
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

/// Has `route` answer some requests in `seconds` each, each alone in the application.
fn answered_in(route: &mut Route, seconds: f64) {
    for _ in 0..10 {
        route.service.fold(seconds);
        route.times.fold(1, seconds);
    }
}

#[test]
fn a_trial_at_a_route_that_nobody_waits_for_any_more_keeps_no_other_from_its_own() {
    let mut law = Paired::new(2);
    law.add_route(Instant::ORIGIN, None);
    law.routes[0].slow_start = None;
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
fn a_trial_that_nobody_waits_for_any_more_is_over_within_seconds() {
    let ended = |waiting: usize| {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        (law.routes[0].slow_start, law.routes[0].pressure) = (None, 1.0);
        law.routes[0].service.fold(0.1);
        law.trial = Some(Trial::new(Instant::ORIGIN, ROUTE, 2, 4, vec![0.1], vec![10.0]));
        let mut meter = Meter::new(Instant::ORIGIN);
        meter.load(Instant::ORIGIN, 2, waiting);
        (1..40).find(|quarter| {
            let now = Instant::ORIGIN + seconds(f64::from(*quarter) * 0.25);
            law.on_tick(now, std::slice::from_ref(&meter), &mut vec![]);
            law.probing().is_none()
        })
    };
    assert!(ended(0).is_some_and(|quarter| (8..12).contains(&quarter)), "{:?}", ended(0));
    assert!(ended(3).is_none_or(|quarter| quarter > 16), "as long as somebody waits it goes on");
}

#[test]
fn fast_up_is_over_where_whatever_is_higher_was_much_worse() {
    let searched = |known_bad: Option<u32>| {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        known_bad.into_iter().for_each(|limit| law.routes[0].mark_known_bad(Instant::ORIGIN, limit));
        let mut meter = Meter::new(Instant::ORIGIN);
        meter.load(Instant::ORIGIN, 2, 10);
        for end in 1..=6_u32 {
            let (now, request) = (Instant::ORIGIN + seconds(f64::from(end) * 0.1), RequestId(end.into()));
            law.on_start(now, ROUTE, request, std::slice::from_ref(&meter));
            meter.load(now, 2, 10);
            meter.end(0.2, true);
            let end = RequestEnd { route: ROUTE, request, service: 0.2, progress: true, says_work: true };
            law.on_end(now, &end, std::slice::from_ref(&meter), &mut vec![]);
        }
        (law.limit(ROUTE), law.is_settled(ROUTE))
    };
    assert_eq!(searched(None), (3, false));
    assert_eq!(searched(Some(3)), (2, true), "trials tell the rest, and what it does shows what it can");
}

#[test]
fn no_limit_rises_while_caps_of_services_move() {
    let mut closed = Loop::new(Host::with_best(16.0), 0.3, 1);
    closed.law.set_tries(ROUTE, false);
    closed.run(30.0);
    assert_eq!(closed.law.limit(ROUTE), 2);
    closed.law.set_tries(ROUTE, true);
    closed.run(60.0);
    assert!(closed.law.limit(ROUTE) > 6, "{}", closed.law.limit(ROUTE));
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
        let end = RequestEnd {
            route: ROUTE,
            request: RequestId(u64::from(n)),
            service: 0.1,
            progress: true,
            says_work: true,
        };
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
    route.mark_known_bad(now, 16);
    assert_eq!(route.next_probe(now, 100, 2), Some(11), "the geometric middle of 8 and 16");
    assert_eq!(route.next_probe(now + seconds(61.0), 100, 2), Some(16));
    route.up = false;
    route.mark_known_bad(now, 4);
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
    route.mark_known_bad(now, 3);
    route.mark_known_bad(now, 1);
    assert_eq!(route.next_probe(now, 100, 2), None);
}

//! How long requests may stay and be quick, on a host whose cores are shared equally.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// Seconds of a light page, about those of a small servlet.
const LIGHT: f64 = 0.000_07;

/// Visitors who ask for one page again and again.
#[derive(Clone, Copy)]
struct Visitors {
    count: u32,
    /// Mean seconds of a core that the page takes.
    work: f64,
    /// Mean seconds between an answer and the next request.
    think: f64,
}

/// Several routes, each with visitors of its own, on cores that all requests share alike.
struct Site {
    law: Paired,
    cores: f64,
    routes: Vec<Visitors>,
    meters: Vec<Meter>,
    waiting: Vec<usize>,
    inside: Vec<usize>,
    thinking: BTreeSet<(Instant, RouteId, u32)>,
    /// What is being worked on, by the work that each will have had when it ends.
    running: BTreeMap<(u64, RequestId), (RouteId, Instant)>,
    /// Work that each has had that has been there from the beginning, seconds.
    had: f64,
    now: Instant,
    next_tick: Instant,
    next_id: u64,
    rng: Rng,
    /// Requests so far, and those of them that had to wait for a slot.
    asked: f64,
    waited: f64,
}

impl Site {
    fn new(cores: u32, routes: &[Visitors]) -> Self {
        let mut site = Site {
            law: Paired::new(cores),
            cores: f64::from(cores),
            routes: vec![],
            meters: vec![],
            waiting: vec![],
            inside: vec![],
            thinking: BTreeSet::new(),
            running: BTreeMap::new(),
            had: 0.0,
            now: Instant::ORIGIN,
            next_tick: Instant::ORIGIN,
            next_id: 0,
            rng: Rng::new(1),
            asked: 0.0,
            waited: 0.0,
        };
        routes.iter().for_each(|visitors| site.add(*visitors));
        site
    }

    fn add(&mut self, visitors: Visitors) {
        let route = RouteId(self.routes.len() as u32);
        self.law.add_route(self.now, None);
        self.meters.push(Meter::new(self.now));
        self.routes.push(visitors);
        self.waiting.push(0);
        self.inside.push(0);
        (0..visitors.count).for_each(|visitor| self.think(route, visitor));
    }

    fn think(&mut self, route: RouteId, visitor: u32) {
        let mean = self.routes[route.index()].think;
        let at = self.now + seconds(self.rng.lognormal(mean, 1.0));
        self.thinking.insert((at, route, visitor));
    }

    fn run(&mut self, until: f64) {
        let until = Instant::ORIGIN + seconds(until);
        while self.now < until {
            for route in (0..self.routes.len()).map(|index| RouteId(index as u32)) {
                while self.waiting[route.index()] > 0 && !self.is_full(route) {
                    self.waiting[route.index()] -= 1;
                    self.start(route);
                }
            }
            let speed = (self.cores / self.running.len().max(1) as f64).min(1.0);
            let end = self.running.first_key_value().map(|((tag, _), _)| {
                self.now + seconds(((f64::from_bits(*tag) - self.had) / speed).max(0.0) + 1e-9)
            });
            let thought = self.thinking.first().map(|(at, ..)| *at);
            let next = [end, thought].into_iter().flatten().fold(self.next_tick, Instant::min);
            self.had += next.secs_since(self.now) * speed;
            self.now = next;
            if thought == Some(next) {
                let (_, route, _) = self.thinking.pop_first().expect("somebody thinks");
                self.asked += 1.0;
                self.waited += f64::from(u8::from(self.is_full(route)));
                self.waiting[route.index()] += 1;
                self.load(route);
            } else if end == Some(next) {
                self.end();
            } else {
                self.law.on_tick(self.now, &self.meters, &mut vec![]);
                self.next_tick = self.now + seconds(0.25);
            }
        }
    }

    fn is_full(&self, route: RouteId) -> bool {
        self.inside[route.index()] >= self.law.limit(route) as usize
    }

    /// Returns the share of the requests of the next `length` seconds that have to wait for a slot.
    fn waiting_share(&mut self, length: f64) -> f64 {
        (self.asked, self.waited) = (0.0, 0.0);
        self.run(self.now.as_secs_f64() + length);
        self.waited / self.asked
    }

    fn limits(&self) -> u32 {
        (0..self.routes.len()).map(|index| self.law.limit(RouteId(index as u32))).sum()
    }

    /// Returns the longest mean stay at a route.
    fn stay(&self) -> f64 {
        self.law.longest_stay(self.now)
    }

    fn load(&mut self, route: RouteId) {
        let index = route.index();
        self.meters[index].load(self.now, self.inside[index], self.waiting[index]);
    }

    fn start(&mut self, route: RouteId) {
        self.next_id += 1;
        let request = RequestId(self.next_id);
        let work = self.rng.lognormal(self.routes[route.index()].work, 0.5);
        self.running.insert(((self.had + work).to_bits(), request), (route, self.now));
        self.inside[route.index()] += 1;
        self.law.on_start(self.now, route, request, &self.meters);
        self.load(route);
    }

    fn end(&mut self) {
        let ((_, request), (route, start)) = self.running.pop_first().expect("somebody is inside");
        let service = self.now.secs_since(start);
        self.inside[route.index()] -= 1;
        self.meters[route.index()].end(service, true);
        self.load(route);
        let end = RequestEnd { route, request, service, progress: true, says_work: true };
        self.law.on_end(self.now, &end, &self.meters, &mut vec![]);
        self.think(route, request.0 as u32);
    }
}

#[test]
fn light_pages_need_not_wait_as_long_as_nobody_stays_long() {
    // On one core 28 light ones stay for 2 ms, and 140 for 10 ms.
    for routes in [1, 4, 6] {
        let mut site =
            Site::new(1, &vec![Visitors { count: 180 / routes, work: LIGHT, think: 0.005 }; routes as usize]);
        site.run(20.0);
        let waiting = site.waiting_share(5.0);
        let (limits, stay) = (site.limits(), site.stay());
        assert!(waiting < 0.4, "{routes} routes: {waiting:.2} wait, {limits} are let in, for {stay:.4} s");
        assert!(stay < 0.012, "{routes} routes: {limits} are let in, for {stay:.4} s");
    }
}

#[test]
fn light_pages_on_many_cores_stay_no_longer() {
    let mut site = Site::new(64, &[Visitors { count: 20, work: 0.001, think: 0.01 }; 3]);
    site.run(2.0);
    (0..3).for_each(|route| (20..800).for_each(|visitor| site.think(RouteId(route), visitor)));
    site.run(7.0);
    let (limits, stay) = (site.limits(), site.stay());
    assert!((300..1000).contains(&limits), "{limits} are let in: of 640 each has a tenth of a core");
    assert!(stay < 0.012, "{limits} are let in, for {stay:.4} s");
}

#[test]
fn light_pages_take_no_more_of_its_core_from_one_that_computes_for_longer() {
    let heavy = Visitors { count: 10, work: 0.2, think: 1.0 };
    for routes in [1, 4] {
        let light = vec![Visitors { count: 200 / routes, work: LIGHT, think: 0.005 }; routes as usize];
        // The most that are let in, of which 28 stay for 2 ms and 140 for 10 ms.
        let most = |site: &mut Site, from: u32, until: u32| {
            let quarters = (from..until).map(|quarter| {
                site.run(f64::from(quarter) * 0.25);
                site.law.routes[..routes as usize].iter().map(|route| route.base).sum::<u32>()
            });
            quarters.max().expect("there are some")
        };
        let mut site = Site::new(1, &[&light[..], &[heavy]].concat());
        let limit = most(&mut site, 20, 80);
        assert!(limit <= 60, "{routes} routes beside a heavy page: {limit} are let in");
        let mut site = Site::new(1, &light);
        let before = most(&mut site, 80, 81);
        assert!(before >= 90, "{routes} routes alone: {before} are let in");
        site.add(heavy);
        let limit = most(&mut site, 90, 140);
        assert!(limit <= 60, "{routes} routes: {before} became {limit} when the heavy page was asked for");
    }
}

#[test]
fn a_page_is_light_once_it_was_seen_to_take_little_whatever_the_company() {
    let quick_until = |companies: &[(u32, f64)]| {
        let mut route = route_at(2);
        for (company, seconds) in companies {
            (0..100).for_each(|_| route.times.fold(*company, *seconds));
        }
        route.quick_until(0.009)
    };
    let [light, any] = [0.01, 0.002];
    let is = |companies: &[(u32, f64)], expected: f64| (quick_until(companies) - expected).abs() < 1e-9;
    assert!(is(&[], any), "nothing is known");
    assert!(is(&[(1, 0.000_07)], light));
    assert!(is(&[(1, 0.000_07), (100, 0.007)], light), "whatever the limit has become");
    assert!(is(&[(1, 0.03), (24, 0.0017)], light), "those that were alone met a cold application");
    assert!(is(&[(100, 0.007)], any), "it may have been the company, or not");
    assert!(is(&[(1, 0.005), (2, 0.005)], any), "it takes longer alone");
}

#[test]
fn nobody_is_light_where_one_route_in_use_keeps_its_requests_for_long() {
    let mut law = Paired::new(1);
    (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
    let quick_until = |law: &Paired, at: f64| {
        law.routes[0].quick_until(law.longest_stay(Instant::ORIGIN + seconds(at))) > 0.005
    };
    (0..100).for_each(|_| answered_in(&mut law.routes[0], LIGHT));
    assert!(quick_until(&law, 0.0));
    let meters = [Meter::new(Instant::ORIGIN), Meter::new(Instant::ORIGIN)];
    law.on_start(Instant::ORIGIN, RouteId(1), RequestId(1), &meters);
    assert!(!quick_until(&law, 0.0), "it is not known how long it will stay");
    let answer = RequestEnd {
        route: RouteId(1),
        request: RequestId(1),
        service: 0.5,
        progress: true,
        says_work: true,
    };
    law.on_end(Instant::ORIGIN + seconds(0.5), &answer, &meters, &mut vec![]);
    assert!(!quick_until(&law, 10.0), "it may come again");
    assert!(quick_until(&law, 30.0), "nobody has asked for it since");
}

#[test]
fn a_route_that_many_paths_share_is_never_light() {
    let mut law = Paired::new(1);
    law.add_route(Instant::ORIGIN, None);
    (0..100).for_each(|_| answered_in(&mut law.routes[0], LIGHT));
    assert!(law.routes[0].quick_until(0.0) > 0.005);
    law.routes[0].is_mixed = true;
    assert!(law.routes[0].quick_until(0.0) < 0.005);
}

/// Returns what the limit of a light page is, 140 of which stay for `stay` seconds, once another
/// page has not been answered for a second.
fn limit_taken_back(cores: u32, stay: f64) -> u32 {
    let now = Instant::ORIGIN + seconds(1.0);
    let mut law = Paired::new(cores);
    (0..2).for_each(|_| law.add_route(Instant::ORIGIN, None));
    let light = &mut law.routes[0];
    (light.base, light.limit, light.slow_start) = (140, 140, None);
    // Few came for long: the best rate has faded.
    light.rate_max = 3.0;
    light.service.fold(stay);
    (0..50).for_each(|_| light.times.fold(1, LIGHT));
    let inside = InService { since: Instant::ORIGIN, company: 1 };
    light.in_service.extend((0..140).map(|id| (RequestId(id), inside)));
    law.routes[1].in_service.insert(RequestId(140), inside);
    let mut records = vec![];
    law.take_back(now, ROUTE, &Meter::new(Instant::ORIGIN), &mut records);
    assert!(records.iter().all(|record| record.reason == Reason::TakenBack), "{records:?}");
    law.limit(ROUTE)
}

#[test]
fn what_is_taken_back_leaves_what_stays_for_2_ms_now() {
    assert_eq!(limit_taken_back(1, 0.01), 28);
    assert_eq!(limit_taken_back(2, 0.01), 28, "140 of them take 4.9 ms of two cores");
    assert_eq!(limit_taken_back(1, 0.001), 140, "they are quick");
    assert_eq!(limit_taken_back(1, 0.05), 140, "they wait for something else");
    assert_eq!(limit_taken_back(64, 0.01), 140, "they are little work for so many cores");
}

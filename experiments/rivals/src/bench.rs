//! The test bench of the laws: one route whose requests share a host.

use super::per_route::{PerRoute, Sample, SingleLimit};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use suimon_control::{Meter, RequestEnd, RouteLaw};
use suimon_model::{Duration, Instant, Record, RequestId, Rng, RouteId, TraceHash, seconds};

const ROUTE: RouteId = RouteId(0);
const TICK: Duration = Duration::from_millis(250);
const SEED: u64 = 41;

/// Returns a request that started at the origin with `in_flight` in the application.
pub(crate) fn sample(service: f64, in_flight: u32) -> Sample {
    Sample {
        started: Instant::ORIGIN,
        service,
        in_flight,
        remaining: in_flight.saturating_sub(1),
        failed: false,
    }
}

/// One route in a closed loop with its law.
pub(crate) struct Bench {
    law: Box<dyn RouteLaw>,
    service: Box<dyn Fn(u32) -> f64>,
    noise: f64,
    failures: f64,
    rng: Rng,
    meter: Meter,
    now: Instant,
    tick: Instant,
    /// Work that each request in the application has been given since the beginning, in requests.
    given: f64,
    /// The requests in the application: the bits of the work at which each ends (they order like
    /// the numbers), its id, and its start.
    running: BinaryHeap<Reverse<(u64, u64, Instant)>>,
    next: u64,
    /// Every record so far.
    pub(crate) records: Vec<Record>,
    /// Ends so far.
    pub(crate) ends: u64,
}

impl Bench {
    /// Returns a route on which a request takes `service(n)` seconds while n share the host.
    pub(super) fn new<L: SingleLimit + 'static>(law: L, service: impl Fn(u32) -> f64 + 'static) -> Self {
        Bench::of(Box::new(PerRoute::new(law)), None, service)
    }

    /// Returns the same for a law of routes; `fixed` as in [`RouteLaw::add_route`].
    pub(crate) fn of(
        mut law: Box<dyn RouteLaw>,
        fixed: Option<u32>,
        service: impl Fn(u32) -> f64 + 'static,
    ) -> Self {
        law.add_route(Instant::ORIGIN, fixed);
        Bench {
            law,
            service: Box::new(service),
            noise: 0.0,
            failures: 0.0,
            rng: Rng::new(SEED),
            meter: Meter::new(Instant::ORIGIN),
            now: Instant::ORIGIN,
            tick: Instant::ORIGIN + TICK,
            given: 0.0,
            running: BinaryHeap::new(),
            next: 0,
            records: vec![],
            ends: 0,
        }
    }

    /// Sets the coefficient of variation of the service times and the share of failures.
    pub(crate) fn noisy(mut self, noise: f64, failures: f64) -> Self {
        (self.noise, self.failures) = (noise, failures);
        self
    }

    /// Changes the service times.
    pub(crate) fn set_service(&mut self, service: impl Fn(u32) -> f64 + 'static) {
        self.service = Box::new(service);
    }

    /// Continues for `secs` seconds with more requests than can be served; returns the limit at
    /// every tick.
    pub(crate) fn saturated(&mut self, secs: f64) -> Vec<u32> {
        self.asked(u32::MAX, secs)
    }

    /// Continues for `secs` seconds with `demand` requests at once, or as many as the limit admits.
    pub(crate) fn asked(&mut self, demand: u32, secs: f64) -> Vec<u32> {
        let until = self.now + seconds(secs);
        let mut limits = vec![];
        loop {
            self.start(demand);
            let next = self.next_end().map_or(self.tick, |end| end.min(self.tick));
            if next > until {
                self.advance(until);
                return limits;
            }
            self.advance(next);
            if next == self.tick {
                self.tick = next + TICK;
                self.law.on_tick(next, std::slice::from_ref(&self.meter), &mut self.records);
                limits.push(self.limit());
            } else {
                self.end();
            }
        }
    }

    /// Returns the limit in force.
    pub(crate) fn limit(&self) -> u32 {
        self.law.limit(ROUTE)
    }

    /// Returns the hash of all decisions.
    pub(crate) fn trace(&self) -> TraceHash {
        let mut hash = TraceHash::default();
        self.records.iter().for_each(|record| hash.record(record));
        hash
    }

    /// Returns the seconds that one whole request takes while the present requests share the host.
    fn pace(&self) -> f64 {
        (self.service)(self.running.len() as u32)
    }

    fn next_end(&self) -> Option<Instant> {
        let Reverse((work, ..)) = self.running.peek()?;
        Some(self.now + seconds((f64::from_bits(*work) - self.given) * self.pace()))
    }

    fn advance(&mut self, now: Instant) {
        if !self.running.is_empty() {
            self.given += now.secs_since(self.now) / self.pace();
        }
        self.now = now;
    }

    fn start(&mut self, demand: u32) {
        while (self.running.len() as u32) < demand.min(self.limit()) {
            let request = self.next;
            self.next += 1;
            let end = self.given + self.rng.lognormal(1.0, self.noise);
            self.running.push(Reverse((end.to_bits(), request, self.now)));
            self.meter.load(self.now, self.running.len(), 1);
            self.law.on_start(self.now, ROUTE, RequestId(request), std::slice::from_ref(&self.meter));
        }
    }

    fn end(&mut self) {
        let Some(Reverse((work, request, started))) = self.running.pop() else { return };
        self.given = f64::from_bits(work);
        self.ends += 1;
        let service = self.now.secs_since(started);
        let progress = !self.rng.chance(self.failures);
        self.meter.end(service, progress);
        self.meter.load(self.now, self.running.len(), 1);
        let end =
            RequestEnd { route: ROUTE, request: RequestId(request), service, progress, says_work: progress };
        self.law.on_end(self.now, &end, std::slice::from_ref(&self.meter), &mut self.records);
    }
}

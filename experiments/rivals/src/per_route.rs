//! Common to all rival route laws: one small law per route, and the accounts kept for it.
//!
//! A rival knows one limit and is told of starts and ends. [`PerRoute`] makes a [`RouteLaw`] of it:
//! it keeps the start of each request in the application and the mean service times, and writes a
//! record of each change of a limit.

use std::collections::BTreeMap;
use suimon_control::{Average, Meter, RequestEnd, RouteLaw};
use suimon_model::{Instant, Quantity, Reason, Record, RequestId, RouteId, Signals, Subject};

/// The weight of the newest service time in the published mean.
const SERVICE_WEIGHT: f64 = 0.02;

/// Where a rival's limit begins, and the bounds within which it stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The limit to start from.
    pub initial: u32,
    /// The lowest limit.
    pub least: u32,
    /// The highest limit.
    pub most: u32,
}

impl Bounds {
    /// Returns valid bounds: at least 1, and in order.
    pub fn checked(self) -> Self {
        let least = self.least.max(1);
        let most = self.most.max(least);
        Bounds { initial: self.initial.clamp(least, most), least, most }
    }

    /// Returns the limit within the bounds that is nearest to `limit`.
    pub(super) fn hold(&self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.least), f64::from(self.most))
    }

    /// Returns `limit` within the bounds, rounded down.
    pub(super) fn whole(&self, limit: f64) -> u32 {
        self.hold(limit) as u32
    }
}

/// A request that has left the application, in the terms of the laws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When it entered the application.
    pub(super) started: Instant,
    /// Seconds it was in the application.
    pub(super) service: f64,
    /// Requests in the application when it started, itself included.
    pub(super) in_flight: u32,
    /// Requests in the application after it left.
    pub(super) remaining: u32,
    /// Whether the application failed.
    pub(super) failed: bool,
}

/// A rule that finds the limit of one route, and does not know other routes.
pub(super) trait SingleLimit: Clone + std::fmt::Debug + Send {
    /// Begins at `now`; `stream` separates this route's random numbers from those of other routes.
    fn begin(&mut self, _now: Instant, _stream: u64) {}

    /// Returns the limit in force.
    fn limit(&self) -> u32;

    /// Returns the numbers from which the limit follows.
    fn signals(&self) -> Signals;

    /// Notes that a request started, and that `in_flight` are in the application now.
    fn on_start(&mut self, _in_flight: u32) {}

    /// Notes that a request has left the application.
    fn on_end(&mut self, now: Instant, sample: &Sample);

    /// Does what is due about every 250 ms.
    fn on_tick(&mut self, _now: Instant) {}
}

/// Ends gathered since a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    /// When it began.
    pub(super) begin: Instant,
    /// All ends.
    pub(super) ends: u32,
    /// Ends with a failure of the application.
    pub(super) failed: u32,
    /// Seconds in the application, over all ends.
    pub(super) service: f64,
    /// The most requests in the application at once when one of these started.
    pub(super) in_flight_max: u32,
}

impl Batch {
    pub(super) fn new(now: Instant) -> Self {
        Batch { begin: now, ..Batch::default() }
    }

    pub(super) fn fold(&mut self, sample: &Sample) {
        self.ends += 1;
        self.failed += u32::from(sample.failed);
        self.service += sample.service;
        self.in_flight_max = self.in_flight_max.max(sample.in_flight);
    }

    /// Returns ends per second until `now`; 0 for an empty batch.
    pub(super) fn throughput(&self, now: Instant) -> f64 {
        let seconds = now.secs_since(self.begin);
        if seconds > 0.0 { f64::from(self.ends) / seconds } else { 0.0 }
    }
}

/// A single-limit law for each route; none knows the others.
#[derive(Clone, Debug)]
pub(super) struct PerRoute<L> {
    prototype: L,
    routes: Vec<Route<L>>,
}

#[derive(Clone, Debug)]
struct Route<L> {
    rule: Rule<L>,
    service: Average,
    in_service: BTreeMap<RequestId, Started>,
}

#[derive(Clone, Debug)]
enum Rule<L> {
    Fixed(u32),
    Learned(L),
}

/// A request in the application: its start, and how many were there then, itself included.
#[derive(Clone, Copy, Debug)]
struct Started {
    at: Instant,
    in_flight: u32,
}

impl<L: SingleLimit> PerRoute<L> {
    /// Returns laws for no routes yet; each new one is a copy of `prototype`.
    pub(super) fn new(prototype: L) -> Self {
        PerRoute { prototype, routes: vec![] }
    }

    fn unknown_route(&self, now: Instant, index: usize, fixed: Option<u32>) -> Route<L> {
        let learned = || {
            let mut law = self.prototype.clone();
            law.begin(now, index as u64);
            Rule::Learned(law)
        };
        let rule = fixed.map_or_else(learned, |limit| Rule::Fixed(limit.max(1)));
        Route { rule, service: Average::new(SERVICE_WEIGHT), in_service: BTreeMap::new() }
    }
}

impl<L: SingleLimit> RouteLaw for PerRoute<L> {
    fn add_route(&mut self, now: Instant, fixed: Option<u32>) {
        let route = self.unknown_route(now, self.routes.len(), fixed);
        self.routes.push(route);
    }

    fn renew_route(&mut self, now: Instant, route: RouteId, fixed: Option<u32>, _meter: &Meter) {
        self.routes[route.index()] = self.unknown_route(now, route.index(), fixed);
    }

    fn limit(&self, route: RouteId) -> u32 {
        match &self.routes[route.index()].rule {
            Rule::Fixed(limit) => *limit,
            Rule::Learned(law) => law.limit(),
        }
    }

    fn service(&self, route: RouteId) -> Option<f64> {
        self.routes[route.index()].service.get()
    }

    fn on_start(&mut self, now: Instant, route: RouteId, request: RequestId, _meters: &[Meter]) {
        let route = &mut self.routes[route.index()];
        let in_flight = route.in_service.len() as u32 + 1;
        route.in_service.insert(request, Started { at: now, in_flight });
        if let Rule::Learned(law) = &mut route.rule {
            law.on_start(in_flight);
        }
    }

    fn on_end(&mut self, now: Instant, end: &RequestEnd, _meters: &[Meter], out: &mut Vec<Record>) {
        let route = &mut self.routes[end.route.index()];
        route.service.fold(end.service);
        // A request that started before this law was installed is ignored.
        let Some(started) = route.in_service.remove(&end.request) else { return };
        let sample = Sample {
            started: started.at,
            service: end.service,
            in_flight: started.in_flight,
            remaining: route.in_service.len() as u32,
            failed: !end.progress,
        };
        route.tell(now, end.route, out, |law| law.on_end(now, &sample));
    }

    fn on_tick(&mut self, now: Instant, _meters: &[Meter], out: &mut Vec<Record>) {
        for (index, route) in self.routes.iter_mut().enumerate() {
            route.tell(now, RouteId(index as u32), out, |law| law.on_tick(now));
        }
    }
}

impl<L: SingleLimit> Route<L> {
    /// Passes an event to the law of the route, if it has one, and records what that changed.
    fn tell(&mut self, now: Instant, id: RouteId, out: &mut Vec<Record>, say: impl FnOnce(&mut L)) {
        let Rule::Learned(law) = &mut self.rule else { return };
        let old = law.limit();
        say(law);
        let new = law.limit();
        if new != old {
            out.push(Record {
                at: now,
                subject: Subject::Route(id),
                quantity: Quantity::Limit,
                old: f64::from(old),
                new: f64::from(new),
                reason: Reason::Rival,
                signals: law.signals(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    /// Uses as its limit the number in flight when the last ended request started.
    #[derive(Clone, Debug)]
    struct Echo(u32);

    impl SingleLimit for Echo {
        fn limit(&self) -> u32 {
            self.0
        }

        fn signals(&self) -> Signals {
            Signals::none().with("in_flight", f64::from(self.0))
        }

        fn on_end(&mut self, _now: Instant, sample: &Sample) {
            self.0 = sample.in_flight;
        }
    }

    fn end(route: RouteId, request: u64) -> RequestEnd {
        RequestEnd { route, request: RequestId(request), service: 0.1, progress: true, says_work: true }
    }

    #[test]
    fn a_change_is_recorded_with_both_limits_and_the_law_s_numbers() {
        let (mut law, mut out, now) = (PerRoute::new(Echo(7)), vec![], Instant::ORIGIN + seconds(1.0));
        law.add_route(Instant::ORIGIN, None);
        law.add_route(Instant::ORIGIN, None);
        (1..=3).for_each(|n| law.on_start(now, RouteId(1), RequestId(n), &[]));
        law.on_end(now, &end(RouteId(1), 2), &[], &mut out);
        assert_eq!((law.limit(RouteId(0)), law.limit(RouteId(1))), (7, 2));
        assert_eq!(law.service(RouteId(1)), Some(0.1));
        let [record] = out.as_slice() else { panic!("one change, {} records", out.len()) };
        assert_eq!((record.subject, record.reason), (Subject::Route(RouteId(1)), Reason::Rival));
        assert!((record.old - 7.0).abs() < 1e-9 && (record.new - 2.0).abs() < 1e-9);
        assert_eq!(record.signals, law_signals(2));
        law.on_start(now, RouteId(1), RequestId(4), &[]);
        law.on_end(now, &end(RouteId(1), 4), &[], &mut out);
        assert_eq!((law.limit(RouteId(1)), out.len()), (3, 2), "two were left and it was the third");
    }

    fn law_signals(in_flight: u32) -> Signals {
        Echo(in_flight).signals()
    }

    #[test]
    fn a_given_limit_is_never_learned() {
        let (mut law, mut out, now) = (PerRoute::new(Echo(7)), vec![], Instant::ORIGIN);
        law.add_route(now, Some(4));
        law.on_start(now, RouteId(0), RequestId(1), &[]);
        law.on_end(now, &end(RouteId(0), 1), &[], &mut out);
        law.on_tick(now, &[], &mut out);
        assert_eq!((law.limit(RouteId(0)), out.len()), (4, 0));
    }

    #[test]
    fn bounds_are_put_in_order() {
        let bounds = Bounds { initial: 0, least: 0, most: 0 }.checked();
        assert_eq!(bounds, Bounds { initial: 1, least: 1, most: 1 });
        assert_eq!(Bounds { initial: 90, least: 5, most: 20 }.checked().initial, 20);
        assert_eq!((bounds.whole(9.9), Bounds { most: 20, ..bounds }.whole(9.9)), (1, 9));
    }
}

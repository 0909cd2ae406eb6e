//! Services: which routes each one has, its cap, and the requests that its pause holds.

use crate::api::{PausePlace, ServiceParams, Services};
use std::collections::BTreeSet;
use suimon_control::{Credit, Degradation, Meter, PauseShare, Reading};
use suimon_model::{Duration, Instant, RequestId, RouteId, ServiceId, seconds};

/// Slots beyond the limit of a route while a cap holds another service back. The limit was found
/// beside those requests, which kept the cores at work; without them a core idles while each answer
/// is on its way out and the next request on its way in.
const SPARE: u32 = 1;
/// Seconds in the application from which that time does not count.
const SPARE_BELOW: f64 = 0.05;

/// The share of the requests before that still counts in the ratio shown, once another one has ended.
const SHOWN_KEPT: f64 = 0.95;

/// The services of a gate. Where none is declared nothing of it is ever asked.
#[derive(Debug, Default)]
pub(crate) struct ServiceGates {
    pub(crate) declared: Services,
    pub(crate) law: Option<Degradation>,
    pub(crate) gates: Vec<ServiceGate>,
    /// By route: its service.
    of: Vec<Option<ServiceId>>,
}

suimon_model::saved_struct!(ServiceGates { declared, law, gates, of });

/// One service.
#[derive(Debug)]
pub(crate) struct ServiceGate {
    pub(crate) credit: Credit,
    /// Its routes, and where the meter of each stood at the last tick.
    pub(crate) routes: Vec<(RouteId, Reading)>,
    /// Requests that its pause holds, by when it is over, which is the order in which they came.
    pub(crate) paused: BTreeSet<(Instant, RequestId)>,
    /// How many of them are beyond their session's budget.
    pub(crate) paused_beyond: usize,
    /// The route that has a slot beyond its limit.
    spare: Option<RouteId>,
    /// Of the last requests that were told to pause inside, seconds of work and of pause. For show.
    inside: (f64, f64),
}

suimon_model::saved_struct!(ServiceGate { credit, routes, paused, paused_beyond, spare } without { inside });

impl ServiceGate {
    /// Returns the ratio at which requests pause inside that are told to; `None`: none was.
    pub(crate) fn ratio_reached(&self) -> Option<f64> {
        let (worked, rested) = self.inside;
        (worked > 0.0).then(|| rested / worked)
    }
}

impl ServiceGates {
    /// Returns services as they are declared, of which nothing is known. `meters`: by route.
    /// Routes that are not there, and routes that an earlier service has, are left out.
    pub(crate) fn new(declared: Services, meters: &[Meter], now: Instant) -> Self {
        let mut of = vec![None; meters.len()];
        let mut gates = vec![];
        for (id, service) in (0..).map(ServiceId).zip(&declared.services) {
            let mut routes = vec![];
            for route in &service.routes {
                if let Some(own @ None) = of.get_mut(route.index()) {
                    *own = Some(id);
                    routes.push((*route, meters[route.index()].read(now)));
                }
            }
            gates.push(ServiceGate {
                credit: Credit::new(now),
                routes,
                paused: BTreeSet::new(),
                paused_beyond: 0,
                spare: None,
                inside: (0.0, 0.0),
            });
        }
        let wishes: Vec<_> = declared.services.iter().map(|service| service.wish.clone()).collect();
        let law = (!wishes.is_empty()).then(|| Degradation::new(declared.mode, &wishes, now));
        ServiceGates { declared, law, gates, of }
    }

    /// Takes other wishes for the same services, with all that is known and in force; returns
    /// whether these are the same services.
    pub(crate) fn adopt(&mut self, services: &Services) -> bool {
        let are_same = |(own, other): (&ServiceParams, &ServiceParams)| {
            own.name == other.name && own.routes == other.routes
        };
        let own = &self.declared.services;
        let Some(law) = self.law.as_mut().filter(|_| {
            own.len() == services.services.len() && own.iter().zip(&services.services).all(are_same)
        }) else {
            return false;
        };
        let wishes: Vec<_> = services.services.iter().map(|service| service.wish.clone()).collect();
        law.adopt(services.mode, &wishes);
        self.declared = services.clone();
        true
    }

    /// Returns the service of `route`, if it has one.
    pub(crate) fn of(&self, route: RouteId) -> Option<ServiceId> {
        self.of.get(route.index()).copied().flatten()
    }

    /// Returns whether the service of `route`, if it has one, holds back what waits there.
    pub(crate) fn is_capped(&self, route: RouteId) -> bool {
        self.of(route).is_some_and(|id| self.gates[id.index()].credit.cap().is_some())
    }

    /// Returns how many requests of `route` may be in the application beyond its limit.
    pub(crate) fn spare(&self, route: RouteId) -> u32 {
        let gate = self.of(route).and_then(|id| self.gates.get(id.index()));
        if gate.is_some_and(|gate| gate.spare == Some(route)) { SPARE } else { 0 }
    }

    /// Gives a spare slot to the busiest route of each service without a cap, if its requests are
    /// quick and a cap holds others back. `seconds` in the application and `rate` of a route;
    /// `waits`: whether somebody does there.
    pub(crate) fn give_spare_slots(
        &mut self,
        seconds: impl Fn(RouteId) -> Option<f64>,
        rate: impl Fn(RouteId) -> f64,
        waits: impl Fn(RouteId) -> bool,
    ) {
        let has_cap = |gate: &ServiceGate| gate.credit.cap().is_some();
        let holds = |gate: &ServiceGate| has_cap(gate) && gate.routes.iter().any(|(route, _)| waits(*route));
        let is_held = self.gates.iter().any(holds);
        for gate in &mut self.gates {
            let routes = gate.routes.iter().map(|(route, _)| *route).filter(|_| is_held && !has_cap(gate));
            let busiest = routes.max_by(|a, b| rate(*a).total_cmp(&rate(*b)));
            gate.spare = busiest.filter(|route| seconds(*route).is_some_and(|it| it < SPARE_BELOW));
        }
    }

    /// Returns whether the service of `route`, if it has one, has a pause.
    pub(crate) fn pauses(&self, route: RouteId) -> bool {
        self.of(route).is_some_and(|id| !self.pause(id).is_zero())
    }

    /// Returns for how long a request of `service` is held before it goes on, whether or not there is
    /// a cap.
    pub(crate) fn pause(&self, service: ServiceId) -> Duration {
        let declared = &self.declared.services[service.index()];
        if declared.pauses == PausePlace::Inside || declared.pause_ratio == 0.0 {
            return declared.pause;
        }
        let work = self.law.as_ref().map_or(0.0, |law| law.standing(service).service);
        declared.pause + seconds(declared.pause_ratio * work)
    }

    /// Returns the ratio of pause and work that a request of `route` is told as it starts.
    pub(crate) fn ratio_inside(&self, route: RouteId) -> f64 {
        let Some(id) = self.of(route) else { return 0.0 };
        let declared = &self.declared.services[id.index()];
        match declared.pauses {
            PausePlace::Around => 0.0,
            PausePlace::Inside => declared.pause_ratio.max(self.gates[id.index()].credit.ratio_inside()),
        }
    }

    /// Takes note that a request of `route` ended, and `paused` of its seconds in the application, of
    /// which it was expected to pause for `share`.
    pub(crate) fn paused_inside(
        &mut self,
        now: Instant,
        route: RouteId,
        share: PauseShare,
        (stay, paused): (f64, f64),
    ) {
        let Some(id) = self.of(route) else { return };
        let gate = &mut self.gates[id.index()];
        gate.credit.paused_more(now, paused - share.share() * stay);
        if share != PauseShare::NONE {
            let (worked, rested) = gate.inside;
            gate.inside = (SHOWN_KEPT * worked + stay - paused, SHOWN_KEPT * rested + paused);
        }
    }

    /// Returns whether the pause of the service of `route` holds this request until then.
    pub(crate) fn holds(&self, route: RouteId, until: Instant, request: RequestId) -> bool {
        let gate = self.of(route).and_then(|id| self.gates.get(id.index()));
        gate.is_some_and(|gate| gate.paused.contains(&(until, request)))
    }

    /// Takes out a request of `route` that a pause holds until then.
    pub(crate) fn leave_pause(&mut self, route: RouteId, until: Instant, request: RequestId, beyond: bool) {
        if let Some(id) = self.of(route) {
            let gate = &mut self.gates[id.index()];
            gate.paused.remove(&(until, request));
            gate.paused_beyond -= usize::from(beyond);
        }
    }

    /// Returns how many requests pauses hold.
    pub(crate) fn paused(&self) -> usize {
        self.gates.iter().map(|gate| gate.paused.len()).sum()
    }

    /// Returns how many of them, by service, are beyond their session's budget.
    pub(crate) fn paused_beyond(&self) -> Vec<usize> {
        self.gates.iter().map(|gate| gate.paused_beyond).collect()
    }

    /// Returns how many of these are within their session's budget.
    pub(crate) fn paused_ahead(&self) -> usize {
        self.gates.iter().map(|gate| gate.paused.len() - gate.paused_beyond).sum()
    }

    /// Measures from `now` on by other meters.
    pub(crate) fn measure_anew(&mut self, meters: &[Meter], now: Instant) {
        for (route, begin) in self.gates.iter_mut().flat_map(|gate| &mut gate.routes) {
            *begin = meters[route.index()].read(now);
        }
    }

    /// Returns whether the service of `route`, if it has one, lets another one start.
    pub(crate) fn may_start(&mut self, now: Instant, route: RouteId) -> bool {
        self.of(route).is_none_or(|id| self.gates[id.index()].credit.may_start(now))
    }

    pub(crate) fn enters(&mut self, now: Instant, route: RouteId, share: PauseShare) {
        if let Some(id) = self.of(route) {
            self.gates[id.index()].credit.enters(now, share);
        }
    }

    pub(crate) fn leaves(&mut self, now: Instant, route: RouteId, share: PauseShare) {
        if let Some(id) = self.of(route) {
            self.gates[id.index()].credit.leaves(now, share);
        }
    }

    /// Returns whether the lists fit these numbers of routes, and count what is in flight of each, and
    /// what of that is expected to pause.
    pub(crate) fn are_sound(&self, in_flight: &[(usize, u64)]) -> bool {
        let routes = in_flight.len();
        let of: Vec<_> = (0..routes as u32).map(|route| self.of(RouteId(route))).collect();
        let counts = |(index, gate): (usize, &ServiceGate)| {
            let id = Some(ServiceId(index as u32));
            let own = of.iter().zip(in_flight).filter(|(of, _)| **of == id).map(|(_, counts)| *counts);
            let add = |sum: (usize, u64), one: (usize, u64)| (sum.0 + one.0, sum.1 + one.1);
            (gate.credit.in_flight(), gate.credit.pausing()) == own.fold((0, 0), add)
                && gate.routes.iter().all(|(route, _)| of.get(route.index()) == Some(&id))
                && gate.routes.len() == of.iter().filter(|of| **of == id).count()
                && gate.spare.is_none_or(|spare| of.get(spare.index()) == Some(&id))
        };
        let services = self.declared.services.len();
        self.of.len() <= routes
            && self.gates.len() == services
            && self.law.as_ref().map_or(0, Degradation::len) == services
            && self.of.iter().flatten().all(|id| id.index() < services)
            && self.gates.iter().enumerate().all(counts)
    }
}

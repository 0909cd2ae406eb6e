//! Services: which routes each one has, its cap, and the requests that its pause holds.

use crate::api::Services;
use std::collections::VecDeque;
use suimon_control::{Credit, Degradation, Meter, Reading};
use suimon_model::{Instant, RequestId, RouteId, ServiceId};

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
    /// Who left meanwhile is still here until then.
    pub(crate) paused: VecDeque<(Instant, RequestId)>,
}

suimon_model::saved_struct!(ServiceGate { credit, routes, paused });

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
            gates.push(ServiceGate { credit: Credit::new(now), routes, paused: VecDeque::new() });
        }
        let wishes: Vec<_> = declared.services.iter().map(|service| service.wish.clone()).collect();
        let law = (!wishes.is_empty()).then(|| Degradation::new(declared.mode, &wishes, now));
        ServiceGates { declared, law, gates, of }
    }

    /// Returns the service of `route`, if it has one.
    pub(crate) fn of(&self, route: RouteId) -> Option<ServiceId> {
        self.of.get(route.index()).copied().flatten()
    }

    /// Returns whether the service of `route`, if it has one, holds back what waits there.
    pub(crate) fn is_capped(&self, route: RouteId) -> bool {
        self.of(route).is_some_and(|id| self.gates[id.index()].credit.cap().is_some())
    }

    /// Returns whether the pause of the service of `route` holds this request.
    pub(crate) fn holds(&self, route: RouteId, request: RequestId) -> bool {
        let gate = self.of(route).and_then(|id| self.gates.get(id.index()));
        gate.is_some_and(|gate| gate.paused.iter().any(|(_, held)| *held == request))
    }

    /// Returns whether the service of `route`, if it has one, lets another one start.
    pub(crate) fn may_start(&mut self, now: Instant, route: RouteId) -> bool {
        self.of(route).is_none_or(|id| self.gates[id.index()].credit.may_start(now))
    }

    pub(crate) fn enters(&mut self, now: Instant, route: RouteId) {
        if let Some(id) = self.of(route) {
            self.gates[id.index()].credit.enters(now);
        }
    }

    pub(crate) fn leaves(&mut self, now: Instant, route: RouteId) {
        if let Some(id) = self.of(route) {
            self.gates[id.index()].credit.leaves(now);
        }
    }

    /// Returns whether the lists fit these numbers of routes, and count `in_flight` of each.
    pub(crate) fn are_sound(&self, in_flight: &[usize]) -> bool {
        let routes = in_flight.len();
        let of: Vec<_> = (0..routes as u32).map(|route| self.of(RouteId(route))).collect();
        let counts = |(index, gate): (usize, &ServiceGate)| {
            let id = Some(ServiceId(index as u32));
            let own = of.iter().zip(in_flight).filter(|(of, _)| **of == id);
            gate.credit.in_flight() == own.map(|(_, count)| count).sum::<usize>()
                && gate.routes.iter().all(|(route, _)| of.get(route.index()) == Some(&id))
                && gate.routes.len() == of.iter().filter(|of| **of == id).count()
        };
        let services = self.declared.services.len();
        self.of.len() <= routes
            && self.gates.len() == services
            && self.law.as_ref().map_or(0, Degradation::len) == services
            && self.of.iter().flatten().all(|id| id.index() < services)
            && self.gates.iter().enumerate().all(counts)
    }
}

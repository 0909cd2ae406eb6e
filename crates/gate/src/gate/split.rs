//! Services in the gate: what the law of the split is told, and who starts under its caps.

use super::Gate;
use crate::api::{PausePlace, ServiceParams, ServiceView, Services};
use crate::requests::Stage;
use crate::services::{ServiceGate, ServiceGates};
use suimon_control::{ServiceInput, ServiceSample};
use suimon_model::{Duration, Instant, RequestId, RouteId, ServiceId};

/// Requests that had a core of their own, from which what a route's requests take alone is known.
const ALONE_MIN: u64 = 8;

impl Gate {
    /// Declares the services, all of them, in the order in which floors are kept. The same services
    /// with other wishes keep what was learned, and their caps until the next tick; others begin
    /// anew. Requests that a pause held go on, unless nothing changes; what is in the application
    /// stays.
    pub fn declare_services(&mut self, now: Instant, services: Services) {
        if services == self.services.declared {
            return;
        }
        let gates = self.services.gates.iter_mut();
        let taken = gates.flat_map(|gate| {
            gate.paused_beyond = 0;
            std::mem::take(&mut gate.paused)
        });
        let held: Vec<_> = taken.collect();
        if !self.services.adopt(&services) {
            self.replace_services(now, services);
        }
        for (_, request) in held {
            self.unpause(now, request);
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.publish();
    }

    fn replace_services(&mut self, now: Instant, services: Services) {
        for (route, _) in self.services.gates.iter().flat_map(|gate| &gate.routes) {
            self.law.set_capped(*route, false);
            self.law.set_tries(*route, true);
        }
        self.services = ServiceGates::new(services, &self.meters, now);
        for (_, request) in self.requests.iter().filter(|(_, request)| request.stage.has_slot()) {
            self.services.enters(now, request.route, request.pause_share);
        }
    }

    /// Takes note of how long the application took to take in a request without any work, seconds
    /// beyond what it takes alone.
    pub fn handle_lag(&mut self, lag: Duration) {
        if let Some(law) = &mut self.services.law {
            law.set_lag(lag.as_secs_f64());
        }
    }

    /// Returns whether what waits at `route` is held by the cap of its service.
    pub fn is_held_by_service(&self, now: Instant, route: RouteId) -> bool {
        let Some(id) = self.services.of(route) else { return false };
        let mut credit = self.services.gates[id.index()].credit.clone();
        !credit.may_start(now)
    }

    /// Tells the law what happened since the last tick, and puts its caps in force.
    pub(super) fn split(&mut self, now: Instant, patience: f64) {
        let Some(mut law) = self.services.law.take() else { return };
        let mut inputs = Vec::with_capacity(self.services.gates.len());
        for index in 0..self.services.gates.len() {
            let declared = self.services.declared.services[index].wish.alone;
            let mut input = ServiceInput { sample: ServiceSample::default(), slots: 0.0 };
            for place in 0..self.services.gates[index].routes.len() {
                let (route, begin) = self.services.gates[index].routes[place];
                let meter = &self.meters[route.index()];
                let window = meter.since(&begin, now);
                self.services.gates[index].routes[place].1 = meter.read(now);
                let alone = declared.or_else(|| self.alone(route));
                let work = alone.map(|alone| alone * self.law.uses(route, alone));
                let work = work.or_else(|| self.law.work(route));
                input.sample.add(&window.sample(alone, work));
                input.slots += self.limit(route).map_or(f64::INFINITY, f64::from);
            }
            // All routes were measured over the same time.
            input.sample.seconds /= self.services.gates[index].routes.len().max(1) as f64;
            inputs.push(input);
        }
        if self.away.is_on() {
            law.on_absence(now);
            self.services.law = Some(law);
            return;
        }
        let is_on_trial = self.law.probing().is_some_and(|route| self.services.of(route).is_some());
        law.on_tick(now, &inputs, patience, is_on_trial, &mut self.fresh);
        let tries = law.lets_try(now);
        for (route, _) in self.services.gates.iter().flat_map(|gate| &gate.routes) {
            self.law.set_tries(*route, tries);
        }
        for (id, gate) in (0..).map(ServiceId).zip(&mut self.services.gates) {
            gate.credit.set_service(now, law.standing(id).service);
            if gate.credit.cap() != law.cap(id) {
                gate.credit.set_cap(now, law.cap(id));
                for (route, _) in &gate.routes {
                    self.law.set_capped(*route, law.cap(id).is_some());
                }
            }
        }
        self.services.law = Some(law);
        // What is compared in a trial must not change meanwhile.
        if !is_on_trial {
            let routes = &self.routes;
            self.services.give_spare_slots(
                |route| self.law.service(route),
                |route| routes[route.index()].view_rate,
                |route| !routes[route.index()].queue.is_empty(),
            );
        }
    }

    /// Returns seconds that a request of `route` takes alone: as seen of those that had a core of
    /// their own, else as far as the route law knows.
    pub(super) fn alone(&self, route: RouteId) -> Option<f64> {
        let seen = &self.routes[route.index()].took_alone;
        seen.mean().filter(|_| seen.count() >= ALONE_MIN).or_else(|| self.law.alone(route))
    }

    /// Holds a request for the pause of its service, if it has one; returns whether it does.
    pub(super) fn pause(&mut self, now: Instant, id: RequestId, route: RouteId) -> bool {
        let Some(service) = self.services.of(route) else { return false };
        let pause = self.services.pause(service);
        if pause.is_zero() {
            return false;
        }
        let until = now + pause;
        let request = self.requests.get_mut(id).expect("a request is in the table until it ends");
        request.stage = Stage::Paused(until);
        let gate = &mut self.services.gates[service.index()];
        gate.paused.insert((until, id));
        gate.paused_beyond += usize::from(request.beyond);
        self.waiting += 1;
        true
    }

    fn unpause(&mut self, now: Instant, id: RequestId) {
        self.waiting -= 1;
        self.queue_at_route(now, id);
    }

    /// Lets go on what may by now: requests whose pause is over, and those whose service has credit
    /// again.
    pub(super) fn serve_services(&mut self, now: Instant) {
        for index in 0..self.services.gates.len() {
            while let Some(first) = self.services.gates[index].paused.first().copied() {
                let (until, id) = first;
                if until > now {
                    break;
                }
                let request = *self.requests.get(id).expect("a request is in the table until it ends");
                self.services.leave_pause(request.route, until, id, request.beyond);
                self.unpause(now, id);
            }
            let credit = &mut self.services.gates[index].credit;
            if credit.cap().is_none() {
                continue;
            }
            // Its credit is there, whether or not a worker is: the time for it is over.
            credit.may_start(now);
            self.serve_service(now, ServiceId(index as u32));
        }
    }

    /// Starts those who may start in `service`: of the routes with a free slot the one whose next
    /// request would go first in one queue for all of them. Where workers are counted, others wait
    /// for the same ones.
    pub(super) fn serve_service(&mut self, now: Instant, service: ServiceId) {
        if self.counts_any_workers() {
            return self.serve_all(now);
        }
        loop {
            if !self.services.gates[service.index()].credit.may_start(now) {
                break;
            }
            let routes = self.services.gates[service.index()].routes.iter().map(|(route, _)| *route);
            let Some(route) = self.goes_first(routes.filter(|route| self.has_own_slot(*route))) else {
                break;
            };
            if !self.start_next(now, route) {
                break;
            }
        }
        for place in 0..self.services.gates[service.index()].routes.len() {
            self.note_load(now, self.services.gates[service.index()].routes[place].0);
        }
    }

    /// Returns when the next request may go on because of time alone.
    pub(super) fn next_of_services(&self) -> Option<Instant> {
        let next = self.services.gates.iter().flat_map(|gate| {
            let waits = gate.routes.iter().any(|(route, _)| !self.routes[route.index()].queue.is_empty());
            let credit = gate.credit.next_start().filter(|_| waits);
            [credit, gate.paused.first().map(|(until, _)| *until)]
        });
        next.flatten().min()
    }

    /// Returns how each service stands.
    pub(super) fn service_views(&self) -> Vec<ServiceView> {
        let Some(law) = &self.services.law else { return vec![] };
        let view = |((id, gate), declared): ((ServiceId, &ServiceGate), &ServiceParams)| {
            let standing = law.standing(id);
            let declared_pause = self.services.pause(id).as_secs_f64();
            let in_force = match declared.pauses {
                PausePlace::Around => gate.credit.pause(standing.service),
                PausePlace::Inside => gate.credit.ratio_inside().max(declared.pause_ratio) * standing.service,
            };
            let queued: usize =
                gate.routes.iter().map(|(route, _)| self.routes[route.index()].queue.len()).sum();
            ServiceView {
                name: declared.name.clone(),
                mode: self.services.declared.mode,
                wish: law.wish(id).clone(),
                routes: gate.routes.iter().map(|(route, _)| *route).collect(),
                standing,
                in_flight: gate.credit.in_flight(),
                waiting: queued + gate.paused.len(),
                pauses: declared.pauses,
                inside_ratio: gate.ratio_reached(),
                pause_seconds: in_force + declared_pause,
            }
        };
        (0..)
            .map(ServiceId)
            .zip(&self.services.gates)
            .zip(&self.services.declared.services)
            .map(view)
            .collect()
    }
}

//! Other settings, put in force while requests are waiting and in the application.
//!
//! A reload adopts the settings that its file has now, a replay those that were adopted when it was
//! recorded, and a what-if other ones than were recorded. Nothing that was learned is lost: a law
//! that the settings change begins with what the one before it knows, as it would after a restart
//! ([`Gate::knowledge`]), and with the requests and sessions that are there.

use super::{Gate, TICK};
use crate::api::{Adoption, KindParams, Params, RouteMode};
use crate::knowledge::RecalledCapacity;
use crate::requests::Stage;
use std::collections::BTreeMap;
use suimon_control::{Capacity, Forecast, Meter, RouteKnowledge, RouteLaw, Trust};
use suimon_model::{Duration, Instant, KindId, RequestId, Rng, RouteId};

impl Gate {
    /// Puts other settings in force. What they leave as it was goes on. Routes and kinds that are
    /// not there are ignored.
    pub fn adopt(&mut self, now: Instant, adoption: &Adoption) {
        self.adopt_params(now, adoption.params.clone());
        for (kind, params) in &adoption.kinds {
            self.adopt_kind(*kind, params);
        }
        self.adopt_modes(now, &adoption.routes);
        // A law that begins anew knows of no caps.
        for gate in &self.services.gates {
            let is_capped = gate.credit.cap().is_some();
            gate.routes.iter().for_each(|(route, _)| self.law.set_capped(*route, is_capped));
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.admit_from_lines(now);
        self.publish();
    }

    fn adopt_params(&mut self, now: Instant, params: Params) {
        let other_cores = params.cores != self.params.cores;
        if other_cores || params.route_law != self.params.route_law {
            let before = std::mem::replace(&mut self.law, params.route_law.build(params.cores));
            (0..self.routes.len()).for_each(|index| self.measure_anew(index, &*before, now));
            for (since, route, request) in self.in_application() {
                self.law.on_start(since, route, request, &self.meters);
            }
            self.services.measure_anew(&self.meters, now);
        }
        if other_cores || params.session_law != self.params.session_law {
            for kind in &mut self.kinds {
                let mut law = params.session_law.build(kind.id, params.cores, now);
                if let Some(known) = kind.law.knowledge() {
                    law.recall(&known, Trust::after(Duration::ZERO));
                }
                kind.begin_anew(law);
            }
        }
        if params.seed != self.params.seed {
            self.rng = Rng::stream(params.seed, 1);
        }
        self.kinds.iter_mut().for_each(|kind| kind.assume(params.patience));
        self.sessions.set_max(params.sessions_max);
        let excess = self.records.len().saturating_sub(params.decisions_max);
        self.records.drain(..excess);
        self.next_tick = self.next_tick.min(now + TICK);
        self.params = params;
    }

    /// Whether there is a line, and whose turn comes how often, stays as it was declared: people
    /// wait there.
    fn adopt_kind(&mut self, kind: KindId, params: &KindParams) {
        if let Some(own) = self.kinds.get_mut(kind.index()) {
            own.params = KindParams { line: own.params.line, ..params.clone() };
        }
    }

    /// The law begins anew at those routes alone whose limit is fixed from now on, or is fixed no
    /// longer, or is fixed otherwise.
    fn adopt_modes(&mut self, now: Instant, wanted: &[(RouteId, RouteMode)]) {
        let mut changed = Vec::new();
        for (id, mode) in wanted {
            let Some(route) = self.routes.get_mut(id.index()) else { continue };
            let before = std::mem::replace(&mut route.mode, *mode).fixed();
            if before != mode.fixed() {
                changed.push((*id, before, mode.fixed()));
            }
        }
        if changed.is_empty() {
            return;
        }
        // All of them at once: the table of requests may be long, and so may the list of routes.
        let mut inside: BTreeMap<RouteId, Vec<(Instant, RequestId)>> = BTreeMap::new();
        for (since, route, request) in self.in_application() {
            inside.entry(route).or_default().push((since, request));
        }
        for (id, before, fixed) in changed {
            self.renew_law(now, id, [before, fixed], inside.get(&id).map_or(&[], Vec::as_slice));
        }
    }

    /// Lets the law begin anew at a route with what it knows of it: what it had learned before the
    /// limit was fixed, or else the limit that was fixed. `fixed`: that limit before and from now
    /// on; `inside`: what is in the application, and since when.
    fn renew_law(
        &mut self,
        now: Instant,
        id: RouteId,
        [before, fixed]: [Option<u32>; 2],
        inside: &[(Instant, RequestId)],
    ) {
        inside.iter().for_each(|(_, request)| self.law.on_suspend(id, *request));
        let (known, is_mixed) = (self.law.knowledge(id), self.law.is_mixed(id));
        self.law.renew_route(now, id, fixed, &self.meters[id.index()]);
        if is_mixed {
            self.law.mix(id);
        }
        let route = &mut self.routes[id.index()];
        route.before_fixed = known.or(route.before_fixed);
        if fixed.is_none() {
            let known = route.before_fixed.take().or(before.map(RouteKnowledge::of_limit));
            if let Some(known) = known {
                self.law.recall(id, &known, Trust::after(Duration::ZERO));
            }
        }
        for (since, request) in inside {
            self.law.on_start(*since, id, *request, &self.meters);
        }
    }

    /// Returns since when each request is in the application, and at which route.
    fn in_application(&self) -> Vec<(Instant, RouteId, RequestId)> {
        let inside = self.requests.iter().filter_map(|(id, request)| match request.stage {
            Stage::InApplication(since) | Stage::Orphaned(since) => Some((since, request.route, id)),
            _ => None,
        });
        inside.collect()
    }

    /// Makes a route known to a law that has just begun, with what the one `before` knew of it: a
    /// law reads meters from their beginning.
    fn measure_anew(&mut self, index: usize, before: &dyn RouteLaw, now: Instant) {
        let route = &mut self.routes[index];
        let fixed = route.mode.fixed();
        let (id, trust) = (RouteId(index as u32), Trust::after(Duration::ZERO));
        self.law.add_route(now, fixed);
        if before.is_mixed(id) {
            self.law.mix(id);
        }
        if let Some(known) = before.knowledge(id) {
            self.law.recall(id, &known, trust);
        }
        self.meters[index] = Meter::new(now);
        route.view_begin = self.meters[index].read(now);
        route.tick_begin = route.view_begin;
        route.forecast = Forecast::default();
        route.recalled = route.known_capacity().and_then(|known| RecalledCapacity::new(known, trust, now));
        route.capacity = Capacity::new(now, &self.meters[index]);
        self.meters[index].load(now, route.in_flight, route.queue.len());
    }
}

//! What other gateways before the same application have, and what is left to this one.
//!
//! The laws see all gateways together: what ends elsewhere is in the meters, what waits there is in
//! the inputs. What they decide is for all together, too; this gateway enforces its part of it. A
//! limit is learned by one gateway and followed by the others.

use super::Gate;
use super::route_gate::Route;
use crate::kinds::KindGate;
use suimon_control::{Capacity, EndedElsewhere};
use suimon_line::Lane;
use suimon_model::{Instant, KindId, RouteId};
use suimon_sharing::{Allotment, KIND_RECORDS_MAX, KindReport, Part, ROUTE_RECORDS_MAX, Report, RouteReport};

/// Newcomers of so many seconds are demand.
const DEMAND_SECONDS: f64 = 2.0;

impl Gate {
    /// Shares limits, what begins and the lines with other gateways from now on: nothing starts
    /// before the first [`Gate::handle_part`]. Called before any request.
    pub fn share(&mut self) {
        self.shared.get_or_insert_default();
        self.kinds
            .iter_mut()
            .filter_map(|kind| kind.line.as_mut())
            .for_each(suimon_line::Line::begin_sharing);
    }

    /// Returns whether anything is shared.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the slots that this gateway may use at `route`, if a limit is held there.
    pub fn slots(&self, route: RouteId) -> Option<u32> {
        let limit = self.limit(route)?;
        let part = self.shared.as_ref().map(|shared| shared.part(route).map_or(0, |part| part.slots));
        Some(part.unwrap_or(limit))
    }

    /// Returns this gateway's portion of the sessions of `kind` that begin, 0 to 1.
    pub fn portion(&self, kind: KindId) -> f64 {
        let part = self.kinds[kind.index()].shared.as_ref().map_or(0.0, |part| part.portion);
        if self.shared.is_some() { part } else { 1.0 }
    }

    /// Returns what to publish of it: the routes that had requests, and all kinds, by the keys that
    /// their names have at every gateway.
    pub fn report(
        &self,
        now: Instant,
        route_key: impl Fn(RouteId) -> u64,
        kind_key: impl Fn(KindId) -> u64,
    ) -> Report {
        let had_requests = |(id, route): &(RouteId, &Route)| {
            let is_known = self.shared.as_ref().is_some_and(|shared| shared.part(*id).is_some());
            is_known || route.counts.offered > 0
        };
        let routes = (0..).map(RouteId).zip(&self.routes).filter(had_requests).take(ROUTE_RECORDS_MAX);
        let routes = routes.map(|(id, route)| RouteReport {
            key: route_key(id),
            in_flight: route.in_flight as u32,
            waiting: route.queue.len() as u32,
            limit: self.limit(id).unwrap_or(0),
            is_settled: self.law.is_settled(id),
            capacity: route.capacity_per_second().unwrap_or(0.0),
            ended: self
                .shared
                .as_ref()
                .and_then(|shared| shared.ended.get(id.index()).copied())
                .unwrap_or_default(),
            remaining: self.visits.remaining(id).max(0.0),
        });
        let kinds =
            self.kinds.iter().take(KIND_RECORDS_MAX).map(|kind| self.kind_report(now, kind, &kind_key));
        Report { routes: routes.collect(), kinds: kinds.collect() }
    }

    fn kind_report(&self, _now: Instant, kind: &KindGate, key: impl Fn(KindId) -> u64) -> KindReport {
        let came = kind.came.per_second().unwrap_or(0.0);
        let lanes = kind.line.as_ref().map(suimon_line::Line::lane_records).unwrap_or_default();
        let expected: f64 = lanes.iter().map(|lane| lane.expected).sum();
        let waiting = kind.waiting_for_turn();
        // In a line those whose turn it is, else those who come. (Not those who are held: the more
        // may begin, the more are held.)
        let is_line = kind.line.is_some() && (waiting > 0 || kind.waiting_elsewhere() > 0);
        let wants = if is_line { expected } else { DEMAND_SECONDS * came };
        let (rate, depth) = kind.law.pace().filter(|(rate, _)| rate.is_finite()).unwrap_or_default();
        KindReport {
            key: key(kind.id),
            wants,
            came,
            begun: kind.begun.per_second().unwrap_or(0.0),
            waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
            rate,
            depth,
            is_cold: kind.law.is_cold(),
            active: self.sessions.of_kind(kind.id) as u32,
            lanes,
        }
    }

    /// Puts its part in force: what other gateways have, and what is left to this one.
    pub fn handle_part(
        &mut self,
        now: Instant,
        part: &Part,
        route_of: impl Fn(u64) -> Option<RouteId>,
        kind_of: impl Fn(u64) -> Option<KindId>,
    ) {
        let Some(mut shared) = self.shared.take() else { return };
        shared.has_joined = true;
        shared.gateways = part.gateways;
        shared.in_flight_elsewhere =
            part.routes.iter().map(|route| u64::from(route.in_flight_elsewhere)).sum();
        let mut unheard = vec![true; self.routes.len()];
        shared.routes.resize(self.routes.len(), None);
        shared.unmeasured.resize(self.routes.len(), false);
        shared.ended_elsewhere.resize(self.routes.len(), (0, 0));
        shared.remaining.clear();
        shared.remaining.resize(self.routes.len(), 0.0);
        for route in &part.routes {
            let Some(id) = route_of(route.key).filter(|id| id.index() < self.routes.len()) else { continue };
            unheard[id.index()] = false;
            let meter = &self.meters[id.index()];
            let capacity = &mut self.routes[id.index()].capacity;
            if shared.follow(id, *route, capacity.measured().is_some()) {
                *capacity = Capacity::new(now, meter);
            }
            shared.remaining[id.index()] = route.remaining_elsewhere;
            let (ended, answered) = &mut shared.ended_elsewhere[id.index()];
            *ended += route.ended_elsewhere.progressed + route.ended_elsewhere.failed;
            *answered += route.ended_elsewhere.answered;
            self.meters[id.index()].end_elsewhere(&EndedElsewhere {
                progressed: route.ended_elsewhere.progressed,
                failed: route.ended_elsewhere.failed,
                answered: route.ended_elsewhere.answered,
                service_seconds: route.ended_elsewhere.service_seconds,
                answered_seconds: route.ended_elsewhere.answered_seconds,
            });
            self.law.set_capped(id, !route.is_learner || self.services.is_capped(id));
            if !route.is_learner && route.limit > 0 && self.routes[id.index()].mode.fixed().is_none() {
                self.law.set_limit(id, route.limit);
            }
        }
        let unheard = shared.routes.iter_mut().zip(unheard).filter(|(_, unheard)| *unheard);
        unheard.for_each(|(route, _)| *route = None);
        self.law.set_elsewhere(shared.in_flight_elsewhere);
        self.visits.divide_among(part.gateways);
        self.shared = Some(shared);
        for kind in &part.kinds {
            let Some(id) = kind_of(kind.key).filter(|id| id.index() < self.kinds.len()) else { continue };
            let state = &mut self.kinds[id.index()];
            state.shared = Some(kind.clone());
            let rate = kind.pace.or_else(|| state.law.pace()).map(|(rate, _)| rate);
            if let Some(line) = &mut state.line {
                line.handle_elsewhere(kind, rate);
            }
            state.look_at_line();
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.admit_from_lines(now);
        self.publish();
    }

    /// Takes note of the numbers that may be drawn in a lane of `kind` from now on.
    pub fn handle_allotment(&mut self, kind: KindId, lane: Lane, allotment: Allotment) {
        if let Some(line) = self.kinds.get_mut(kind.index()).and_then(|kind| kind.line.as_mut()) {
            line.handle_allotment(lane, allotment);
        }
    }

    /// Returns requests of `route` at other gateways: in the application, and waiting.
    pub(super) fn load_elsewhere(&self, route: RouteId) -> (usize, usize) {
        self.shared.as_ref().map_or((0, 0), |shared| shared.load_elsewhere(route))
    }

    pub(super) fn in_flight_elsewhere(&self) -> f64 {
        self.shared.as_ref().map_or(0.0, |shared| shared.in_flight_elsewhere as f64)
    }
}

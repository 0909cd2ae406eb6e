//! The tick: what time drives and no request.

use super::Gate;
use crate::api::RouteMode;
use crate::kinds::KindGate;
use crate::requests::Stage;
use crate::shared::shared_inputs;
use suimon_control::{AdmissionInputs, KindInputs, RouteInputs};
use suimon_model::{Instant, PoolId, RouteId};
use suimon_sharing::KindPart;

/// Rates shown are taken over this long.
pub(super) const VIEW_SECONDS: f64 = 2.0;
/// Share of the time that requests must wait at a route, and for how many consecutive views, for
/// that to be pressure.
const PRESSURE_SHARE: f64 = 0.8;
const PRESSURE_VIEWS: u32 = 5;
/// Share of a tick during which requests must wait at a route for it to count.
const WAITED_SHARE: f64 = 0.25;
/// Newcomers per second added to those of each kind, so that one without any newcomer yet has a
/// share.
const CAME_LEAST: f64 = 0.01;

impl Gate {
    /// Learns, lets the laws decide anew, moves the lines, and starts the requests that may go on
    /// because of it.
    pub(super) fn tick(&mut self, now: Instant) {
        // While nothing is answered silence says nothing.
        if !self.away.is_on() {
            self.sessions.sweep(now, now - self.params.session_idle, &mut self.visits);
        }
        self.visits.refresh();
        self.tell_who_waits(now);
        for kind in &mut self.kinds {
            kind.learner.refresh(now);
            kind.came.tick(now);
            kind.begun.tick(now);
        }
        let patience = self.kinds.iter().map(KindGate::patience).min_by(f64::total_cmp);
        self.law.set_patience(patience.unwrap_or(self.params.patience.as_secs_f64()));
        self.split(now, patience.unwrap_or(self.params.patience.as_secs_f64()));
        (0..self.workers.len() as u32).for_each(|pool| self.look_at_workers(PoolId(pool)));
        self.doubt_recalled(now);
        self.look_at_routes(now);
        self.look_at_kinds();
        self.judge_forecasts(now);
        self.law.set_wanted(self.kinds.iter().find_map(|kind| kind.law.holds_for()));
        self.law.on_tick(now, &self.meters, &mut self.fresh);
        for index in 0..self.kinds.len() {
            let state = &mut self.kinds[index];
            let inputs = AdmissionInputs {
                visits: &self.visits,
                routes: &self.inputs,
                kinds: &self.kind_inputs,
                patience: state.patience(),
                waiting: state.waiting() + state.waiting_elsewhere(),
                active: self.sessions.of_kind(state.id),
                entry: suimon_control::LastRoute::START,
                shared: shared_inputs(self.shared.as_deref(), state.shared.as_ref()),
            };
            // From an application that does not answer a law could only learn wrong things.
            if !self.away.is_on() {
                state.law.on_tick(now, &inputs, &mut self.fresh);
            }
            state.move_line(now);
        }
        if self.kinds.iter().any(KindGate::is_close) {
            self.pressure.note_close(now);
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.expire(now);
        self.expire_awaiting(now);
        self.tell_of_full_kinds(now);
    }

    /// Shows when newcomers begin to wait, and when they wait no more, under a law that goes by the
    /// number of sessions: it makes no decisions that could be shown.
    fn tell_of_full_kinds(&mut self, now: Instant) {
        for index in 0..self.kinds.len() {
            let active = self.sessions.of_kind(self.kinds[index].id);
            if let Some(record) = self.kinds[index].turns_full(now, active) {
                self.show(record);
            }
        }
    }

    /// Tells the learners of patience how old the requests are whose clients still wait. Looks at
    /// every request in the gate, at most once per second, and only where some client has left.
    fn tell_who_waits(&mut self, now: Instant) {
        if !self.kinds.iter().any(|kind| kind.learner.asks_who_waits(now)) {
            return;
        }
        for (_, request) in self.requests.iter() {
            let Some(kind) = request.kind().map(|kind| &mut self.kinds[kind.index()]) else { continue };
            if !matches!(request.stage, Stage::Orphaned(_)) && kind.learner.asks_who_waits(now) {
                kind.learner.fold_waiting(now.secs_since(request.arrived));
            }
        }
    }

    /// Takes in the capacity and load of each route; notices pressure.
    pub(super) fn look_at_routes(&mut self, now: Instant) {
        for (index, route) in self.routes.iter_mut().enumerate() {
            let meter = &self.meters[index];
            let id = RouteId(index as u32);
            // Under a cap it is the cap that says what the route can do.
            let is_capped = self.services.is_capped(id);
            let is_settled = match &self.shared {
                None => self.law.is_settled(id),
                Some(shared) => shared.is_settled(id).unwrap_or_else(|| self.law.is_settled(id)),
            };
            route.capacity.tick(now, meter, !is_capped && !is_settled);
            let tick = meter.since(&route.tick_begin, now);
            route.tick_begin = meter.read(now);
            if tick.progressed > 0 {
                route.ended_at = Some(now);
            }
            if meter.waiting() > 0 || tick.queued_share() > WAITED_SHARE {
                route.waited_at = Some(now);
            }
            let held = is_capped || matches!(route.mode, RouteMode::Enforce | RouteMode::Fixed(_));
            // How fast it goes on, and what it can do, is unknown where the requests in flight are
            // of another sort than those seen.
            let is_unlike = self.law.is_unlike(now, id);
            let learned = self.shared.as_deref().and_then(|shared| shared.capacity(id));
            let known = route.capacity_per_second().or(learned);
            let capacity = known.filter(|_| held && !is_unlike);
            let age = match route.capacity_per_second() {
                None if learned.is_some() => 0.0,
                _ => route.capacity_age(now),
            };
            self.inputs[index] = RouteInputs {
                capacity,
                capacity_age: if is_unlike { f64::INFINITY } else { age },
                service: self.law.service(id),
                work: self.law.work(id),
                waiting: route.queue.ahead()
                    + self.shared.as_deref().map_or(0, |shared| shared.load_elsewhere(id).1),
                idle: route.waited_at.map_or(f64::INFINITY, |at| now.secs_since(at)),
                rate: if is_unlike { 0.0 } else { route.rate(now) },
                bias: route.forecast.bias(),
            };
            let window = meter.since(&route.view_begin, now);
            if window.seconds >= VIEW_SECONDS {
                route.view_begin = meter.read(now);
                route.view_rate = window.throughput();
                route.view_service = window.mean_service().unwrap_or(route.view_service);
                let pressed = window.queued_share() > PRESSURE_SHARE;
                route.pressed_views = if pressed { route.pressed_views + 1 } else { 0 };
                if route.pressed_views >= PRESSURE_VIEWS {
                    self.pressure.note(now);
                }
            }
        }
    }

    /// Takes in the shares of the kinds.
    fn look_at_kinds(&mut self) {
        let elsewhere = |kind: &KindGate, of: fn(&KindPart) -> f64| kind.shared.as_ref().map_or(0.0, of);
        let came = |kind: &KindGate| {
            kind.came.per_second().unwrap_or(0.0) + elsewhere(kind, |part| part.came_elsewhere) + CAME_LEAST
        };
        let all: f64 = self.kinds.iter().map(came).sum();
        let of = |kind: &KindGate| KindInputs {
            share: came(kind) / all,
            begun: kind.begun.per_second().unwrap_or(0.0) + elsewhere(kind, |part| part.begun_elsewhere),
        };
        self.kind_inputs.clear();
        self.kind_inputs.extend(self.kinds.iter().map(of));
    }

    /// Compares what was predicted at each route with what people wait there now.
    fn judge_forecasts(&mut self, now: Instant) {
        let inputs = AdmissionInputs {
            visits: &self.visits,
            routes: &self.inputs,
            kinds: &self.kind_inputs,
            patience: 0.0,
            waiting: 0,
            active: 0,
            entry: suimon_control::LastRoute::START,
            shared: shared_inputs(self.shared.as_deref(), None),
        };
        for (index, route) in self.routes.iter_mut().enumerate() {
            let id = RouteId(index as u32);
            let Some(foreseen) = inputs.foreseen(id) else { continue };
            let capacity = self.inputs[index].capacity.unwrap_or(f64::INFINITY);
            let waited = self.visits.rank(id) * self.inputs[index].waiting as f64 / capacity;
            let delay = self.visits.delay(id) + self.inputs[index].service.unwrap_or(0.0);
            route.forecast.tick(now, foreseen, waited, delay);
        }
    }
}

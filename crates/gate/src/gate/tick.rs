//! The tick: what time drives and no request.

use super::Gate;
use crate::api::RouteMode;
use crate::kinds::KindGate;
use crate::requests::Stage;
use suimon_control::{AdmissionInputs, KindInputs, RouteInputs};
use suimon_model::{Instant, PoolId, RouteId};

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
                waiting: state.waiting(),
                active: self.sessions.of_kind(state.id),
                entry: suimon_control::LastRoute::START,
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
            route.capacity.tick(now, meter, !is_capped && !self.law.is_settled(id));
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
            let capacity = route.capacity_per_second().filter(|_| held && !is_unlike);
            self.inputs[index] = RouteInputs {
                capacity,
                capacity_age: if is_unlike { f64::INFINITY } else { route.capacity_age(now) },
                service: self.law.service(id),
                work: self.law.work(id),
                waiting: route.queue.ahead(),
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
        let came = |kind: &KindGate| kind.came.per_second().unwrap_or(0.0) + CAME_LEAST;
        let all: f64 = self.kinds.iter().map(came).sum();
        let of = |kind: &KindGate| KindInputs {
            share: came(kind) / all,
            begun: kind.begun.per_second().unwrap_or(0.0),
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
        };
        for (index, route) in self.routes.iter_mut().enumerate() {
            let id = RouteId(index as u32);
            let Some(foreseen) = inputs.foreseen(id) else { continue };
            let capacity = self.inputs[index].capacity.unwrap_or(f64::INFINITY);
            let waited = self.visits.rank(id) * route.queue.ahead() as f64 / capacity;
            let delay = self.visits.delay(id) + self.inputs[index].service.unwrap_or(0.0);
            route.forecast.tick(now, foreseen, waited, delay);
        }
    }
}

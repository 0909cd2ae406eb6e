//! The tick: what is driven by the time and by no request.

use super::{Gate, PRESSURE};
use crate::api::Mode;
use crate::kinds::Kind;
use suimon_control::{Outlook, RouteOutlook};
use suimon_model::{Instant, RouteId};

/// Rates shown are taken over this long.
const VIEW_SECONDS: f64 = 2.0;
/// Share of the time somebody must wait at a route, and for how many views on end, for that to be pressure.
const PRESSURE_SHARE: f64 = 0.8;
const PRESSURE_VIEWS: u32 = 5;

impl Gate {
    /// Learns, lets the laws decide anew, moves the lines, and serves whoever may go on by it.
    pub(super) fn tick(&mut self, now: Instant) {
        self.sessions.sweep(now, now - self.params.session_idle, &mut self.visits);
        self.visits.refresh();
        for kind in &mut self.kinds {
            kind.learner.refresh();
            kind.came.tick(now);
            kind.begun.tick(now);
        }
        let patience = self.kinds.iter().map(Kind::patience).min_by(f64::total_cmp);
        self.law.set_patience(patience.unwrap_or(self.params.patience.as_secs_f64()));
        self.look_at_routes(now);
        self.law.on_tick(now, &self.meters, &mut self.fresh);
        for index in 0..self.kinds.len() {
            let state = &mut self.kinds[index];
            let outlook = Outlook {
                visits: &self.visits,
                routes: &self.outlook,
                patience: state.patience(),
                waiting: state.waiting(),
                active: self.sessions.of_kind(state.id),
            };
            state.law.on_tick(now, &outlook, &mut self.fresh);
            state.move_line(now);
        }
        if self.kinds.iter().any(Kind::is_close) {
            self.close_until = now + PRESSURE;
        }
        (0..self.routes.len()).for_each(|index| self.serve_route(now, RouteId(index as u32)));
        self.expire(now);
    }

    /// Takes in what each route can do and shows; notices pressure.
    fn look_at_routes(&mut self, now: Instant) {
        for (index, route) in self.routes.iter_mut().enumerate() {
            let meter = &self.meters[index];
            let id = RouteId(index as u32);
            route.capacity.tick(now, meter, self.law.tries_less(id));
            let service = self.law.service(id);
            let held = matches!(route.mode, Mode::Enforce | Mode::Fixed(_));
            let capacity =
                if held { route.capacity.per_second(Some(self.law.limit(id)), service) } else { None };
            self.outlook[index] = RouteOutlook { capacity, service, waiting: route.queue.ahead() };
            let window = meter.since(&route.view_begin, now);
            if window.seconds >= VIEW_SECONDS {
                route.view_begin = meter.read(now);
                route.view_rate = window.throughput();
                route.view_service = window.mean_service().unwrap_or(route.view_service);
                let pressed = window.queued_share() > PRESSURE_SHARE;
                route.pressed_views = if pressed { route.pressed_views + 1 } else { 0 };
                if route.pressed_views >= PRESSURE_VIEWS {
                    self.pressed_until = now + PRESSURE;
                }
            }
        }
    }
}

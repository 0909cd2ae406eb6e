//! Backoff: a limit is halved at once where requests stay far too long.

use super::Paired;
use super::route::STEP_MAX;
use super::slow_start::SlowStart;
use super::strain::{THRASHING, THRASHING_LOOKS};
use crate::window::Meter;
use suimon_model::{Instant, Reason, Record, RouteId, Signals, seconds};

/// Share of the patience that requests may stay in the application before backoff cuts the limit;
/// ...
const BACKOFF: f64 = 0.15;
/// ... or this many times what they take in little company, whatever the patience; ...
const BACKOFF_SERVICES: f64 = 4.0;
/// ... but no more than this share of the patience, which is also allowed where nothing has ended
/// yet, ...
const BACKOFF_UNKNOWN: f64 = 0.5;
/// ... unless it takes that long by itself: then this many times as long.
const BACKOFF_LEAST: f64 = 1.5;
/// Backoff never goes below this limit, or below the cores if they are fewer; in more
/// company than that nobody is alone where the cores are doubted.
pub(super) const BACKOFF_FLOOR: u32 = 4;
/// Where requests stay too long while there are at most this many per core, there may be fewer
/// cores than configured.
const DOUBTFUL: u32 = 4;
/// ... which is believed for this many seconds.
const DOUBTED_SECONDS: f64 = 600.0;

impl Paired {
    /// Returns in how much company a request has a core of its own, as far as is believed.
    pub(super) fn trusted_cores(&self) -> u32 {
        if self.doubted_until.is_some() { self.cores.min(BACKOFF_FLOOR) } else { self.cores }
    }

    /// Returns the seconds that requests may stay in the application before backoff cuts the limit.
    ///
    /// A page that takes long by nature is not backed off for being itself. The other routes show
    /// whether it is nature or thrash: in a thrash they take longer too.
    pub(super) fn stay_allowed(&self, now: Instant, id: RouteId) -> f64 {
        let least = (BACKOFF * self.patience).max(1.0);
        let route = &self.routes[id.index()];
        let thrashes = route.strained >= THRASHING_LOOKS && !route.times.is_founded(self.trusted_cores());
        let own = match route.times.alone().filter(|_| !route.is_unlike(now)) {
            _ if thrashes => 0.0,
            // Long by nature or not: what takes most of the patience is too much, unless it does so
            // by itself.
            Some(alone) => {
                let is_calm = route.strain_elsewhere.is_some_and(|strain| strain < THRASHING);
                let is_nature = is_calm || route.times.is_founded(self.trusted_cores());
                let by_itself = if is_nature { BACKOFF_LEAST * alone } else { 0.0 };
                (BACKOFF_SERVICES * alone).min((BACKOFF_UNKNOWN * self.patience).max(by_itself))
            }
            None => BACKOFF_UNKNOWN * self.patience,
        };
        least.max(own)
    }

    /// Halves the limit where requests stay too long; a higher one under trial goes back to what it
    /// was.
    pub(super) fn back_off(&mut self, now: Instant, id: RouteId, meter: &Meter, out: &mut Vec<Record>) {
        let floor = self.cores.min(BACKOFF_FLOOR);
        let allowed = self.stay_allowed(now, id);
        let route = &mut self.routes[id.index()];
        // With more there than the limit allows no request starts: a lower limit would change
        // nothing yet.
        let is_over = meter.in_flight() > route.limit as usize;
        if route.limit <= floor || now < route.backoff_until || is_over {
            return route.reset_residence_window(now, meter);
        }
        let Some(stay) = route.stays_too_long(now, meter, allowed) else { return };
        let mut signals = Signals::none().with("stay_seconds", stay).with("allowed_seconds", allowed);
        route.backoff_until = now + seconds(allowed);
        let (limit, base) = (route.limit, route.base);
        if self.trial.take_if(|trial| trial.route == id).is_some() && limit > base {
            // The tried limit is too high; that says nothing of the one before.
            route.failed(now);
            route.mark_known_bad(now, limit);
            return self.set_base(now, id, base, Reason::Backoff, signals, out);
        }
        // An application that hangs says nothing of its cores.
        let ended = route.answered_at.is_some_and(|at| now.secs_since(at) <= allowed);
        if ended && self.inside() <= f64::from(DOUBTFUL.saturating_mul(self.cores)) {
            self.doubted_until = Some(now + seconds(DOUBTED_SECONDS));
            signals = signals.with("cores_believed", f64::from(self.trusted_cores()));
        }
        let route = &mut self.routes[id.index()];
        // In a thrash fast-up has nothing to compare with but the thrash. If it is known what a
        // request takes by itself, it begins anew from below.
        if route.slow_start.is_none() {
            route.forget_long_rest(now);
        }
        route.slow_start = route.times.is_founded(floor).then(|| SlowStart::new(meter.read(now)));
        route.step = STEP_MAX;
        route.up = false;
        route.retried(now);
        // If a lower limit is under trial, that one was too high.
        let base = base.min(limit);
        let lower = (base / 2).max(floor);
        self.set_base(now, id, lower, Reason::Backoff, signals, out);
        self.routes[id.index()].mark_backed_off(now, base);
    }
}

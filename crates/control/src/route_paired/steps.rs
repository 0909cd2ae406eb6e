//! What follows from a window of the slow start.

use super::slow_start::{LimitStep, WindowResult};
use super::{CALM, FAR, INFLATED, LIMIT_MAX, Paired, RAISE_GROWTH_FAR};
use crate::route::RequestEnd;
use crate::window::Meter;
use suimon_model::{Instant, Reason, Record, Signals};

impl Paired {
    /// Folds in an end while `end`'s route starts slowly, and takes the step that its window shows.
    pub(super) fn slow_start(
        &mut self,
        now: Instant,
        end: &RequestEnd,
        meter: &Meter,
        out: &mut Vec<Record>,
    ) {
        let route = end.route;
        let trusted = self.trusted_cores();
        let state = &mut self.routes[route.index()];
        let is_long = state.slow_start.is_some() && state.is_long(trusted);
        let long = if is_long { state.times.alone() } else { None };
        let (Some(fast), true) = (&mut state.slow_start, state.learns) else { return };
        let (request, service, limit) = (end.request, end.service, state.limit);
        let result = match long {
            Some(alone) => fast.on_long_end(now, request, service, limit, alone, meter),
            None => fast.on_end(now, request, service, limit, meter),
        };
        let Some(WindowResult { mean, elasticity, verdict }) = result else { return };
        let mut signals = Signals::none().with("service_seconds", mean);
        if let Some(elasticity) = elasticity {
            signals = signals.with("elasticity", elasticity);
        }
        // With nothing to compare with, a page that takes this much longer than it can is no sign
        // that a higher limit would be better.
        let unfounded = elasticity.is_none()
            && state.limit > trusted
            && mean > INFLATED * state.times.alone().unwrap_or(f64::INFINITY);
        match verdict {
            // While caps move, what a window shows is their effect.
            LimitStep::More(_) if !state.tries => {}
            LimitStep::More(_) if unfounded => {
                state.slow_start = None;
                state.up = false;
            }
            LimitStep::More(_) if is_long && state.strain_elsewhere.is_some_and(|strain| strain > CALM) => {}
            LimitStep::More(limit) => {
                let is_far = is_long && f64::from(state.limit) >= FAR * f64::from(trusted);
                let far = (f64::from(state.limit) * RAISE_GROWTH_FAR).ceil() as u32;
                let limit = if is_far { far } else { limit };
                let limit = limit.min(state.highest(now, LIMIT_MAX).max(state.limit));
                if limit == state.limit && !is_long {
                    // All higher limits were much worse, or backed off, a moment ago: trials find
                    // out the rest, and X can be measured meanwhile.
                    state.slow_start = None;
                    return;
                }
                self.set_base(now, route, limit, Reason::SlowStart, signals, out);
            }
            LimitStep::Stay => {}
            // Where each had a core of its own, company has not slowed them.
            LimitStep::Over { .. } if elasticity.is_none() && state.limit <= trusted => {
                let limit = state.limit.saturating_mul(2).min(LIMIT_MAX);
                self.set_base(now, route, limit, Reason::SlowStart, signals, out);
            }
            LimitStep::Over { limit, up } => {
                state.slow_start = None;
                state.up = up;
                state.retried(now);
                if limit != state.limit {
                    self.set_base(now, route, limit, Reason::SlowStartOver, signals, out);
                }
            }
        }
    }
}

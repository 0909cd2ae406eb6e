//! The application's nodes become more or fewer: limits and cores follow in proportion.

use super::{LIMIT_MAX, Paired};
use suimon_model::{Instant, Reason, Record, RouteId, Signals};

/// The least part of a request or a core that is remembered when nodes go.
const EXACT_LEAST: f64 = 1e-6;

impl Paired {
    pub(super) fn follow_nodes(&mut self, now: Instant, ratio: f64, out: &mut Vec<Record>) {
        self.cores = scaled(self.cores, &mut self.cores_exact, ratio);
        self.trial = None;
        for (index, route) in self.routes.iter_mut().enumerate().filter(|(_, route)| route.learns) {
            route.scale(ratio);
            route.base = scaled(route.base, &mut route.base_exact, ratio);
            let signals = Signals::none().with("nodes_ratio", ratio);
            route.publish(now, RouteId(index as u32), route.base, Reason::Nodes, signals, out);
        }
    }
}

/// Returns `ratio` times a count. `exact` is what the count is the rounding of, unless it has changed since:
/// so nodes that go and come back leave nothing behind, though no count is less than 1.
fn scaled(count: u32, exact: &mut f64, ratio: f64) -> u32 {
    let rounded = |exact: f64| (exact.round() as u32).clamp(1, LIMIT_MAX);
    if rounded(*exact) != count {
        *exact = f64::from(count);
    }
    *exact = (*exact * ratio).clamp(EXACT_LEAST, f64::from(LIMIT_MAX));
    rounded(*exact)
}

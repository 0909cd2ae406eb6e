//! What is asked of the application, out of what the gate shows.

use crate::{KindView, RouteView, Snapshot};
use suimon_model::Asked;

impl Snapshot {
    /// Returns what is asked of the application, for a law of the number of its nodes.
    pub fn asked(&self) -> Asked {
        let counts = || self.routes.iter().map(|route| &route.counts);
        let found = self.routes.iter().filter(|route| route.is_found);
        Asked {
            begun: counts().map(|counts| counts.offered - counts.refused).sum(),
            ended: counts().map(|counts| counts.completed + counts.failed + counts.abandoned).sum(),
            in_flight: self.in_flight as u64,
            waiting: self.waiting as u64,
            newcomers: self.kinds.iter().map(newcomers).collect(),
            fullness: self.routes.iter().filter_map(fullness).reduce(f64::max),
            fullness_found: found.filter_map(fullness).reduce(f64::max),
        }
    }
}

fn newcomers(kind: &KindView) -> f64 {
    kind.waiting as f64 + kind.line.as_ref().map_or(0.0, |line| line.waiting as f64)
}

fn fullness(route: &RouteView) -> Option<f64> {
    let limit = route.limit.filter(|limit| *limit > 0)?;
    Some((route.in_flight as f64 / f64::from(limit)).min(1.0))
}

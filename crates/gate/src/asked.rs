//! What is asked of the application's nodes, out of what the gate shows: by the visitors of all gateways that
//! share the application.
//!
//! Routes count by the requests that they have in the application, as those are the work that is done: a page
//! that is slow and full alone says little, and one that most requests are at says most. Only limits that a law
//! holds count: they are how much the nodes can do. One that is declared stays full with any number of nodes,
//! so that more would be no remedy; nor are they for a line that its operator holds, or for a declared number
//! of sessions.

use crate::{GateState, KindView, RouteMode, RouteView, Snapshot};
use suimon_line::LineStatus;
use suimon_model::{Asked, Fullness, PoolId};

impl Snapshot {
    /// Returns what is asked of the application's nodes, for a law of their number.
    pub fn asked(&self) -> Asked {
        // Others go to a pool of workers.
        let routes: Vec<&RouteView> = self.routes.iter().filter(|route| route.pool == PoolId(0)).collect();
        let counts = || routes.iter().map(|route| &route.counts);
        let elsewhere = || routes.iter().map(|route| route.elsewhere);
        let behind_limits = routes.iter().filter(|route| route.mode.fixed().is_none());
        Asked {
            // What is let in elsewhere is heard of when it ends.
            begun: counts().map(|counts| counts.offered - counts.refused).sum::<u64>()
                + elsewhere().map(|there| there.ended).sum::<u64>(),
            ended: counts().map(|counts| counts.completed + counts.failed + counts.abandoned).sum::<u64>()
                + elsewhere().map(|there| there.ended).sum::<u64>(),
            answered: counts().map(|counts| counts.completed + counts.failed).sum::<u64>()
                + elsewhere().map(|there| there.answered).sum::<u64>(),
            in_flight: routes.iter().map(|route| route.in_flight_of_all()).sum(),
            waiting: behind_limits.map(|route| route.waiting as u64 + route.elsewhere.waiting).sum(),
            newcomers: self.kinds.iter().map(newcomers).collect(),
            fullness: fullness(&routes, |_| true),
            fullness_found: fullness(&routes, |route| route.is_found),
        }
    }
}

/// Returns how many wait to be let in and would be if more could be served. Of those who were called, these are
/// the ones who are expected to come: one who is present and does not enter is no reason to keep a node.
fn newcomers(kind: &KindView) -> f64 {
    let is_stopped = kind.line.as_ref().is_some_and(|line| line.state != LineStatus::Moving);
    if is_stopped || kind.gate_state == GateState::Full {
        return kind.newcomers_elsewhere;
    }
    let in_line = kind.line.as_ref().map_or(0.0, |line| (line.uncalled + line.expected) as f64);
    kind.waiting as f64 + in_line + kind.newcomers_elsewhere
}

impl RouteView {
    /// Returns requests in the application, those of other gateways among them.
    fn in_flight_of_all(&self) -> u64 {
        self.in_flight as u64 + self.elsewhere.in_flight
    }
}

fn fullness(routes: &[&RouteView], is_meant: impl Fn(&RouteView) -> bool) -> Option<Fullness> {
    let (mut meant, mut full, mut all, mut has_limit) = (0.0, 0.0, 0.0, false);
    for route in routes {
        let in_flight = route.in_flight_of_all() as f64;
        all += in_flight;
        if let (RouteMode::Enforce, Some(limit @ 1..), true) = (route.mode, route.limit, is_meant(route)) {
            has_limit = true;
            meant += in_flight;
            full += in_flight * (in_flight / f64::from(limit)).min(1.0);
        }
    }
    let mean = if meant > 0.0 { full / meant } else { 0.0 };
    has_limit.then_some(Fullness { mean, is_of_most: 2.0 * meant >= all })
}

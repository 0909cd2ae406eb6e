//! What other gateways before the same application have.

use super::Gatekeeper;
use suimon_line::Lane;
use suimon_model::{Instant, KindId, RouteId};
use suimon_sharing::{Allotment, Part, Report};

impl Gatekeeper {
    /// Shares with other gateways from now on: see [`suimon_gate::Gate::share`].
    pub(crate) fn share(&self) {
        self.lock().gate.share();
    }

    /// Returns what to publish.
    pub(crate) fn report(
        &self,
        now: Instant,
        route_key: impl Fn(RouteId) -> u64,
        kind_key: impl Fn(KindId) -> u64,
    ) -> Report {
        self.lock().gate.report(now, route_key, kind_key)
    }

    /// Puts in force what is left to this gateway, and the numbers that it may draw.
    pub(crate) fn handle_part(
        &self,
        now: Instant,
        part: &Part,
        allotments: &[(KindId, Lane, Allotment)],
        route_of: impl Fn(u64) -> Option<RouteId>,
        kind_of: impl Fn(u64) -> Option<KindId>,
    ) {
        let mut inner = self.lock();
        for (kind, lane, allotment) in allotments {
            inner.gate.handle_allotment(*kind, *lane, *allotment);
        }
        inner.gate.handle_part(now, part, route_of, kind_of);
        inner.settle(now, None);
        self.rearm(inner);
    }
}

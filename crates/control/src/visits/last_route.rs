//! Where a session stands.

use suimon_model::RouteId;
use suimon_model::persist::{Broken, Persist, Reader, Writer};

/// Where a session is: before its first request, or at the route of its last one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct LastRoute(pub(super) u32);

impl Persist for LastRoute {
    fn save(&self, out: &mut Writer) {
        self.0.save(out);
    }

    fn load(from: &mut Reader<'_>) -> Result<Self, Broken> {
        u32::load(from).map(LastRoute)
    }
}

impl LastRoute {
    /// Admitted, no request yet.
    pub const START: LastRoute = LastRoute(0);

    /// Returns the place of a session whose last request was for `route`.
    pub const fn at(route: RouteId) -> LastRoute {
        LastRoute(route.0 + 1)
    }

    /// Returns the route it is at; `None` at the start.
    pub const fn route(self) -> Option<RouteId> {
        match self.0.checked_sub(1) {
            Some(route) => Some(RouteId(route)),
            None => None,
        }
    }

    /// Returns its number: 0 for the start, and then by route.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

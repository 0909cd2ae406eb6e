//! Route laws as the gate sees them: a limit for each route.

use crate::kind::RouteLawKind;
use crate::route_paired::Paired;
use crate::route_seed::SeedRoutes;
use crate::window::Meter;
use suimon_model::{Instant, Record, RequestId, RouteId};

/// A request that is no longer in the application.
#[derive(Clone, Copy, Debug)]
pub struct RequestEnd {
    /// Its route.
    pub route: RouteId,
    /// The request.
    pub request: RequestId,
    /// Seconds it was in the application.
    pub service: f64,
    /// Whether the application did its work, received by somebody or not; an error is no progress.
    pub progress: bool,
}

/// The route law of a host.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one for a whole host
pub enum RouteLaw {
    /// Ours.
    Paired(Paired),
    /// The paper's.
    Seed(SeedRoutes),
}

impl RouteLaw {
    /// Returns the law for an application thought to have `cores` cores, with nothing known.
    pub fn new(law: RouteLawKind, cores: u32) -> Self {
        match law {
            RouteLawKind::Paired => RouteLaw::Paired(Paired::new(cores)),
            RouteLawKind::Seed(params) => RouteLaw::Seed(SeedRoutes::new(params)),
        }
    }

    /// Adds a route. `fixed`: its limit is given and not to be learned.
    pub fn add_route(&mut self, now: Instant, fixed: Option<u32>) {
        match self {
            RouteLaw::Paired(law) => law.add_route(now, fixed),
            RouteLaw::Seed(law) => law.add_route(now, fixed),
        }
    }

    /// Sets the patience of the visitors, seconds.
    pub fn set_patience(&mut self, patience: f64) {
        if let RouteLaw::Paired(law) = self {
            law.set_patience(patience);
        }
    }

    /// Returns the limit in force.
    pub fn limit(&self, route: RouteId) -> u32 {
        match self {
            RouteLaw::Paired(law) => law.limit(route),
            RouteLaw::Seed(law) => law.limit(route),
        }
    }

    /// Returns the mean seconds in the application, if any request has ended there.
    pub fn service(&self, route: RouteId) -> Option<f64> {
        match self {
            RouteLaw::Paired(law) => law.service(route),
            RouteLaw::Seed(law) => law.service(route),
        }
    }

    /// Returns the route under trial.
    pub fn probing(&self) -> Option<RouteId> {
        match self {
            RouteLaw::Paired(law) => law.probing(),
            RouteLaw::Seed(_) => None,
        }
    }

    /// Takes note that `request` went to the application.
    pub fn on_start(&mut self, now: Instant, route: RouteId, request: RequestId, meters: &[Meter]) {
        if let RouteLaw::Paired(law) = self {
            law.on_start(now, route, request, meters);
        }
    }

    /// Takes note that a request is no longer in the application. Its meter has been told already.
    pub fn on_end(&mut self, now: Instant, end: &RequestEnd, meters: &[Meter], out: &mut Vec<Record>) {
        match self {
            RouteLaw::Paired(law) => law.on_end(now, end, meters, out),
            RouteLaw::Seed(law) => law.on_end(end.route, end.service),
        }
    }

    /// Does what is due every 250 ms or so.
    pub fn on_tick(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>) {
        match self {
            RouteLaw::Paired(law) => law.on_tick(now, meters, out),
            RouteLaw::Seed(law) => law.on_tick(now, meters, out),
        }
    }
}

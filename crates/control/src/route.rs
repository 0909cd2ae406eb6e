//! Route laws as the gate sees them: a limit for each route. Each law has a file of its own.

use crate::knowledge::{RouteKnowledge, Trust};
use crate::window::Meter;
use suimon_model::persist::{Unsavable, Writer};
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
    /// Whether it says what a request takes. One that was declined at once does not.
    pub says_work: bool,
}

/// A rule that finds a limit for each route of a host.
///
/// Routes are identified by their [`RouteId`], which counts up from 0 in the order of
/// [`RouteLaw::add_route`].
pub trait RouteLaw: std::fmt::Debug + Send {
    /// Adds a route. `fixed`: its limit is given and not learned.
    fn add_route(&mut self, now: Instant, fixed: Option<u32>);

    /// Forgets all it knows of `route`, which has no requests: another route has its number from
    /// now on. `fixed`: as in [`RouteLaw::add_route`]. `meter`: that of the number, which goes on.
    fn renew_route(&mut self, now: Instant, route: RouteId, fixed: Option<u32>, meter: &Meter);

    /// Marks `route` as shared by all paths without a route of their own: past requests there say
    /// little about future ones. Called right after [`RouteLaw::add_route`].
    fn mix(&mut self, _route: RouteId) {}

    /// Returns whether `route` is shared like that, as far as the law cares.
    fn is_mixed(&self, _route: RouteId) -> bool {
        false
    }

    /// Returns whether what was seen at `route` says nothing of the requests now in flight there,
    /// and no other route says that the application is strained.
    fn is_unlike(&self, _now: Instant, _route: RouteId) -> bool {
        false
    }

    /// Returns the limit in force, at least 1.
    fn limit(&self, route: RouteId) -> u32;

    /// Returns the mean seconds in the application, if any request has ended there.
    fn service(&self, route: RouteId) -> Option<f64>;

    /// Returns the processor seconds that a request takes at most, as far as is known.
    fn work(&self, route: RouteId) -> Option<f64> {
        self.service(route)
    }

    /// Returns the share of a core that a request uses at most, if it takes `alone` seconds alone.
    fn uses(&self, _route: RouteId, _alone: f64) -> f64 {
        1.0
    }

    /// Returns the seconds that a request takes alone, as far as is known.
    fn alone(&self, _route: RouteId) -> Option<f64> {
        None
    }

    /// Takes note whether a cap of its service, and not the route's limit, holds back what waits at
    /// `route`: then nothing that happens there says anything of the limit.
    fn set_capped(&mut self, _route: RouteId, _is_capped: bool) {}

    /// Puts a limit in force at `route`, a capped one: what bounds it instead has changed.
    fn set_limit(&mut self, _route: RouteId, _limit: u32) {}

    /// Takes note that the application has `ratio` times the nodes it had: each has as many requests as
    /// before.
    fn scale(&mut self, _now: Instant, _ratio: f64, _out: &mut Vec<Record>) {}

    /// Takes note whether a trial of a limit of `route` may begin.
    fn set_tries(&mut self, _route: RouteId, _tries: bool) {}

    /// Takes note that a request is no longer in the application. Its meter has been told already.
    fn on_end(&mut self, now: Instant, end: &RequestEnd, meters: &[Meter], out: &mut Vec<Record>);

    /// Does what is due every 250 ms or so.
    fn on_tick(&mut self, now: Instant, meters: &[Meter], out: &mut Vec<Record>);

    /// Takes note that `request` went to the application.
    fn on_start(&mut self, _now: Instant, _route: RouteId, _request: RequestId, _meters: &[Meter]) {}

    /// Takes note that `request` waits for its client and is suspended. It starts again, or ends.
    fn on_suspend(&mut self, _route: RouteId, _request: RequestId) {}

    /// Takes note of how many requests of other gateways are in the application, all routes
    /// together. What ended there is in the meters.
    fn set_elsewhere(&mut self, _in_flight: u64) {}

    /// Sets the patience of the visitors, seconds.
    fn set_patience(&mut self, _patience: f64) {}

    /// Returns whether requests that can no longer be answered in time go behind the others in a
    /// queue. (Third-party rules are kept as published.)
    fn demotes_late_requests(&self) -> bool {
        false
    }

    /// Sets the route because of which newcomers are held back, if any: they are demand for it
    /// although no request waits there.
    fn set_wanted(&mut self, _route: Option<RouteId>) {}

    /// Returns the route under trial, where the rule tries one at a time.
    fn probing(&self) -> Option<RouteId> {
        None
    }

    /// Returns whether the limit in force at `route` is the one the rule believes in, and shown to
    /// matter: neither one on trial nor one that is raised as soon as more is asked for. Only then
    /// the route's throughput is its capacity.
    fn is_settled(&self, _route: RouteId) -> bool {
        true
    }

    /// Returns whether a higher limit at `route` was too much a short while ago, whether or not the rule
    /// has settled since.
    fn is_bounded(&self, _now: Instant, _route: RouteId) -> bool {
        false
    }

    /// Returns the knowledge of `route` that another process can begin with, if any.
    fn knowledge(&self, _route: RouteId) -> Option<RouteKnowledge> {
        None
    }

    /// Begins with what was known of `route`, as far as it is believed; a known limit is where the
    /// search starts, and all that is recalled gives way to measurements. Called right after
    /// [`RouteLaw::add_route`], before any request.
    fn recall(&mut self, _route: RouteId, _known: &RouteKnowledge, _trust: Trust) {}

    /// Returns whether it is for this number of `routes`: what was saved may be of others.
    fn fits(&self, _routes: usize) -> bool {
        true
    }

    /// Appends all that the rule knows, to be loaded as its
    /// [`Persist`](suimon_model::persist::Persist).
    ///
    /// # Errors
    /// Returns [`Unsavable`] where a rule cannot be saved: one of a program that tries its own.
    fn save(&self, _out: &mut Writer) -> Result<(), Unsavable> {
        Err(Unsavable)
    }
}

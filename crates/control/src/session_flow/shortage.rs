//! Whether routes are short of slots, as far as a session gate cares.

use super::{IDLE_MIN, LONG, SHORT, WAIT_MIN};
use crate::session::AdmissionInputs;
use suimon_model::RouteId;

/// Returns whether no request has waited at `route` for as long as it takes to come there and
/// through it: visitors whom a forecast held back meanwhile would have been there by now. (Over the
/// service time alone the pipe to a page twelve seconds away fills without a forecast, and
/// admissions oscillate.) X of a long page is known from few windows, and to wait for δ as well
/// would take minutes: there its own service time is enough.
pub(super) fn is_idle(inputs: &AdmissionInputs<'_>, route: RouteId) -> bool {
    let there = &inputs.routes[route.index()];
    let service = there.service.unwrap_or(0.0);
    let through = if service < LONG { inputs.visits.delay(route) + service } else { service };
    there.waiting == 0 && there.idle > through + IDLE_MIN
}

/// Returns whether no route is short of slots.
pub(super) fn is_calm(inputs: &AdmissionInputs<'_>) -> bool {
    inputs.routes.iter().all(|route| route.idle > SHORT)
}

/// Returns whether nobody waits at any route for longer than is of concern. A visitor of one page
/// brings nothing but the request that is seen there at once.
pub(super) fn keeps_up(inputs: &AdmissionInputs<'_>) -> bool {
    inputs.routes.iter().all(|route| route.idle > SHORT || route.waiting as f64 <= WAIT_MIN * route.rate)
}

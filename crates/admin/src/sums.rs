//! Sums over all kinds of session, and over all routes.

use suimon_proxy::View;

/// Returns how many newcomers are held, all kinds together.
pub(crate) fn held(view: &View) -> usize {
    view.kinds.iter().map(|(_, kind)| kind.waiting).sum()
}

/// Returns how many requests are queued for a slot, all routes together.
pub(crate) fn queued(view: &View) -> usize {
    view.routes.iter().map(|route| route.gate.waiting).sum()
}

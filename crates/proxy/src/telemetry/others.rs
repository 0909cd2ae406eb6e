//! The shares of `other`, shown to people as the one route that they are.

use suimon_gate::RouteView;
use suimon_routes::SHARES;

/// Makes the view of the first share that of all together: sums, and the mean of what they take.
pub(super) fn show_as_one(routes: &mut [RouteView]) {
    let shares = routes.len().min(SHARES);
    let [first, rest @ ..] = &mut routes[..shares] else { return };
    let mut all = first.clone();
    let mut busy_seconds = all.rate * all.service_seconds;
    for share in rest {
        all.limit = all.limit.zip(share.limit).map(|(all, own)| all + own);
        all.in_flight += share.in_flight;
        all.orphaned += share.orphaned;
        all.suspended += share.suspended;
        all.waiting += share.waiting;
        all.rate += share.rate;
        busy_seconds += share.rate * share.service_seconds;
        all.counts.offered += share.counts.offered;
        all.counts.completed += share.counts.completed;
        all.counts.failed += share.counts.failed;
        all.counts.abandoned += share.counts.abandoned;
        all.counts.refused += share.counts.refused;
        all.placed += share.placed;
    }
    if all.rate > 0.0 {
        all.service_seconds = busy_seconds / all.rate;
    }
    *first = all;
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_gate::Counts;

    #[test]
    fn shares_are_shown_as_one_route() {
        let share = |limit, rate, service_seconds| RouteView {
            limit: Some(limit),
            in_flight: 1,
            waiting: 2,
            rate,
            service_seconds,
            counts: Counts { offered: 3, ..Counts::default() },
            ..RouteView::default()
        };
        let mut routes = vec![share(2, 1.0, 0.1), share(4, 3.0, 0.5), share(2, 0.0, 7.0)];
        routes.resize(SHARES, RouteView { limit: Some(0), ..RouteView::default() });
        routes.push(share(9, 9.0, 9.0));
        show_as_one(&mut routes);
        let all = &routes[0];
        assert_eq!((all.limit, all.in_flight, all.waiting, all.counts.offered), (Some(8), 3, 6, 9));
        assert!((all.rate - 4.0).abs() < 1e-9 && (all.service_seconds - 0.4).abs() < 1e-9, "{all:?}");
        assert_eq!(routes[SHARES].limit, Some(9), "who is no share stays as it is");
    }
}

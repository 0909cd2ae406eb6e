//! The shares of `other`, shown to people as the one route that they are.

use suimon_gate::{Counts, RouteView};
use suimon_routes::SHARES;

/// Makes the view of the first share that of all together: sums, and the mean of what they take.
pub(super) fn show_as_one(routes: &mut [RouteView]) {
    let shares = routes.len().min(SHARES);
    let [first, rest @ ..] = &mut routes[..shares] else { return };
    let mut all = first.clone();
    let mut busy_seconds = all.rate * all.service_seconds;
    for share in rest {
        // Named one by one: whoever adds a number says here what all shares together have of it.
        let RouteView {
            mode: _,
            is_found: _,
            pool: _,
            limit,
            in_flight,
            orphaned,
            suspended,
            waiting,
            rate,
            service_seconds,
            counts: Counts { offered, completed, failed, abandoned, refused },
            placed,
            elsewhere,
        } = share;
        all.limit = all.limit.zip(*limit).map(|(all, own)| all + own);
        all.in_flight += *in_flight;
        all.orphaned += *orphaned;
        all.suspended += *suspended;
        all.waiting += *waiting;
        all.rate += *rate;
        busy_seconds += *rate * *service_seconds;
        all.counts.offered += *offered;
        all.counts.completed += *completed;
        all.counts.failed += *failed;
        all.counts.abandoned += *abandoned;
        all.counts.refused += *refused;
        all.placed += *placed;
        all.elsewhere.in_flight += elsewhere.in_flight;
        all.elsewhere.waiting += elsewhere.waiting;
        all.elsewhere.ended += elsewhere.ended;
        all.elsewhere.answered += elsewhere.answered;
    }
    if all.rate > 0.0 {
        all.service_seconds = busy_seconds / all.rate;
    }
    *first = all;
}

#[cfg(test)]
mod tests {
    use super::*;

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

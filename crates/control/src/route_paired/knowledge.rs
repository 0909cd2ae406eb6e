//! What the law knows of a route, for another process, and where its search starts with that.

use super::route::STEP_MAX;
use super::shares::SHARE_WEIGHT;
use super::{LIMIT_MAX, Paired};
use crate::knowledge::{RouteKnowledge, Trust};
use suimon_model::{Duration, RouteId};

impl Paired {
    pub(super) fn known_of(&self, route: RouteId) -> Option<RouteKnowledge> {
        let route = self.routes.get(route.index())?;
        let service = route.service.knowledge();
        // Before anything has ended there is nothing to know.
        (route.learns && service.is_some()).then(|| RouteKnowledge {
            limit: route.base,
            settled: route.slow_start.is_none(),
            service,
            service_least: Some(route.service_min).filter(|least| least.is_finite()),
            share: (route.share_looks > 0).then_some(route.share),
        })
    }

    /// The search starts at the limit known, with the largest step and no rest before it. Fast-up,
    /// which compares a limit with lower ones alone, is not begun anew where it was over.
    pub(super) fn begin_knowing(&mut self, id: RouteId, known: &RouteKnowledge, trust: Trust) {
        let start = self.cores;
        let Some(route) = self.routes.get_mut(id.index()).filter(|route| route.learns) else { return };
        let known = trust.in_route(known, start);
        let limit = known.limit.min(LIMIT_MAX);
        (route.limit, route.base) = (limit, limit);
        if known.settled {
            route.slow_start = None;
            route.step = STEP_MAX;
        }
        if let Some(service) = known.service {
            route.service.recall(service, Trust::after(Duration::ZERO));
        }
        if let Some(least) = known.service_least {
            route.service_min = least;
        }
        if let Some(share) = known.share {
            // A share that is hardly believed is the first to be overruled; it is no smaller for
            // that.
            route.share = share;
            route.share_looks = (trust.share() / SHARE_WEIGHT) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{RequestEnd, RouteLaw};
    use crate::window::Meter;
    use suimon_model::{Instant, RequestId};

    const ROUTE: RouteId = RouteId(0);

    fn law() -> Paired {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, None);
        law
    }

    fn known(limit: u32) -> RouteKnowledge {
        RouteKnowledge { limit, settled: true, service: None, service_least: Some(0.1), share: Some(0.9) }
    }

    #[test]
    fn the_search_starts_at_the_limit_known() {
        let mut law = law();
        assert_eq!(law.knowledge(ROUTE), None, "nothing has ended yet");
        law.recall(ROUTE, &known(24), Trust::after(Duration::ZERO));
        assert_eq!(law.limit(ROUTE), 24);
        let meters = [Meter::new(Instant::ORIGIN)];
        let end =
            RequestEnd { route: ROUTE, request: RequestId(0), service: 0.2, progress: true, says_work: true };
        law.on_end(Instant::ORIGIN, &end, &meters, &mut vec![]);
        let given = law.knowledge(ROUTE).expect("something has ended");
        assert_eq!((given.limit, given.settled, given.service_least), (24, true, Some(0.1)));
    }

    #[test]
    fn a_share_of_long_ago_is_overruled_by_the_first_that_is_measured_and_is_no_smaller_until_then() {
        let share_after = |days: u64| {
            let mut law = law();
            law.recall(ROUTE, &known(8), Trust::after(Duration::from_secs(days * 24 * 3600)));
            (law.routes[0].share, law.routes[0].share_looks)
        };
        assert_eq!([share_after(0), share_after(1), share_after(60)], [(0.9, 10), (0.9, 5), (0.9, 0)]);
    }

    #[test]
    fn a_limit_of_long_ago_is_hardly_believed_and_one_that_cannot_be_is_cut() {
        let limit_after = |limit: u32, days: u64| {
            let mut law = law();
            law.recall(ROUTE, &known(limit), Trust::after(Duration::from_secs(days * 24 * 3600)));
            law.limit(ROUTE)
        };
        assert_eq!([limit_after(32, 0), limit_after(32, 1), limit_after(32, 30)], [32, 8, 2]);
        assert_eq!([limit_after(0, 0), limit_after(u32::MAX, 0)], [1, LIMIT_MAX]);
    }

    #[test]
    fn a_limit_that_is_set_stays() {
        let mut law = Paired::new(2);
        law.add_route(Instant::ORIGIN, Some(7));
        law.recall(ROUTE, &known(24), Trust::after(Duration::ZERO));
        assert_eq!((law.limit(ROUTE), law.knowledge(ROUTE)), (7, None));
    }
}

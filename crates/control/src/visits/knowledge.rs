//! What is known of visits, given away as plain values and taken back by a gate that begins.

use super::transitions::{ReturnShare, Transitions};
use super::{STAGES, Visits};
use crate::knowledge::{KnownMean, OBSERVATIONS_MAX, RouteVisits, Trust, VisitsAfter, VisitsKnowledge};
use suimon_model::RouteId;

/// Fewer visits than this, or a smaller share, count as none.
const LEAST: f64 = 1e-3;
/// The most that is believed of a delay, seconds, and of visits to come or made.
const DELAY_MAX: f64 = 3600.0;
const VISITS_MAX: f64 = 1000.0;

/// Returns `value` within `least` and `most`; NaN becomes the least.
fn bounded(value: f64, least: f64, most: f64) -> f64 {
    if value.is_nan() { least } else { value.clamp(least, most) }
}

impl Visits {
    /// Returns what was learned from sessions that ended. What is under way is not in it.
    pub fn knowledge(&self) -> VisitsKnowledge {
        let places = |rows: &[Transitions]| {
            (0u32..).zip(rows).filter_map(|(place, row)| row.knowledge(place)).collect()
        };
        VisitsKnowledge {
            routes: self.routes().map(|route| self.route_knowledge(route)).collect(),
            kinds: self.kinds.iter().map(|kind| places(&kind.rows)).collect(),
            thinks: self.thinks.knowledge(),
        }
    }

    /// Begins with what is left of `known`. To be called when all routes and kinds have been added
    /// and no session has begun; knowledge of other routes and kinds is left out.
    pub fn recall(&mut self, known: &VisitsKnowledge, trust: Trust) {
        for (index, route) in known.routes.iter().enumerate().take(self.routes) {
            let of = |value: f64| KnownMean { value: value * route.visits.value, ..route.visits };
            self.visits[index].recall(route.visits, trust);
            self.offsets[index].recall(of(bounded(route.delay, 0.0, DELAY_MAX)), trust);
            self.ranks[index].recall(of(bounded(route.rank, 1.0, VISITS_MAX)), trust);
        }
        for (kind, places) in self.kinds.iter_mut().zip(&known.kinds) {
            for known in places {
                // A row is there for the start and for each route.
                let place = known.after.map_or(Some(0), |route| route.index().checked_add(1));
                if let Some(row) = place.and_then(|place| kind.rows.get_mut(place)) {
                    row.recall(known, trust);
                }
            }
            kind.recalled = kind.rows[0].ended > 0;
        }
        self.thinks.recall(&known.thinks, trust);
        self.refresh();
    }

    fn route_knowledge(&self, route: RouteId) -> RouteVisits {
        RouteVisits {
            visits: self.visits[route.index()].knowledge().unwrap_or_default(),
            delay: self.delay(route),
            rank: self.rank(route),
        }
    }
}

impl Transitions {
    /// Returns what is known of this row, which is that of `place`, if anything is.
    fn knowledge(&self, place: u32) -> Option<VisitsAfter> {
        let list = |values: &[f64]| {
            let some = (0u32..).map(RouteId).zip(values.iter().copied());
            some.filter(|(_, value)| *value >= LEAST).collect()
        };
        (self.ended > 0).then(|| VisitsAfter {
            after: place.checked_sub(1).map(RouteId),
            seen: self.ended,
            further: list(&self.further),
            next: list(&self.next),
            returned: self
                .returned
                .map(|returns| KnownMean { value: returns.share, observations: returns.count }),
        })
    }

    fn recall(&mut self, known: &VisitsAfter, trust: Trust) {
        let seen = trust.observations(known.seen, OBSERVATIONS_MAX);
        if seen == 0 {
            return;
        }
        self.ended = seen;
        let put = |into: &mut [f64], values: &[(RouteId, f64)], most: f64| {
            for (route, value) in values {
                if let Some(place) = into.get_mut(route.index()).filter(|_| value.is_finite()) {
                    *place = value.clamp(0.0, most);
                }
            }
        };
        put(&mut self.further, &known.further, VISITS_MAX);
        put(&mut self.next, &known.next, 1.0);
        for stage in 0..STAGES {
            if let Some(known) = trust.in_mean(known.returned[stage]) {
                self.returned[stage] =
                    ReturnShare { count: known.observations, share: known.value.clamp(0.0, 1.0) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::{Duration, KindId};

    const SHOP: KindId = KindId(0);
    const FRONT: RouteId = RouteId(0);
    const SEARCH: RouteId = RouteId(1);

    fn nothing_known() -> Visits {
        let mut visits = Visits::default();
        (0..2).for_each(|_| visits.add_route());
        visits.add_kind();
        visits
    }

    fn taught(searches: usize) -> Visits {
        let mut visits = nothing_known();
        let mut path = vec![(FRONT, 0.0)];
        path.extend((0..searches).map(|n| (SEARCH, 6.0 * (n + 1) as f32)));
        (0..500).for_each(|_| visits.teach(SHOP, &path));
        (0..500).for_each(|n| visits.thought(f64::from(n % 10), false));
        visits
    }

    #[test]
    fn what_one_knew_the_next_knows() {
        let before = taught(3);
        let mut after = nothing_known();
        after.recall(&before.knowledge(), Trust::after(Duration::ZERO));
        for route in [FRONT, SEARCH] {
            let pairs = [
                (before.per_session(SHOP, route), after.per_session(SHOP, route)),
                (before.delay(route), after.delay(route)),
                (before.rank(route), after.rank(route)),
            ];
            assert!(pairs.iter().all(|(was, is)| (was - is).abs() < 1e-9), "{route:?}: {pairs:?}");
        }
        assert!((after.silence() / before.silence() - 1.0).abs() < 0.15);
        assert!(after.ended(SHOP) >= 3 && after.under_way(SHOP) == 0 && after.remaining(SEARCH) == 0.0);
    }

    #[test]
    fn sessions_that_do_otherwise_soon_have_the_say() {
        let mut after = nothing_known();
        after.recall(&taught(6).knowledge(), Trust::after(Duration::ZERO));
        (0..60).for_each(|_| after.teach(SHOP, &[(FRONT, 0.0), (SEARCH, 5.0)]));
        let searches = after.per_session(SHOP, SEARCH);
        assert!((1.0..2.0).contains(&searches), "{searches}");
    }

    #[test]
    fn knowledge_of_other_routes_and_nonsense_are_left_out() {
        let mut known = taught(2).knowledge();
        known.routes.push(RouteVisits::default());
        known.kinds[0][0].further.push((RouteId(77), 3.0));
        known.kinds[0][0].further.push((SEARCH, f64::NAN));
        known.kinds[0].push(VisitsAfter {
            after: Some(RouteId(u32::MAX)),
            seen: 9,
            ..VisitsAfter::default()
        });
        known.kinds.push(vec![]);
        let mut after = nothing_known();
        after.recall(&known, Trust::after(Duration::ZERO));
        assert!((after.per_session(SHOP, SEARCH) - 2.0).abs() < 1e-9);
        let mut old = nothing_known();
        old.recall(&known, Trust::after(Duration::from_secs(30 * 24 * 3600)));
        assert_eq!((old.ended(SHOP), old.think_times().count()), (0, 0));
    }
}

//! What a request costs, so that the model behaves as measured.
//!
//! The gateway sees how long a request is in the application, not what it does there. Of a route p
//! it knows
//!
//! ```text
//! s_p   its time in the application while every request in it had a core
//! X_p   its capacity: completions per second while it always has a queue; F_p visits per session
//! ```
//!
//! From these follows C, the sessions per second that were possible: the minimum over p of X_p /
//! F_p. C is the recent admission rate if that is higher, or if many more newcomers came than were
//! admitted. The model's bound is cores ÷ CPU seconds of a session, and must equal C:
//!
//! ```text
//! α     = cores / (C · Σ V_p s_p)               V_p: visits to p in the journeys of the file
//! α ≤ 1 cpu_p = α s_p,  elsewhere_p = (1 − α) s_p       the CPU is the bottleneck; the rest is waiting for other systems
//! α > 1 cpu_p = s_p,    cores' = C · Σ V_p s_p          the cores were never all in use: it behaves as with fewer
//! ```
//!
//! As long as no capacity is measured, C is unknown, and all of s_p counts as CPU time.

use std::collections::BTreeMap;
use suimon_admin::{Learned, LearnedRoute};

/// Fewest requests with a core of their own for their time to be trusted.
const ALONE_MIN: u64 = 5;
/// A route with fewer visits per session says nothing about how many sessions are possible.
const VISITS_MIN: f64 = 0.01;
/// If newcomers ÷ admissions is above this, more newcomers came than could be admitted.
const TURNED_AWAY: f64 = 1.3;
/// Assumed time of a route of which no request has ended yet, seconds.
const ASSUMED: f64 = 0.001;

/// The basis of a time in the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CostBasis {
    /// Measured on this many requests with a core of their own.
    Alone(u64),
    /// Measured on this many requests that shared the cores with others: too long.
    Crowded(u64),
    /// Not measured.
    Assumed,
}

/// What one request of a route costs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Cost {
    pub(super) route: String,
    /// CPU seconds, and seconds of waiting for other systems.
    pub(super) cpu: f64,
    pub(super) elsewhere: f64,
    pub(super) variation: f64,
    pub(super) errors: f64,
    pub(super) known: CostBasis,
}

/// What all routes cost.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Costs {
    /// Costs of the routes in the journeys.
    pub(super) routes: Vec<Cost>,
    /// Cores, all nodes together.
    pub(super) cores: f64,
    /// α.
    pub(super) cpu_share: f64,
    /// C, and the bottleneck route; `None`: no capacity is measured yet.
    pub(super) capacity: Option<(f64, String)>,
    /// Sessions per second that the model can do.
    pub(super) bound: f64,
}

impl Costs {
    /// Returns the costs of the routes in `visits`, which has their visits per session.
    pub(super) fn new(learned: &Learned, visits: &BTreeMap<String, f64>) -> Self {
        let routes: Vec<&LearnedRoute> =
            learned.routes.iter().filter(|route| visits.contains_key(&route.name)).collect();
        let work: f64 = routes.iter().map(|route| visits[&route.name] * time_of(route).0).sum();
        let thought = f64::from(learned.cores.max(1));
        let capacity = capacity(learned);
        let (cores, cpu_share) = match &capacity {
            Some((sessions, _)) if thought < sessions * work => (thought, thought / (sessions * work)),
            Some((sessions, _)) => (sessions * work, 1.0),
            None => (thought, 1.0),
        };
        let cost = |route: &&LearnedRoute| {
            let (time, variation, known) = time_of(route);
            Cost {
                route: route.name.clone(),
                cpu: cpu_share * time,
                elsewhere: (1.0 - cpu_share) * time,
                variation,
                errors: route.errors,
                known,
            }
        };
        Costs {
            routes: routes.iter().map(cost).collect(),
            bound: cores / (cpu_share * work).max(1e-9),
            cores,
            cpu_share,
            capacity,
        }
    }
}

/// Returns s in seconds, its coefficient of variation and its basis.
fn time_of(route: &LearnedRoute) -> (f64, f64, CostBasis) {
    let alone = route.service_alone.filter(|times| times.count >= ALONE_MIN);
    let (times, known) = match (alone, route.service) {
        (Some(alone), _) => (alone, CostBasis::Alone(alone.count)),
        (None, Some(crowded)) => (crowded, CostBasis::Crowded(crowded.count)),
        (None, None) => return (ASSUMED, 0.0, CostBasis::Assumed),
    };
    (times.mean_seconds.max(1e-6), times.variation, known)
}

/// Returns C in sessions per second, and the bottleneck route.
fn capacity(learned: &Learned) -> Option<(f64, String)> {
    let all: f64 = learned.kinds.iter().map(|kind| super::paths::newcomers(learned, kind)).sum();
    let visits_to = |name: &str| -> f64 {
        let of_kind = |kind: &suimon_admin::LearnedKind| {
            let visits = kind.visits.iter().find(|visits| visits.route == name)?;
            Some(visits.visits * super::paths::newcomers(learned, kind) / all.max(f64::MIN_POSITIVE))
        };
        learned.kinds.iter().filter_map(of_kind).sum()
    };
    let measured = learned.routes.iter().filter_map(|route| {
        let visits = visits_to(&route.name);
        let capacity = route.capacity_per_second.filter(|capacity| *capacity > 0.0)?;
        (visits > VISITS_MIN).then(|| (capacity / visits, visits * time_of(route).0, route.name.clone()))
    });
    let measured: Vec<_> = measured.collect();
    // A light route is the bottleneck only by chance now and then. The lasting bottleneck is the
    // route with the most time per session.
    let (_, _, short) = measured.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let possible = measured.iter().map(|(possible, _, _)| *possible).fold(f64::INFINITY, f64::min);
    let done: f64 = learned.kinds.iter().filter_map(|kind| kind.admitted_per_second).sum();
    let came: f64 = learned.kinds.iter().filter_map(|kind| kind.newcomers_per_second).sum();
    // If many more came than were admitted, the admissions are what was possible. Otherwise routes
    // had a queue only now and then, and completed more at such times than on average.
    Some((if done > 0.0 && came > TURNED_AWAY * done { done } else { possible.max(done) }, short.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_admin::{LearnedKind, LearnedTimes, LearnedVisits};

    fn times(count: u64, mean_seconds: f64) -> Option<LearnedTimes> {
        Some(LearnedTimes { count, mean_seconds, variation: 0.5 })
    }

    /// Sessions of three light pages and a search, of which `capacity` per second were possible.
    fn learned(capacity: Option<f64>) -> (Learned, BTreeMap<String, f64>) {
        let route = |name: &str, alone: f64| LearnedRoute {
            name: name.to_owned(),
            service: times(1000, 3.0 * alone),
            service_alone: times(50, alone),
            ..LearnedRoute::default()
        };
        let mut search = route("GET /search", 0.4);
        search.capacity_per_second = capacity;
        let visits = [("GET /page".to_owned(), 3.0), ("GET /search".to_owned(), 1.0)];
        let kind = LearnedKind {
            ended: 100,
            newcomers_per_second: Some(8.0),
            visits: visits
                .iter()
                .map(|(route, visits)| LearnedVisits { route: route.clone(), visits: *visits })
                .collect(),
            ..LearnedKind::default()
        };
        let routes = vec![route("GET /page", 0.03), search];
        (Learned { cores: 2, kinds: vec![kind], routes, ..Learned::default() }, visits.into_iter().collect())
    }

    fn session_cpu(costs: &Costs, visits: &BTreeMap<String, f64>) -> f64 {
        costs.routes.iter().map(|cost| visits[&cost.route] * cost.cpu).sum()
    }

    #[test]
    fn the_model_can_do_what_was_measured() {
        for capacity in [1.0, 4.0, 6.0] {
            let (learned, visits) = learned(Some(capacity));
            let costs = Costs::new(&learned, &visits);
            let bound = costs.cores / session_cpu(&costs, &visits);
            assert!((bound - capacity).abs() < 1e-9 && (costs.bound - capacity).abs() < 1e-9, "{costs:?}");
            for cost in &costs.routes {
                let alone = if cost.route == "GET /search" { 0.4 } else { 0.03 };
                assert!((cost.cpu + cost.elsewhere - alone).abs() < 1e-9, "it takes as long alone: {cost:?}");
            }
            assert_eq!(costs.capacity.as_ref().unwrap().1, "GET /search");
        }
    }

    #[test]
    fn cores_that_were_never_all_in_use_are_not_there() {
        let (learned, visits) = learned(Some(1.0));
        let costs = Costs::new(&learned, &visits);
        assert!((costs.cores - 0.49).abs() < 1e-9 && costs.cpu_share >= 1.0, "{costs:?}");
    }

    #[test]
    fn what_was_done_all_in_all_was_possible() {
        let (mut learned, visits) = learned(Some(4.0));
        learned.kinds[0].admitted_per_second = Some(4.5);
        assert!((Costs::new(&learned, &visits).bound - 4.5).abs() < 1e-9);
    }

    #[test]
    fn where_nothing_was_short_all_is_cpu() {
        let (learned, visits) = learned(None);
        let costs = Costs::new(&learned, &visits);
        assert_eq!((costs.cores, costs.capacity.clone()), (2.0, None));
        assert!(costs.routes.iter().all(|cost| cost.elsewhere == 0.0));
    }

    #[test]
    fn times_under_load_stand_in_where_nobody_was_alone() {
        let (mut learned, visits) = learned(None);
        learned.routes[0].service_alone = times(ALONE_MIN - 1, 0.001);
        learned.routes[1].service_alone = None;
        learned.routes[1].service = None;
        let costs = Costs::new(&learned, &visits);
        assert_eq!((costs.routes[0].cpu, costs.routes[0].known), (0.09, CostBasis::Crowded(1000)));
        assert_eq!((costs.routes[1].cpu, costs.routes[1].known), (ASSUMED, CostBasis::Assumed));
    }
}

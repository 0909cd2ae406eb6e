//! How long the slowest of a node's requests takes by its route: the node is not taken to hang before that.
//!
//! A node whose workers all have long requests answers nothing for as long as these take, checks among it.
//! So patience goes by the slowest route that it has requests of, and not by the mean of all: beside many
//! quick pages a chat with twelve seconds would count for nothing. And a report of a minute, somewhere else,
//! is no reason to wait eight minutes for a node that has quick pages only.

use suimon_model::real::exp;
use suimon_model::{Duration, Instant, RouteId};

/// Requests over which the time of a route is the mean.
const REQUESTS: f64 = 30.0;
/// The most routes that are told apart; the rest are one.
pub(crate) const ROUTES_MAX: usize = 1024;
/// How often what was slow without a slot is forgotten a little.
const FORGETS_EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longest {
    /// By route: the mean, and over how many requests.
    routes: Vec<Option<(f64, f64)>>,
    /// The time of one that passes without a slot: up at once, down by a thirtieth in a second. They are of many
    /// kinds, of which the slow ones count.
    ungated: f64,
    forgot: Option<Instant>,
}

impl Longest {
    /// Notes that a request of a route, or without one, was answered well after so many seconds.
    pub(crate) fn note(&mut self, now: Instant, route: Option<RouteId>, took: f64) {
        self.forget(now);
        let Some(route) = route else { return self.ungated = self.ungated.max(took) };
        let index = route.index().min(ROUTES_MAX - 1);
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        let (mean, seen) = self.routes[index].get_or_insert((took, 0.0));
        *seen = (*seen + 1.0).min(REQUESTS);
        *mean += (took - *mean) / *seen;
    }

    fn forget(&mut self, now: Instant) {
        let passed = now.since(*self.forgot.get_or_insert(now));
        if passed >= FORGETS_EVERY {
            self.forgot = Some(now);
            self.ungated *= exp(-passed.as_secs_f64() / REQUESTS);
        }
    }

    /// Returns the time of one without a slot, seconds; `None`: none was answered.
    pub(crate) fn ungated(&self) -> Option<f64> {
        Some(self.ungated).filter(|took| *took > 0.0)
    }

    /// Returns the mean time of the route at this place, seconds, however long ago it was asked for.
    pub(crate) fn mean(&self, index: usize) -> Option<f64> {
        self.routes.get(index).copied().flatten().map(|(mean, ..)| mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: f64) -> Instant {
        Instant::ORIGIN + suimon_model::seconds(second)
    }

    #[test]
    fn a_slow_route_is_known_among_many_quick_ones_and_for_good() {
        let mut longest = Longest::default();
        for number in 0..10_000 {
            longest.note(at(0.01 * f64::from(number)), Some(RouteId(0)), 0.05);
            if number % 1000 == 0 {
                longest.note(at(0.01 * f64::from(number)), Some(RouteId(1)), 12.0);
            }
        }
        longest.note(at(8000.0), Some(RouteId(0)), 0.05);
        assert_eq!((longest.mean(1), longest.mean(2), longest.ungated()), (Some(12.0), None, None));
        assert!(longest.mean(0).is_some_and(|mean| (mean - 0.05).abs() < 0.001));
    }

    #[test]
    fn one_slow_answer_without_a_slot_counts_for_a_while_among_many_quick_ones() {
        let mut longest = Longest::default();
        longest.note(at(0.0), None, 30.0);
        let after = |longest: &mut Longest, from: u32, to: u32| {
            (from * 100..to * 100)
                .for_each(|hundredth| longest.note(at(0.01 * f64::from(hundredth)), None, 0.01));
            longest.ungated().unwrap()
        };
        assert!(after(&mut longest, 0, 30) > 10.0);
        assert!(after(&mut longest, 30, 600) < 0.02);
        // Also where nobody asks for such a thing again.
        longest.note(at(600.0), None, 30.0);
        longest.note(at(900.0), Some(RouteId(0)), 0.05);
        assert!(longest.ungated().unwrap() < 0.02);
    }
}

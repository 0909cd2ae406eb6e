//! How long the slowest of a node's requests takes by its route: the node is not taken to hang before that.
//!
//! A node whose workers all have long requests answers nothing for as long as these take, checks among it.
//! So patience goes by the slowest route that it has requests of, and not by the mean of all: beside many
//! quick pages a chat with twelve seconds would count for nothing. And a report of a minute, somewhere else,
//! is no reason to wait eight minutes for a node that has quick pages only.

use suimon_model::{Duration, Instant, RouteId};

/// Requests over which the time of a route is the mean.
const REQUESTS: f64 = 30.0;
/// A route that nobody has asked for since then counts no more.
const COUNTS_FOR: Duration = Duration::from_secs(600);
/// The most routes that are told apart; the rest are one.
const ROUTES_MAX: usize = 1024;
/// How often it is looked which one is the slowest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The requests that a node has, by route.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    by_route: Vec<u32>,
    all: u32,
}

impl Pending {
    /// Notes that it gets a request of a route.
    pub(crate) fn begin(&mut self, route: RouteId) {
        let index = route.index().min(ROUTES_MAX - 1);
        if self.by_route.len() <= index {
            self.by_route.resize(index + 1, 0);
        }
        self.by_route[index] += 1;
        self.all += 1;
    }

    /// Notes that one has ended.
    pub(crate) fn end(&mut self, route: RouteId) {
        let count = self.by_route.get_mut(route.index().min(ROUTES_MAX - 1)).filter(|count| **count > 0);
        debug_assert!(count.is_some(), "ended more often than begun");
        if let Some(count) = count {
            *count -= 1;
            self.all -= 1;
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longest {
    /// By route: the mean, over how many requests, and when one was answered last.
    routes: Vec<Option<(f64, f64, Instant)>>,
    slowest: f64,
    looked: Option<Instant>,
}

impl Longest {
    /// Notes that a request of a route was answered well after so many seconds.
    pub(crate) fn note(&mut self, now: Instant, route: RouteId, took: f64) {
        let index = route.index().min(ROUTES_MAX - 1);
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        let (mean, seen, at) = self.routes[index].get_or_insert((took, 0.0, now));
        *seen = (*seen + 1.0).min(REQUESTS);
        *mean += (took - *mean) / *seen;
        *at = now;
        self.slowest = self.slowest.max(*mean);
        if self.looked.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
            self.looked = Some(now);
            let counts = |at: Instant| now.since(at) <= COUNTS_FOR;
            let means = self.routes.iter().flatten().filter(|(.., at)| counts(*at)).map(|(mean, ..)| *mean);
            self.slowest = means.fold(0.0, f64::max);
        }
    }

    /// Returns the mean time of the slowest route, seconds; 0: nothing was answered.
    pub(crate) const fn slowest(&self) -> f64 {
        self.slowest
    }

    /// Returns the same of the routes of a node's requests. Where it has others beside those that are known,
    /// these may be of any route.
    pub(crate) fn slowest_of(&self, pending: &Pending, in_flight: u32) -> f64 {
        if pending.all < in_flight {
            return self.slowest;
        }
        let times = self.routes.iter().zip(&pending.by_route).filter(|(_, count)| **count > 0);
        times.filter_map(|(time, _)| *time).map(|(mean, ..)| mean).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_counts_among_many_quick_ones_as_long_as_it_is_asked_for() {
        let at = |second: f64| Instant::ORIGIN + suimon_model::seconds(second);
        let mut longest = Longest::default();
        for number in 0..10_000 {
            longest.note(at(0.01 * f64::from(number)), RouteId(0), 0.05);
            if number % 1000 == 0 {
                longest.note(at(0.01 * f64::from(number)), RouteId(1), 12.0);
            }
        }
        assert!((longest.slowest() - 12.0).abs() < 0.01, "{}", longest.slowest());
        let mut pending = Pending::default();
        pending.begin(RouteId(0));
        assert!((longest.slowest_of(&pending, 1) - 0.05).abs() < 0.01, "it has quick ones only");
        assert!((longest.slowest_of(&pending, 2) - 12.0).abs() < 0.01, "and one that nothing is known of");
        pending.begin(RouteId(1));
        assert!((longest.slowest_of(&pending, 2) - 12.0).abs() < 0.01);
        pending.end(RouteId(1));
        assert!((longest.slowest_of(&pending, 1) - 0.05).abs() < 0.01);
        longest.note(at(800.0), RouteId(0), 0.05);
        assert!((longest.slowest() - 0.05).abs() < 0.01, "{}", longest.slowest());
    }
}

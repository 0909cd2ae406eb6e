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
pub(crate) const ROUTES_MAX: usize = 1024;
/// How often it is looked which one is the slowest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Longest {
    /// By route: the mean, over how many requests, and when one was answered last.
    routes: Vec<Option<(f64, f64, Instant)>>,
    /// The time of one that passes without a slot: up at once, down by a thirtieth in a second. They are of many
    /// kinds, of which the slow ones count.
    ungated: f64,
    slowest: f64,
    looked: Option<Instant>,
}

impl Longest {
    /// Notes that a request of a route was answered well after so many seconds.
    pub(crate) fn note(&mut self, now: Instant, route: Option<RouteId>, took: f64) {
        let mean = match route {
            Some(route) => self.note_route(now, route, took),
            None => {
                self.ungated = self.ungated.max(took);
                self.ungated
            }
        };
        self.slowest = self.slowest.max(mean);
        if self.looked.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
            self.looked = Some(now);
            self.ungated *= 1.0 - 1.0 / REQUESTS;
            let counts = |at: Instant| now.since(at) <= COUNTS_FOR;
            let means = self.routes.iter().flatten().filter(|(.., at)| counts(*at)).map(|(mean, ..)| *mean);
            self.slowest = means.fold(self.ungated, f64::max);
        }
    }

    /// Returns the mean of the route.
    fn note_route(&mut self, now: Instant, route: RouteId, took: f64) -> f64 {
        let index = route.index().min(ROUTES_MAX - 1);
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        let (mean, seen, at) = self.routes[index].get_or_insert((took, 0.0, now));
        *seen = (*seen + 1.0).min(REQUESTS);
        *mean += (took - *mean) / *seen;
        *at = now;
        *mean
    }

    /// Returns the mean time of the slowest route, seconds; 0: nothing was answered.
    pub(crate) const fn slowest(&self) -> f64 {
        self.slowest
    }

    /// Returns the mean time of the route at this place, seconds, however long ago it was asked for.
    pub(crate) fn mean(&self, index: usize) -> Option<f64> {
        self.routes.get(index).copied().flatten().map(|(mean, ..)| mean)
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
            longest.note(at(0.01 * f64::from(number)), Some(RouteId(0)), 0.05);
            if number % 1000 == 0 {
                longest.note(at(0.01 * f64::from(number)), Some(RouteId(1)), 12.0);
            }
        }
        assert!((longest.slowest() - 12.0).abs() < 0.01, "{}", longest.slowest());
        longest.note(at(800.0), Some(RouteId(0)), 0.05);
        assert!((longest.slowest() - 0.05).abs() < 0.01, "{}", longest.slowest());
        assert_eq!((longest.mean(1), longest.mean(2)), (Some(12.0), None), "its own time is still known");
    }
}

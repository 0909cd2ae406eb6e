//! How long the slowest of the routes takes that are asked for: no node is taken to hang before that.
//!
//! A node whose workers all have long requests answers nothing for as long as these take, checks among it.
//! So patience goes by the slowest route, and not by the mean of all: beside many quick pages a chat with
//! twelve seconds would count for nothing.

use suimon_model::{Duration, Instant, RouteId};

/// Requests over which the time of a route is the mean.
const REQUESTS: f64 = 30.0;
/// A route that nobody has asked for since then counts no more.
const COUNTS_FOR: Duration = Duration::from_secs(600);
/// The most routes that are told apart; the rest are one.
const ROUTES_MAX: usize = 1024;
/// How often it is looked which one is the slowest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
        longest.note(at(800.0), RouteId(0), 0.05);
        assert!((longest.slowest() - 0.05).abs() < 0.01, "{}", longest.slowest());
    }
}

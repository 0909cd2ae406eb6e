//! How many requests may be sent again although a node may have worked on them.
//!
//! *Law*. A request whose connection closed without an answer may be sent once more if, of the last
//! ten seconds, and with what was sent again without a good answer,
//!
//! ```text
//! sent again, of its route   + 1 ≤ own = share / 2 · requests of its route                        (1)
//! ```
//!
//! or, where that is used up, out of a pool that all routes have together,
//!
//! ```text
//! Σ (sent again − own)       + 1 ≤ pool = share / 2 · requests + 20                               (2)
//! sent again − own, its own  + 1 ≤ pool / 2, or own if that is more; all of it if nothing else is asked for   (3)
//! ```
//!
//! None at all, if the share is 0. Together that is at most share · requests + 20.
//!
//! An application that dies under its load would otherwise be asked for everything twice, by everybody, just when
//! it can do least. What is answered well is given back: a node that drops all it gets costs nobody anything while
//! another one answers. One that loses what it has in flight once, as a node that crashes does, is covered: at 20 %
//! that is as much as two seconds of its requests and 20 more.
//!
//! Without (1) a few clients that ask again and again for paths that kill their workers would leave nothing for
//! all others: these always have half of what their own requests allow. Without (3) one such path would use up
//! the pool.
//!
//! What no node was reached for is not in it: it was nobody's work, and whoever takes it next is asked for it once.
//! Nor is what a node had not read when it closed a connection that had been idle.
//!
//! *Units*: requests. *Limits*: the share is 0 to 1. Routes beyond [`COUNTED_MAX`] share a count with another
//! one. *Source*: the retry budgets of Finagle (share of the last ten seconds, and a reserve) and Envoy; the parts
//! of routes are ours.

use suimon_model::{Instant, RouteId};

/// The seconds of which it is known what was sent.
const SECONDS: usize = 10;
/// Requests that may be sent again in that time however few there are.
pub const RETRIES_LEAST: u32 = 20;

/// Routes that are counted apart; further ones are counted with them. What has no route is one more.
const COUNTED_MAX: usize = 128;
/// The part of a route's share that it has for itself, and that of the pool that any route may use.
const OWN: f64 = 0.5;
const OF_POOL: f64 = 0.5;

/// Counts requests and those sent again over the last seconds.
#[derive(Clone, Debug)]
pub(crate) struct RetryBudget {
    share: f64,
    /// By second, modulo their number.
    seconds: [Second; SECONDS],
    /// The last second that is in them.
    newest: u64,
    counts: RetryCounts,
}

/// A request that is sent again: when that was, in seconds, and where its route is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    second: u64,
    route: usize,
}

#[derive(Clone, Debug)]
struct Second {
    all: Count,
    of_routes: [Count; COUNTED_MAX + 1],
}

impl Default for Second {
    fn default() -> Self {
        Second { all: Count::default(), of_routes: [Count::default(); COUNTED_MAX + 1] }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requests: u32,
    again: u32,
}

/// What became of requests whose first try got no answer, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RetryCounts {
    /// Tried again, as nothing of them had been sent.
    pub unsent: u64,
    /// Sent again: a kept connection closed as it was sent.
    pub closed: u64,
    /// Sent again: the connection closed without an answer.
    pub lost: u64,
    /// Not sent again, as there were too many.
    pub withheld: u64,
}

impl RetryCounts {
    /// Returns the counts of both.
    pub fn and(self, other: RetryCounts) -> RetryCounts {
        RetryCounts {
            unsent: self.unsent + other.unsent,
            closed: self.closed + other.closed,
            lost: self.lost + other.lost,
            withheld: self.withheld + other.withheld,
        }
    }
}

impl RetryBudget {
    /// Returns a budget of this share of requests.
    pub(crate) fn new(share: f64) -> Self {
        RetryBudget { share, seconds: Default::default(), newest: 0, counts: RetryCounts::default() }
    }

    /// Notes that a request of a route, if it has one, is sent for the first time.
    pub(crate) fn handle_request(&mut self, now: Instant, route: Option<RouteId>) {
        for count in self.at(now).counts(place_of(route)) {
            count.requests = count.requests.saturating_add(1);
        }
    }

    /// Notes that a request is tried again of which nothing had been sent.
    pub(crate) fn handle_unsent(&mut self) {
        self.counts.unsent += 1;
    }

    /// Notes that a request is sent again, as a kept connection closed as it was sent.
    pub(crate) fn handle_closed(&mut self) {
        self.counts.closed += 1;
    }

    /// (1), (2), (3) Returns a retry if a request may be sent again. It counts as sent until it is answered.
    pub(crate) fn ask(&mut self, now: Instant, route: Option<RouteId>) -> Option<Retry> {
        let route = place_of(route);
        self.at(now);
        if !self.may_go_again(route) {
            self.counts.withheld += 1;
            return None;
        }
        for count in self.at(now).counts(route) {
            count.again = count.again.saturating_add(1);
        }
        self.counts.lost += 1;
        Some(Retry { second: self.newest, route })
    }

    /// Notes that a request that was sent again has got a good answer.
    pub(crate) fn handle_answered(&mut self, now: Instant, Retry { second, route }: Retry) {
        self.at(now);
        if second + SECONDS as u64 > self.newest {
            for count in self.seconds[(second % SECONDS as u64) as usize].counts(route) {
                count.again = count.again.saturating_sub(1);
            }
        }
    }

    fn may_go_again(&self, route: usize) -> bool {
        let own_part = OWN * self.share;
        let (of_route, again_of_route) = self.sums(|second| second.of_routes[route]);
        let own = own_part * of_route;
        if self.share <= 0.0 || again_of_route + 1.0 <= own {
            return self.share > 0.0;
        }
        let (requests, _) = self.sums(|second| second.all);
        let pool = (self.share - own_part) * requests + f64::from(RETRIES_LEAST);
        let is_all_there_is = of_route >= requests;
        let of_pool = if is_all_there_is { pool } else { (OF_POOL * pool).max(own) };
        let beyond_own = |place: usize| {
            let (requests, again) = self.sums(|second| second.of_routes[place]);
            (again - own_part * requests).max(0.0)
        };
        let used: f64 = (0..=COUNTED_MAX).map(beyond_own).sum();
        beyond_own(route) + 1.0 <= of_pool && used + 1.0 <= pool
    }

    /// Returns the requests of all seconds, and those sent again.
    fn sums(&self, of: impl Fn(&Second) -> Count) -> (f64, f64) {
        self.seconds.iter().map(of).fold((0.0, 0.0), |(requests, again), count| {
            (requests + f64::from(count.requests), again + f64::from(count.again))
        })
    }

    pub(crate) fn counts(&self) -> RetryCounts {
        self.counts
    }

    /// Returns the second of `now`, or the newest if that is later, and forgets those that are too old.
    fn at(&mut self, now: Instant) -> &mut Second {
        let second = now.since(Instant::ORIGIN).as_secs();
        if second > self.newest {
            let passed = (second - self.newest).min(SECONDS as u64);
            for back in 0..passed {
                self.seconds[((second - back) % SECONDS as u64) as usize] = Second::default();
            }
            self.newest = second;
        }
        &mut self.seconds[(self.newest % SECONDS as u64) as usize]
    }
}

impl Second {
    /// Returns what counts a request of the route at this place.
    fn counts(&mut self, route: usize) -> [&mut Count; 2] {
        [&mut self.all, &mut self.of_routes[route]]
    }
}

/// Returns where a route is counted.
fn place_of(route: Option<RouteId>) -> usize {
    route.map_or(COUNTED_MAX, |RouteId(number)| number as usize % COUNTED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use suimon_model::{Duration, seconds};

    fn at(second: f64) -> Instant {
        Instant::ORIGIN + seconds(second)
    }

    const ROUTE: Option<RouteId> = Some(RouteId(7));
    const OTHER: Option<RouteId> = Some(RouteId(8));

    fn granted_to(budget: &mut RetryBudget, route: Option<RouteId>, second: f64, asked: u32) -> u32 {
        (0..asked).map(|_| u32::from(budget.ask(at(second), route).is_some())).sum()
    }

    /// Asks for two routes in turn.
    fn granted(budget: &mut RetryBudget, second: f64, asked: u32) -> u32 {
        let granted =
            (0..asked).map(|asked| budget.ask(at(second), if asked % 2 == 0 { ROUTE } else { OTHER }));
        granted.map(|retry| u32::from(retry.is_some())).sum()
    }

    #[test]
    fn one_route_that_loses_all_it_gets_leaves_half_to_the_others() {
        let mut budget = RetryBudget::new(0.2);
        for second in 0..10 {
            (0..10).for_each(|_| budget.handle_request(at(f64::from(second)), ROUTE));
            (0..10).for_each(|_| budget.handle_request(at(f64::from(second)), OTHER));
            (0..80).for_each(|_| budget.handle_request(at(f64::from(second)), None));
        }
        let half_of_pool = (100 + RETRIES_LEAST) / 2;
        assert_eq!(granted_to(&mut budget, ROUTE, 9.5, 1000), 10 + half_of_pool);
        assert_eq!(granted_to(&mut budget, OTHER, 9.6, 1000), 10 + half_of_pool);
        // Two have used up all that is for everybody, and nothing of what others have.
        assert_eq!(granted_to(&mut budget, None, 9.7, 1000), 80, "what has no route is another one");
        assert_eq!(granted_to(&mut budget, OTHER, 9.8, 1), 0, "they are used up");
    }

    #[test]
    fn one_route_may_use_what_its_own_requests_allow() {
        let mut budget = RetryBudget::new(0.2);
        (0..900).for_each(|_| budget.handle_request(at(5.0), ROUTE));
        (0..100).for_each(|_| budget.handle_request(at(5.0), OTHER));
        assert_eq!(granted_to(&mut budget, ROUTE, 5.0, 1000), 180);
        assert_eq!(granted_to(&mut budget, OTHER, 5.0, 1000), 20 + RETRIES_LEAST);
        let mut alone = RetryBudget::new(0.2);
        (0..100).for_each(|_| alone.handle_request(at(5.0), ROUTE));
        assert_eq!(granted_to(&mut alone, ROUTE, 5.0, 1000), 20 + RETRIES_LEAST);
    }

    #[test]
    fn what_is_answered_is_given_back_to_its_route() {
        let mut budget = RetryBudget::new(0.2);
        budget.handle_request(at(1.0), OTHER);
        for _ in 0..100 {
            let retry = budget.ask(at(1.0), ROUTE).expect("all that were sent again are answered");
            budget.handle_answered(at(1.5), retry);
        }
        assert_eq!(granted_to(&mut budget, ROUTE, 1.5, 100), RETRIES_LEAST / 2);
    }

    #[test]
    fn a_share_of_the_last_seconds_may_be_sent_again_and_a_few_more() {
        let mut budget = RetryBudget::new(0.2);
        assert_eq!(granted(&mut budget, 1.0, 100), RETRIES_LEAST, "with no requests at all");
        for second in 20..30 {
            (0..100).for_each(|_| budget.handle_request(at(f64::from(second)), ROUTE));
        }
        assert_eq!(granted(&mut budget, 29.5, 1000), 200 + RETRIES_LEAST);
        assert_eq!(granted(&mut budget, 29.9, 1000), 0, "they are used up");
        // The requests are gone first, and what was sent again with the last of their seconds.
        assert_eq!(granted(&mut budget, 38.9, 1000), 0);
        assert_eq!(granted(&mut budget, 39.0, 1000), RETRIES_LEAST);
        let counts = budget.counts();
        assert_eq!((counts.lost, counts.withheld), (20 + 220 + 20, 80 + 780 + 1000 + 1000 + 980));
    }

    #[test]
    fn with_a_share_of_nothing_none_is_sent_again() {
        let mut budget = RetryBudget::new(0.0);
        (0..100).for_each(|_| budget.handle_request(at(0.0), ROUTE));
        assert_eq!(granted(&mut budget, 0.0, 10), 0);
    }

    #[test]
    fn an_application_that_loses_all_it_gets_is_asked_little_more_than_once() {
        // 100 requests per second for a minute, each of which is lost.
        let mut budget = RetryBudget::new(0.2);
        let mut again = 0;
        for request in 0..6000 {
            let now = f64::from(request) / 100.0;
            budget.handle_request(at(now), ROUTE);
            again += granted_to(&mut budget, ROUTE, now, 1);
        }
        // Every ten seconds a fifth of them, and the reserve.
        assert!((1200..=6 * (200 + RETRIES_LEAST)).contains(&again), "{again}");
    }

    #[test]
    fn what_is_answered_is_given_back_while_it_counts() {
        let mut budget = RetryBudget::new(0.2);
        for _ in 0..1000 {
            let retry = budget.ask(at(1.0), ROUTE).expect("all that were sent again are answered");
            budget.handle_answered(at(1.5), retry);
        }
        let late = budget.ask(at(1.0), ROUTE).expect("the last was answered");
        assert_eq!(granted(&mut budget, 1.0, 100), RETRIES_LEAST - 1);
        assert_eq!(granted(&mut budget, 11.0, 100), RETRIES_LEAST);
        budget.handle_answered(at(11.0), late);
        assert_eq!(granted(&mut budget, 11.0, 1), 0, "its second is another's now");
    }

    #[test]
    fn a_clock_that_stands_or_seems_to_go_back_changes_nothing() {
        let mut budget = RetryBudget::new(1.0);
        budget.handle_request(at(50.0), ROUTE);
        budget.handle_request(at(41.0), ROUTE);
        assert_eq!(granted(&mut budget, 45.0, 100), 2 + RETRIES_LEAST);
        assert_eq!(granted(&mut budget, 50.0, 100), 0);
    }

    proptest! {
        #[test]
        fn no_ten_seconds_see_more_than_their_share(steps in prop::collection::vec((0u64..3_000, 0u32..40, 0u32..40), 1..80)) {
            let mut budget = RetryBudget::new(0.2);
            let mut now = Duration::ZERO;
            let mut seen: Vec<(u64, u32, u32)> = vec![];
            for (pause, requests, asked) in steps {
                now += Duration::from_millis(pause);
                (0..requests).for_each(|_| budget.handle_request(Instant::ORIGIN + now, OTHER));
                let before = seen.len();
                seen.push((now.as_secs(), requests, 0));
                for _ in 0..asked {
                    seen[before].2 += u32::from(budget.ask(Instant::ORIGIN + now, ROUTE).is_some());
                }
                let recent = seen.iter().filter(|(second, ..)| second + SECONDS as u64 > now.as_secs());
                let (all, again) = recent.fold((0, 0), |(all, again), it| (all + it.1, again + it.2));
                // What was granted while there were more requests stays granted.
                if seen[before].2 > 0 {
                    prop_assert!(f64::from(again) <= 0.2 * f64::from(all) + f64::from(RETRIES_LEAST));
                }
            }
        }
    }
}

//! Fast-up: a route's limit, raised by half again and again as long as most of the gain is real.
//!
//! Windows of ends, each at one limit. From one limit m to the next m' the elasticity of the rate
//! is, by Little's law,
//!
//! ```text
//! e = d ln X / d ln m = 1 − ln(S'/S) / ln(m'/m)                                           (1)
//! ```
//!
//! 1 where requests do not disturb each other, 0 where additional requests only wait for each other
//! inside. No best service time is needed: each limit is compared with the one before it. For quick
//! requests, which take longer in company on any machine that is busy, only a falling rate is
//! evidence against a higher limit.

use super::QUICK;
use crate::window::{Meter, Reading};
use std::collections::BTreeSet;
use suimon_model::real::ln;
use suimon_model::{Instant, RequestId};

/// e below which the search is left to paired trials ...
const GAIN_MIN: f64 = 0.3;
/// ... and below which the limit before was as good.
const GAIN_NONE: f64 = 0.15;
/// e above which it was not the limit: n times as many at once cannot do more than n times as much.
/// Something else has changed.
const GAIN_MAX: f64 = 1.2;
/// e below which a higher limit does less.
const LOSS: f64 = -0.2;
/// Growth of the limit.
const STEP: f64 = 1.5;
/// Growth of the limit of pages that take at least [`LONG`]: each step takes as long as they do.
const STEP_LONG: f64 = 2.0;
/// The smallest and the largest cohort of such pages; a quarter of the limit between.
const COHORT: (u32, u32) = (6, 16);
/// e is known to within this from one cohort; if it is within this of the border, more cohorts are
/// asked, up to the maximum below.
const LONG_ERROR: f64 = 0.2;
const COHORTS_MAX: u32 = 4;
/// e from which one cohort is enough: company has cost nothing that matters.
const GAIN_CLEAR: f64 = 0.85;
/// Where there is no lower limit to compare with: multiples of the time in little company that
/// count as equal, and as longer.
const ALIKE: f64 = 1.1;
const SLOWER_ALONE: f64 = 1.3;
/// The fewest ends of a window; more at higher limits, ...
const ENDS_MIN: u32 = 6;
/// ... and this many times the squared coefficient of variation where requests are uneven, up to
/// [`ENDS_MAX`].
const ENDS_UNEVEN: f64 = 25.0;
const ENDS_MAX: u32 = 60;
/// Standard errors that decide.
const SURE: f64 = 0.5;
/// The least length of a window, seconds: a handful of quick requests is over before it shows
/// anything.
const SECONDS_MIN: f64 = 0.02;
/// Share of a window during which requests must wait for a higher limit to be wanted.
const WANTED: f64 = 0.5;
/// A window in which requests wait for this share of it shows the effect of the limit.
const BINDING: f64 = 0.9;
/// It is slower if its rate is below this share of the best; ...
const RATE_KEPT: f64 = 0.9;
/// ... this many in a row end fast-up: windows are short, and machines stutter.
const SLOWED_MAX: u32 = 5;

/// A route in fast-up.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    begin: Reading,
    /// Of long pages: the cohort that is measured.
    cohort: Cohort,
    /// Cohorts measured at this limit.
    looks: u32,
    /// Ends that count as progress, in this window; errors are no speed.
    ends: u32,
    service_seconds: f64,
    service_squares: f64,
    /// The result of the next lower limit.
    before: Option<Level>,
    /// The result of this limit so far.
    here: Option<Level>,
    /// Best requests per second so far.
    rate_best: f64,
    /// Windows in a row that were slower.
    slowed: u32,
}

suimon_model::saved_struct!(SlowStart {
    begin,
    cohort,
    looks,
    ends,
    service_seconds,
    service_squares,
    before,
    here,
    rate_best,
    slowed
});

/// Requests of a long page that started one after the other at one limit.
#[derive(Clone, Debug, Default)]
struct Cohort {
    limit: u32,
    taken: u32,
    members: BTreeSet<RequestId>,
    ended: u32,
    /// The longest time in the application of those that have ended.
    longest: f64,
}

suimon_model::saved_struct!(Cohort { limit, taken, members, ended, longest });

impl Cohort {
    fn size(&self) -> u32 {
        (self.limit / 4).clamp(COHORT.0, COHORT.1)
    }

    fn on_start(&mut self, request: RequestId, limit: u32) {
        if self.limit != limit {
            *self = Cohort { limit, ..Cohort::default() };
        }
        if self.taken < self.size() {
            self.taken += 1;
            self.members.insert(request);
        }
    }

    /// Replaces `request`, which has left without showing what it takes, by another.
    fn on_leave(&mut self, request: RequestId) {
        if self.members.remove(&request) {
            self.taken -= 1;
        }
    }

    /// Returns the median time in the application, once half of the cohort has ended: the longest
    /// so far, as the others have been there for as long.
    fn on_end(&mut self, request: RequestId, service: f64, limit: u32) -> Option<f64> {
        if self.limit != limit || !self.members.remove(&request) {
            return None;
        }
        self.ended += 1;
        self.longest = self.longest.max(service);
        (2 * self.ended >= self.size() && self.taken == self.size()).then_some(self.longest)
    }
}

/// Service times at one limit.
#[derive(Clone, Copy, Debug)]
struct Level {
    limit: u32,
    ends: u32,
    seconds: f64,
    squares: f64,
}

suimon_model::saved_struct!(Level { limit, ends, seconds, squares });

impl Level {
    fn new(limit: u32) -> Self {
        Level { limit, ends: 0, seconds: 0.0, squares: 0.0 }
    }

    fn mean(&self) -> f64 {
        self.seconds / f64::from(self.ends)
    }

    /// Returns the squared standard error of ln of the mean.
    fn error(&self) -> f64 {
        let ends = f64::from(self.ends);
        (ends * self.squares / (self.seconds * self.seconds) - 1.0).max(0.0) / ends
    }

    /// Returns (1) from `lower` to here, and its standard error.
    fn elasticity(&self, lower: &Level) -> (f64, f64) {
        let step = ln(f64::from(self.limit) / f64::from(lower.limit));
        (1.0 - ln(self.mean() / lower.mean()) / step, (self.error() + lower.error()).sqrt() / step)
    }
}

/// The result of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowResult {
    /// Mean service time, seconds.
    pub(super) mean: f64,
    /// (1), where there is a limit to compare with.
    pub(super) elasticity: Option<f64>,
    pub(super) verdict: LimitStep,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LimitStep {
    /// This limit next.
    More(u32),
    /// No change: no request waits for more, or the machine stutters.
    Stay,
    /// Fast-up is over, at this limit; the search goes on upward or not.
    Over { limit: u32, up: bool },
}

impl SlowStart {
    /// Returns a route that begins with the reading `begin`.
    pub(super) fn new(begin: Reading) -> Self {
        SlowStart {
            begin,
            cohort: Cohort::default(),
            looks: 0,
            ends: 0,
            service_seconds: 0.0,
            service_squares: 0.0,
            before: None,
            here: None,
            rate_best: 0.0,
            slowed: 0,
        }
    }

    /// Takes note that `request` starts at `limit`.
    pub(super) fn on_start(&mut self, request: RequestId, limit: u32) {
        self.cohort.on_start(request, limit);
    }

    /// Takes note that `request` has left, and that its end is no progress.
    pub(super) fn on_leave(&mut self, request: RequestId) {
        self.cohort.on_leave(request);
    }

    /// Takes note of an end that is progress, at `limit`, of a request that was in the application
    /// for `service` seconds. Returns the result of its
    /// window, if that was its last.
    pub(super) fn on_end(
        &mut self,
        now: Instant,
        request: RequestId,
        service: f64,
        limit: u32,
        meter: &Meter,
    ) -> Option<WindowResult> {
        self.cohort.on_leave(request);
        self.ends += 1;
        self.service_seconds += service;
        self.service_squares += service * service;
        if self.ends < self.needed(limit) || now.secs_since(self.begin.at) < SECONDS_MIN {
            return None;
        }
        let window = meter.since(&self.begin, now);
        let mean = self.service_seconds / f64::from(self.ends);
        let is_binding = window.queued_share() >= BINDING;
        let rate = if is_binding { window.throughput() } else { self.rate_best };
        let slowed = if rate < RATE_KEPT * self.rate_best { self.slowed + 1 } else { 0 };
        let (before, mut here) = match self.here {
            Some(here) if here.limit == limit && window.queued_share() >= WANTED => (self.before, here),
            Some(here) if here.limit < limit => (Some(here), Level::new(limit)),
            _ => (self.before, Level::new(limit)),
        };
        here.ends += self.ends;
        here.seconds += self.service_seconds;
        here.squares += self.service_squares;
        *self = SlowStart {
            rate_best: self.rate_best.max(rate),
            slowed,
            before,
            here: Some(here),
            ..SlowStart::new(meter.read(now))
        };
        let elasticity = before
            .filter(|lower| lower.limit < limit && lower.seconds > 0.0)
            .map(|lower| here.elasticity(&lower));
        let wanted = window.queued_share() >= WANTED;
        let more = LimitStep::More((f64::from(limit) * STEP).ceil() as u32);
        let verdict = match (elasticity, before) {
            _ if mean < QUICK && slowed < SLOWED_MAX => {
                if wanted && slowed == 0 {
                    more
                } else {
                    LimitStep::Stay
                }
            }
            (Some((elasticity, error)), _)
                if (elasticity - GAIN_MIN).abs() < SURE * error && here.ends < ENDS_MAX =>
            {
                LimitStep::Stay
            }
            (Some((elasticity, error)), _) if elasticity - SURE * error > GAIN_MAX => {
                self.before = None;
                self.here = None;
                LimitStep::Stay
            }
            (Some((elasticity, _)), Some(lower)) if elasticity < GAIN_MIN => LimitStep::Over {
                limit: if elasticity < GAIN_NONE { lower.limit } else { limit },
                up: elasticity > LOSS,
            },
            _ if wanted => more,
            _ => LimitStep::Stay,
        };
        let elasticity = elasticity.map(|(elasticity, _)| elasticity);
        Some(WindowResult { mean, elasticity, verdict })
    }

    /// The same for a long page: it waits until half of the requests of a cohort have ended. The
    /// first to end are the quick ones, and where the system shares unevenly the others may not end
    /// at all; half of those that started together show both.
    pub(super) fn on_long_end(
        &mut self,
        now: Instant,
        request: RequestId,
        service: f64,
        limit: u32,
        alone: f64,
        meter: &Meter,
    ) -> Option<WindowResult> {
        let median = self.cohort.on_end(request, service, limit)?;
        let window = meter.since(&self.begin, now);
        let (before, seen, looks) = match self.here {
            Some(here) if here.limit == limit => (self.before, here, self.looks + 1),
            Some(here) if here.limit < limit => (Some(here), Level::new(limit), 1),
            _ => (self.before, Level::new(limit), 1),
        };
        // While the pipe fills, its ends are still those of the limit before. Once it is full,
        // Little's law counts starving requests too.
        let took = if looks > 1 && window.queued_share() >= BINDING && window.throughput() > 0.0 {
            window.mean_in_flight() / window.throughput()
        } else {
            median
        };
        // So the first look only stands in for those that follow.
        let mut here = if looks > 2 { seen } else { Level::new(limit) };
        (here.ends, here.seconds) = (here.ends + 1, here.seconds + took);
        *self = SlowStart { before, here: Some(here), looks, ..SlowStart::new(meter.read(now)) };
        let lower = before.filter(|lower| lower.limit < limit && lower.seconds > 0.0);
        let elasticity = lower.map(|lower| {
            1.0 - ln(here.mean() / lower.mean()) / ln(f64::from(limit) / f64::from(lower.limit))
        });
        let wanted = window.queued_share() >= WANTED;
        let more = LimitStep::More((f64::from(limit) * STEP_LONG).ceil() as u32);
        let verdict = match (elasticity, lower) {
            (Some(elasticity), _) if looks == 1 && elasticity < GAIN_CLEAR => LimitStep::Stay,
            (Some(elasticity), _) if (elasticity - GAIN_MIN).abs() < LONG_ERROR && looks < COHORTS_MAX => {
                LimitStep::Stay
            }
            (Some(elasticity), Some(lower)) if elasticity < GAIN_MIN => LimitStep::Over {
                limit: if elasticity < GAIN_NONE { lower.limit } else { limit },
                up: elasticity > LOSS,
            },
            (None, _) if looks == 1 && here.mean() > ALIKE * alone => LimitStep::Stay,
            (None, _) if here.mean() > SLOWER_ALONE * alone => LimitStep::Over { limit, up: true },
            _ if wanted => more,
            _ => LimitStep::Stay,
        };
        Some(WindowResult { mean: median, elasticity, verdict })
    }

    /// Returns how many ends a window at `limit` needs.
    fn needed(&self, limit: u32) -> u32 {
        let least = (2 * limit).max(ENDS_MIN);
        if self.ends < least {
            return least;
        }
        let mean = self.service_seconds / f64::from(self.ends);
        let variation = (self.service_squares / f64::from(self.ends) / (mean * mean) - 1.0).max(0.0);
        least.max(((ENDS_UNEVEN * variation) as u32).min(ENDS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    /// A route that always has somebody waiting, and whose requests all take as long as is said.
    struct Route {
        slow_start: SlowStart,
        meter: Meter,
        now: Instant,
        requests: u64,
    }

    impl Route {
        fn new() -> Self {
            let mut meter = Meter::new(Instant::ORIGIN);
            meter.load(Instant::ORIGIN, 1, 1);
            Route {
                slow_start: SlowStart::new(meter.read(Instant::ORIGIN)),
                meter,
                now: Instant::ORIGIN,
                requests: 0,
            }
        }

        /// Plays one window at `limit` with requests of `services` seconds, in turn.
        fn window(&mut self, limit: u32, services: &[f64]) -> WindowResult {
            for service in services.iter().cycle() {
                self.now += seconds(service / f64::from(limit));
                self.meter.end(*service, true);
                if let Some(outcome) =
                    self.slow_start.on_end(self.now, RequestId(0), *service, limit, &self.meter)
                {
                    return outcome;
                }
            }
            unreachable!("services are not empty")
        }

        /// Plays one look at a long page at `limit`, with every slot in use: `quick` of ten
        /// requests take `seconds`, and the others never end.
        fn look(&mut self, limit: u32, seconds: f64, quick: u64) -> WindowResult {
            const ALONE: f64 = 10.0;
            self.meter.load(self.now, limit as usize, 1);
            loop {
                let begin = self.requests;
                (begin..begin + u64::from(limit))
                    .for_each(|id| self.slow_start.on_start(RequestId(id), limit));
                self.requests += u64::from(limit);
                self.now += suimon_model::seconds(seconds);
                let mut seen = None;
                for id in (begin..self.requests).filter(|id| id % 10 < quick) {
                    self.meter.end(seconds, true);
                    let request = RequestId(id);
                    let end =
                        self.slow_start.on_long_end(self.now, request, seconds, limit, ALONE, &self.meter);
                    seen = seen.or(end);
                }
                if let Some(outcome) = seen {
                    return outcome;
                }
            }
        }
    }

    #[test]
    fn more_is_wanted_as_long_as_company_costs_nothing() {
        let mut route = Route::new();
        assert_eq!(route.window(2, &[1.0]).verdict, LimitStep::More(3));
        let outcome = route.window(3, &[1.0]);
        assert_eq!(outcome.verdict, LimitStep::More(5));
        assert!((outcome.elasticity.unwrap() - 1.0).abs() < 1e-9, "half as many again do half as much again");
    }

    #[test]
    fn it_is_over_at_the_limit_before_where_more_only_wait_for_each_other() {
        let mut route = Route::new();
        route.window(2, &[1.0]);
        assert_eq!(route.window(3, &[1.5]).verdict, LimitStep::Over { limit: 2, up: true });
    }

    #[test]
    fn a_gain_greater_than_the_raise_is_not_believed() {
        let mut route = Route::new();
        route.window(2, &[1.0]);
        // Three do the work of six: something else has become quicker meanwhile.
        assert_eq!(route.window(3, &[0.5]).verdict, LimitStep::Stay);
        assert_eq!(route.window(3, &[0.5]).elasticity, None, "nothing is left to compare with");
    }

    #[test]
    fn uneven_requests_are_looked_at_for_longer_before_it_is_over() {
        let uneven = [0.2, 0.2, 0.2, 3.4];
        let mut route = Route::new();
        route.window(2, &uneven);
        let mut windows = 1;
        let slower: Vec<f64> = uneven.iter().map(|service| service * 1.4).collect();
        while route.window(3, &slower).verdict == LimitStep::Stay {
            windows += 1;
            assert!(windows < 20, "it comes to an end");
        }
        assert!(windows > 1, "an elasticity of 0.17 is not told from 0.3 by a few ends that differ so much");
    }

    #[test]
    fn a_long_page_that_waits_is_given_twice_the_room_after_one_look() {
        let mut route = Route::new();
        assert_eq!(route.look(8, 10.0, 10).verdict, LimitStep::More(16));
        assert_eq!(route.look(16, 10.2, 10).verdict, LimitStep::More(32));
    }

    #[test]
    fn a_long_page_that_computes_goes_back_to_the_limit_before() {
        let mut route = Route::new();
        route.look(8, 10.0, 10);
        let first = route.look(16, 20.0, 10);
        assert_eq!(first.verdict, LimitStep::Stay, "while the pipe fills nothing is decided against it");
        let verdicts: Vec<_> = (0..3).map(|_| route.look(16, 20.0, 10).verdict).collect();
        assert!(verdicts.contains(&LimitStep::Over { limit: 8, up: true }), "{verdicts:?}");
    }

    #[test]
    fn those_who_starve_count_where_the_lucky_ones_are_as_quick_as_before() {
        let mut route = Route::new();
        route.look(10, 10.0, 10);
        route.look(20, 11.0, 6);
        // Six of ten end in 11 s, the rest never: by Little's law a request takes 18 s.
        let verdict = (0..4).map(|_| route.look(20, 11.0, 6).verdict).find(|it| *it != LimitStep::Stay);
        assert!(matches!(verdict, Some(LimitStep::Over { limit: 10, .. })), "{verdict:?}");
    }

    #[test]
    fn whoever_leaves_a_cohort_without_an_answer_is_replaced() {
        let mut route = Route::new();
        route.meter.load(Instant::ORIGIN, 8, 1);
        for id in 0..6 {
            route.slow_start.on_start(RequestId(id), 8);
        }
        // All of them were given up; those who come after them must be able to tell.
        (0..6).for_each(|id| route.slow_start.on_leave(RequestId(id)));
        route.requests = 6;
        assert_eq!(route.look(8, 10.0, 10).verdict, LimitStep::More(16));
    }

    #[test]
    fn whoever_ends_while_the_page_is_taken_for_a_short_one_is_replaced_too() {
        let mut route = Route::new();
        route.meter.load(Instant::ORIGIN, 8, 1);
        (0..6).for_each(|id| route.slow_start.on_start(RequestId(id), 8));
        for id in 0..6 {
            route.slow_start.on_end(Instant::ORIGIN, RequestId(id), 0.9, 8, &route.meter);
        }
        route.requests = 6;
        assert_eq!(route.look(8, 10.0, 10).verdict, LimitStep::More(16));
    }
}

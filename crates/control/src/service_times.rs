//! S: how long requests of a route are in the application, alone and in company.
//!
//! *Law*. A request belongs to the class of the company n that it found in the application, itself
//! included:
//!
//! ```text
//! class = ⌊log2 n⌋        S[class]   mean seconds in the application, newest weight 2 %                    (1)
//! S0 = mean over the lowest classes that hold at least 8 requests together                                (2)
//! S_now                                   mean of recent requests, newest weight 10 %                      (3)
//! ```
//!
//! In n each request of its own route counts whole, as those may disturb each other, and each of
//! another as the share of a core that it can ask for at most, so that a hundred long polls are no
//! crowd for a short page:
//!
//! ```text
//! u = min(1, cores / at_ease)       at_ease: the largest company that hardly slows it                      (4)
//! ```
//!
//! A page that computes takes longer in company; a page that waits for others does not. (3) beside
//! (2) distinguishes them by the natural variation of the number in flight alone: no limit needs to
//! be tried for it. *Units*: seconds. *Limits*: (2) is the mean of what was seen, not its least, so
//! it has no bias with uneven requests; where no request was ever alone it is the time in the
//! smallest company seen, which is too much. *Source*: ours.

use crate::statistics::Average;

/// Classes of (1); the last holds all larger companies.
const CLASSES: usize = 14;
/// Weight of the newest request in its class.
const CLASS_WEIGHT: f64 = 0.02;
/// Weight of the newest request in S_now.
const RECENT_WEIGHT: f64 = 0.1;
/// Least number of requests behind (2), if there are as many.
const LOW_MIN: u64 = 8;
/// Times S0 that is hardly longer than S0.
const AT_EASE: f64 = 1.3;
/// Times a company that is several times as large.
const SEVERAL: u32 = 4;
/// Requests that (3), or a class, rests on at least.
const RECENT_MIN: u64 = 4;

/// Service times of one route.
#[derive(Clone, Debug)]
pub struct ServiceTimes {
    classes: Vec<Average>,
    recent: Average,
}

suimon_model::saved_struct!(ServiceTimes { classes, recent }, |it: &ServiceTimes| it.classes.len()
    == CLASSES);

impl Default for ServiceTimes {
    fn default() -> Self {
        ServiceTimes {
            classes: vec![Average::new(CLASS_WEIGHT); CLASSES],
            recent: Average::new(RECENT_WEIGHT),
        }
    }
}

impl ServiceTimes {
    /// Folds in a request that took `seconds`, with `company` requests in the application when it
    /// started, itself included.
    pub fn fold(&mut self, company: u32, seconds: f64) {
        let class = company.max(1).ilog2() as usize;
        self.classes[class.min(CLASSES - 1)].fold(seconds);
        self.recent.fold(seconds);
    }

    /// Returns S0 of (2), or `None` if nothing has ended.
    pub fn alone(&self) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0);
        for class in &self.classes {
            if let Some(mean) = class.get() {
                let weight = class.count().min(LOW_MIN);
                sum += mean * weight as f64;
                count += weight;
            }
            if count >= LOW_MIN {
                break;
            }
        }
        (count > 0).then(|| sum / count as f64)
    }

    /// Returns the largest company, as the least of its class, in which requests were seen to take
    /// hardly longer than S0; at least 1.
    pub fn at_ease(&self) -> u32 {
        let Some(alone) = self.alone() else { return 1 };
        let eased = |class: &Average| {
            class.count() >= RECENT_MIN && class.get().is_some_and(|mean| mean <= AT_EASE * alone)
        };
        self.classes.iter().rposition(eased).map_or(1, |class| 1 << class)
    }

    /// Returns u of (4): the largest share of a core that a request asks for, on this number of
    /// `cores`.
    pub fn computes(&self, cores: u32) -> f64 {
        let cores = cores.max(1);
        f64::from(cores) / f64::from(self.at_ease().max(cores))
    }

    /// Returns the largest share of a core that a request uses that takes `alone` seconds alone, on
    /// this number of `cores`: as u of (4), but by companies of more than there are cores and below
    /// the first one that slows it. One large company of long ago, in which requests happened to be
    /// quick, must not halve the work that is seen.
    pub fn uses(&self, cores: u32, alone: f64) -> f64 {
        let cores = cores.max(1);
        let large = self.classes.iter().enumerate().filter(|(class, _)| 1 << class > cores);
        let seen = large.filter(|(_, class)| class.count() >= RECENT_MIN);
        let eased = seen.take_while(|(_, class)| class.get().is_some_and(|mean| mean <= AT_EASE * alone));
        let at_ease = eased.last().map_or(1, |(class, _)| 1 << class);
        f64::from(cores) / f64::from(cores.max(at_ease))
    }

    /// Returns whether all that S0 rests on was in the classes up to that of `cores`.
    pub fn was_alone(&self, cores: u32) -> bool {
        let class = (cores.max(1).ilog2() as usize).min(CLASSES - 1);
        self.classes[..=class].iter().map(Average::count).sum::<u64>() >= LOW_MIN
    }

    /// Returns whether S0 can be believed: each request had a core of its own, or took no longer in
    /// several times that company.
    pub fn is_founded(&self, cores: u32) -> bool {
        let least = || self.classes.iter().position(|class| class.count() >= RECENT_MIN);
        self.was_alone(cores) || least().is_some_and(|least| self.at_ease() >= SEVERAL << least)
    }

    /// Returns whether requests took hardly longer in the company of several times as many as there
    /// are cores: they do not use the processor much.
    pub fn waits(&self, cores: u32) -> bool {
        self.at_ease() >= SEVERAL.saturating_mul(cores)
    }

    /// Returns S_now, or `None` if nothing has ended.
    pub fn recent(&self) -> Option<f64> {
        self.recent.get()
    }

    /// Forgets everything: the application has changed.
    pub fn forget(&mut self) {
        *self = ServiceTimes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::Rng;

    const SEEDS: u64 = 2000;
    const CORES: u32 = 4;

    /// Returns times of a page that took 1 s alone, with `slowdown` by company, for requests in the
    /// companies given.
    fn times(seed: u64, companies: impl Iterator<Item = u32>, slowdown: impl Fn(u32) -> f64) -> ServiceTimes {
        let (mut rng, mut times) = (Rng::new(seed), ServiceTimes::default());
        companies.for_each(|company| times.fold(company, rng.lognormal(slowdown(company), 1.0)));
        times
    }

    fn waits(_: u32) -> f64 {
        1.0
    }

    fn computes(company: u32) -> f64 {
        (f64::from(company) / f64::from(CORES)).max(1.0)
    }

    fn mean(of: impl Fn(u64) -> f64) -> f64 {
        (0..SEEDS).map(of).sum::<f64>() / SEEDS as f64
    }

    #[test]
    fn what_a_request_takes_alone_is_not_what_the_luckiest_took() {
        let every_company = || (0..400u32).map(|n| 1 + n % 60);
        let alone = mean(|seed| times(seed, every_company(), waits).alone().unwrap());
        assert!((alone - 1.0).abs() < 0.03, "{alone}");
        let lowest = |times: &ServiceTimes| times.classes.iter().filter_map(Average::get).fold(9.0, f64::min);
        let lowest = mean(|seed| lowest(&times(seed, every_company(), waits)));
        assert!(lowest < 0.9, "the least of the means: {lowest}");
    }

    #[test]
    fn one_large_company_of_quick_requests_does_not_halve_the_work() {
        let mut times = ServiceTimes::default();
        (0..20).for_each(|_| times.fold(1, 3.0)); // before the application was warm
        (0..20).for_each(|_| times.fold(4, 1.0));
        (0..20).for_each(|_| times.fold(8, 2.0));
        (0..20).for_each(|_| times.fold(16, 1.2));
        assert!((times.uses(CORES, 1.0) - 1.0).abs() < 1e-9 && times.computes(CORES) < 0.3);
        (0..400).for_each(|_| times.fold(8, 1.0));
        let used = times.uses(CORES, 1.0);
        assert!((used - 0.25).abs() < 1e-9, "a page that waits: {used}");
    }

    #[test]
    fn what_a_request_takes_alone_has_no_bias_with_few_requests() {
        for requests in [4, 8, 12] {
            let alone = mean(|seed| times(seed, (0..requests).map(|n| 1 + n % 9), waits).alone().unwrap());
            assert!((alone - 1.0).abs() < 0.03, "{alone} of {requests} requests");
        }
    }

    #[test]
    fn a_crowd_that_came_at_once_is_not_taken_for_its_last() {
        // A hundred start together and end one after the other, the longest last.
        let error = mean(|seed| {
            let (mut rng, mut times) = (Rng::new(seed), ServiceTimes::default());
            let mut took: Vec<f64> = (0..100).map(|_| rng.lognormal(1.0, 0.5)).collect();
            took.sort_by(f64::total_cmp);
            took.iter().for_each(|took| times.fold(64, *took));
            times.alone().unwrap()
        });
        assert!((0.95..1.5).contains(&error), "{error}");
    }

    #[test]
    fn recent_times_tell_a_page_that_waits_from_one_that_computes() {
        let then_in_company = |company| (0..60).map(|n| 1 + n % 2).chain((0..100).map(move |_| company));
        for company in [8, 16, 64] {
            let of = |page: fn(u32) -> f64| {
                mean(|seed| {
                    let times = times(seed, then_in_company(company), page);
                    times.recent().unwrap() / times.alone().unwrap()
                })
            };
            let (waiting, computing) = (of(waits), of(computes) / computes(company));
            assert!((0.95..1.1).contains(&waiting), "{waiting} in a company of {company}");
            assert!((0.95..1.1).contains(&computing), "{computing} in a company of {company}");
        }
    }

    #[test]
    fn pages_are_at_ease_in_the_largest_company_that_hardly_slows_them() {
        let companies = || (0..3000).map(|n| 1 << (n % 7));
        let share = |page: fn(u32) -> f64, at_ease: fn(u32) -> bool| {
            mean(|seed| f64::from(u8::from(at_ease(times(seed, companies(), page).at_ease()))))
        };
        let waiting = share(waits, |ease| ease >= 32);
        let computing = share(computes, |ease| (2..=8).contains(&ease));
        assert!(waiting > 0.95 && computing > 0.95, "{waiting}, {computing}");
        assert_eq!(ServiceTimes::default().at_ease(), 1, "nothing is known");
    }

    #[test]
    fn a_request_asks_for_the_share_of_a_core_that_its_largest_company_at_ease_leaves_it() {
        let companies = || (0..3000).map(|n| 1 << (n % 7));
        assert!(times(1, companies(), waits).computes(CORES) <= 4.0 / 32.0);
        assert!(times(1, companies(), computes).computes(CORES) >= 0.5, "all that is seen is a core each");
        let whole = |cores| (ServiceTimes::default().computes(cores) - 1.0).abs() < 1e-9;
        assert!(whole(CORES) && whole(0), "nothing is known");
    }

    #[test]
    fn a_page_was_alone_once_what_it_took_alone_rests_on_companies_that_had_a_core_each() {
        let was_alone = |companies: &[u32]| {
            let times = times(1, companies.iter().copied(), computes);
            times.was_alone(CORES)
        };
        assert!(was_alone(&[1, 2, 3, 1, 2, 3, 1, 2]));
        assert!(!was_alone(&[64; 100]));
        // Four alone and the rest in a crowd: S0 is mostly what the crowd took.
        let mut mixed = vec![64; 100];
        mixed.extend([1; 4]);
        assert!(!was_alone(&mixed));
        mixed.extend([2; 4]);
        assert!(was_alone(&mixed));
    }

    #[test]
    fn what_was_never_alone_is_founded_where_several_times_the_company_takes_no_longer() {
        let founded = |page: fn(u32) -> f64| {
            let companies = || (0..2000).map(|n| 16 << (n % 4));
            mean(|seed| f64::from(u8::from(times(seed, companies(), page).is_founded(CORES))))
        };
        assert!(founded(waits) > 0.9, "{}", founded(waits));
        assert!(founded(computes) < 0.01, "{}", founded(computes));
        assert!(times(1, [1; 8].into_iter(), computes).is_founded(CORES));
        assert!(!ServiceTimes::default().is_founded(CORES));
    }

    #[test]
    fn few_requests_tell_nothing() {
        let mut times = ServiceTimes::default();
        assert_eq!((times.alone(), times.recent()), (None, None));
        (0..3).for_each(|_| times.fold(1, 0.2));
        assert!(!times.was_alone(CORES) && !times.is_founded(CORES));
        assert_eq!(times.at_ease(), 1);
    }

    #[test]
    fn a_company_of_none_or_of_millions_has_a_class() {
        let mut times = ServiceTimes::default();
        times.fold(0, 1.0);
        times.fold(u32::MAX, 1.0);
        assert_eq!(times.classes.iter().map(Average::count).sum::<u64>(), 2);
    }
}

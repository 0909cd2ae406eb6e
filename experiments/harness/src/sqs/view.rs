//! Looks things up in the data of a figure: the paper's statements, and whether they hold here.

use super::data::{Content, Curve, Data, Pages, Point, Range, Series};
use super::method::Method;
use super::worlds::World;

/// The crowd to which most statements refer.
const MANY: u32 = 400;
/// The largest difference that counts as equal, as a share.
const ALIKE: f64 = 0.15;

/// Whether the statement holds, and what is seen here.
pub(super) struct Seen {
    pub(super) holds: bool,
    pub(super) here: String,
}

/// The data of a figure, and its world.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) data: &'a Data,
    pub(super) world: World,
}

fn seen(holds: bool, here: String) -> Option<Seen> {
    Some(Seen { holds, here })
}

/// Returns sessions per second, or that there are none.
pub(super) fn rate(point: &Point) -> String {
    if point.is_dead() { "dead".to_owned() } else { format!("{:.2}", point.sessions_per_s.1) }
}

/// Returns failures, or that their number is unknown.
pub(super) fn count(range: Range, is_dead: bool) -> String {
    if is_dead { "dead".to_owned() } else { format!("{:.0}", range.1) }
}

impl<'a> View<'a> {
    pub(super) fn curves(&self) -> &'a [Curve] {
        if let Content::Sweep(curves) = &self.data.content { curves } else { &[] }
    }

    pub(super) fn curve(&self, method: Method) -> Option<&'a Curve> {
        self.curves().iter().find(|curve| curve.method == method)
    }

    pub(super) fn point(&self, method: Method, clients: u32) -> Option<&'a Point> {
        self.curve(method)?.points.iter().find(|point| point.clients == clients)
    }

    fn rate(&self, method: Method, clients: u32) -> Option<f64> {
        self.point(method, clients).map(|point| point.sessions_per_s.1)
    }

    /// SQS and page only are about equal at every size.
    pub(super) fn alike(&self) -> Option<Seen> {
        let (sqs, page) = (self.curve(Method::Sqs)?, self.curve(Method::PageOnly)?);
        let apart = sqs.points.iter().zip(&page.points).map(|(sqs, page)| {
            let (sqs_rate, page_rate) = (sqs.sessions_per_s.1, page.sessions_per_s.1);
            (1.0 - sqs_rate / page_rate.max(1e-9), sqs)
        });
        let (apart, at) = apart.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let page = self.rate(Method::PageOnly, at.clients)?;
        let here = format!(
            "furthest behind, SQS has {} and page only {page:.2} at {} clients",
            rate(at),
            at.clients
        );
        seen(apart <= ALIKE, here)
    }

    pub(super) fn both_page_schedulers_are_best(&self) -> Option<Seen> {
        let [none, fixed, page, sqs] = self.papers_at_many()?;
        let here = format!(
            "at {MANY} clients {sqs:.2} and {page:.2}; session only {fixed:.2}, no control {none:.2}"
        );
        seen(page.min(sqs) > none.max(fixed), here)
    }

    pub(super) fn sqs_is_best(&self) -> Option<Seen> {
        let [none, fixed, page, sqs] = self.papers_at_many()?;
        let best = none.max(fixed).max(page);
        let here = format!(
            "at {MANY} clients {sqs:.2}; page only {page:.2}, session only {fixed:.2}, no control {none:.2}"
        );
        seen(sqs > best, here)
    }

    fn papers_at_many(&self) -> Option<[f64; 4]> {
        let rate = |method| self.rate(method, MANY);
        Some([rate(Method::None)?, rate(Method::SessionOnly)?, rate(Method::PageOnly)?, rate(Method::Sqs)?])
    }

    pub(super) fn best_static_is_the_papers(&self) -> Option<Seen> {
        let papers = format!("{} sessions", self.world.best_static_of_the_paper());
        let of = |setting: &str| {
            let tried = self
                .data
                .scan
                .iter()
                .find(|tried| tried.method == Method::SessionOnly && tried.setting == setting)?;
            Some(rate(&tried.point))
        };
        let chosen = self.curve(Method::SessionOnly)?;
        let here =
            format!("{} is, with {}; {papers} have {}", chosen.setting, of(&chosen.setting)?, of(&papers)?);
        seen(chosen.setting == papers, here)
    }

    pub(super) fn page_only_breaks_off(&self, from: u32, to: u32) -> Option<Seen> {
        let points = &self.curve(Method::PageOnly)?.points;
        let best = points.iter().max_by(|a, b| a.sessions_per_s.1.total_cmp(&b.sessions_per_s.1))?;
        let behind = points.iter().filter(|point| point.clients > best.clients);
        let Some(lost) =
            behind.into_iter().find(|point| point.sessions_per_s.1 < 0.7 * best.sessions_per_s.1)
        else {
            return seen(false, format!("it does not: {} at its end", rate(points.last()?)));
        };
        let here = format!(
            "it has {} at {} clients and {} at {}",
            rate(best),
            best.clients,
            rate(lost),
            lost.clients
        );
        seen((from..=to).contains(&best.clients), here)
    }

    pub(super) fn static_is_flat_and_low(&self) -> Option<Seen> {
        let (few, many) = (self.rate(Method::SessionOnly, 100)?, self.rate(Method::SessionOnly, MANY)?);
        let sqs = self.rate(Method::Sqs, MANY)?;
        seen(
            many >= 0.85 * few && many < 0.85 * sqs,
            format!("{few:.2} at 100 clients, {many:.2} at {MANY}, SQS {sqs:.2}"),
        )
    }

    pub(super) fn no_control_levels_off(&self) -> Option<Seen> {
        let (at_25, at_50) = (self.rate(Method::None, 25)?, self.rate(Method::None, 50)?);
        seen(at_50 <= 1.15 * at_25, format!("{at_25:.2} at 25, {at_50:.2} at 50"))
    }

    pub(super) fn no_control_dies(&self) -> Option<Seen> {
        let points = &self.curve(Method::None)?.points;
        let first = points.iter().find(|point| point.is_dead());
        let Some(first) = first else { return seen(false, "it always is".to_owned()) };
        seen((101..=200).contains(&first.clients), format!("dead from {} on", first.clients))
    }

    pub(super) fn sqs_is_a_little_lower(&self) -> Option<Seen> {
        let (here, sixty) = (self.point(Method::Sqs, MANY)?, self.data.at_sixty?.1);
        let told = format!("{} at {MANY} clients, {sixty:.2} with 60 s", rate(here));
        seen((0.6 * sixty..=1.05 * sixty).contains(&here.sessions_per_s.1), told)
    }

    pub(super) fn sqs_is_as_with_sixty(&self) -> Option<Seen> {
        let (here, sixty) = (self.point(Method::Sqs, MANY)?, self.data.at_sixty?.1);
        let told = format!("{} at {MANY} clients, {sixty:.2} with 3 s", rate(here));
        seen((here.sessions_per_s.1 / sixty - 1.0).abs() <= ALIKE, told)
    }

    pub(super) fn static_fails_nobody(&self) -> Option<Seen> {
        let points = &self.curve(Method::SessionOnly)?.points;
        let most = points.iter().max_by(|a, b| a.failures.1.total_cmp(&b.failures.1))?;
        seen(most.failures.1 < 1.0, format!("{:.0} at most, at {} clients", most.failures.1, most.clients))
    }

    pub(super) fn sqs_fails_few(&self) -> Option<Seen> {
        let point = self.point(Method::Sqs, MANY)?;
        let failures = count(point.failures, point.is_dead());
        let here = format!("{failures} at {MANY} clients, {:.0} of them inside sessions", point.inside.1);
        seen(!point.is_dead() && point.failures.1 <= 182.0, here)
    }

    pub(super) fn page_only_fails_many(&self) -> Option<Seen> {
        let (page, sqs) = (self.point(Method::PageOnly, MANY)?, self.point(Method::Sqs, MANY)?);
        let (failed, few) = (page.failures.1, sqs.failures.1);
        let here = format!(
            "{} at {MANY} clients ({failed:.0} within the half hour)",
            count(page.failures, page.is_dead())
        );
        let here = if page.is_dead() { here } else { format!("{failed:.0} at {MANY} clients") };
        seen(failed >= 10.0 * few.max(1.0) && failed > 300.0, here)
    }

    pub(super) fn no_control_fails(&self, from: f64, to: f64) -> Option<Seen> {
        let point = self.point(Method::None, 100)?;
        let here = format!("{} at 100 clients", count(point.failures, point.is_dead()));
        seen(!point.is_dead() && (from..=to).contains(&point.failures.1), here)
    }

    /// Returns the seconds after which half of the clients were done.
    pub(super) fn half_done(&self, method: Method) -> Option<f64> {
        let Content::Distribution(distributions) = &self.data.content else { return None };
        let distribution = distributions.iter().find(|distribution| distribution.method == method)?;
        let half = f64::from(distribution.clients) / 2.0;
        distribution.done.iter().find(|(_, done)| done.1 >= half).map(|(at, _)| *at)
    }

    fn quickest(&self, quick: &[Method], others: &[Method]) -> Option<Seen> {
        let half = |method: &Method| self.half_done(*method).unwrap_or(f64::INFINITY);
        let told = |methods: &[Method]| {
            let told = |method: &Method| match self.half_done(*method) {
                Some(half) => format!("{} {half:.0} s", method.name()),
                None => format!("{} not in the time shown", method.name()),
            };
            methods.iter().map(told).collect::<Vec<_>>().join(", ")
        };
        let slowest = quick.iter().map(half).fold(0.0, f64::max);
        let here = format!("half of the clients are done after: {}; {}", told(quick), told(others));
        seen(slowest.is_finite() && others.iter().all(|other| slowest < half(other)), here)
    }

    pub(super) fn page_schedulers_are_quickest(&self) -> Option<Seen> {
        self.quickest(&[Method::Sqs, Method::PageOnly], &[Method::SessionOnly, Method::None])
    }

    pub(super) fn sqs_is_quickest(&self) -> Option<Seen> {
        self.quickest(&[Method::Sqs], &[Method::PageOnly, Method::SessionOnly, Method::None])
    }

    pub(super) fn pages(&self, method: Method, clients: u32) -> Option<&'a Pages> {
        let Content::Pages(pages) = &self.data.content else { return None };
        pages.iter().find(|pages| pages.method == method && pages.clients == clients)
    }

    pub(super) fn sqs_fails_at_page_1(&self) -> Option<Seen> {
        let pages = self.pages(Method::Sqs, MANY)?;
        let inside: f64 = pages.failures[1..].iter().map(|failures| failures.1).sum();
        let here =
            format!("{:.0} at page 1 and {inside:.0} behind it at {MANY} clients", pages.failures[0].1);
        seen(inside < 1.0, here)
    }

    pub(super) fn fails_at_page_5_at(&self, clients: u32) -> Option<Seen> {
        self.mostly_page_5(self.pages(Method::PageOnly, clients)?)
    }

    pub(super) fn no_control_fails_at_page_5(&self) -> Option<Seen> {
        self.mostly_page_5(self.pages(Method::None, 100)?)
    }

    fn mostly_page_5(&self, pages: &Pages) -> Option<Seen> {
        let all: f64 = pages.failures.iter().map(|failures| failures.1).sum();
        let there = pages.failures[4].1;
        let here = format!("{there:.0} of {all:.0} at {} clients", pages.clients);
        seen(all > 0.0 && there >= 0.9 * all, here)
    }

    pub(super) fn series(&self, method: Method) -> Option<&'a Series> {
        let Content::Series(series) = &self.data.content else { return None };
        series.iter().find(|series| series.method == method)
    }

    pub(super) fn interval_grows_under_queues(&self) -> Option<Seen> {
        let moments = &self.series(Method::Sqs)?.moments;
        let longest = moments.iter().map(|moment| moment.mean_queue.1).fold(0.0, f64::max);
        let widest = moments.iter().max_by(|a, b| a.interval_s.1.total_cmp(&b.interval_s.1))?;
        let first = moments.first()?.interval_s.1;
        let here = format!(
            "from {first:.2} s to {:.2} s at {:.0} s, with a mean queue of {longest:.1} at most",
            widest.interval_s.1, widest.at_s
        );
        seen(widest.interval_s.1 >= 2.0 * first.max(0.05), here)
    }

    pub(super) fn interval_shrinks_again(&self) -> Option<Seen> {
        let moments = &self.series(Method::Sqs)?.moments;
        let (mut widest, mut deepest) = (0.0_f64, (0.0, 0.0, 0.0));
        for moment in moments {
            widest = widest.max(moment.interval_s.1);
            let fallen = widest - moment.interval_s.1;
            if fallen > deepest.0 {
                deepest = (fallen, widest, moment.interval_s.1);
            }
        }
        let (fallen, from, to) = deepest;
        seen(fallen >= 0.5 * from && from > 0.0, format!("from {from:.2} s to {to:.2} s"))
    }

    pub(super) fn limit_settles(&self) -> Option<Seen> {
        let limits: Vec<f64> =
            self.series(Method::Sqs)?.moments.iter().map(|moment| moment.limit_of_page_5.1).collect();
        let half = limits.len() / 2;
        let spread = |limits: &[f64]| {
            let fold = |of: fn(f64, f64) -> f64| limits.iter().copied().reduce(of);
            Some((fold(f64::min)?, fold(f64::max)?))
        };
        let ((low, high), (late_low, late_high)) = (spread(&limits[..half])?, spread(&limits[half..])?);
        let here = format!(
            "{low:.0} to {high:.0} in the first half of the run, {late_low:.0} to {late_high:.0} in the second"
        );
        seen(late_high - late_low <= 0.5 * (high - low), here)
    }
}

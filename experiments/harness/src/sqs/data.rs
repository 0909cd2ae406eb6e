//! The summary of many runs: medians and extremes.

use super::method::Method;

/// Pages of a session.
pub(super) const PAGES: usize = 7;

/// The lowest, the middle and the highest value of a number over all seeds; in a series, the middle
/// is the first seed's value.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Range(pub(crate) f64, pub(crate) f64, pub(crate) f64);

impl Range {
    /// Returns the range of `values`, rounded to `digits` decimal digits.
    pub(super) fn of(values: &[f64], digits: i32) -> Range {
        let fold = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of).unwrap_or(0.0);
        let middle = if values.is_empty() { 0.0 } else { suimon_statistics::median(values) };
        Range(fold(f64::min), middle, fold(f64::max)).rounded(digits)
    }

    /// Returns the range of a series at one moment: the first seed's value between the extremes.
    pub(super) fn around_first(values: &[f64], digits: i32) -> Range {
        let Range(low, _, high) = Range::of(values, digits);
        Range(low, values.first().copied().unwrap_or(0.0), high).rounded(digits)
    }

    fn rounded(self, digits: i32) -> Range {
        let unit = 10f64.powi(digits);
        let round = |value: f64| (value * unit).round() / unit;
        Range(round(self.0), round(self.1), round(self.2))
    }
}

/// The data of one figure.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Data {
    /// A run that takes longer counts as dead.
    pub(crate) dead_after_s: f64,
    pub(crate) content: Content,
    /// For the text only: settings tried with 400 clients.
    pub(crate) scan: Vec<Tried>,
    /// The paper's two rules with 400 clients who wait 60 s and think 3 s, sessions per second.
    pub(crate) at_sixty: Option<Range>,
    /// The same with the costs of the Tomcat shop, if there are measurements to compare with.
    pub(crate) calibrated: Option<Content>,
}

/// The Tomcat shop of a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Shop {
    /// Its speed; 1 is the speed at which its pages' costs were measured. The median of all cells.
    pub(crate) speed: f64,
    /// The fixed number of sessions that was best.
    pub(crate) static_sessions: u32,
}

/// What a figure shows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Content {
    /// By number of clients.
    Sweep(Vec<Curve>),
    /// By time, at one number of clients.
    Distribution(Vec<Distribution>),
    /// By page.
    Pages(Vec<Pages>),
    /// By second.
    Series(Vec<Series>),
}

/// One method at every number of clients.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Curve {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) points: Vec<Point>,
}

/// One method at one number of clients.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) clients: u32,
    /// The number of runs, and how many of them ended in time.
    pub(crate) runs: u32,
    pub(crate) ended: u32,
    /// Sessions ÷ time until all were done; 0 of a dead run.
    pub(crate) sessions_per_s: Range,
    /// Timeouts and errors at any page; as in the paper, refusals at the first page do not count.
    pub(crate) failures: Range,
    /// Those of them after the first page.
    pub(crate) inside: Range,
    pub(crate) refusals: Range,
}

impl Point {
    /// Returns whether most of its runs never ended.
    pub(super) const fn is_dead(&self) -> bool {
        self.ended * 2 < self.runs
    }
}

/// How long sessions took.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Distribution {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) clients: u32,
    /// Seconds; sessions completed within them.
    pub(crate) done: Vec<(f64, Range)>,
}

/// Failures by page.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pages {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) clients: u32,
    pub(crate) runs: u32,
    pub(crate) ended: u32,
    pub(crate) failures: [Range; PAGES],
}

/// The gate from second to second.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Series {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) clients: u32,
    pub(crate) moments: Vec<Moment>,
}

/// The gate at one second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Moment {
    pub(crate) at_s: f64,
    /// Admission interval.
    pub(crate) interval_s: Range,
    /// Requests waiting at a page, averaged over the seven pages.
    pub(crate) mean_queue: Range,
    pub(crate) limit_of_page_5: Range,
    pub(crate) limit_of_page_1: Range,
}

/// One setting, tried with 400 clients.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tried {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) point: Point,
}

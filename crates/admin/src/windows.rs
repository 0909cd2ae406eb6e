//! The last seconds and minutes, which counters since the start cannot show.
//!
//! Marks of the counters are kept, taken about once per second; what happened in a window is the
//! difference to the mark at its beginning. The path of a request pays nothing for it.

use std::collections::VecDeque;
use suimon_gate::KindView;
use suimon_proxy::{BUCKETS, LineCounts, RouteReport, Times, View};

/// Seconds between two marks of the kinds, and how many are kept: a little more than a minute.
pub(crate) const EVERY_S: f64 = 1.0;
const KIND_MARKS_MAX: usize = 62;
/// The windows in which kinds are counted, seconds.
pub(crate) const SHORT_S: f64 = 10.0;
pub(crate) const LONG_S: f64 = 60.0;
/// Seconds between two marks of the lines' waits, and how many are kept: those admitted within five
/// minutes.
const WAIT_MARKS_S: f64 = 30.0;
const WAIT_MARKS_MAX: usize = 12;
/// Seconds between two marks of the routes' times, of which two are kept: half a minute to a
/// minute.
const ROUTE_MARKS_S: f64 = 30.0;

/// The marks.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    kinds: VecDeque<Mark<Vec<KindTotals>>>,
    waits: VecDeque<Mark<Vec<LineCounts>>>,
    /// Ungated requests first.
    routes: VecDeque<Mark<Vec<RouteTimes>>>,
}

#[derive(Debug)]
struct Mark<T> {
    /// Seconds since the start.
    at: f64,
    what: T,
}

/// What is counted of one kind of session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct KindTotals {
    pub(crate) newcomers: u64,
    pub(crate) admitted: u64,
    pub(crate) finished: u64,
    pub(crate) silent: u64,
    pub(crate) abandoned: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) waiting_pages: u64,
    pub(crate) polls: u64,
}

/// Times of one route.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct RouteTimes {
    pub(crate) waited: Times,
    pub(crate) upstream: Times,
    pub(crate) added: Times,
}

impl KindTotals {
    pub(crate) fn of(kind: &KindView, line: &LineCounts) -> KindTotals {
        KindTotals {
            newcomers: kind.newcomers,
            admitted: kind.admitted,
            finished: kind.ends.finished,
            silent: kind.ends.silent,
            abandoned: kind.ends.abandoned,
            failed: kind.ends.failed,
            refused: kind.refused + line.refused,
            waiting_pages: line.pages,
            polls: line.polls,
        }
    }

    pub(crate) fn since(&self, before: &KindTotals) -> KindTotals {
        self.with(before, u64::saturating_sub)
    }

    pub(crate) fn plus(&self, other: &KindTotals) -> KindTotals {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &KindTotals, join: fn(u64, u64) -> u64) -> KindTotals {
        let of = |count: fn(&KindTotals) -> u64| join(count(self), count(other));
        KindTotals {
            newcomers: of(|it| it.newcomers),
            admitted: of(|it| it.admitted),
            finished: of(|it| it.finished),
            silent: of(|it| it.silent),
            abandoned: of(|it| it.abandoned),
            failed: of(|it| it.failed),
            refused: of(|it| it.refused),
            waiting_pages: of(|it| it.waiting_pages),
            polls: of(|it| it.polls),
        }
    }
}

impl RouteTimes {
    fn of(route: &RouteReport) -> RouteTimes {
        RouteTimes {
            waited: route.waited.clone(),
            upstream: route.upstream.clone(),
            added: route.added.clone(),
        }
    }
}

impl Windows {
    /// Takes note of the counters, if it is time to.
    pub(crate) fn note(&mut self, view: &View) {
        let at = view.uptime.as_secs_f64();
        let totals =
            || view.kinds.iter().zip(lines(view)).map(|((_, kind), line)| KindTotals::of(kind, line));
        push(&mut self.kinds, at, EVERY_S, KIND_MARKS_MAX, || totals().collect());
        push(&mut self.waits, at, WAIT_MARKS_S, WAIT_MARKS_MAX, || view.lines.clone());
        push(&mut self.routes, at, ROUTE_MARKS_S, 2, || {
            [&view.ungated].into_iter().chain(&view.routes).map(RouteTimes::of).collect()
        });
    }

    /// Returns what was counted of the kind at this place within about `seconds` before `view`, and
    /// how many seconds that really is.
    pub(crate) fn kind(&self, view: &View, place: usize, seconds: f64) -> (KindTotals, f64) {
        let now = view.uptime.as_secs_f64();
        let totals = match (view.kinds.get(place), lines(view).nth(place)) {
            (Some((_, kind)), Some(line)) => KindTotals::of(kind, line),
            _ => KindTotals::default(),
        };
        // Half a mark early is near enough.
        let mark = self.kinds.iter().rfind(|mark| mark.at <= now - seconds + EVERY_S / 2.0);
        match mark {
            Some(mark) => (totals.since(&mark.what.get(place).copied().unwrap_or_default()), now - mark.at),
            None => (totals, now),
        }
    }

    /// Returns the waits of those recently admitted from the line at this place, and the seconds
    /// that they cover.
    pub(crate) fn line_waits(&self, view: &View, place: usize) -> (Times, f64) {
        let waited = view.lines.get(place).map(|line| line.waited.clone()).unwrap_or_default();
        let (before, seconds) = oldest(&self.waits, view);
        (since(&waited, before.and_then(|lines| lines.get(place)).map(|line| &line.waited)), seconds)
    }

    /// Returns the recent times of the route at this place; `None`: of ungated requests.
    pub(crate) fn route_times(&self, route: &RouteReport, view: &View, place: Option<usize>) -> RouteTimes {
        let (before, _) = oldest(&self.routes, view);
        let before = before.and_then(|routes| routes.get(place.map_or(0, |place| place + 1)));
        let now = RouteTimes::of(route);
        RouteTimes {
            waited: since(&now.waited, before.map(|it| &it.waited)),
            upstream: since(&now.upstream, before.map(|it| &it.upstream)),
            added: since(&now.added, before.map(|it| &it.added)),
        }
    }

    /// Returns the seconds that [`Windows::route_times`] covers.
    pub(crate) fn route_seconds(&self, view: &View) -> f64 {
        oldest(&self.routes, view).1
    }
}

/// Returns what is counted of each kind's line, in the order of the kinds.
pub(crate) fn lines(view: &View) -> impl Iterator<Item = &LineCounts> {
    static NONE: LineCounts = LineCounts::NONE;
    (0..view.kinds.len()).map(|place| view.lines.get(place).unwrap_or(&NONE))
}

/// Adds a mark if the last one is old enough; of more than `most` the oldest go. The first is taken
/// at once only near the start: before, nothing was.
fn push<T>(marks: &mut VecDeque<Mark<T>>, at: f64, every: f64, most: usize, what: impl FnOnce() -> T) {
    let last = marks.back().map_or(0.0, |mark| mark.at);
    if at - last < 0.9 * every {
        return;
    }
    if marks.len() >= most {
        marks.pop_front();
    }
    marks.push_back(Mark { at, what: what() });
}

/// Returns the oldest mark, and the seconds since; where there is none, since the start.
fn oldest<'a, T>(marks: &'a VecDeque<Mark<T>>, view: &View) -> (Option<&'a T>, f64) {
    let now = view.uptime.as_secs_f64();
    match marks.front() {
        Some(mark) => (Some(&mark.what), now - mark.at),
        None => (None, now),
    }
}

/// Returns the times that were counted after `before`.
fn since(now: &Times, before: Option<&Times>) -> Times {
    let Some(before) = before else { return now.clone() };
    let mut counts = [0; BUCKETS.len() + 1];
    for (count, (now, before)) in counts.iter_mut().zip(now.counts.iter().zip(&before.counts)) {
        *count = now.saturating_sub(*before);
    }
    Times { counts, sum_seconds: (now.sum_seconds - before.sum_seconds).max(0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::view;

    fn at(seconds: u64, admitted: u64) -> View {
        let mut view = view();
        view.uptime = std::time::Duration::from_secs(seconds);
        view.kinds[0].1.admitted = admitted;
        view.routes[0].upstream.counts[10] = admitted;
        view.lines[0].waited.counts[5] = admitted;
        view
    }

    #[test]
    fn what_was_counted_before_the_window_is_left_out() {
        let mut windows = Windows::default();
        let admitted = |second: u64| if second <= 100 { 5 * second } else { 500 + (second - 100) };
        for second in 1..=150 {
            windows.note(&at(second, admitted(second)));
        }
        let now = at(150, admitted(150));
        let (short, seconds) = windows.kind(&now, 0, SHORT_S);
        assert_eq!((short.admitted, seconds), (10, 10.0));
        let (long, seconds) = windows.kind(&now, 0, LONG_S);
        assert_eq!((long.admitted, seconds), (100, 60.0), "50 at five a second, 50 at one");
        let times = windows.route_times(&now.routes[0], &now, Some(0)).upstream.count();
        let over = windows.route_seconds(&now);
        assert!((30.0..=60.0).contains(&over), "{over}");
        assert_eq!(times, admitted(150) - admitted(150 - over as u64));
    }

    #[test]
    fn shortly_after_the_start_the_window_is_all_there_is() {
        let windows = Windows::default();
        let now = at(4, 7);
        let (totals, seconds) = windows.kind(&now, 0, LONG_S);
        assert_eq!((totals.admitted, seconds), (7, 4.0));
        assert_eq!(windows.line_waits(&now, 0).0.count(), 7);
    }

    #[test]
    fn a_line_remembers_the_waits_of_five_minutes() {
        let mut windows = Windows::default();
        for second in 1..=1000 {
            windows.note(&at(second, second));
        }
        let (times, seconds) = windows.line_waits(&at(1000, 1000), 0);
        assert!((290.0..=331.0).contains(&seconds), "{seconds}");
        assert_eq!(times.count(), seconds as u64);
    }
}

//! A summary of all waits of a run: how long they were, whether predicted waits were right, and
//! whether visitors were admitted in order.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::farm::{FarmBooks, FarmReport};
use super::forge::{ForgeBooks, ForgeReport};
use super::{LineTold, LineWait, WAITS_MAX, Who};
use crate::quantiles::Quantiles;

/// Counts of a waiting room over the whole run.
#[derive(Debug, Default)]
pub(crate) struct LineBooks {
    /// Visitors who were shown the waiting page, ...
    visitors: u64,
    entered: u64,
    /// ... and how many of them gave up.
    gave_up: u64,
    /// Waits in the order in which they ended.
    waits: Vec<LineWait>,
    left_out: u64,
    pub(crate) farm: FarmBooks,
    pub(crate) forge: ForgeBooks,
}

impl LineBooks {
    /// Notes that a visitor was shown the waiting page.
    pub(crate) fn begun(&mut self) {
        self.visitors += 1;
    }

    /// Returns how many visitors wait in line now.
    pub(crate) fn waiting(&self) -> u64 {
        self.visitors.saturating_sub(self.entered + self.gave_up)
    }

    /// Notes a wait that is over.
    pub(crate) fn ended(&mut self, wait: LineWait) {
        match (wait.who, wait.entered) {
            (Who::Visitor, true) => self.entered += 1,
            (Who::Visitor, false) => self.gave_up += 1,
            (Who::Farmer, true) => self.farm.numbers_entered += 1,
            (Who::Forger, true) => self.forge.so_far.forgers_entered += 1,
            (Who::Farmer | Who::Forger, false) => {}
        }
        if self.waits.len() < WAITS_MAX {
            self.waits.push(wait);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the summary, or `None` if nobody had to wait.
    pub(crate) fn report(&self) -> Option<LineReport> {
        let LineBooks { visitors, entered, gave_up, ref waits, left_out, .. } = *self;
        let (farm, forge) = (self.farm.report(), self.forge.report());
        if visitors == 0 && farm.is_none() && forge.is_none() {
            return None;
        }
        let all: Vec<&LineWait> = waits.iter().filter(|wait| wait.entered).collect();
        let of_visitors = |wait: &&&LineWait| wait.who == Who::Visitor;
        let got_in: Vec<&LineWait> = all.iter().filter(of_visitors).copied().collect();
        Some(LineReport {
            visitors,
            entered,
            gave_up,
            still_waiting: visitors.saturating_sub(entered + gave_up),
            polls: waits
                .iter()
                .filter(|wait| wait.who == Who::Visitor)
                .map(|wait| u64::from(wait.polls))
                .sum(),
            wait: Quantiles::of_seconds(got_in.iter().map(|wait| wait.waited_s).collect()),
            told: [0.0, LineWait::SETTLED_S].map(|from_s| ToldReport::of(from_s, &got_in)).to_vec(),
            order: OrderReport::of(&all),
            farm,
            forge,
            waits_left_out: left_out,
            waits: waits.clone(),
        })
    }
}

/// What visitors saw of a waiting room over the whole run, including the warm-up. Times are in
/// seconds. Farmers and forgers are reported separately: everything except `farm`, `forge` and
/// `waits` is about ordinary visitors.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LineReport {
    /// Visitors who were shown the waiting page.
    pub visitors: u64,
    /// Of these, how many were admitted, ...
    pub entered: u64,
    /// ... gave up, ...
    pub gave_up: u64,
    /// ... and were still waiting when the run ended.
    pub still_waiting: u64,
    /// Requests of the page's script, in waits that are over.
    pub polls: u64,
    /// From the waiting page to the session's first good response, of admitted visitors.
    pub wait: Quantiles,
    /// Whether predicted waits were right: the first one shown, and the first one shown at least a
    /// minute after the wait began.
    pub told: Vec<ToldReport>,
    /// Whether visitors were admitted in order.
    pub order: OrderReport,
    /// The results of farming, if anybody farmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub farm: Option<FarmReport>,
    /// The results of forging, if anybody forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forge: Option<ForgeReport>,
    /// Waits that were only counted, because the maximum number of waits was already kept.
    pub waits_left_out: u64,
    /// The waits that were kept, in the order in which they ended.
    pub waits: Vec<LineWait>,
}

/// Whether predicted waits were right, for admitted visitors who had half a minute or more left
/// when they saw the prediction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ToldReport {
    /// The first prediction shown this many seconds after the wait began, or later, is judged.
    pub from_s: f64,
    /// Waits that were judged.
    pub judged: u64,
    /// Median of |told − waited| ÷ waited. Told is the middle of the predicted range; waited is
    /// counted from when the prediction was shown.
    pub error_by_middle: Option<f64>,
    /// The same, with the low end of the range.
    pub error_by_low: Option<f64>,
    /// The same, with the high end of the range.
    pub error_by_high: Option<f64>,
    /// Share of visitors whose wait was within the range, ...
    pub within_range: Option<f64>,
    /// ... and share of visitors who waited longer.
    pub longer_than_told: Option<f64>,
}

impl ToldReport {
    fn of(from_s: f64, got_in: &[&LineWait]) -> Self {
        let judged: Vec<(LineTold, f64)> = got_in.iter().filter_map(|wait| wait.judged(from_s)).collect();
        let error = |told: fn(&LineTold) -> f64| {
            let mut errors: Vec<f64> =
                judged.iter().map(|(range, left)| (told(range) - left).abs() / left).collect();
            errors.sort_by(f64::total_cmp);
            errors.get(errors.len() / 2).copied()
        };
        let share = |holds: fn(&LineTold, f64) -> bool| {
            let held = judged.iter().filter(|(told, left)| holds(told, *left)).count();
            (!judged.is_empty()).then(|| held as f64 / judged.len() as f64)
        };
        ToldReport {
            from_s,
            judged: judged.len() as u64,
            error_by_middle: error(|told| told.low_s.midpoint(told.high_s)),
            error_by_low: error(|told| told.low_s),
            error_by_high: error(|told| told.high_s),
            within_range: share(|told, left| (told.low_s..=told.high_s).contains(&left)),
            longer_than_told: share(|told, left| left > told.high_s),
        }
    }
}

/// Whether sessions began in the order of arrival, by the positions shown. It says nothing if the
/// order is drawn by lot or positions are hidden.
///
/// Another visitor overtakes a visitor by beginning earlier from a later position in the same line;
/// farmers and forgers count, too. Visitors who closed the tab for a while are not judged, because
/// they may come back after they were called.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OrderReport {
    /// Visitors who were judged.
    pub judged: u64,
    /// Of these, how many were overtaken.
    pub overtaken: u64,
    /// How many others overtook one visitor: for 95 of 100 visitors at most this many, ...
    pub overtaken_by_p95: u64,
    /// ... and for no visitor more than this many.
    pub overtaken_by_max: u64,
    /// Tickets admitted per second, from the first to the last admission.
    pub entered_per_s: Option<f64>,
    /// `overtaken_by_p95` as a time: that number of visitors ÷ `entered_per_s`.
    pub overtaken_p95_s: Option<f64>,
    /// `overtaken_by_max` as a time, likewise.
    pub overtaken_max_s: Option<f64>,
}

impl OrderReport {
    fn of(got_in: &[&LineWait]) -> Self {
        let mut lines: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let mut overtaken: Vec<u64> = Vec::new();
        for wait in got_in {
            let Some(number) = wait.position else { continue };
            // Quadratic in the worst case, a crowd that is admitted in reverse order. In practice
            // few visitors are out of order at a time.
            let before = lines.entry(&wait.line).or_default();
            let at = before.partition_point(|earlier| *earlier < number);
            if !wait.away && wait.who == Who::Visitor {
                overtaken.push((before.len() - at) as u64);
            }
            before.insert(at, number);
        }
        overtaken.sort_unstable();
        let p95 = overtaken.get(overtaken.len() * 95 / 100).copied().unwrap_or_default();
        let max = overtaken.last().copied().unwrap_or_default();
        let entered_per_s = entered_per_s(got_in);
        let in_seconds = |people: u64| entered_per_s.map(|rate| people as f64 / rate);
        OrderReport {
            judged: overtaken.len() as u64,
            overtaken: overtaken.iter().filter(|people| **people > 0).count() as u64,
            overtaken_by_p95: p95,
            overtaken_by_max: max,
            entered_per_s,
            overtaken_p95_s: in_seconds(p95),
            overtaken_max_s: in_seconds(max),
        }
    }
}

fn entered_per_s(got_in: &[&LineWait]) -> Option<f64> {
    let began = |wait: &&LineWait| wait.from_s + wait.waited_s;
    let seconds = began(got_in.last()?) - began(got_in.first()?);
    (seconds > 0.0).then(|| (got_in.len() - 1) as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a visitor with this position who arrived at 0 and began `waited_s` later.
    fn wait(position: u64, waited_s: f64) -> LineWait {
        LineWait {
            who: Who::Visitor,
            line: "00ff".to_owned(),
            from_s: 0.0,
            waited_s,
            entered: true,
            position: Some(position),
            away: false,
            polls: 1,
            told: vec![],
        }
    }

    fn report(waits: impl IntoIterator<Item = LineWait>) -> LineReport {
        let mut books = LineBooks::default();
        for wait in waits {
            books.begun();
            books.ended(wait);
        }
        books.report().unwrap()
    }

    #[test]
    fn order_is_told_by_who_was_overtaken_in_people_and_in_seconds() {
        let in_order = report((0..=100).map(|n| wait(n, n as f64 / 2.0))).order;
        assert_eq!((in_order.judged, in_order.overtaken, in_order.overtaken_by_max), (101, 0, 0));
        assert_eq!((in_order.entered_per_s, in_order.overtaken_max_s), (Some(2.0), Some(0.0)));
        let backwards = report((0..=100).map(|n| wait(100 - n, n as f64 / 2.0))).order;
        assert_eq!(
            (backwards.overtaken, backwards.overtaken_by_p95, backwards.overtaken_by_max),
            (100, 95, 100)
        );
        assert_eq!((backwards.overtaken_p95_s, backwards.overtaken_max_s), (Some(47.5), Some(50.0)));
    }

    #[test]
    fn whoever_was_away_or_in_another_line_was_not_overtaken() {
        let away = LineWait { away: true, ..wait(1, 9.0) };
        let elsewhere = LineWait { line: "0a0b".to_owned(), ..wait(2, 9.5) };
        let order = report([wait(7, 8.0), away, elsewhere, wait(6, 10.0)]).order;
        assert_eq!((order.judged, order.overtaken, order.overtaken_by_max), (3, 1, 1));
    }

    #[test]
    fn those_who_farm_are_told_of_apart() {
        let farmed = |position, waited_s| LineWait { who: Who::Farmer, ..wait(position, waited_s) };
        let mut books = LineBooks::default();
        books.begun();
        for wait in [farmed(8, 1.0), wait(1, 2.0), farmed(0, 3.0)] {
            books.ended(wait);
        }
        books.farm.farmers = 2;
        let report = books.report().unwrap();
        assert_eq!((report.visitors, report.entered, report.wait.count, report.polls), (1, 1, 1, 1));
        assert_eq!(
            (report.order.judged, report.order.overtaken, report.order.entered_per_s),
            (1, 1, Some(1.0))
        );
        assert_eq!((report.farm.unwrap().numbers_entered, report.waits.len()), (2, 3));
    }

    #[test]
    fn what_was_told_is_held_against_what_was_waited_from_then_on() {
        let told = |after_s: f64, low_s: f64, high_s: f64| LineTold { after_s, low_s, high_s };
        // 100 s were left at first and 35 s after a minute and a bit.
        let waited = LineWait { told: vec![told(3.0, 80.0, 100.0), told(68.0, 7.0, 28.0)], ..wait(1, 103.0) };
        // Too little time was left to judge this one.
        let short = LineWait { told: vec![told(3.0, 500.0, 600.0)], ..wait(2, 20.0) };
        let report = report([waited, short]);
        let [first, settled] = report.told[..] else { panic!("two moments are judged") };
        assert_eq!((first.judged, settled.judged), (1, 1));
        assert_eq!((first.error_by_low, first.error_by_high), (Some(0.2), Some(0.0)));
        assert_eq!(
            (first.error_by_middle, first.within_range, first.longer_than_told),
            (Some(0.1), Some(1.0), Some(0.0))
        );
        assert_eq!((settled.error_by_low, settled.error_by_middle), (Some(0.8), Some(0.5)));
        assert_eq!((settled.within_range, settled.longer_than_told), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn everybody_is_accounted_for() {
        let mut books = LineBooks::default();
        assert_eq!(books.report(), None);
        (0..4).for_each(|_| books.begun());
        books.ended(wait(1, 10.0));
        books.ended(wait(2, 30.0));
        books.ended(LineWait { entered: false, ..wait(3, 99.0) });
        let report = books.report().unwrap();
        assert_eq!((report.visitors, report.entered, report.gave_up, report.still_waiting), (4, 2, 1, 1));
        assert_eq!((report.wait.count, report.wait.p50_s, report.wait.max_s), (2, 30.0, 30.0));
        assert_eq!((report.polls, report.waits.len()), (3, 3));
    }
}

//! All waits of a run, summed up: how long they were, whether what was told came true, and whether
//! the order was kept.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::farm::{FarmBooks, FarmReport};
use super::forge::{ForgeBooks, ForgeReport};
use super::{LineTold, LineWait, WAITS_MAX, Who};
use crate::quantiles::Quantiles;

/// What is written down of a waiting room in the whole run.
#[derive(Debug, Default)]
pub(crate) struct LineBooks {
    /// Visitors who were shown it, ...
    visitors: u64,
    entered: u64,
    /// ... and how many of them gave up.
    gave_up: u64,
    /// In the order in which they ended.
    waits: Vec<LineWait>,
    left_out: u64,
    pub(crate) farm: FarmBooks,
    pub(crate) forge: ForgeBooks,
}

impl LineBooks {
    /// Takes note of a visitor who was shown the waiting room.
    pub(crate) fn begun(&mut self) {
        self.visitors += 1;
    }

    /// Returns how many visitors wait in line now.
    pub(crate) fn waiting(&self) -> u64 {
        self.visitors.saturating_sub(self.entered + self.gave_up)
    }

    /// Takes note of a wait that is over.
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

    /// Returns the sum of it; `None` if nobody ever had to wait.
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

/// What visitors saw of a waiting room, over the whole run, warm-up included. Times are in seconds.
/// Farmers and forgers are reported apart: everything but `farm`, `forge` and `waits` is about
/// visitors who want one place, their own.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LineReport {
    /// Visitors who were shown the waiting room.
    pub visitors: u64,
    /// Of these, how many got in, ...
    pub entered: u64,
    /// ... gave up, ...
    pub gave_up: u64,
    /// ... and were still waiting when the run ended.
    pub still_waiting: u64,
    /// Requests of the page's script, in waits that are over.
    pub polls: u64,
    /// From the page to the session's first good answer, of admitted visitors.
    pub wait: Quantiles,
    /// Whether what was told came true: by the first that was told, and by the first that was told
    /// at least a minute after the wait began.
    pub told: Vec<ToldReport>,
    /// Whether the order was kept.
    pub order: OrderReport,
    /// What came of farming, if anybody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub farm: Option<FarmReport>,
    /// What came of forging, if anybody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forge: Option<ForgeReport>,
    /// Waits that were only counted, because the maximum number was kept already.
    pub waits_left_out: u64,
    /// Every wait that is over, as far as they were kept, in the order in which they ended.
    pub waits: Vec<LineWait>,
}

/// Whether the remaining wait shown came true, for admitted visitors who had half a minute or more
/// left when it was shown.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ToldReport {
    /// The prediction that is judged is the first one shown this many seconds after the wait began,
    /// or later.
    pub from_s: f64,
    /// Waits that were judged.
    pub judged: u64,
    /// Median of |told − waited| ÷ waited, where told is the middle of the range; waited is counted
    /// from when it was told.
    pub error_by_middle: Option<f64>,
    /// The same, by the least that was told.
    pub error_by_low: Option<f64>,
    /// The same, by the most that was told.
    pub error_by_high: Option<f64>,
    /// Share of visitors who waited as long as the range said, ...
    pub within_range: Option<f64>,
    /// ... and of those that waited longer.
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

/// Whether visitors began in the order they came, by the numbers shown. With lots drawn, or numbers
/// hidden, it says nothing.
///
/// A visitor is overtaken by everybody, farmers and forgers included, who waited in the same line,
/// has a later number and began before. Visitors who closed the tab for a while are not judged:
/// those who come back late were called before.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OrderReport {
    /// Visitors who were judged.
    pub judged: u64,
    /// Of these, how many were overtaken by anybody.
    pub overtaken: u64,
    /// How many others overtook one visitor: for 95 of 100 visitors at most this many, ...
    pub overtaken_by_p95: u64,
    /// ... and for no visitor more than this many.
    pub overtaken_by_max: u64,
    /// Places that got in per second, from the first to the last.
    pub entered_per_s: Option<f64>,
    /// In seconds of admissions: the two numbers of people above, at that rate.
    pub overtaken_p95_s: Option<f64>,
    /// See `overtaken_p95_s`.
    pub overtaken_max_s: Option<f64>,
}

impl OrderReport {
    fn of(got_in: &[&LineWait]) -> Self {
        let mut lines: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let mut overtaken: Vec<u64> = Vec::new();
        for wait in got_in {
            let Some(number) = wait.position else { continue };
            // Quadratic in the worst case, which is a crowd that gets in backwards; there are few
            // of them at a time.
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

    /// Somebody with this number who came at 0 and began so much later.
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
        // Too little was left to be judged.
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

//! Up to which number a line is called: one mark, the same at every gateway, as all compute it from
//! the same records.
//!
//! *Law*. Of those called, `wanted` are to be expected at all gateways together. Who is called next
//! are those with the lowest numbers, whichever gateway knows them. A gateway that lags behind the
//! mark of another follows it at once, as long as not more than `wanted` people of its own stand in
//! between. Where there are more, marks have run apart while gateways did not hear of each other:
//! then people are called in the order of their numbers as some are wanted, and never all at once.
//!
//! People of a gateway that was heard of recently and is not now are where its last record says.
//! Whether they are still there, nobody knows: the mark passes over so many of them at a time, and
//! never to the end of the line, of which nobody sees all then.

use crate::LaneRecord;

/// One lane at all gateways.
#[derive(Clone, Debug)]
pub struct Lanes<'a> {
    /// Here.
    pub own: &'a LaneRecord,
    /// At the others.
    pub others: Vec<&'a LaneRecord>,
    /// At those that were heard of recently and are not now, as they last were.
    pub unseen: Vec<&'a LaneRecord>,
}

/// Up to where is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// The first number that is not called.
    pub number: u64,
    /// How many people of gateways that are not heard of it has passed.
    pub passed: u64,
}

impl Lanes<'_> {
    /// Returns up to where this gateway calls, so that `wanted` of those called are expected at all
    /// gateways together, of whom the share `shown_up`, above 0, comes; at least as far as it has
    /// called. `may_pass`: the most people passed who are not heard of.
    pub fn mark(&self, wanted: f64, shown_up: f64, may_pass: u64) -> Mark {
        let highest = self.others.iter().map(|lane| lane.called).max().unwrap_or(0);
        let mut number = self.wanted(wanted, shown_up);
        if people_before(self.own, highest) as f64 <= wanted {
            number = number.max(highest);
        }
        if self.passed(number) > may_pass {
            let (mut at, mut beyond) = (self.own.called, number);
            while at + 1 < beyond {
                let middle = at + (beyond - at) / 2;
                *(if self.passed(middle) > may_pass { &mut beyond } else { &mut at }) = middle;
            }
            number = at;
        }
        Mark { number, passed: self.passed(number) }
    }

    /// Returns the least number up to which there are as many people as are missing.
    fn wanted(&self, wanted: f64, shown_up: f64) -> u64 {
        let called = self.own.called;
        let heard = || self.others.iter().chain([&self.own]);
        let expected: f64 = heard().map(|lane| lane.expected).sum();
        let missing = ((wanted - expected) / shown_up).ceil();
        if missing.is_nan() || missing < 1.0 {
            return called;
        }
        let people =
            |number| heard().map(|lane| people_before(lane, number)).sum::<u64>() + self.passed(number);
        // Others lag so far that they need the turns; a few they call within a period anyway.
        if people(called) as f64 > wanted.max(missing) {
            return called;
        }
        let all = heard().chain(&self.unseen).flat_map(|lane| &lane.people);
        let mut points: Vec<u64> = all.map(|(number, _)| *number).filter(|number| *number > called).collect();
        points.sort_unstable();
        let place = points.partition_point(|number| people(*number) < missing as u64);
        let end = match self.unseen.is_empty() {
            true => heard().map(|lane| lane.next).max(),
            false => points.last().copied(),
        };
        points.get(place).copied().or(end).unwrap_or(called).max(called)
    }

    /// Returns how many people who are not heard of stand behind those called here and before
    /// `number`.
    fn passed(&self, number: u64) -> u64 {
        let passed = |lane: &&LaneRecord| {
            people_about(lane, number).saturating_sub(people_about(lane, self.own.called))
        };
        self.unseen.iter().map(passed).sum()
    }
}

/// Returns how many of those not called where they are stand before `number`: at a point exactly,
/// between two the lower.
fn people_before(lane: &LaneRecord, number: u64) -> u64 {
    let behind = lane.people.partition_point(|(point, _)| *point <= number);
    behind.checked_sub(1).map_or(0, |last| lane.people[last].1)
}

/// Returns the same, taken to stand evenly between two points.
fn people_about(lane: &LaneRecord, number: u64) -> u64 {
    let behind = lane.people.partition_point(|(point, _)| *point <= number);
    let (from, before) = behind.checked_sub(1).map_or((lane.called, 0), |last| lane.people[last]);
    let Some((to, all)) = lane.people.get(behind).copied().filter(|_| number > from) else { return before };
    let part = (number - from) as f64 / (to - from) as f64;
    before + (part * all.saturating_sub(before) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(called: u64, next: u64, expected: f64, people: &[(u64, u64)]) -> LaneRecord {
        LaneRecord { lane: 0, next, called, expected, people: people.to_vec() }
    }

    fn mark(own: &LaneRecord, others: &[&LaneRecord], wanted: f64, shown_up: f64) -> u64 {
        Lanes { own, others: others.to_vec(), unseen: vec![] }.mark(wanted, shown_up, 0).number
    }

    #[test]
    fn the_mark_is_where_enough_people_of_all_gateways_stand() {
        let first = lane(10, 100, 1.0, &[(11, 1), (20, 2), (50, 3)]);
        let second = lane(10, 100, 0.0, &[(15, 1), (16, 2)]);
        assert_eq!(mark(&first, &[&second], 4.0, 1.0), 16, "eleven, fifteen and sixteen");
        assert_eq!(mark(&first, &[&second], 1.0, 1.0), 10, "one is expected");
        assert_eq!(mark(&first, &[&second], 100.0, 1.0), 100, "all there are");
        assert_eq!(mark(&first, &[&second], 3.0, 0.5), 20, "half of those called come");
    }

    #[test]
    fn one_that_lags_a_little_follows_the_mark() {
        let ahead = lane(30, 60, 0.0, &[(31, 1), (32, 2)]);
        let behind = lane(10, 60, 0.0, &[(12, 1), (25, 2), (40, 3)]);
        assert_eq!(mark(&behind, &[&ahead], 2.0, 1.0), 30);
        assert_eq!(mark(&ahead, &[&behind], 3.0, 1.0), 31);
    }

    /// A gateway alone called its few people, who stand at the end of the line.
    #[test]
    fn a_mark_that_ran_ahead_calls_nobody_elsewhere_out_of_turn() {
        let ahead = lane(100_000, 100_000, 3.0, &[]);
        let behind = lane(50, 90_000, 0.0, &[(51, 1), (60, 5), (1000, 900), (90_000, 20_000)]);
        assert_eq!(mark(&behind, &[&ahead], 8.0, 1.0), 60, "five are missing");
        let further = lane(60_000, 100_000, 3.0, &[(60_001, 1), (100_000, 2)]);
        assert_eq!(mark(&further, &[&behind], 8.0, 1.0), 60_000, "and nobody there either");
    }

    #[test]
    fn while_not_all_are_heard_of_the_end_of_the_line_is_not_called() {
        let own = lane(50, 90_000, 0.0, &[(80_000, 1), (90_000, 2)]);
        let lost = lane(50, 70_000, 4.0, &[(51, 1), (60, 5), (1000, 905), (70_000, 20_000)]);
        let lanes = Lanes { own: &own, others: vec![], unseen: vec![&lost] };
        assert_eq!(lanes.mark(20.0, 1.0, 5), Mark { number: 61, passed: 5 }, "five of those may be passed");
        assert_eq!(lanes.mark(4.0, 1.0, 100).number, 60, "four are wanted, and are probably there");
        let none = Lanes { own: &own, others: vec![], unseen: vec![] };
        assert_eq!(none.mark(20.0, 1.0, 0).number, 90_000, "alone it calls all there are");
    }
}

//! A line that several gateways share: numbers in one order, and one mark up to which is called.
//!
//! Each gateway knows the visitors who poll there. A visitor who comes with a number of another
//! gateway is present here from then on: the number says where they stand.

use super::{AHEAD_MIN, Line, PositionStatus, Wait, lead};
use crate::lane::{LANES, Lane};
use crate::numbers::Numbers;
use crate::shares::Shares;
use suimon_model::Instant;
use suimon_sharing::{Allotment, KindPart, LaneRecord, Lanes, PEOPLE_MAX};

/// The least portion by which the rate of all is told from that of one.
const PORTION_MIN: f64 = 0.02;
/// People of gateways that are not heard of are passed over at so many times the rate of all, and at
/// one per second at least: all of them will be called elsewhere, or come here before their turn.
const PASSING: f64 = 2.0;
/// Once a line moves again, this many exchanges pass before anybody is called: until then others that
/// have stood still as well seem to have nobody.
const HEARD_AFTER: u32 = 3;
/// Many have gone where more than this share of those called does not come.
const MANY: f64 = 0.2;
/// What may be passed at once is what adds up in this many seconds.
const PASSING_SECONDS: f64 = 1.0;

/// What is shared of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct SharedLine {
    allotments: [Allotment; LANES],
    /// The first number that is not called, by lane.
    marks: [u64; LANES],
    elsewhere: Vec<LaneRecord>,
    /// Exchanges that are still to pass after the line stood still.
    unheard: u32,
    /// People who are not heard of that may be passed now, by lane; and as of when.
    may_pass: [f64; LANES],
    counted: Option<Instant>,
}

impl SharedLine {
    /// Returns the number to draw next in `lane`.
    pub(super) fn number(&self, lane: Lane, next: u64) -> Option<u64> {
        self.allotments[lane.index()].number(next)
    }

    /// Calls up to the marks.
    pub(super) fn call(&self, lanes: &mut [Numbers; LANES]) {
        lanes.iter_mut().zip(self.marks).for_each(|(numbers, mark)| numbers.call_to(mark));
    }

    /// Adds up what may be passed, so many per second.
    fn may_pass(&mut self, now: Instant, per_second: f64) {
        let per_second = per_second.max(1.0);
        let passed = self.counted.replace(now).map_or(0.0, |counted| now.secs_since(counted));
        let most = per_second * PASSING_SECONDS;
        self.may_pass.iter_mut().for_each(|left| *left = (*left + per_second * passed).min(most));
    }

    /// Returns how many of the other gateways' visitors stand before `rank` in `lane`.
    pub(super) fn ahead_elsewhere(&self, lane: Lane, rank: u64) -> u64 {
        let lanes = self.elsewhere.iter().filter(|record| record.lane as usize == lane.index());
        let before = |record: &LaneRecord| {
            let points = record.people.iter().take_while(|(number, _)| *number <= rank);
            points.last().map_or(0, |(_, people)| *people)
        };
        lanes.map(before).sum()
    }
}

impl PositionStatus {
    /// Returns it with so many more people ahead.
    pub(super) fn behind(self, more: u64) -> Self {
        let add = |wait: Wait| Wait { ahead: wait.ahead.saturating_add(more), ..wait };
        match self {
            PositionStatus::Waiting(wait) => PositionStatus::Waiting(add(wait)),
            PositionStatus::Opening(at, wait) => PositionStatus::Opening(at, add(wait)),
            PositionStatus::Paused(wait) => PositionStatus::Paused(add(wait)),
            PositionStatus::ApplicationDown(wait) => PositionStatus::ApplicationDown(add(wait)),
            PositionStatus::Called(_) | PositionStatus::Closed => self,
        }
    }
}

impl Line {
    /// Shares it with other gateways from now on: nothing can be drawn before
    /// [`Line::handle_allotment`].
    pub fn begin_sharing(&mut self) {
        self.shared.get_or_insert_default();
    }

    /// Returns whether many of those called in a lane do not come: they have left the line, and said
    /// nothing.
    pub fn many_have_gone(&self, lane: Lane) -> bool {
        self.lanes[lane.index()].show() < 1.0 - MANY
    }

    /// Takes note of what may be drawn in `lane` from now on.
    pub fn handle_allotment(&mut self, lane: Lane, allotment: Allotment) {
        if let Some(shared) = &mut self.shared {
            shared.allotments[lane.index()] = allotment;
        }
    }

    /// Takes note of how the line stands at the other gateways. `rate`: sessions per second that the
    /// law would admit at all of them together, if it knows.
    pub fn handle_elsewhere(&mut self, part: &KindPart, rate: Option<f64>) {
        let Some(mut shared) = self.shared.take() else { return };
        let rate = rate.unwrap_or(self.rate / part.portion.max(PORTION_MIN));
        shared.may_pass(self.ticked, PASSING * rate);
        shared.unheard = if self.is_moving() { shared.unheard.saturating_sub(1) } else { HEARD_AFTER };
        if shared.unheard > 0 {
            shared.elsewhere.clone_from(&part.lanes_elsewhere);
            self.shared = Some(shared);
            return;
        }
        let own = self.lane_records();
        let heard = || own.iter().chain(&part.lanes_elsewhere);
        let waits =
            |lane: usize| heard().any(|record| record.lane as usize == lane && !record.people.is_empty());
        let has: [bool; LANES] = std::array::from_fn(waits);
        let shares = Shares::new(self.params.weights);
        for (lane, here) in Lane::ALL.into_iter().zip(&own) {
            let (index, share) =
                (lane.index(), shares.share(lane, |other| other == lane || has[other.index()]));
            let wanted = (lead(self.hold) * self.ready * rate * share * part.calls).max(AHEAD_MIN);
            let lanes = Lanes {
                own: here,
                others: of_lane(&part.lanes_elsewhere, here.lane),
                unseen: of_lane(&part.lanes_unseen, here.lane),
            };
            let mark = lanes.mark(wanted, self.lanes[index].show(), shared.may_pass[index] as u64);
            shared.may_pass[index] -= mark.passed as f64;
            shared.marks[index] = shared.marks[index].max(mark.number);
        }
        shared.elsewhere.clone_from(&part.lanes_elsewhere);
        self.shared = Some(shared);
        self.call();
    }

    /// Returns how it stands here, lane by lane. While nobody is called here, people here are no
    /// reason for the other gateways to wait: they are passed, and called first once the line moves.
    pub fn lane_records(&self) -> Vec<LaneRecord> {
        let moves = self.is_moving();
        let of = |lane: Lane| {
            let numbers = &self.lanes[lane.index()];
            LaneRecord {
                lane: lane.index() as u32,
                next: numbers.next,
                called: numbers.called,
                expected: if moves { numbers.expected(numbers.called) } else { 0.0 },
                people: if moves { numbers.people(PEOPLE_MAX) } else { Vec::new() },
            }
        };
        Lane::ALL.into_iter().map(of).collect()
    }
}

fn of_lane(records: &[LaneRecord], lane: u32) -> Vec<&LaneRecord> {
    records.iter().filter(|record| record.lane == lane).collect()
}

#[cfg(test)]
mod tests;

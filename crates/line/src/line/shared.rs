//! A line that several gateways share: numbers in one order, and one mark up to which is called.
//!
//! Each gateway knows the visitors who poll there. A visitor who comes with a number of another
//! gateway is present here from then on: the number says where they stand.

use super::{AHEAD_MIN, Line, PositionStatus, Wait, lead};
use crate::lane::{LANES, Lane};
use crate::numbers::Numbers;
use crate::shares::Shares;
use suimon_sharing::{Allotment, LaneRecord, PEOPLE_MAX};

/// The least portion by which the rate of all is told from that of one.
const PORTION_MIN: f64 = 0.02;

/// What is shared of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct SharedLine {
    allotments: [Allotment; LANES],
    /// The first number that is not called, by lane.
    marks: [u64; LANES],
    elsewhere: Vec<LaneRecord>,
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

    /// Takes note of what may be drawn in `lane` from now on.
    pub fn handle_allotment(&mut self, lane: Lane, allotment: Allotment) {
        if let Some(shared) = &mut self.shared {
            shared.allotments[lane.index()] = allotment;
        }
    }

    /// Takes note of how the line stands at the other gateways. `rate`: sessions per second that the
    /// law would admit at all of them together, if it knows; `portion`: of what begins, that begins
    /// here.
    pub fn handle_elsewhere(&mut self, elsewhere: Vec<LaneRecord>, rate: Option<f64>, portion: f64) {
        if self.shared.is_none() {
            return;
        }
        let rate = rate.unwrap_or(self.rate / portion.max(PORTION_MIN));
        let own = self.lane_records();
        let waits = |lane: Lane| {
            let all = own.iter().chain(&elsewhere);
            all.filter(|record| record.lane as usize == lane.index()).any(|record| !record.people.is_empty())
        };
        let has: [bool; LANES] = std::array::from_fn(|lane| waits(Lane::ALL[lane]));
        let shares = Shares::new(self.params.weights);
        for lane in Lane::ALL {
            let share = shares.share(lane, |other| other == lane || has[other.index()]);
            let wanted = (lead(self.hold) * self.ready * rate * share).max(AHEAD_MIN);
            let shown_up = self.lanes[lane.index()].show();
            let of = |record: &&LaneRecord| record.lane as usize == lane.index();
            let lanes: Vec<&LaneRecord> = own.iter().chain(&elsewhere).filter(of).collect();
            let mark = suimon_sharing::called_mark(&lanes, wanted, shown_up);
            if let Some(shared) = &mut self.shared {
                shared.marks[lane.index()] = shared.marks[lane.index()].max(mark);
            }
        }
        if let Some(shared) = &mut self.shared {
            shared.elsewhere = elsewhere;
        }
        self.call();
    }

    /// Returns how it stands here, lane by lane.
    pub fn lane_records(&self) -> Vec<LaneRecord> {
        let of = |lane: Lane| {
            let numbers = &self.lanes[lane.index()];
            LaneRecord {
                lane: lane.index() as u32,
                next: numbers.next,
                called: numbers.called,
                expected: numbers.expected(numbers.called),
                people: numbers.people(PEOPLE_MAX),
            }
        };
        Lane::ALL.into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests;

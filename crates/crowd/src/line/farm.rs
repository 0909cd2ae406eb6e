//! A visitor who farms: gets many tickets, each with fresh cookies, and waits with some of them
//! until the first is admitted.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use suimon_model::Instant;
use suimon_workload::Farm;

use super::{LineWait, NextInLine, WAITS_MAX, Waiting};
use crate::jar::Jar;
use crate::quantiles::Quantiles;

/// A visitor who farms, while waiting.
#[derive(Debug)]
pub(crate) struct Farmer {
    began: Instant,
    policy: Farm,
    /// Tickets still to get, and when to get the next.
    to_draw: u32,
    draws_at: Instant,
    /// Requests for a ticket in a row that were put off.
    put_off: u32,
    positions: Vec<FarmedPosition>,
    numbers: u32,
    last_number: Instant,
}

/// A ticket that the farmer waits with.
#[derive(Debug)]
pub(crate) struct FarmedPosition {
    pub(crate) jar: Jar,
    pub(crate) waiting: Waiting,
    pub(crate) next: NextInLine,
}

/// What a farmer does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextOnFarm {
    /// Get a ticket at this time.
    Draw(Instant),
    /// Do this with one of the tickets.
    Position(usize, NextInLine),
    /// Leave: there is no ticket to wait with, and none to get.
    Leave,
}

impl Farmer {
    /// Returns a farmer who gets the first ticket now.
    pub(crate) fn begin(now: Instant, policy: &Farm) -> Self {
        Farmer {
            began: now,
            policy: policy.clone(),
            to_draw: policy.numbers,
            draws_at: now,
            put_off: 0,
            positions: Vec::new(),
            numbers: 0,
            last_number: now,
        }
    }

    /// Returns whether the farmer keeps any cookies.
    pub(crate) fn keeps_cookies(&self) -> bool {
        self.policy.jars > 0
    }

    /// Returns whether the farmer would wait with another ticket.
    pub(crate) fn has_room(&self) -> bool {
        self.positions.len() < self.policy.jars as usize
    }

    /// Returns whether the farmer has got no ticket but the first.
    pub(crate) fn is_new(&self) -> bool {
        self.numbers <= 1
    }

    /// Waits with this ticket, too.
    pub(crate) fn keep(&mut self, position: FarmedPosition) {
        self.positions.push(position);
    }

    /// Returns the kept ticket with this index.
    pub(crate) fn position(&mut self, index: usize) -> &mut FarmedPosition {
        &mut self.positions[index]
    }

    /// Removes a kept ticket, to enter with.
    pub(crate) fn take(&mut self, index: usize) -> FarmedPosition {
        self.positions.remove(index)
    }

    /// Notes that the farmer got a ticket.
    pub(crate) fn drew_number(&mut self, now: Instant) {
        self.numbers += 1;
        self.last_number = now;
        self.drew(now);
    }

    /// Notes a request for a ticket that had another result.
    pub(crate) fn drew(&mut self, now: Instant) {
        self.to_draw = self.to_draw.saturating_sub(1);
        self.put_off = 0;
        self.draws_at = now + self.policy.every;
    }

    /// Notes a request for a ticket that is to be repeated after a while. After more than
    /// `retries_max` in a row, the farmer gets no more tickets.
    pub(crate) fn was_put_off(&mut self, now: Instant, after: Duration, retries_max: u32) {
        self.put_off += 1;
        self.draws_at = now + after;
        if self.put_off > retries_max {
            self.to_draw = 0;
        }
    }

    /// Returns the earliest next action.
    pub(crate) fn next(&self) -> NextOnFarm {
        let draw = (self.to_draw > 0).then_some((self.draws_at, NextOnFarm::Draw(self.draws_at)));
        let positions = self.positions.iter().enumerate();
        let positions = positions
            .map(|(index, position)| (position.next.at(), NextOnFarm::Position(index, position.next)));
        positions.chain(draw).min_by_key(|(at, _)| *at).map_or(NextOnFarm::Leave, |(_, next)| next)
    }

    /// Ends the farming and returns the waits that did not lead to admission.
    pub(crate) fn end(self, now: Instant) -> Vec<LineWait> {
        self.positions.into_iter().map(|position| position.waiting.end(now, false)).collect()
    }
}

/// Counts of all farmers.
#[derive(Debug, Default)]
pub(crate) struct FarmBooks {
    pub(crate) farmers: u64,
    pub(crate) numbers: u64,
    pub(crate) numbers_entered: u64,
    pub(crate) put_off: u64,
    pub(crate) let_in_at_once: u64,
    /// Seconds: of admitted farmers, and of all farmers who are done.
    waited: Vec<f64>,
    drawing: Vec<f64>,
}

impl FarmBooks {
    /// Notes that a farmer is done.
    pub(crate) fn ended(&mut self, now: Instant, farmer: &Farmer, entered: bool) {
        if self.drawing.len() == WAITS_MAX {
            return;
        }
        if entered {
            self.waited.push(now.secs_since(farmer.began));
        }
        if farmer.numbers > 0 {
            self.drawing.push(farmer.last_number.secs_since(farmer.began));
        }
    }

    /// Returns the summary, or `None` if nobody farmed.
    pub(crate) fn report(&self) -> Option<FarmReport> {
        (self.farmers > 0).then(|| FarmReport {
            farmers: self.farmers,
            numbers: self.numbers,
            numbers_entered: self.numbers_entered,
            put_off: self.put_off,
            let_in_at_once: self.let_in_at_once,
            drawing: Quantiles::of_seconds(self.drawing.clone()),
            wait: Quantiles::of_seconds(self.waited.clone()),
        })
    }
}

/// The results of farming. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FarmReport {
    /// Visitors who farmed: they were shown the waiting page, and asked for more tickets than the
    /// one they were given.
    pub farmers: u64,
    /// Tickets they got.
    pub numbers: u64,
    /// Of these, tickets that were admitted.
    pub numbers_entered: u64,
    /// Requests for a ticket that got a time to retry and no ticket: because of a network's quota,
    /// or because the line took no more visitors.
    pub put_off: u64,
    /// Farmers' requests for a ticket that were admitted without a waiting page.
    pub let_in_at_once: u64,
    /// From a farmer's first ticket to the last, of farmers who are done.
    pub drawing: Quantiles,
    /// From a farmer's first ticket to the session's first good response, of admitted farmers.
    pub wait: Quantiles,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Who;
    use suimon_model::{Rng, seconds};
    use suimon_workload::InLine;

    fn second(n: f64) -> Instant {
        Instant::ORIGIN + seconds(n)
    }

    fn farmer(numbers: u32, jars: u32) -> Farmer {
        let policy = Farm { share: 1.0, numbers, jars, every: Duration::from_secs(1) };
        Farmer::begin(second(10.0), &policy)
    }

    fn position(next: NextInLine) -> FarmedPosition {
        let waiting =
            Waiting::begin(second(10.0), String::new(), Who::Farmer, &InLine::default(), &mut Rng::new(1));
        FarmedPosition { jar: Jar::default(), waiting, next }
    }

    #[test]
    fn numbers_are_drawn_one_after_the_other_and_what_comes_first_is_done_first() {
        let mut farmer = farmer(3, 2);
        farmer.drew_number(second(10.0));
        farmer.keep(position(NextInLine::Poll(second(11.5))));
        assert_eq!(farmer.next(), NextOnFarm::Draw(second(11.0)));
        farmer.drew_number(second(11.0));
        farmer.keep(position(NextInLine::Poll(second(14.0))));
        assert!(!farmer.has_room());
        assert_eq!(farmer.next(), NextOnFarm::Position(0, NextInLine::Poll(second(11.5))));
        farmer.position(0).next = NextInLine::Poll(second(60.0));
        farmer.drew_number(second(12.0));
        assert_eq!(farmer.next(), NextOnFarm::Position(1, NextInLine::Poll(second(14.0))));
        assert_eq!(farmer.end(second(20.0)).len(), 2);
    }

    #[test]
    fn whoever_keeps_no_cookies_leaves_with_the_last_number() {
        let mut farmer = farmer(2, 0);
        assert!(!farmer.has_room() && !farmer.keeps_cookies());
        farmer.drew_number(second(10.0));
        farmer.drew(second(11.0));
        assert_eq!(farmer.next(), NextOnFarm::Leave);
    }

    #[test]
    fn a_draw_that_is_put_off_is_tried_again_as_told_and_not_for_ever() {
        let mut farmer = farmer(2, 0);
        farmer.drew_number(second(10.0));
        farmer.was_put_off(second(11.0), Duration::from_secs(10), 1);
        assert_eq!(farmer.next(), NextOnFarm::Draw(second(21.0)));
        farmer.was_put_off(second(21.0), Duration::from_secs(10), 1);
        assert_eq!(farmer.next(), NextOnFarm::Leave);
    }
}

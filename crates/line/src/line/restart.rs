//! A line that goes on where the one of another process ended.

use super::{Line, SavedLine};
use crate::Params;
use crate::estimate::Estimate;
use crate::lane::Lane;
use crate::numbers::Numbers;
use suimon_model::{Duration, Instant};

/// After a restart, visitors who come back first wait this long for those before them, who were at
/// the gate or on the way and lost their connection for a moment.
const GATHERS: Duration = Duration::from_secs(5);
/// The same after a takeover: those who were at the gate are told to ask again at once, and nobody on the
/// way notices anything.
const GATHERS_TAKEN_OVER: Duration = Duration::from_secs(1);
impl Line {
    /// Returns a line that goes on where another ended. `skipped`: numbers that may have been drawn
    /// since `saved` was written. They are not drawn again, and belong to nobody: a visitor who
    /// holds one all the same is present there with the first poll.
    ///
    /// Visitors who were present are taken to be present until this period ends without a poll of
    /// theirs; those who had just drawn, for some seconds.
    pub fn resume(params: Params, now: Instant, saved: &SavedLine, skipped: u64) -> Self {
        let mut line = Line::new(params, now);
        line.state = saved.state;
        line.gathers_until = now + GATHERS;
        (line.lots, line.lotteries) = (saved.lots, saved.lotteries.clone());
        line.estimate = Estimate::with_leaving(saved.leaving_per_second);
        for (lane, saved) in line.lanes.iter_mut().zip(&saved.lanes) {
            lane.go_on(now, skipped, saved);
        }
        line
    }

    /// Takes note that this process has taken over from one that answered until now: nobody is long in
    /// coming back.
    #[must_use]
    pub fn taken_over(self, now: Instant) -> Self {
        Line { gathers_until: now + GATHERS_TAKEN_OVER, ..self }
    }

    /// Returns what must survive a restart.
    pub fn saved(&self) -> SavedLine {
        SavedLine {
            lanes: self.lanes.each_ref().map(Numbers::reached),
            leaving_per_second: self.estimate.leaving(),
            lots: self.lots,
            lotteries: self.lotteries.clone(),
            state: self.state,
        }
    }

    /// Returns whether the visitor who stands there in their lane lets those go first who stand
    /// before them and are not back yet after a restart.
    pub fn gathers(&self, now: Instant, (lane, rank): (Lane, u64)) -> bool {
        let numbers = &self.lanes[lane.index()];
        let back = || numbers.presence.checked_in(numbers.presence.first(), rank);
        now < self.gathers_until && numbers.expected_before(rank) > back()
    }
}

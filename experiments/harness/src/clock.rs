//! The time that remains.

use std::time::{Duration, Instant};

/// Predicts the end from the planned steps, and from how much longer than planned the finished ones
/// took.
pub(crate) struct Clock {
    began: Instant,
    steps: usize,
    done: usize,
    planned_left: Duration,
    beyond_plan: Duration,
    beyond_assumed: Duration,
}

impl Clock {
    /// Returns a clock for steps that are planned to take `planned`. Until a step is measured, each
    /// is assumed to need `beyond_assumed` more for starting and stopping.
    pub(crate) fn new(planned: impl IntoIterator<Item = Duration>, beyond_assumed: Duration) -> Self {
        let planned: Vec<Duration> = planned.into_iter().collect();
        Clock {
            began: Instant::now(),
            steps: planned.len(),
            done: 0,
            planned_left: planned.iter().sum(),
            beyond_plan: Duration::ZERO,
            beyond_assumed,
        }
    }

    /// Reports that a step is beginning.
    pub(crate) fn begin(&self, what: &str) {
        let left = self.left().as_secs();
        let (step, steps) = (self.done + 1, self.steps);
        eprintln!("[{step:>2}/{steps}] {what}; about {}:{:02} min left in all", left / 60, left % 60);
    }

    /// Notes that a step that was planned to take `planned` has taken `took`.
    pub(crate) fn done(&mut self, planned: Duration, took: Duration) {
        self.done += 1;
        self.planned_left = self.planned_left.saturating_sub(planned);
        self.beyond_plan += took.saturating_sub(planned);
    }

    /// Returns the time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn left(&self) -> Duration {
        let steps_left = (self.steps - self.done.min(self.steps)) as u32;
        let beyond = if self.done == 0 { self.beyond_assumed } else { self.beyond_plan / self.done as u32 };
        self.planned_left + beyond * steps_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steps_took_beyond_their_plan_is_foreseen_for_the_others() {
        let seconds = Duration::from_secs;
        let mut clock = Clock::new([seconds(60), seconds(60), seconds(30)], seconds(10));
        assert_eq!(clock.left(), seconds(180));
        clock.done(seconds(60), seconds(75));
        assert_eq!(clock.left(), seconds(90 + 2 * 15));
        clock.done(seconds(60), seconds(65));
        assert_eq!(clock.left(), seconds(30 + 10));
    }
}

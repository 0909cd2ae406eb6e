//! The counts of a run, from the visitors' view. Pure accounting: it is told what happened and
//! when.
//!
//! Everything is counted twice: over the whole run, where it must add up, and in the measured
//! [`Window`]. An event belongs to the window in which it happens; a session that ends in the
//! window counts there, whenever it began.
//!
//! What must add up, at every moment ([`Tally::adds_up`]):
//! - sessions begun = completed + left + gave up + under way
//! - requests asked = passed + first-step failures + mid-session failures + refusals + waiting
//!   pages + in flight

use suimon_model::{Duration, Instant};
use suimon_statistics::Histogram;

use crate::{Next, StepOutcome, Turn, Workload};

/// The most seconds in the series (a day); later events still count, but not by second.
pub const SERIES_SECONDS_MAX: usize = 86_400;

/// The measured time: from `from` up to, but not including, `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Its beginning; all before it is warm-up.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

impl Window {
    /// Everything.
    pub const ALL: Window = Window { from: Instant::ORIGIN, to: Instant::FAR_FUTURE };

    /// Returns whether `at` lies in it.
    pub fn holds(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }
}

/// What happened, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Sessions whose first request was sent.
    pub sessions_begun: u64,
    /// Sessions whose steps were all done.
    pub sessions_completed: u64,
    /// Sessions that the visitor left before the end, though nothing had failed.
    pub sessions_left: u64,
    /// Sessions given up.
    pub sessions_gave_up: u64,
    /// Sessions that failed at least once after their first step.
    pub sessions_failed_inside: u64,
    /// Requests sent.
    pub requests: u64,
    /// Good answers.
    pub passed: u64,
    /// Timeouts and errors at the first step, and refusals there without `Retry-After`.
    pub first_step_failures: u64,
    /// Timeouts, errors and refusals after the first step.
    pub mid_session_failures: u64,
    /// Refusals at the first step with `Retry-After`.
    pub refusals: u64,
    /// Answers at the first step that showed a position in line.
    pub waiting_pages: u64,
    /// Refusals after the first step (they are mid-session failures as well).
    pub refusals_inside: u64,
    /// Time-outs at any step.
    pub timeouts: u64,
    /// Good answers that lost their value: their step was repeated after a failure, or the session
    /// was given up.
    pub wasted_requests: u64,
}

impl Counts {
    fn fold(&mut self, turn: &Turn) {
        let failure = turn.is_failure();
        self.passed += u64::from(turn.outcome == StepOutcome::Passed);
        self.first_step_failures += u64::from(failure && turn.step == 0);
        self.mid_session_failures += u64::from(failure && turn.step > 0);
        match turn.outcome {
            StepOutcome::Refused { .. } => {
                self.refusals += u64::from(!failure);
                self.refusals_inside += u64::from(turn.step > 0);
            }
            StepOutcome::InLine { .. } => self.waiting_pages += u64::from(!failure),
            StepOutcome::Passed
            | StepOutcome::LeftLine
            | StepOutcome::Failed
            | StepOutcome::TimedOut
            | StepOutcome::Disconnected => {}
        }
        self.timeouts += u64::from(turn.outcome == StepOutcome::TimedOut);
        self.sessions_failed_inside += u64::from(turn.first_mid_failure);
        self.wasted_requests += u64::from(turn.wasted);
        self.sessions_completed += u64::from(turn.next == Next::Done);
        self.sessions_left += u64::from(turn.next == Next::Left);
        self.sessions_gave_up += u64::from(turn.next == Next::GaveUp);
    }
}

/// One step of one kind, inside the window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepTally {
    /// Response times of the good answers.
    pub time: Histogram,
    /// Failures; refusals at the first step with `Retry-After` are none.
    pub failures: u64,
    /// Refusals, with and without `Retry-After`.
    pub refusals: u64,
    /// Answers that showed a position in line.
    pub waiting_pages: u64,
}

/// What happened in one second of the run, warm-up included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Second {
    /// Sessions begun.
    pub begun: u32,
    /// Sessions completed.
    pub completed: u32,
    /// Sessions that the visitor left, though nothing had failed.
    pub left: u32,
    /// Sessions given up.
    pub gave_up: u32,
    /// Failures at the first step.
    pub first_step_failures: u32,
    /// Failures after it.
    pub mid_session_failures: u32,
    /// Refusals at the first step with `Retry-After`.
    pub refusals: u32,
    /// Answers at the first step that showed a position in line.
    pub waiting_pages: u32,
    /// Requests sent.
    pub requests: u32,
    /// Sessions under way at the end of the second.
    pub under_way: u32,
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct Tally {
    window: Window,
    whole: Counts,
    measured: Counts,
    in_flight: u64,
    session_time: Histogram,
    first_step_wait: Histogram,
    /// By kind, then by step.
    steps: Vec<Vec<StepTally>>,
    series: Vec<Second>,
}

impl Tally {
    /// Returns empty counts for `workload`, with `window` as the measured time.
    pub fn new(workload: &Workload, window: Window) -> Self {
        let steps_of = |kind: &std::sync::Arc<crate::Journey>| vec![StepTally::default(); kind.steps.len()];
        Tally {
            window,
            whole: Counts::default(),
            measured: Counts::default(),
            in_flight: 0,
            session_time: Histogram::default(),
            first_step_wait: Histogram::default(),
            steps: workload.kinds.iter().map(steps_of).collect(),
            series: Vec::new(),
        }
    }

    /// A session begins; [`Tally::asked`] is called for its request, too.
    pub fn begun(&mut self, at: Instant) {
        self.each(at, |counts| counts.sessions_begun += 1);
        if let Some(second) = self.second(at) {
            second.begun += 1;
            second.under_way += 1;
        }
    }

    /// A request is sent.
    pub fn asked(&mut self, at: Instant) {
        self.in_flight += 1;
        self.each(at, |counts| counts.requests += 1);
        if let Some(second) = self.second(at) {
            second.requests += 1;
        }
    }

    /// A request has ended, and perhaps its session with it.
    pub fn fold(&mut self, turn: &Turn) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.each(turn.at, |counts| counts.fold(turn));
        if self.window.holds(turn.at) {
            self.fold_times(turn);
        }
        let Some(second) = self.second(turn.at) else { return };
        let mut counts = Counts::default();
        counts.fold(turn);
        second.completed += u32::from(counts.sessions_completed > 0);
        second.left += u32::from(counts.sessions_left > 0);
        second.gave_up += u32::from(counts.sessions_gave_up > 0);
        second.first_step_failures += u32::from(counts.first_step_failures > 0);
        second.mid_session_failures += u32::from(counts.mid_session_failures > 0);
        second.refusals += u32::from(counts.refusals > 0);
        second.waiting_pages += u32::from(counts.waiting_pages > 0);
        if !matches!(turn.next, Next::Ask { .. }) {
            second.under_way = second.under_way.saturating_sub(1);
        }
    }

    fn fold_times(&mut self, turn: &Turn) {
        let step = &mut self.steps[turn.kind.index()][turn.step];
        match turn.outcome {
            StepOutcome::Passed => step.time.record(turn.took),
            StepOutcome::Refused { .. } => step.refusals += 1,
            StepOutcome::InLine { .. } => step.waiting_pages += 1,
            StepOutcome::LeftLine
            | StepOutcome::Failed
            | StepOutcome::TimedOut
            | StepOutcome::Disconnected => {}
        }
        step.failures += u64::from(turn.is_failure());
        if let Some(wait) = turn.first_step_wait {
            self.first_step_wait.record(wait);
        }
        if turn.next == Next::Done {
            self.session_time.record(turn.session_time);
        }
    }

    /// Ends the measurement at `now`, unless it has ended already, and extends the series to it.
    pub fn close(&mut self, now: Instant) {
        self.window.to = self.window.to.min(now);
        self.second(now - Duration::from_nanos(1));
    }

    /// Returns the counts of the whole run.
    pub const fn whole(&self) -> &Counts {
        &self.whole
    }

    /// Returns the counts of the window.
    pub const fn measured(&self) -> &Counts {
        &self.measured
    }

    /// Returns the window; after [`Tally::close`], the time that was measured.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Returns how much of the window has passed at `now`.
    pub fn measured_for(&self, now: Instant) -> Duration {
        self.window.to.min(now).since(self.window.from)
    }

    /// Returns the sessions under way.
    pub const fn under_way(&self) -> u64 {
        let whole = &self.whole;
        whole.sessions_begun - whole.sessions_completed - whole.sessions_left - whole.sessions_gave_up
    }

    /// Returns the requests in flight.
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the times of the sessions completed in the window, from first request to last
    /// answer.
    pub const fn session_time(&self) -> &Histogram {
        &self.session_time
    }

    /// Returns the times from the beginning of a session to its first good answer.
    pub const fn first_step_wait(&self) -> &Histogram {
        &self.first_step_wait
    }

    /// Returns the steps by kind, then by step.
    pub fn steps(&self) -> &[Vec<StepTally>] {
        &self.steps
    }

    /// Returns the series, second by second from the origin.
    pub fn series(&self) -> &[Second] {
        &self.series
    }

    /// Returns whether every session and request is counted exactly once.
    pub fn adds_up(&self) -> bool {
        let c = &self.whole;
        let ended = c.sessions_completed + c.sessions_left + c.sessions_gave_up;
        let answered =
            c.passed + c.first_step_failures + c.mid_session_failures + c.refusals + c.waiting_pages;
        let by_step = |of: fn(&StepTally) -> u64| self.steps.iter().flatten().map(of).sum::<u64>();
        let m = &self.measured;
        ended <= c.sessions_begun
            && c.requests == answered + self.in_flight
            && by_step(|step| step.failures) == m.first_step_failures + m.mid_session_failures
            && by_step(|step| step.time.count()) == m.passed
            && self.session_time.count() == m.sessions_completed
            && c.wasted_requests <= c.passed
    }

    fn each(&mut self, at: Instant, mut count: impl FnMut(&mut Counts)) {
        count(&mut self.whole);
        if self.window.holds(at) {
            count(&mut self.measured);
        }
    }

    /// Returns the second of `at`; seconds in which nothing happened keep the number of sessions
    /// under way. A late event counts in the last second.
    fn second(&mut self, at: Instant) -> Option<&mut Second> {
        let index = (at.as_nanos() / 1_000_000_000) as usize;
        if index >= SERIES_SECONDS_MAX {
            return None;
        }
        if self.series.len() <= index {
            let under_way = self.series.last().map_or(0, |second| second.under_way);
            self.series.resize(index + 1, Second { under_way, ..Second::default() });
        }
        self.series.last_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::KindId;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn turn(at_ms: u64, step: usize, outcome: StepOutcome, next: Next) -> Turn {
        Turn {
            at: at(at_ms),
            kind: KindId(0),
            step,
            outcome,
            took: Duration::from_millis(10),
            wasted: 0,
            first_mid_failure: false,
            first_step_wait: None,
            session_time: Duration::from_millis(100),
            next,
        }
    }

    fn books(window: Window) -> Tally {
        use crate::{Arrivals, InLine, Journey, OnFailure, OnRefusal, Patience, Spacing, Step, Think};
        let think = Think::Constant(Duration::ZERO);
        let journey = Journey {
            name: "j".into(),
            weight: 1.0,
            users: None,
            steps: vec![Step::get("a", "/a"), Step::get("b", "/b")],
            think,
            patience: Patience::Endless,
            on_failure: OnFailure::GiveUp,
            on_refusal: OnRefusal::default(),
            in_line: InLine::default(),
            leave: 0.0,
        };
        let arrivals = Arrivals::Closed {
            users: 1,
            start_over: Duration::ZERO,
            spacing: Spacing::Even,
            sessions_each: None,
            pause: think,
        };
        Tally::new(&Workload { kinds: vec![journey.into()], arrivals, returning: false, seed: 1 }, window)
    }

    #[test]
    fn warm_up_is_left_out_of_the_measured_counts_only() {
        let mut tally = books(Window { from: at(1000), to: at(2000) });
        for ms in [500, 1500, 2500] {
            tally.begun(at(ms));
            tally.asked(at(ms));
            tally.fold(&turn(ms, 1, StepOutcome::Passed, Next::Done));
        }
        assert_eq!(tally.whole().sessions_completed, 3);
        assert_eq!(tally.measured().sessions_completed, 1);
        assert_eq!(tally.session_time().count(), 1);
        assert!(tally.adds_up());
    }

    #[test]
    fn the_series_carries_sessions_under_way_through_quiet_seconds() {
        let mut tally = books(Window::ALL);
        tally.begun(at(100));
        tally.asked(at(100));
        tally.fold(&turn(3_200, 1, StepOutcome::Passed, Next::Done));
        tally.close(at(5_000));
        let under_way: Vec<u32> = tally.series().iter().map(|second| second.under_way).collect();
        assert_eq!(under_way, [1, 1, 1, 0, 0]);
        assert_eq!(tally.series()[3].completed, 1);
        assert_eq!(tally.measured_for(at(9_000)), Duration::from_secs(5));
    }

    #[test]
    fn failures_are_told_apart_by_where_they_happen() {
        let mut tally = books(Window::ALL);
        let honest = StepOutcome::Refused { retry_after: Some(Duration::from_secs(1)) };
        let again = Next::Ask { step: 0, at: at(0) };
        for (step, outcome) in
            [(0, StepOutcome::TimedOut), (0, honest), (1, honest), (1, StepOutcome::Failed)]
        {
            tally.asked(at(0));
            tally.fold(&turn(0, step, outcome, again));
        }
        let counts = tally.measured();
        assert_eq!((counts.first_step_failures, counts.mid_session_failures), (1, 2));
        assert_eq!((counts.refusals, counts.refusals_inside, counts.timeouts), (1, 1, 1));
        assert_eq!(tally.steps()[0][1].failures, 2);
        assert!(tally.adds_up());
    }

    #[test]
    fn a_day_is_the_most_the_series_holds() {
        let mut tally = books(Window::ALL);
        tally.begun(Instant::ORIGIN + Duration::from_secs(100_000));
        assert!(tally.series().is_empty());
        assert_eq!(tally.whole().sessions_begun, 1);
    }
}

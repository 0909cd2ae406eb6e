//! One session being played. Told how a step ended, it returns what the visitor does next.
//!
//! All it knows of the server are the seven ways a step can end, so the crowd drives it with real
//! answers and the simulator with modelled ones.

use std::sync::Arc;

use suimon_model::{Duration, Instant, KindId, Rng};

use crate::{Journey, OnFailure, Step, Workload};

/// How a step ended, as its visitor sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOutcome {
    /// A whole answer, in time, and as expected.
    Passed,
    /// An answer that is not what was expected.
    Failed,
    /// "Not now": the server answers, and says that.
    Refused {
        /// The wait that it asks for, if any.
        retry_after: Option<Duration>,
    },
    /// A position in line: the visitor waits and asks again.
    InLine {
        /// After this time.
        again_after: Duration,
    },
    /// The visitor's patience with the waiting room has ended.
    LeftLine,
    /// The visitor's patience ended first, and the visitor has dropped the request.
    TimedOut,
    /// No connection, or it closed before a whole answer.
    Disconnected,
}

impl StepOutcome {
    /// Returns whether this is a refusal that says when to come again. At the first step it counts
    /// as a refusal, not as a failure: nothing was promised and nothing was lost.
    pub const fn is_honest_refusal(self) -> bool {
        matches!(self, StepOutcome::Refused { retry_after: Some(_) })
    }
}

/// What the visitor does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Ask for a step at a time, and then call [`Visitor::asked`].
    Ask {
        /// The step, from 0.
        step: usize,
        /// When to ask.
        at: Instant,
    },
    /// Every step is done.
    Done,
    /// The visitor leaves, though nothing has failed.
    Left,
    /// The visitor gives up the session.
    GaveUp,
}

/// How one step ended and what it meant; the input of [`crate::Tally`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// When it ended.
    pub at: Instant,
    /// The session's kind.
    pub kind: KindId,
    /// The step that ended, from 0.
    pub step: usize,
    /// How it ended.
    pub outcome: StepOutcome,
    /// From the request to the step's end.
    pub took: Duration,
    /// Good answers that lose their value by this: their steps will be repeated, or the session is
    /// given up.
    pub wasted: u32,
    /// Whether this is the session's first failure after its first step.
    pub first_mid_failure: bool,
    /// From the session's beginning to the first good answer to its first step, if this is that
    /// answer.
    pub first_step_wait: Option<Duration>,
    /// From the session's beginning to now.
    pub session_time: Duration,
    /// What comes next.
    pub next: Next,
}

impl Turn {
    /// Returns whether this counts as a failure: of the first step, or in mid-session.
    pub const fn is_failure(&self) -> bool {
        match self.outcome {
            StepOutcome::Passed | StepOutcome::LeftLine => false,
            StepOutcome::Refused { .. } => self.step > 0 || !self.outcome.is_honest_refusal(),
            // An admitted visitor must not wait in line again.
            StepOutcome::InLine { .. } => self.step > 0,
            StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Disconnected => true,
        }
    }
}

/// A session under way.
#[derive(Clone, Debug)]
pub struct Visitor {
    kind: KindId,
    journey: Arc<Journey>,
    /// The step being asked for, or the next one. All steps before it are done and have kept their
    /// value.
    step: usize,
    /// Patience with each request of this session, unless a step has its own.
    patience: Option<Duration>,
    patience_now: Option<Duration>,
    begun_at: Option<Instant>,
    asked_at: Instant,
    retries: u32,
    refusals_in_a_row: u32,
    /// While it waits in line: when it gives up, if ever.
    leaves_line: Option<Option<Instant>>,
    entered: bool,
    failed_inside: bool,
}

impl Visitor {
    /// Returns a session of `kind` that begins at `at`, and its first request.
    pub fn begin(workload: &Workload, kind: KindId, at: Instant, rng: &mut Rng) -> (Self, Next) {
        let journey = Arc::clone(workload.journey(kind));
        let patience = journey.patience.draw(rng);
        let visitor = Visitor {
            kind,
            journey,
            step: 0,
            patience,
            patience_now: patience,
            begun_at: None,
            asked_at: at,
            retries: 0,
            refusals_in_a_row: 0,
            leaves_line: None,
            entered: false,
            failed_inside: false,
        };
        (visitor, Next::Ask { step: 0, at })
    }

    /// Notes that the request is sent now. Returns how long the visitor waits for its answer;
    /// `None`: for ever.
    pub fn asked(&mut self, now: Instant, rng: &mut Rng) -> Option<Duration> {
        self.begun_at.get_or_insert(now);
        self.asked_at = now;
        self.patience_now = match &self.step().patience {
            Some(patience) => patience.draw(rng),
            None => self.patience,
        };
        self.patience_now
    }

    /// Notes that the last request has ended, and returns what that means and what comes next.
    pub fn answered(&mut self, now: Instant, outcome: StepOutcome, rng: &mut Rng) -> Turn {
        let step = self.step;
        let first_entry = outcome == StepOutcome::Passed && !self.entered;
        if outcome == StepOutcome::Passed {
            self.entered = true;
            self.leaves_line = None;
        }
        let next = match outcome {
            StepOutcome::Passed => self.go_on(now, rng),
            StepOutcome::Refused { retry_after } => self.wait_out(now, retry_after),
            StepOutcome::InLine { again_after } => self.wait_out(now, Some(again_after)),
            StepOutcome::LeftLine => Next::GaveUp,
            StepOutcome::TimedOut => self.try_again(now, true),
            StepOutcome::Failed | StepOutcome::Disconnected => self.try_again(now, false),
        };
        let lost = match next {
            Next::GaveUp => step,
            Next::Ask { step: resumed, .. } => step.saturating_sub(resumed),
            Next::Done | Next::Left => 0,
        };
        let session_time = now.since(self.begun_at.unwrap_or(self.asked_at));
        let mut turn = Turn {
            at: now,
            kind: self.kind,
            step,
            outcome,
            took: now.since(self.asked_at),
            wasted: u32::try_from(lost).expect("a journey has few steps"),
            first_mid_failure: false,
            first_step_wait: first_entry.then_some(session_time),
            session_time,
            next,
        };
        if turn.is_failure() && step > 0 {
            turn.first_mid_failure = !self.failed_inside;
            self.failed_inside = true;
        }
        turn
    }

    /// Returns what a visitor does who is shown a place in line and told to ask `again_after`: it
    /// waits, or leaves if its patience in line ends before that.
    pub fn in_line(&mut self, now: Instant, again_after: Duration, rng: &mut Rng) -> StepOutcome {
        let policy = &self.journey.in_line;
        let leaves = *self.leaves_line.get_or_insert_with(|| policy.gives_up_at(now, rng));
        match leaves {
            Some(leaves) if leaves <= now + again_after => StepOutcome::LeftLine,
            _ => StepOutcome::InLine { again_after },
        }
    }

    /// Returns the step being asked for, or the next one.
    pub fn step(&self) -> &Step {
        let last = self.journey.steps.len() - 1;
        &self.journey.steps[self.step.min(last)]
    }

    /// Returns which step that is, from 0.
    pub const fn step_number(&self) -> usize {
        self.step
    }

    /// Returns its kind.
    pub const fn kind(&self) -> KindId {
        self.kind
    }

    /// Returns when the visitor stops waiting for the last request's answer; `None`: never.
    pub fn gives_up_waiting_at(&self) -> Option<Instant> {
        self.patience_now.map(|patience| self.asked_at + patience)
    }

    fn go_on(&mut self, now: Instant, rng: &mut Rng) -> Next {
        self.refusals_in_a_row = 0;
        self.step += 1;
        let Some(step) = self.journey.steps.get(self.step) else { return Next::Done };
        let leave = self.journey.leaves_after(self.step - 1);
        // No random number is drawn if nobody leaves, so that such journeys do not depend on it.
        if leave > 0.0 && rng.chance(leave) {
            return Next::Left;
        }
        let think = step.think.unwrap_or(self.journey.think);
        Next::Ask { step: self.step, at: now + think.draw(rng) }
    }

    fn wait_out(&mut self, now: Instant, retry_after: Option<Duration>) -> Next {
        let policy = &self.journey.on_refusal;
        if self.refusals_in_a_row >= policy.retries_max {
            return Next::GaveUp;
        }
        self.refusals_in_a_row += 1;
        let wait = retry_after.unwrap_or(policy.wait_default).min(policy.wait_max);
        Next::Ask { step: self.step, at: now + wait }
    }

    fn try_again(&mut self, now: Instant, timed_out: bool) -> Next {
        let OnFailure::Retry(retry) = &self.journey.on_failure else { return Next::GaveUp };
        if self.retries >= retry.retries_max {
            return Next::GaveUp;
        }
        self.retries += 1;
        self.refusals_in_a_row = 0;
        let (from, pause) = if timed_out {
            (retry.from, retry.pause_after_timeout)
        } else {
            (retry.from_after_error, retry.pause_after_error)
        };
        self.step = self.step.min(from);
        Next::Ask { step: self.step, at: now + pause }
    }
}

#[cfg(test)]
mod tests;

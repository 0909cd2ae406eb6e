//! What is measured of a service: how long its requests take, alone and now, and how much of the
//! host's work it does.

use suimon_model::real::{exp, ln};

/// Ends, or seconds if there are fewer ends, after which what was measured has lost a factor of e.
const ENDS: f64 = 12.0;
const MEMORY_MAX: f64 = 10.0;
/// A service is unknown again after a silence of the first, seconds, and the second, times its usual
/// time in the application. Something was there then, and nothing was answered.
const SILENCE_MIN: f64 = 10.0;
const SILENCE_TIMES: f64 = 5.0;
/// So is one after so many ends without an answer, once it answered nothing for [`SILENCE_TIMES`].
const UNANSWERED_MAX: f64 = 20.0;

/// What happened at the routes of a service over some time. Sums, so that two can be added.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ServiceSample {
    /// Length, seconds.
    pub seconds: f64,
    /// Requests in the application, integrated over time.
    pub inside_seconds: f64,
    /// Requests waiting at the route gates, integrated over time.
    pub waiting_seconds: f64,
    /// Requests that ended, and their seconds in the application.
    pub ended: f64,
    /// See `ended`.
    pub spent_seconds: f64,
    /// Requests that were answered, and their seconds in the application.
    pub answered: f64,
    /// See `answered`.
    pub answered_seconds: f64,
    /// Those of them of which it is known what they take alone, and their seconds in the application.
    pub known: f64,
    /// See `known`.
    pub known_seconds: f64,
    /// The seconds that those would have taken alone.
    pub alone_seconds: f64,
    /// Processor seconds that the answered ones took at most; their time in the application where
    /// that is unknown.
    pub work_seconds: f64,
}

suimon_model::saved_struct!(ServiceSample {
    seconds,
    inside_seconds,
    waiting_seconds,
    ended,
    spent_seconds,
    answered,
    answered_seconds,
    known,
    known_seconds,
    alone_seconds,
    work_seconds
});

impl ServiceSample {
    /// Adds what happened at another time, or at another route.
    pub fn add(&mut self, other: &ServiceSample) {
        self.fade(1.0, other);
    }

    fn fade(&mut self, kept: f64, other: &ServiceSample) {
        self.seconds = kept * self.seconds + other.seconds;
        self.inside_seconds = kept * self.inside_seconds + other.inside_seconds;
        self.waiting_seconds = kept * self.waiting_seconds + other.waiting_seconds;
        self.ended = kept * self.ended + other.ended;
        self.spent_seconds = kept * self.spent_seconds + other.spent_seconds;
        self.answered = kept * self.answered + other.answered;
        self.answered_seconds = kept * self.answered_seconds + other.answered_seconds;
        self.known = kept * self.known + other.known;
        self.known_seconds = kept * self.known_seconds + other.known_seconds;
        self.alone_seconds = kept * self.alone_seconds + other.alone_seconds;
        self.work_seconds = kept * self.work_seconds + other.work_seconds;
    }

    /// Returns the mean number in the application.
    pub(super) fn inside(&self) -> f64 {
        if self.seconds > 0.0 { self.inside_seconds / self.seconds } else { 0.0 }
    }

    /// Returns the mean number waiting.
    pub(super) fn waiting(&self) -> f64 {
        if self.seconds > 0.0 { self.waiting_seconds / self.seconds } else { 0.0 }
    }
}

/// What was measured over the last ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    recent: ServiceSample,
    inside: f64,
    waiting: f64,
    /// In the application, of those that may be taken to work, and when something was answered last.
    working: f64,
    working_then: f64,
    /// Since something was answered: seconds in which something was there, all seconds, and ends.
    silence: f64,
    since: f64,
    unanswered: f64,
    /// The share of what is known that the last window replaced, and that it told.
    fresh: f64,
    told: f64,
}

suimon_model::saved_struct!(Estimate {
    recent,
    inside,
    waiting,
    working,
    working_then,
    silence,
    since,
    unanswered,
    fresh,
    told
});

impl Estimate {
    /// Takes in a window. `cap`: the one that was in force, at which a service with a queue has
    /// that many in the application in the long run, however short the window.
    pub(super) fn fold(&mut self, window: &ServiceSample, cap: Option<f64>) {
        let forgotten = (window.answered / ENDS).max(window.seconds / MEMORY_MAX);
        let kept = exp(-forgotten);
        self.recent.fade(kept, window);
        self.waiting = window.waiting();
        let least = cap.filter(|_| self.waiting > 0.5).unwrap_or(0.0);
        self.inside = window.inside().max(least);
        if window.answered > 0.0 {
            (self.silence, self.since, self.unanswered) = (0.0, 0.0, 0.0);
            self.working_then = self.inside;
        } else {
            self.silence += window.inside_seconds.min(window.seconds);
            self.since += window.seconds;
            self.unanswered += window.ended;
        }
        // Requests that pile up without an answer are no work.
        let is_usual = self.silence <= self.usual();
        self.working = if is_usual { self.inside } else { self.working_then.min(self.inside) };
        self.fresh = 1.0 - kept;
        self.told = window.answered / self.recent.answered.max(1e-9);
    }

    /// Returns D: how many times as long as alone a request takes, waiting included. By Little's
    /// law, so that it shows at once what a request that arrives now will see.
    ///
    /// `D = (waiting + inside) / inside · S / S0`
    pub(super) fn slowdown(&self) -> Option<f64> {
        let stretch = self.stretch().filter(|_| self.inside > 0.0)?;
        Some((self.inside + self.waiting) / self.inside * stretch)
    }

    /// Returns S / S0, its part in the application, of those of which S0 is known.
    pub(super) fn stretch(&self) -> Option<f64> {
        let ServiceSample { known_seconds, alone_seconds, .. } = self.recent;
        let is_known = known_seconds > 0.0 && alone_seconds > 0.0 && self.is_answered();
        is_known.then(|| known_seconds / alone_seconds)
    }

    /// Returns whether what was measured says something still: one that hangs, or only fails, is
    /// not known by what it did before.
    fn is_answered(&self) -> bool {
        let fails = self.unanswered >= UNANSWERED_MAX && self.since > SILENCE_TIMES * self.usual();
        self.silence <= SILENCE_MIN + SILENCE_TIMES * self.usual() && !fails
    }

    /// Returns seconds in the application of those that were answered last.
    fn usual(&self) -> f64 {
        self.service().map_or(0.0, |(service, _)| service)
    }

    /// Returns whether something is there and nothing was answered in the last window: what it does
    /// is known at most.
    pub(super) fn is_silent(&self) -> bool {
        self.since > 0.0 && self.inside > 0.0
    }

    /// Returns the share of what is known that the last window replaced, though it may only have
    /// passed.
    pub(super) fn fresh(&self) -> f64 {
        self.fresh
    }

    /// Returns the share of what is known that the last window told.
    pub(super) fn told(&self) -> f64 {
        self.told
    }

    /// Returns ln D. The logarithm of the mean of n values lies 1/2n below that of the true mean on
    /// average, where they vary as much as they are large.
    pub(super) fn ln_slowdown(&self) -> Option<f64> {
        Some(ln(self.slowdown()?) + 0.5 / self.recent.known.max(1.0))
    }

    /// Returns the work it does, processor seconds a second at most: in the application · work ÷
    /// the time that all of them spend there.
    pub(super) fn effort(&self) -> f64 {
        self.per_second(self.work_seconds())
    }

    /// Returns the seconds that a request takes now, and its work.
    pub(super) fn service(&self) -> Option<(f64, f64)> {
        let ServiceSample { answered, answered_seconds, .. } = self.recent;
        (answered > 0.0).then(|| (answered_seconds / answered, self.work_seconds() / answered))
    }

    /// Returns the seconds that a request takes alone.
    pub(super) fn alone(&self) -> Option<f64> {
        let ServiceSample { known, alone_seconds, .. } = self.recent;
        (alone_seconds > 0.0 && known > 0.0).then(|| alone_seconds / known)
    }

    /// Returns answers per second.
    pub(super) fn rate(&self) -> f64 {
        self.per_second(self.recent.answered)
    }

    /// Returns the processor seconds of those that were answered: at most one core each.
    fn work_seconds(&self) -> f64 {
        self.recent.work_seconds.min(self.recent.answered_seconds)
    }

    /// Returns what of `amount`, which came while requests spent their time in the application,
    /// comes a second now.
    fn per_second(&self, amount: f64) -> f64 {
        let spent = self.recent.spent_seconds;
        if spent > 0.0 && self.is_answered() { self.working * amount / spent } else { 0.0 }
    }

    pub(super) fn inside(&self) -> f64 {
        self.inside
    }

    pub(super) fn waiting(&self) -> f64 {
        self.waiting
    }

    /// Returns whether it counts: somebody is there, or enough was answered recently.
    pub(super) fn is_active(&self) -> bool {
        self.is_occupied() || self.recent.answered >= ACTIVE_ANSWERS
    }

    /// Returns whether somebody is there.
    pub(super) fn is_occupied(&self) -> bool {
        self.inside + self.waiting > ACTIVE_MIN
    }
}

/// Requests on average, or answers in memory, from which a service counts.
const ACTIVE_MIN: f64 = 0.05;
const ACTIVE_ANSWERS: f64 = 4.0;

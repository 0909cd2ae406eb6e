//! What a cap does for those it was lowered for, and for whom it is given up.
//!
//! *Law*. A cap helps another service if that one's requests take a tenth less long in the
//! application, or a tenth more of them are done, than at the worst since the cap began. Its waiting is
//! no sign: a long queue takes its time. It is asked each time the cap has come down by [`FALL`], while
//! the other one is still far behind. It is asked, too, once the cap has been *low* for
//! [`LOW_WINDOWS`] windows, if that is within [`JUDGED_WITHIN`] windows of its beginning: one that is
//! slow for another reason may have its wish by a cap that helps nobody. A cap is low while its service
//! gives up work of [`LOW`] of what the other one does. A cap that cannot fall any further for
//! [`STUCK_WINDOWS`] windows, while the other one is still far behind, must have done more:
//!
//! ```text
//! expected = min(1 + Δy / y, S / S0)   times as quick as before the cap began, where the work Δy that
//!                                      is given up goes to one that does y, but not quicker than alone
//! ```
//!
//! and at least the root of that must be seen in S or in what is done. A cap that does not help is given up for the
//! other one for a minute, the next time for two, at most for ten; an hour after that it is forgotten.
//! *Limits*: with less work than that help cannot be told from noise. More requests of the other one in
//! the application look like help, until the cap has come down as far again; and so does chance, where
//! few are answered. Of several that it fell for the worst of any counts.

use super::need::Need;
use suimon_model::real::ln;
use suimon_model::{Instant, seconds};

/// Fall of a cap, as a factor, from which it has had its effect.
const FALL: f64 = 8.0;
/// What it must do for the other one, as a share of what that one takes, or does.
const EFFECT_LEAST: f64 = 0.1;
/// The other one is still this much further behind: else the cap only swings around where it
/// belongs.
pub(super) const VAIN_GAP: f64 = 0.5;
/// Work given up by a low cap, as a share of what the other one does.
const LOW: f64 = 0.4;
/// Windows in which a cap is low until it is judged, and how often what is known of the other one must
/// have been renewed meanwhile: by then a part of e^−2 of it is older.
const LOW_WINDOWS: u32 = 8;
const RENEWED_LEAST: f64 = 2.0;
/// Windows since a cap began, in which somebody was behind, in which a low one is judged by what was
/// before: later on the other one may have changed for its own reasons.
const JUDGED_WITHIN: u32 = 20;
/// Windows in which a cap cannot fall any further until it is judged again, and by how much others must
/// be quicker then for it to be judged.
const STUCK_WINDOWS: u32 = 20;
const EXPECTED_LEAST: f64 = 2.0;
/// For how long a cap is given up, seconds: at first, and at most; and after how long without that
/// it is forgotten.
const GIVEN_UP: f64 = 60.0;
const GIVEN_UP_MAX: f64 = 600.0;
const FORGOTTEN: f64 = 3600.0;

/// What a cap does for others.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    /// What was when the cap began, and then or when it was judged last.
    first: Option<Begin>,
    begin: Option<Begin>,
    /// Windows since then, and those in which the cap was low.
    windows: u32,
    low_windows: u32,
    /// How often what is known of the other one was renewed in those, and whether the cap was judged.
    renewed: f64,
    is_judged: bool,
    /// Windows in a row in which the cap could not fall any further.
    stuck_windows: u32,
    given_up: Vec<GivenUp>,
}

suimon_model::saved_struct!(Effects {
    first,
    begin,
    windows,
    low_windows,
    renewed,
    is_judged,
    stuck_windows,
    given_up
});

/// The cap, the work of its service, and the worst that the one it fell for came to.
#[derive(Clone, Copy, Debug)]
struct Begin {
    cap: f64,
    effort: f64,
    stretch: f64,
    rate: f64,
}

suimon_model::saved_struct!(Begin { cap, effort, stretch, rate });

/// A service that the cap did not help.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    /// Its index.
    service: u32,
    until: Instant,
    /// For how long it is given up the next time, seconds.
    next: f64,
}

suimon_model::saved_struct!(GivenUp { service, until, next });

impl Begin {
    fn new(cap: f64, own: &Need, other: &Need) -> Self {
        Begin { cap, effort: own.effort, stretch: other.stretch, rate: other.rate }
    }

    fn has_helped(&self, other: &Need) -> bool {
        other.stretch <= (1.0 - EFFECT_LEAST) * self.stretch || other.rate >= (1.0 + EFFECT_LEAST) * self.rate
    }
}

impl Effects {
    /// Returns whether the cap is given up for `service`.
    pub(super) fn is_given_up(&self, now: Instant, service: u32) -> bool {
        self.given_up.iter().any(|it| it.service == service && now < it.until)
    }

    /// Takes note that a service without a cap gets one, as it has `inside` requests in the
    /// application. `own`: that service; `other`: for whose sake.
    pub(super) fn begins(&mut self, inside: f64, own: &Need, other: &Need) {
        self.end();
        self.begin = Some(Begin::new(inside, own, other));
        self.first = self.begin;
    }

    /// Takes note that the cap is to fall to `cap`, and returns whether it was in vain so far.
    pub(super) fn falls(&mut self, cap: f64, own: &Need, other: &Need) -> bool {
        let begin = self.begin.get_or_insert(Begin::new(cap, own, other));
        // What is measured lags behind a rush: the worst it came to counts.
        begin.stretch = begin.stretch.max(other.stretch);
        begin.rate = begin.rate.min(other.rate);
        let begin = *begin;
        if cap * FALL >= begin.cap {
            return false;
        }
        self.begin = Some(Begin::new(cap, own, other));
        !begin.has_helped(other) && other.error - own.error > VAIN_GAP
    }

    /// Returns whether a cap that has been low for long enough was in vain; asked once in each window.
    pub(super) fn is_low_in_vain(&mut self, own: &Need, other: &Need) -> bool {
        let Some(begin) = &self.begin else { return false };
        self.windows = self.windows.saturating_add(1);
        if begin.effort - own.effort < LOW * other.effort {
            return false;
        }
        self.low_windows = self.low_windows.saturating_add(1);
        self.renewed += other.fresh;
        let is_due = self.low_windows >= LOW_WINDOWS && self.renewed >= RENEWED_LEAST;
        if !is_due || std::mem::replace(&mut self.is_judged, true) {
            return false;
        }
        self.windows <= JUDGED_WITHIN && !begin.has_helped(other)
    }

    /// Returns whether a cap that has been `stuck`, as those who wait must be served, was in vain;
    /// asked once in each window.
    pub(super) fn is_stuck_in_vain(&mut self, stuck: bool, own: &Need, other: &Need) -> bool {
        let is_far_behind = other.error - own.error > VAIN_GAP;
        self.stuck_windows = if stuck && is_far_behind { self.stuck_windows.saturating_add(1) } else { 0 };
        let Some(first) = self.first.filter(|_| self.stuck_windows >= STUCK_WINDOWS) else { return false };
        let expected = (1.0 + (first.effort - own.effort) / other.effort).min(first.stretch);
        let seen = (first.stretch / other.stretch).max(other.rate / first.rate);
        self.stuck_windows = 0;
        expected >= EXPECTED_LEAST && ln(seen) < 0.5 * ln(expected)
    }

    /// Gives the cap up for `service`.
    pub(super) fn give_up(&mut self, now: Instant, service: u32) {
        self.given_up.retain(|it| now < it.until + seconds(FORGOTTEN));
        let old = self.given_up.iter().position(|it| it.service == service);
        let lasts = old.map_or(GIVEN_UP, |index| self.given_up.swap_remove(index).next);
        let next = (2.0 * lasts).min(GIVEN_UP_MAX);
        self.given_up.push(GivenUp { service, until: now + seconds(lasts), next });
        self.end();
    }

    /// Takes note that there is no cap any more.
    pub(super) fn end(&mut self) {
        (self.first, self.begin, self.stuck_windows) = (None, None, 0);
        (self.windows, self.low_windows, self.renewed, self.is_judged) = (0, 0, 0.0, false);
    }
}

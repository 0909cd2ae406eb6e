//! What a cap does for those it was lowered for, and for whom it is given up.
//!
//! *Law*. A cap helps another service if that one's requests take a tenth less long in the
//! application, or a tenth more of them are done, than at the worst since the cap began. Its
//! waiting is no sign: a long queue takes its time. Three questions are asked, each once enough was
//! answered since:
//!
//! - each time the cap has come down by [`FALL`], if the other one is still far behind;
//! - once, where the cap was *low* in [`LOW_WINDOWS`] of its first [`JUDGED_WITHIN`] windows: its
//!   service gave up work of [`LOW`] of what the other one does. One that is slow for another
//!   reason may have its wish by a cap that helps nobody;
//! - every [`STUCK_WINDOWS`] windows in which the cap cannot fall any further and the other one is
//!   far behind. Then it must have done more:
//!
//! ```text
//! expected = min(1 + Δy / y, S / S0)   times as quick as before the cap began, where the work Δy that
//!                                      is given up goes to one that does y, but not quicker than alone
//! ```
//!
//! and the root of that must be seen in S or in what is done, where it is [`EXPECTED_LEAST`] or
//! more.
//!
//! A cap that does not help is given up for the other one for a minute, the next time for two, at
//! most for ten; an hour after that it is forgotten. *Limits*: where less than [`LOW`] is given up
//! help cannot be told from noise. More requests of the other one in the application look like
//! help, until the cap has come down as far again; and so does chance, where few are answered. Of
//! several that a cap fell for the worst of any counts.

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
/// Windows in which a cap must have been low.
const LOW_WINDOWS: u32 = 8;
/// How often what is known of the other one must have been renewed in those: at most 14 % (e^−2) of
/// it is older.
const RENEWED_LEAST: f64 = 2.0;
/// The same since the cap had come down by [`FALL`] last: what it does is plainer then.
const RENEWED_ONCE: f64 = 1.0;
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
    /// What was when the cap began.
    first: Option<Begin>,
    /// What was when the cap began, or had come down by [`FALL`] last.
    begin: Option<Begin>,
    /// How often what is known of the other one was renewed since `begin`.
    renewed: f64,
    /// Windows since `first`.
    windows: u32,
    /// Those of them in which the cap was low.
    low_windows: u32,
    /// How often what is known of the other one was renewed in those.
    low_renewed: f64,
    /// Whether the cap was judged by that.
    is_judged: bool,
    /// Whether the cap stays for another one than those of `first` and `begin`.
    is_other: bool,
    /// Windows in a row in which the cap could not fall any further.
    stuck_windows: u32,
    given_up: Vec<GivenUp>,
}

suimon_model::saved_struct!(Effects {
    first,
    begin,
    renewed,
    windows,
    low_windows,
    low_renewed,
    is_judged,
    is_other,
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

    /// Takes the worst that `other` comes to. What is measured lags behind a rush.
    fn worsens(&mut self, other: &Need) {
        self.stretch = self.stretch.max(other.stretch);
        self.rate = self.rate.min(other.rate);
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
        let now = Begin::new(cap, own, other);
        self.first.get_or_insert(now).worsens(other);
        let begin = self.begin.get_or_insert(now);
        begin.worsens(other);
        let begin = *begin;
        if cap * FALL >= begin.cap || self.renewed < RENEWED_ONCE {
            return false;
        }
        (self.begin, self.renewed) = (Some(now), 0.0);
        !begin.has_helped(other) && other.error - own.error > VAIN_GAP
    }

    /// Returns whether a cap was in vain, of a service that has no more inside than it allows; asked
    /// once in each window. `is_stuck`: it cannot fall, as those who wait must be served.
    pub(super) fn is_vain(&mut self, is_stuck: bool, own: &Need, other: &Need) -> bool {
        if std::mem::take(&mut self.is_other) {
            for begin in [&mut self.first, &mut self.begin].into_iter().flatten() {
                (begin.stretch, begin.rate) = (other.stretch, other.rate);
            }
        }
        self.renewed += other.told;
        let is_low = self.is_low_in_vain(own, other);
        self.is_stuck_in_vain(is_stuck, own, other) || is_low
    }

    fn is_low_in_vain(&mut self, own: &Need, other: &Need) -> bool {
        let Some(first) = &self.first else { return false };
        self.windows = self.windows.saturating_add(1);
        if first.effort - own.effort < LOW * other.effort {
            return false;
        }
        self.low_windows = self.low_windows.saturating_add(1);
        self.low_renewed += other.told;
        let is_due = self.low_windows >= LOW_WINDOWS && self.low_renewed >= RENEWED_LEAST;
        if !is_due || std::mem::replace(&mut self.is_judged, true) {
            return false;
        }
        self.windows <= JUDGED_WITHIN && !first.has_helped(other)
    }

    fn is_stuck_in_vain(&mut self, is_stuck: bool, own: &Need, other: &Need) -> bool {
        let is_far_behind = other.error - own.error > VAIN_GAP;
        self.stuck_windows = if is_stuck && is_far_behind { self.stuck_windows.saturating_add(1) } else { 0 };
        let Some(first) = self.first.filter(|_| self.stuck_windows >= STUCK_WINDOWS) else { return false };
        let expected = (1.0 + (first.effort - own.effort) / other.effort).min(first.stretch);
        let seen = (first.stretch / other.stretch).max(other.rate / first.rate);
        self.stuck_windows = 0;
        expected >= EXPECTED_LEAST && ln(seen) < 0.5 * ln(expected)
    }

    /// Gives the cap up for `service`. `stays`: for another one there is a cap still.
    pub(super) fn give_up(&mut self, now: Instant, service: u32, stays: bool) {
        self.given_up.retain(|it| now < it.until + seconds(FORGOTTEN));
        let old = self.given_up.iter().position(|it| it.service == service);
        let lasts = old.map_or(GIVEN_UP, |index| self.given_up.swap_remove(index).next);
        let next = (2.0 * lasts).min(GIVEN_UP_MAX);
        self.given_up.push(GivenUp { service, until: now + seconds(lasts), next });
        let (first, begin) = (self.first, self.begin);
        self.end();
        if stays {
            (self.first, self.begin, self.is_other) = (first, begin, true);
        }
    }

    /// Forgets for whom it was given up: they wish for something else now.
    pub(super) fn forget_given_up(&mut self) {
        self.given_up.clear();
    }

    /// Takes note that there is no cap any more.
    pub(super) fn end(&mut self) {
        (self.first, self.begin, self.stuck_windows) = (None, None, 0);
        (self.renewed, self.windows, self.low_windows, self.low_renewed) = (0.0, 0, 0, 0.0);
        (self.is_judged, self.is_other) = (false, false);
    }
}

//! What a cap does for those it was lowered for, and for whom it is given up.
//!
//! *Law*. A cap helps another service if that one's requests take a tenth less long in the
//! application than at the worst since the cap began to fall for it; or if more of them are there,
//! which slows them, and a tenth more are done. Its waiting is no sign: a long queue takes its time.
//! It is asked once a cap has been low for [`LOW_WINDOWS`] windows, if that is so within
//! [`JUDGED_WITHIN`] windows of its first fall, and again each time it has come
//! down by [`FALL`] while the other one is still far behind. *Low* is a cap at half of where it began,
//! or one that gives up work of [`EFFECT_EXPECTED`] of what the other one does. A cap that does not
//! help is given up for a minute, the next time for two, at most for ten; an hour after that it is
//! forgotten. *Limits*: a service that does little of the work cannot help anybody by a tenth; where
//! parts of the work are wished only the second sort of low counts.

use super::need::Need;
use suimon_model::{Instant, seconds};

/// Fall of a cap, as a factor, from which it has had its effect.
const FALL: f64 = 8.0;
/// What it must do for the other one, as a share of what that one takes, or does.
const EFFECT_LEAST: f64 = 0.1;
/// Work given up, as a share of what the other one does, from which help must be seen.
const EFFECT_EXPECTED: f64 = 0.4;
/// The other one is still this much further behind: else the cap only swings around where it
/// belongs.
pub(super) const VAIN_GAP: f64 = 0.5;
/// Windows in which a cap is low until what is measured of the other one is all from them.
const LOW_WINDOWS: u32 = 8;
/// Windows since a cap began to fall in which it is judged by what was before: later on the other one
/// may have changed for its own reasons.
const JUDGED_WITHIN: u32 = 20;
/// For how long a cap is given up, seconds: at first, and at most; and after how long without that
/// it is forgotten.
const GIVEN_UP: f64 = 60.0;
const GIVEN_UP_MAX: f64 = 600.0;
const FORGOTTEN: f64 = 3600.0;

/// What a cap does for each of the other services.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    of: Vec<Effect>,
}

suimon_model::saved_struct!(Effects { of });

#[derive(Clone, Debug)]
struct Effect {
    /// The service that it is for, by its index.
    service: u32,
    /// Where the cap began to fall for it, until there is no cap.
    begin: Option<Begin>,
    /// Windows in which it was low.
    low_windows: u32,
    /// Windows since the cap began to fall for it.
    windows: u32,
    given_up_until: Instant,
    /// For how long it is given up the next time, seconds.
    gives_up_for: f64,
}

suimon_model::saved_struct!(Effect { service, begin, low_windows, windows, given_up_until, gives_up_for });

impl Effect {
    fn begin_anew(&mut self) {
        (self.begin, self.low_windows, self.windows) = (None, 0, 0);
    }
}

/// The cap, the work of its service, and the worst that the other one came to.
#[derive(Clone, Copy, Debug)]
struct Begin {
    cap: f64,
    effort: f64,
    stretch: f64,
    rate: f64,
}

suimon_model::saved_struct!(Begin { cap, effort, stretch, rate });

impl Begin {
    fn has_helped(&self, other: &Need) -> bool {
        let is_quicker = other.stretch <= (1.0 - EFFECT_LEAST) * self.stretch;
        // More of them in the application that take no longer are no help: they wait for others.
        let is_slower = other.stretch >= (1.0 + EFFECT_LEAST) * self.stretch;
        is_quicker || is_slower && other.rate >= (1.0 + EFFECT_LEAST) * self.rate
    }
}

impl Effects {
    /// Returns whether the cap is given up for `service`.
    pub(super) fn is_given_up(&self, now: Instant, service: u32) -> bool {
        self.of.iter().any(|effect| effect.service == service && now < effect.given_up_until)
    }

    /// Takes note that the cap falls, from `cap`, for the sake of `other`.
    pub(super) fn falls(&mut self, cap: f64, own: &Need, other: &Need) {
        let effect = self.entry(other.service);
        let begin = Begin { cap, effort: own.effort, stretch: other.stretch, rate: other.rate };
        // What is measured lags behind a rush: the slowest it came to counts, and what it did before
        // the cap was low.
        let begin = effect.begin.map_or(begin, |old| Begin {
            stretch: old.stretch.max(other.stretch),
            rate: if effect.low_windows == 0 { other.rate } else { old.rate },
            ..old
        });
        effect.begin = Some(begin);
    }

    /// Returns whether a cap that is to fall to `cap` was in vain so far.
    pub(super) fn is_vain(&mut self, cap: f64, own: &Need, other: &Need) -> bool {
        let effect = self.entry(other.service);
        if effect.low_windows < LOW_WINDOWS {
            return false;
        }
        let Some(begin) = effect.begin.filter(|begin| cap * FALL < begin.cap) else { return false };
        effect.begin = Some(Begin { cap, effort: own.effort, stretch: other.stretch, rate: other.rate });
        !begin.has_helped(other) && other.error - own.error > VAIN_GAP
    }

    /// Returns whether a cap that has been low for long enough has done nothing for `other`; asked
    /// once in each window. `own`: the one with the cap. `of_work`: whether parts of the work are
    /// wished.
    pub(super) fn is_vain_when_low(&mut self, cap: f64, own: &Need, other: &Need, of_work: bool) -> bool {
        let effect = self.entry(other.service);
        let Some(begin) = effect.begin else { return false };
        effect.windows = effect.windows.saturating_add(1);
        let could_help = begin.effort - own.effort > EFFECT_EXPECTED * other.effort;
        if !could_help && (of_work || 2.0 * cap > begin.cap) {
            return false;
        }
        effect.low_windows = effect.low_windows.saturating_add(1);
        effect.low_windows == LOW_WINDOWS && effect.windows <= JUDGED_WITHIN && !begin.has_helped(other)
    }

    pub(super) fn give_up(&mut self, now: Instant, service: u32) {
        let effect = self.entry(service);
        effect.given_up_until = now + seconds(effect.gives_up_for);
        effect.gives_up_for = (2.0 * effect.gives_up_for).min(GIVEN_UP_MAX);
        effect.begin_anew();
    }

    /// Takes note that there is no cap any more, and forgets what is long over.
    pub(super) fn end(&mut self, now: Instant) {
        self.of.retain(|effect| now < effect.given_up_until + seconds(FORGOTTEN));
        self.of.iter_mut().for_each(Effect::begin_anew);
    }

    fn entry(&mut self, service: u32) -> &mut Effect {
        let found = self.of.iter().position(|effect| effect.service == service);
        let index = found.unwrap_or_else(|| {
            self.of.push(Effect {
                service,
                begin: None,
                low_windows: 0,
                windows: 0,
                given_up_until: Instant::ORIGIN,
                gives_up_for: GIVEN_UP,
            });
            self.of.len() - 1
        });
        &mut self.of[index]
    }
}

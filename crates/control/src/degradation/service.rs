//! One service: its cap, how it moves, and when it is given up.

use super::COMMON_RISE;
use super::binding::Binding;
use super::estimate::{Estimate, ServiceSample};
use super::wish::{Amount, DegradationMode, ServiceWish};
use crate::credit::CAP_LEAST;
use suimon_model::real::exp;
use suimon_model::{Instant, Quantity, Reason, Record, ServiceId, Signals, Subject, seconds};

/// D up to which a service is not slowed.
pub(super) const CALM: f64 = 1.25;
/// Share of the patience within which what waits is served.
pub(super) const PATIENCE_SHARE: f64 = 0.8;
/// A cap that fell by this factor has had its effect if the one it was lowered for is faster by the
/// second.
pub(super) const EFFECT_FALL: f64 = 8.0;
const EFFECT_LEAST: f64 = 0.1;
/// That one is still this much further behind: else the cap only swings around where it belongs.
pub(super) const VAIN_GAP: f64 = 0.5;
/// Windows in a row from which it is no chance that the host is short, or a wish out of reach.
pub(super) const WINDOWS_TOLD: u32 = 5;
/// For how long a cap without effect is given up, seconds: at first, and at most.
const GIVEN_UP: f64 = 60.0;
const GIVEN_UP_MAX: f64 = 600.0;

/// A service, and what the law knows of it.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) wish: ServiceWish,
    pub(super) cap: Option<f64>,
    pub(super) window: ServiceSample,
    pub(super) slots: f64,
    pub(super) estimate: Estimate,
    pub(super) binding: Binding,
    /// Where the cap began, and how slow the one was that it began for; until that is judged.
    pub(super) effect: Option<Effect>,
    pub(super) given_up_until: Option<Instant>,
    pub(super) given_up_for: f64,
    /// Windows in a row in which it was far behind its wish, and nobody gave way any further.
    far_behind: u32,
}

suimon_model::saved_struct!(Service {
    wish,
    cap,
    window,
    slots,
    estimate,
    binding,
    effect,
    given_up_until,
    given_up_for,
    far_behind
});

#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    cap: f64,
    stretch: f64,
    rate: f64,
}

suimon_model::saved_struct!(Effect { cap, stretch, rate });

/// Where a service is with its wish, in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// D, and e of (4) or (5).
    pub(super) slowdown: f64,
    /// Seconds from arrival to the end, by Little's law, and completions per second.
    pub(super) response: f64,
    pub(super) rate: f64,
    /// Time in the application ÷ the same alone.
    pub(super) stretch: f64,
    pub(super) error: f64,
    /// Whether it is slowed at all.
    pub(super) is_behind: bool,
    /// Whether it has a cap.
    pub(super) is_capped: bool,
    /// Its floor as effort, none: 0, and what is aimed at for it; its ceiling, none: infinite.
    pub(super) wished_floor: f64,
    pub(super) floor: f64,
    pub(super) ceiling: f64,
    pub(super) effort: f64,
}

impl Service {
    pub(super) fn new(wish: ServiceWish) -> Self {
        Service {
            wish,
            cap: None,
            window: ServiceSample::default(),
            slots: f64::INFINITY,
            estimate: Estimate::default(),
            binding: Binding::Free,
            effect: None,
            given_up_until: None,
            given_up_for: GIVEN_UP,
            far_behind: 0,
        }
    }

    /// Says that its wish is out of reach, once that was so for some windows in a row.
    pub(super) fn tell_far_behind(&mut self, is_far_behind: bool) {
        self.far_behind = if is_far_behind { self.far_behind.saturating_add(1) } else { 0 };
        match self.binding {
            Binding::Free | Binding::Split if self.far_behind >= WINDOWS_TOLD => {
                self.binding = Binding::OutOfReach;
            }
            Binding::OutOfReach if !is_far_behind => {
                self.binding = if self.cap.is_some() { Binding::Split } else { Binding::Free };
            }
            _ => {}
        }
    }

    pub(super) fn adopt(&mut self, wish: &ServiceWish, mode: DegradationMode) {
        self.wish = wish.clone();
        self.effect = None;
        (self.given_up_until, self.given_up_for) = (None, GIVEN_UP);
        if mode == DegradationMode::Off {
            (self.cap, self.binding) = (None, Binding::Free);
        }
    }

    /// Returns whether it is slowed, and by nothing that this law does.
    pub(super) fn is_slowed_by_the_host(&self) -> bool {
        self.cap.is_none()
            && self.estimate.is_active()
            && self.estimate.slowdown().is_some_and(|slowdown| slowdown > CALM)
    }

    /// Returns `amount` as effort, if it is known what a request takes. `host`: the effort that a
    /// share is of.
    pub(super) fn effort_of(&self, amount: Amount, host: f64) -> Option<f64> {
        match amount {
            Amount::OfHost(share) => Some(share * host),
            Amount::PerSecond(rate) => self.estimate.service().map(|(_, work)| rate * work),
        }
    }

    #[allow(clippy::too_many_arguments)] // one decision, in one place
    pub(super) fn move_cap(
        &mut self,
        now: Instant,
        step: Option<f64>,
        binding: Binding,
        need: &Need,
        others: &[Need],
        patience: f64,
        mode: DegradationMode,
    ) {
        let (inside, waiting) = (self.estimate.inside(), self.estimate.waiting());
        let is_let_be = self.given_up_until.is_some();
        let Some(step) = step.filter(|step| *step > 0.0 || !is_let_be || binding == Binding::Ceiling) else {
            self.binding = match (is_let_be, self.cap) {
                (true, _) => Binding::NoEffect,
                (false, None) => Binding::Free,
                // What held it holds it no longer.
                (false, Some(_)) if matches!(self.binding, Binding::Ceiling | Binding::Lag) => Binding::Split,
                (false, Some(_)) => self.binding,
            };
            return;
        };
        let Some(mut cap) = self.cap.or((step < 0.0).then_some(inside)) else {
            return self.binding = if is_let_be { Binding::NoEffect } else { Binding::Free };
        };
        let is_draining = self.cap.is_some_and(|cap| inside > 1.25 * cap + 0.5);
        self.binding = binding;
        let neediest = others.iter().max_by(|a, b| a.error.total_cmp(&b.error));
        let gap = neediest.map_or(0.0, |other| other.error - need.error);
        if step < 0.0 && !is_draining {
            if let Some(Need { stretch, rate, .. }) = neediest.filter(|_| self.cap.is_none()) {
                self.effect = Some(Effect { cap: inside, stretch: *stretch, rate: *rate });
            }
            if let (Some(effect), Some(other)) = (&mut self.effect, neediest) {
                // What is measured lags behind a rush: the worst it came to counts.
                effect.stretch = effect.stretch.max(other.stretch);
                effect.rate = effect.rate.min(other.rate);
            }
            // A cap that is above what is there has no effect.
            cap = if waiting < 0.5 { cap.min(inside) } else { cap } * exp(step);
            if self.is_vain(cap, neediest) && gap > VAIN_GAP && binding != Binding::Ceiling {
                return self.give_up(now);
            }
        } else if step > 0.0 {
            cap *= exp(step);
        }
        cap = cap.max(CAP_LEAST);
        // Nobody is served in time at the cost of those who are not either.
        let others_are_in_time = neediest.is_none_or(|other| other.response <= PATIENCE_SHARE * patience);
        let is_bounded = match binding {
            Binding::Ceiling => false,
            // Whatever the wishes are: they have nothing to do with it.
            Binding::Lag => true,
            _ => mode == DegradationMode::Slowdown,
        };
        if is_bounded && others_are_in_time {
            let (service, _) = self.estimate.service().unwrap_or_default();
            let least = (inside + waiting) * service / (PATIENCE_SHARE * patience).max(1e-3);
            // What cannot be had with all slots either is no reason to keep them.
            if cap < least && least < self.slots {
                cap = least;
                self.binding = Binding::Patience;
            }
        }
        let is_above_all = cap >= self.slots || waiting < 0.5 && cap > 1.5 * inside + 1.0;
        let is_over_ceiling = need.effort > need.ceiling;
        if step > 0.0 && is_above_all && !is_over_ceiling {
            self.effect = None;
            self.binding = Binding::Free;
            return self.cap = None;
        }
        self.cap = Some(cap);
    }

    /// Returns whether the cap has come down far, and the one it was lowered for takes as long in
    /// the application as before and does no more. Its waiting is no sign: a long queue takes its
    /// time. Asked again each time the cap has come down as far.
    fn is_vain(&mut self, cap: f64, neediest: Option<&Need>) -> bool {
        let (Some(other), Some(effect)) = (neediest, self.effect) else { return false };
        if cap * EFFECT_FALL >= effect.cap {
            return false;
        }
        self.effect = Some(Effect { cap, stretch: other.stretch, rate: other.rate });
        other.stretch > (1.0 - EFFECT_LEAST) * effect.stretch
            && other.rate < (1.0 + EFFECT_LEAST) * effect.rate
    }

    fn give_up(&mut self, now: Instant) {
        self.given_up_until = Some(now + seconds(self.given_up_for));
        self.given_up_for = (2.0 * self.given_up_for).min(GIVEN_UP_MAX);
        self.binding = Binding::NoEffect;
        self.cap = None;
    }

    /// Raises the cap of a service at which nobody is, and ends it where it holds nobody any more.
    pub(super) fn raise_without_need(&mut self) {
        self.cap = self.cap.map(|cap| cap * exp(COMMON_RISE)).filter(|cap| *cap < 1.0);
        if self.cap.is_none() {
            (self.binding, self.effect) = (Binding::Free, None);
        }
    }

    pub(super) fn record(&self, at: Instant, id: ServiceId, old: f64, need: Option<&Need>) -> Record {
        let reason = match (self.binding, self.cap) {
            (Binding::NoEffect, _) => Reason::CapNoEffect,
            (_, None) => Reason::CapGone,
            (Binding::Ceiling, _) => Reason::CapCeiling,
            (Binding::Patience, _) => Reason::CapPatience,
            (Binding::Lag, _) => Reason::CapLag,
            (_, Some(cap)) if cap < old || old == 0.0 => Reason::CapLowered,
            (_, Some(_)) => Reason::CapRaised,
        };
        let told = need.map_or(Signals::none(), |need| {
            Signals::none()
                .with("slowdown", need.slowdown)
                .with("behind", need.error)
                .with("effort", need.effort)
        });
        let signals = told.with("inside", self.estimate.inside()).with("waiting", self.estimate.waiting());
        let new = self.cap.unwrap_or(0.0);
        Record { at, subject: Subject::Service(id), quantity: Quantity::Cap, old, new, reason, signals }
    }
}

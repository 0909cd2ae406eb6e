//! One service: its cap, how it moves, and when it is given up.

use super::COMMON_RISE;
use super::binding::Binding;
use super::effect::Effects;
use super::estimate::{Estimate, ServiceSample};
use super::need::Need;
use super::wish::{Amount, DegradationMode, ServiceWish};
use crate::credit::CAP_LEAST;
use suimon_model::real::exp;
use suimon_model::{Instant, Quantity, Reason, Record, ServiceId, Signals, Subject};

/// D up to which a service is not slowed.
pub(super) const CALM: f64 = 1.25;
/// Share of the patience within which what waits is served.
pub(super) const PATIENCE_SHARE: f64 = 0.8;
/// Windows in a row from which it is no chance that the host is short, or a wish out of reach.
pub(super) const WINDOWS_TOLD: u32 = 5;
/// A service, and what the law knows of it.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) wish: ServiceWish,
    pub(super) cap: Option<f64>,
    pub(super) window: ServiceSample,
    pub(super) slots: f64,
    pub(super) estimate: Estimate,
    pub(super) binding: Binding,
    /// What the cap does for others.
    pub(super) effects: Effects,
    /// Windows in a row in which it was far behind its wish, and nobody gave way any further.
    far_behind: u32,
}

suimon_model::saved_struct!(Service { wish, cap, window, slots, estimate, binding, effects, far_behind });

impl Service {
    pub(super) fn new(wish: ServiceWish) -> Self {
        Service {
            wish,
            cap: None,
            window: ServiceSample::default(),
            slots: f64::INFINITY,
            estimate: Estimate::default(),
            binding: Binding::Free,
            effects: Effects::default(),
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
        self.effects.forget_given_up();
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
        let is_let_be = others.iter().any(|other| other.is_given_up);
        let neediest = || others.iter().filter(|other| !other.is_given_up);
        let neediest =
            |helps: fn(&&Need) -> bool| neediest().filter(helps).max_by(|a, b| a.error.total_cmp(&b.error));
        // The one that it gives way to.
        let helped = neediest(|other| other.is_behind && !other.is_capped);
        // A ceiling and a late probe hold it whomever that helps.
        let is_its_own = |binding| matches!(binding, Binding::Ceiling | Binding::Lag);
        let is_draining = self.cap.is_some_and(|cap| inside > 1.25 * cap + 0.5);
        let is_asked = self.cap.is_some() && !is_draining && !is_its_own(self.binding);
        if let Some(other) = helped.filter(|_| is_asked)
            && self.effects.is_vain(self.binding == Binding::Patience, need, other)
        {
            return self.give_up(now, other, others);
        }
        let Some(step) = step else {
            self.binding = match (is_let_be, self.cap) {
                (true, None) => Binding::NoEffect,
                (false, None) => Binding::Free,
                // What held it holds it no longer.
                (_, Some(_)) if is_its_own(self.binding) => Binding::Split,
                (_, Some(_)) => self.binding,
            };
            return;
        };
        let Some(mut cap) = self.cap.or((step < 0.0).then_some(inside)) else {
            return self.binding = if is_let_be { Binding::NoEffect } else { Binding::Free };
        };
        self.binding = binding;
        if step < 0.0 && !is_draining {
            // A cap that is above what is there has no effect.
            cap = if waiting < 0.5 { cap.min(inside) } else { cap } * exp(step);
            if let Some(other) = neediest(|_| true).filter(|_| !is_its_own(binding)) {
                if self.cap.is_none() {
                    self.effects.begins(inside, need, other);
                }
                if self.effects.falls(cap, need, other) {
                    return self.give_up(now, other, others);
                }
            }
        } else if step > 0.0 {
            cap *= exp(step);
        }
        cap = cap.max(CAP_LEAST);
        // Nobody is served in time at the cost of those who are not either.
        let in_time = |other: &Need| other.response <= PATIENCE_SHARE * patience;
        let others_are_in_time = neediest(|_| true).is_none_or(in_time);
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
            self.effects.end();
            self.binding = Binding::Free;
            return self.cap = None;
        }
        self.cap = Some(cap);
    }

    /// Gives up helping `other`. Without another one to help there is no cap any more.
    fn give_up(&mut self, now: Instant, other: &Need, others: &[Need]) {
        let helps =
            |it: &Need| it.service != other.service && it.is_behind && !it.is_capped && !it.is_given_up;
        let stays = others.iter().any(helps);
        self.effects.give_up(now, other.service, stays);
        if !stays {
            (self.cap, self.binding) = (None, Binding::NoEffect);
        }
    }

    /// Raises the cap of a service at which nobody is, or of which nothing is known any more, and ends
    /// it where it holds nobody.
    pub(super) fn raise_without_need(&mut self) {
        let present = self.estimate.inside() + self.estimate.waiting();
        let holds = |cap: &f64| *cap < self.slots.min(present.max(1.0));
        self.cap = self.cap.map(|cap| cap * exp(COMMON_RISE)).filter(holds);
        if self.cap.is_none() {
            self.binding = if self.estimate.is_occupied() { Binding::Unknown } else { Binding::Free };
            self.effects.end();
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

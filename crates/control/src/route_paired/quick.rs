//! How long requests may stay in the application and be *quick*: queueing one costs more than it
//! saves, so of two equally good limits the higher one is taken.
//!
//! *Law*. A wait costs work of its own, and nobody notices a stay of 10 ms. So requests of light pages are quick for longer, as long as nobody else stays long:
//!
//! ```text
//! q = 10 ms      where s < 2 ms, and requests of no route in use stay for 10 ms            (1)
//! q = 2 ms       else
//! s: mean seconds in the company in which that is least
//! ```
//!
//! Company makes nothing quicker, so a page takes no longer than s alone; s is known wherever the
//! page was quick before, and does not grow with the limit, so what is light stays light as the
//! limit moves. The other condition is for pages that compute for longer: where requests share a
//! processor all are slowed alike, and beside a page of 0.1 ms that stays for 10 ms one of half a
//! second takes 50 s. Trials do not show that: the one route does more by what the other does less.
//! *Units*: seconds. *Regimes*: what (1) gave is **taken back** at once where a page comes that
//! would stay for 10 ms even if the light ones stayed for 2 ms. *Source*: ours.

use super::Paired;
use super::route::Route;
use super::trial::Trial;
use crate::window::Meter;
use suimon_model::{Instant, Reason, Record, RouteId, Signals};

/// The stay below which requests of any route are quick.
pub(super) const QUICK: f64 = 0.002;
/// The same of light ones, where nobody stays for longer.
const QUICK_LIGHT: f64 = 0.01;
/// Times [`QUICK`] that requests of light routes stay, by their own number alone, if (1) gave them
/// room.
const GIVEN: f64 = 2.0;
/// Times as long as that they stay at most where it is what they stay for.
const OWN_MAX: f64 = 3.0;
/// A route is in use until this many seconds after an answer.
const IN_USE_SECONDS: f64 = 20.0;

impl Paired {
    /// Returns the longest mean stay of requests at any route in use, seconds; infinite where one of
    /// them has not answered yet.
    pub(super) fn longest_stay(&self, now: Instant) -> f64 {
        let in_use = self.routes.iter().filter(|route| route.is_in_use(now));
        in_use.map(|route| route.service.get().unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
    }

    /// Returns the stay below which requests of the route in `trial` are quick, as it is at the
    /// higher one of its limits: all may stay longer there by as much as it is higher.
    pub(super) fn quick_until_in(&self, now: Instant, trial: &Trial) -> f64 {
        let route = &self.routes[trial.route.index()];
        let grown = f64::from(trial.higher()) / f64::from(route.limit);
        route.quick_until(self.longest_stay(now) * grown.max(1.0))
    }

    /// Takes back what (1) gave a light route, where requests of another would stay too long even if
    /// the light ones stayed for [`QUICK`]. No trial would: where all light requests have a slot
    /// none of them waits, and the limit is not tried.
    pub(super) fn take_back(&mut self, now: Instant, id: RouteId, meter: &Meter, out: &mut Vec<Record>) {
        let route = &self.routes[id.index()];
        let stay = route.service.get().unwrap_or(0.0);
        if stay < QUICK || route.alone_if_light().is_none() {
            return;
        }
        // By what stays now, not by the best rate: that has faded where few came for long.
        let limit = (f64::from(route.base) * QUICK / stay).round() as u32;
        let limit = limit.max(self.trusted_cores());
        if limit >= route.base {
            return;
        }
        let light = self.routes.iter().filter_map(|route| Some((route, route.alone_if_light()?)));
        let work: f64 = light.map(|(route, alone)| route.in_service.len() as f64 * alone).sum();
        let own = work / f64::from(self.trusted_cores());
        // What stays much longer than that waits for something else, and needs its slots.
        if own < GIVEN * QUICK || stay > OWN_MAX * own {
            return;
        }
        let others = (0u32..).zip(&self.routes).filter(|(other, _)| RouteId(*other) != id);
        let longest = others.filter_map(|(_, other)| other.stay(now)).fold(0.0, f64::max);
        if longest * QUICK / stay < QUICK_LIGHT {
            return;
        }
        self.trial.take_if(|trial| trial.route == id);
        let route = &mut self.routes[id.index()];
        (route.slow_start, route.up) = (None, false);
        let signals = Signals::none()
            .with("stay_seconds", stay)
            .with("others_stay_seconds", longest)
            .with("in_flight", meter.in_flight() as f64);
        self.set_base(now, id, limit, Reason::TakenBack, signals, out);
    }
}

impl Route {
    /// Returns q, where `longest` is the longest stay at any route in use.
    pub(super) fn quick_until(&self, longest: f64) -> f64 {
        if longest < QUICK_LIGHT && self.alone_if_light().is_some() { QUICK_LIGHT } else { QUICK }
    }

    /// Returns s of a light page. Where many paths share a route, s is that of the quickest, and says
    /// nothing of the others.
    fn alone_if_light(&self) -> Option<f64> {
        self.times.alone_at_most().filter(|seconds| *seconds < QUICK && !self.is_mixed)
    }

    /// Returns how long its requests stay, if it is in use: so far, where none was answered yet.
    fn stay(&self, now: Instant) -> Option<f64> {
        let oldest = self.in_service.first_key_value().map(|(_, inside)| now.secs_since(inside.since));
        self.service.get().filter(|_| self.is_in_use(now)).or(oldest)
    }

    fn is_in_use(&self, now: Instant) -> bool {
        let answered = self.answered_at.is_some_and(|at| now.secs_since(at) < IN_USE_SECONDS);
        answered || !self.in_service.is_empty()
    }
}

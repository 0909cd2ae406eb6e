//! The service-second credit: holds the mean number of requests in the application at a number that
//! need not be whole.
//!
//! *Law*. With the cap m and n requests in the application,
//!
//! ```text
//! dc/dt = m − n                                 c: credit; with w, the seconds that a request takes,            (1)
//!                                                −8 max(n, ⌈m⌉) w ≤ c ≤ max(1/2, m/2) w
//! one may start while n < ⌈m⌉ and c ≥ 0                                                                          (2)
//! ```
//!
//! Over any time that ends with c ≥ 0 the requests in the application have taken at most m seconds a
//! second and the upper bound, but for what single ones took beyond eight times w: that is not made
//! up for, else one export would keep its service waiting for hours. A cap below one is a pause
//! after each request: one that took S is followed by S · (1/m − 1) without any. Where the application
//! pauses inside its requests n counts those that work: of ⌈m⌉ that each pause ⌈m⌉/m − 1 seconds for
//! each second of work, m do. *Units*: requests, seconds, request-seconds. *Limits*: m ≥ [`CAP_LEAST`]. *Source*: LAWS §4.3 of the design; a leaky
//! bucket of service time.

use crate::pauses::PauseShare;
use suimon_model::{Duration, Instant, seconds};

/// The least cap: one request at a time, and a pause of 99 times what it took.
pub const CAP_LEAST: f64 = 0.01;

/// Requests, for each that may be in the application at once, whose time is made up for at most.
const DEBT_MAX: f64 = 8.0;

/// Credit that a rounded wake-up may fall short by, request-seconds.
const GRAIN: f64 = 1e-6;

/// The credit of one service.
#[derive(Clone, Debug)]
pub struct Credit {
    cap: Option<f64>,
    credit: f64,
    at: Instant,
    in_flight: usize,
    /// Of those in flight, how many are expected to pause, in millionths.
    pausing: u64,
    service: f64,
}

suimon_model::saved_struct!(Credit { cap, credit, at, in_flight, pausing, service }, |it: &Credit| {
    it.cap.is_none_or(|cap| cap.is_finite() && cap >= CAP_LEAST)
        && it.credit.is_finite()
        && it.service.is_finite()
        && PauseShare::sum(it.pausing) <= it.in_flight as f64
        && it.service >= 0.0
});

impl Credit {
    /// Returns a credit without a cap, with nothing in the application.
    pub fn new(now: Instant) -> Self {
        Credit { cap: None, credit: 0.0, at: now, in_flight: 0, pausing: 0, service: 0.0 }
    }

    /// Returns the cap in force; `None`: as many as there are.
    pub fn cap(&self) -> Option<f64> {
        self.cap
    }

    /// Returns how many are in the application.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns how many of them are expected to pause, in millionths.
    pub fn pausing(&self) -> u64 {
        self.pausing
    }

    /// Puts another cap in force, at least [`CAP_LEAST`]. Credit and debt stay, and begin at zero
    /// where there was no cap.
    pub fn set_cap(&mut self, now: Instant, cap: Option<f64>) {
        self.advance(now);
        if self.cap.is_none() {
            self.credit = 0.0;
        }
        self.cap = cap.map(|cap| cap.max(CAP_LEAST));
        self.credit = self.credit.min(self.credit_max());
    }

    /// Sets the seconds that a request takes, which bound the credit.
    pub fn set_service(&mut self, now: Instant, service: f64) {
        self.advance(now);
        self.service = service.max(0.0);
    }

    /// Takes note that a request went to the application, which is expected to pause for `share` of
    /// its time there.
    pub fn enters(&mut self, now: Instant, share: PauseShare) {
        self.advance(now);
        self.in_flight += 1;
        self.pausing += share.millionths();
    }

    /// Takes note that one is there no longer.
    pub fn leaves(&mut self, now: Instant, share: PauseShare) {
        self.advance(now);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.pausing = self.pausing.saturating_sub(share.millionths());
    }

    /// Takes note that requests paused for so many seconds more than was expected of them.
    pub fn paused_more(&mut self, now: Instant, seconds: f64) {
        self.advance(now);
        if let Some(cap) = self.cap {
            let least = self.credit_min(cap).min(self.credit);
            self.credit = (self.credit + seconds).min(self.credit_max()).max(least);
        }
    }

    /// Returns whether one may start, as (2) says.
    pub fn may_start(&mut self, now: Instant) -> bool {
        self.advance(now);
        self.has_slot() && (self.cap.is_none() || self.credit >= -GRAIN)
    }

    /// Returns when one may start if nothing else happens; `None`: one may now, or not before one
    /// ends.
    pub fn next_start(&self) -> Option<Instant> {
        let cap = self.cap.filter(|_| self.has_slot())?;
        let missing = -self.credit - GRAIN;
        // Rounded up, so that the credit really is there then.
        let grows = cap - self.working();
        (missing > 0.0 && grows > 0.0).then(|| self.at + seconds(missing / grows) + Duration::from_nanos(1))
    }

    /// Returns the pause after a request that takes `service` seconds, in seconds; 0 where the cap
    /// is one or more.
    pub fn pause(&self, service: f64) -> f64 {
        self.cap.map_or(0.0, |cap| service * (1.0 / cap - 1.0).max(0.0))
    }

    /// Returns the ratio at which ⌈m⌉ requests that pause inside keep to the cap: seconds of pause for
    /// each second of work; 0 without a cap.
    pub fn ratio_inside(&self) -> f64 {
        self.cap.map_or(0.0, |cap| cap.ceil() / cap - 1.0)
    }

    /// Returns how many of those in the application are expected to work.
    fn working(&self) -> f64 {
        self.in_flight as f64 - PauseShare::sum(self.pausing)
    }

    fn has_slot(&self) -> bool {
        self.cap.is_none_or(|cap| (self.in_flight as f64) < cap.ceil())
    }

    fn credit_max(&self) -> f64 {
        self.cap.map_or(0.0, |cap| (0.5 * cap).max(0.5) * self.service)
    }

    /// Returns the credit that it does not fall below; what is owed already stays.
    fn credit_min(&self, cap: f64) -> f64 {
        // Before anything is known of what a request takes, all is made up for.
        let inside = cap.ceil().max(self.in_flight as f64);
        if self.service > 0.0 { -DEBT_MAX * inside * self.service } else { f64::MIN }
    }

    fn advance(&mut self, now: Instant) {
        if let Some(cap) = self.cap {
            let passed = now.secs_since(self.at);
            let credit = self.credit + (cap - self.working()) * passed;
            self.credit = credit.min(self.credit_max()).max(self.credit_min(cap).min(self.credit));
        }
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: PauseShare = PauseShare::NONE;

    fn at(secs: f64) -> Instant {
        Instant::ORIGIN + seconds(secs)
    }

    #[test]
    fn a_cap_below_one_is_a_pause_after_each_request() {
        let mut credit = Credit::new(at(0.0));
        credit.set_cap(at(0.0), Some(0.25));
        assert!(credit.may_start(at(0.0)), "the first one has nothing to wait for");
        credit.enters(at(0.0), NONE);
        assert!(!credit.may_start(at(0.1)));
        assert_eq!(credit.next_start(), None, "not before it ends");
        credit.leaves(at(0.5), NONE);
        let next = credit.next_start().expect("it has a pause to make").secs_since(at(0.0));
        assert!((next - 2.0).abs() < 1e-4, "0.5 s, then 0.5 · (1/0.25 − 1) s: {next}");
        assert!(!credit.may_start(at(1.99)) && credit.may_start(at(next)));
        assert!((credit.pause(0.5) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_whole_cap_is_a_limit() {
        let mut credit = Credit::new(at(0.0));
        credit.set_cap(at(0.0), Some(2.0));
        credit.enters(at(0.0), NONE);
        assert!(credit.may_start(at(1.0)));
        credit.enters(at(1.0), NONE);
        assert!(!credit.may_start(at(100.0)));
        assert_eq!(credit.next_start(), None);
        credit.leaves(at(100.0), NONE);
        assert!(credit.may_start(at(100.0)), "two for any time owe nothing");
    }

    #[test]
    fn without_a_cap_everybody_starts_and_nothing_is_owed_later() {
        let mut credit = Credit::new(at(0.0));
        (0..50).for_each(|_| credit.enters(at(0.0), NONE));
        assert!(credit.may_start(at(9.0)) && credit.next_start().is_none());
        credit.set_cap(at(9.0), Some(1.0));
        assert!(!credit.may_start(at(9.0)));
        (0..50).for_each(|_| credit.leaves(at(9.0), NONE));
        assert!(credit.may_start(at(9.0)), "what was there before the cap is not held against it");
    }

    #[test]
    fn pauses_inside_are_time_in_which_nothing_of_the_cap_is_used() {
        let mut credit = Credit::new(at(0.0));
        credit.set_cap(at(0.0), Some(0.25));
        let share = PauseShare::of(credit.ratio_inside());
        assert!((credit.ratio_inside() - 3.0).abs() < 1e-9);
        credit.enters(at(0.0), share);
        assert!(!credit.may_start(at(1.0)), "one at a time all the same");
        credit.leaves(at(2.0), share);
        assert!(credit.may_start(at(2.0)), "half a second of work and its pause are over");

        credit.enters(at(2.0), share);
        credit.leaves(at(2.5), share);
        credit.paused_more(at(2.5), -0.75 * 0.5);
        let next = credit.next_start().expect("it did not pause at all").secs_since(at(2.0));
        assert!((next - 2.0).abs() < 1e-3, "so its pause comes after it: {next}");
    }

    #[test]
    fn of_those_that_a_cap_above_one_lets_in_the_rest_is_paused() {
        let mut credit = Credit::new(at(0.0));
        credit.set_cap(at(0.0), Some(1.5));
        let share = PauseShare::of(credit.ratio_inside());
        assert!((credit.ratio_inside() - 1.0 / 3.0).abs() < 1e-9);
        (0..2).for_each(|_| credit.enters(at(0.0), share));
        credit.leaves(at(9.0), share);
        assert!(credit.may_start(at(9.0)), "two that work three quarters of the time are one and a half");
    }

    #[test]
    fn one_very_long_request_does_not_keep_the_others_waiting_for_hours() {
        let mut credit = Credit::new(at(0.0));
        credit.set_service(at(0.0), 0.35);
        credit.set_cap(at(0.0), Some(0.3));
        credit.enters(at(0.0), NONE);
        credit.leaves(at(600.0), NONE);
        let pause = credit.next_start().expect("it has a pause to make").secs_since(at(600.0));
        assert!((pause - 8.0 * 0.35 / 0.3).abs() < 1e-3, "{pause} s");
    }

    proptest! {
        /// Requests that start as soon as they may, of any length, under caps that change. What is
        /// not made up for is beyond the most that is.
        #[test]
        fn no_more_is_in_the_application_than_the_cap_allows(
            caps in prop::collection::vec((0.02f64..4.0, 0.1f64..20.0), 1..6),
            takes in prop::collection::vec(0.01f64..5.0, 1..40),
            service in 0.0f64..3.0,
        ) {
            let (mut credit, mut now, mut ends) = (Credit::new(at(0.0)), at(0.0), Vec::<Instant>::new());
            let (mut allowed, mut taken, mut most, mut lengths) = (0.0, 0.0, 0.0f64, takes.iter().cycle());
            let mut forgiven = 0.0;
            credit.set_service(now, service);
            for (cap, lasts) in caps {
                credit.set_cap(now, Some(cap));
                let until = now + seconds(lasts);
                most = most.max((0.5 * cap).max(0.5) * service);
                while now < until {
                    while credit.may_start(now) {
                        // Nothing is owed when one starts: so far it was no more than was allowed.
                        prop_assert!(taken <= allowed + most + forgiven + 1e-3, "{taken} of {allowed}, {forgiven} forgiven");
                        credit.enters(now, NONE);
                        ends.push(now + seconds(*lengths.next().unwrap()));
                    }
                    let next = ends.iter().copied().chain(credit.next_start()).chain([until]).min().unwrap();
                    let passed = next.secs_since(now);
                    allowed += cap * passed;
                    taken += credit.in_flight() as f64 * passed;
                    now = next;
                    let inside = credit.in_flight() as f64;
                    let exact = credit.credit + (cap - inside) * passed;
                    credit.advance(now);
                    if credit.credit > exact + 1e-9 {
                        forgiven += credit.credit - exact;
                        let least = 8.0 * inside.max(cap.ceil()) * service;
                        prop_assert!(credit.credit <= -least + 1e-9, "{} owed of {least}", -credit.credit);
                    }
                    let over = ends.iter().filter(|end| **end <= now).count();
                    ends.retain(|end| *end > now);
                    (0..over).for_each(|_| credit.leaves(now, NONE));
                }
            }
        }

        /// Whoever waits starts: the next moment to look is there, and one starts then.
        #[test]
        fn nobody_waits_for_ever(cap in 0.01f64..4.0, takes in 0.001f64..5.0, service in 0.0f64..3.0) {
            let (mut credit, mut now) = (Credit::new(at(0.0)), at(0.0));
            credit.set_service(now, service);
            credit.set_cap(now, Some(cap));
            for _ in 0..20 {
                if !credit.may_start(now) {
                    let next = credit.next_start().expect("nothing is in the application");
                    prop_assert!(next > now && next.secs_since(now) <= takes * (1.0 / cap - 1.0) + 1e-3);
                    now = next;
                    prop_assert!(credit.may_start(now), "woken in vain");
                }
                credit.enters(now, NONE);
                now += seconds(takes);
                credit.leaves(now, NONE);
            }
        }
    }
}

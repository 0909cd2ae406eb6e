//! How long there is still to wait.
//!
//! *Law*. With P present ahead, μ admissions per second and each waiting visitor giving up at rate
//! λ, dP/dt = −μ − λP, and P is 0 after
//!
//! ```text
//! low  = ln(1 + λP/μ) / λ      (1)      people go on giving up as they did
//! high = P/μ                   (2)      nobody gives up any more
//! ```
//!
//! *Signals*: μ from claims while visitors wait, or else what the session law would admit; λ from
//! those heard of a period ago and not since, less those who came back; P less those who have gone
//! and are still counted. *Units*: people, seconds. *Limits*: μ forgets in [`PACE_SECONDS`], λ in
//! some three periods. *Source*: measured over simulated crowds, (2) alone is 12 to 41 % too long
//! in the median, (1) 2 to 10 %.

use suimon_model::real::{exp, ln};

/// How long claims are remembered in μ, seconds.
const PACE_SECONDS: f64 = 20.0;
/// Until claims have been counted for this long, the session law's rate counts, seconds.
const PACE_KNOWN: f64 = 10.0;
/// Weight of the newest period in λ.
const LEAVING_WEIGHT: f64 = 0.3;
/// The slowest rate assumed, per second: a wait has an end.
const PACE_MIN: f64 = 1e-4;

/// What is known of the rate of the line.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Estimate {
    /// Claims per second, and over how many seconds they were counted.
    claims: f64,
    counted: f64,
    /// What the session law would admit, per second.
    allowed: f64,
    /// λ, per second, and the periods it was learned from.
    leaving: f64,
    periods: u32,
}

suimon_model::saved_struct!(Estimate { claims, counted, allowed, leaving, periods });

impl Estimate {
    /// Returns what is known if λ was this before.
    pub(crate) fn with_leaving(leaving: f64) -> Self {
        Estimate { leaving, periods: u32::from(leaving > 0.0), ..Estimate::default() }
    }

    /// Folds in `claims` of the last `seconds`, in which visitors waited, or none did.
    pub(crate) fn pace(&mut self, claims: u64, seconds: f64, waited: bool, allowed: f64) {
        self.allowed = allowed;
        if !waited || seconds <= 0.0 {
            self.counted = 0.0;
            return;
        }
        self.counted += seconds;
        // The plain mean at first.
        let weight = (1.0 - exp(-seconds / PACE_SECONDS)).max(seconds / self.counted);
        self.claims += weight * (claims as f64 / seconds - self.claims);
    }

    /// Folds in a period of this many `seconds`: of the `heard` visitors of the period before,
    /// `lost` were not heard of in it; and `returned` came back.
    pub(crate) fn period(&mut self, heard: u64, lost: u64, returned: u64, seconds: f64) {
        if heard == 0 || seconds <= 0.0 {
            return;
        }
        self.periods = self.periods.saturating_add(1);
        let weight = LEAVING_WEIGHT.max(1.0 / f64::from(self.periods));
        let rate = lost.saturating_sub(returned) as f64 / (heard as f64 * seconds);
        self.leaving += weight * (rate - self.leaving);
    }

    /// Returns μ.
    pub(crate) fn per_second(&self) -> f64 {
        self.known().max(PACE_MIN)
    }

    /// Returns whether anything is known of μ.
    pub(crate) fn is_known(&self) -> bool {
        self.known() > 0.0
    }

    fn known(&self) -> f64 {
        if self.counted >= PACE_KNOWN { self.claims } else { self.allowed }
    }

    /// Returns λ.
    pub(crate) fn leaving(&self) -> f64 {
        self.leaving
    }

    /// Returns how many of `ahead` are still there if leavers are counted for another `unheard`
    /// seconds: e^(−λ · unheard) of them.
    pub(crate) fn still_there(&self, ahead: u64, unheard: f64) -> f64 {
        ahead as f64 * exp(-self.leaving * unheard)
    }

    /// Returns (1) and (2) for `ahead`, where a lane has this `share` of the admissions, seconds.
    pub(crate) fn wait(&self, ahead: f64, share: f64) -> (f64, f64) {
        self.at(ahead, self.per_second() * share)
    }

    /// Returns (1) for the rate that the session law `allowed`, seconds: the rate of claims is too
    /// low where there were too few people to claim.
    pub(crate) fn soonest(&self, ahead: f64, share: f64, allowed: f64) -> f64 {
        self.at(ahead, self.per_second().max(allowed) * share).0
    }

    fn at(&self, ahead: f64, per_second: f64) -> (f64, f64) {
        let high = ahead / per_second.max(PACE_MIN);
        let given_up = self.leaving * high;
        // For small λ the series of (1) begins with P/μ, and its logarithm has no digits left.
        let low = if given_up < 1e-6 { high } else { ln(1.0 + given_up) / self.leaving };
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_giving_up_makes_the_range_a_point() {
        let mut estimate = Estimate::default();
        estimate.pace(0, 0.25, false, 2.0);
        assert_eq!(estimate.wait(100.0, 1.0), (50.0, 50.0));
        assert_eq!(
            estimate.wait(100.0, 0.5),
            (100.0, 100.0),
            "a lane with half of the turns waits twice as long"
        );
    }

    #[test]
    fn those_who_give_up_shorten_the_wait_as_the_differential_equation_says() {
        let mut estimate = Estimate::default();
        estimate.pace(0, 0.25, false, 50.0);
        // A tenth of those present are lost each minute.
        (0..20).for_each(|_| estimate.period(1000, 100, 0, 60.0));
        let (low, high) = estimate.wait(50_000.0, 1.0);
        assert!((high - 1000.0).abs() < 1e-9);
        let (mut left, mut seconds) = (50_000.0, 0.0);
        while left > 0.0 {
            left -= 0.01 * (50.0 + left * 0.1 / 60.0);
            seconds += 0.01;
        }
        assert!((low / seconds - 1.0).abs() < 0.01, "{low} by the formula, {seconds} step by step");
    }

    #[test]
    fn claims_are_believed_once_they_were_counted_for_a_while_and_only_while_somebody_waits() {
        let mut estimate = Estimate::default();
        (0..40).for_each(|_| estimate.pace(1, 0.5, true, 10.0));
        assert!((estimate.per_second() - 2.0).abs() < 1e-9);
        estimate.pace(0, 0.5, false, 10.0);
        assert!(
            (estimate.per_second() - 10.0).abs() < 1e-9,
            "what few asked for says nothing of what could be"
        );
    }

    #[test]
    fn whoever_comes_back_has_not_given_up() {
        let mut estimate = Estimate::default();
        estimate.period(1000, 100, 100, 60.0);
        assert!(estimate.leaving() == 0.0);
    }
}

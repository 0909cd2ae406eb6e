//! Efforts as if the core had been equally fast all the time.
//!
//! ```text
//! ln effort = a_setup − β · ln (cost of the yardstick)
//! ```
//!
//! β is fitted to windows of all setups together, each setup about its own mean, so that no setup's
//! own effort goes into it.

use suimon_statistics::mean;

/// How the effort follows the speed of the core.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Speed {
    /// What the yardstick cost on average, processor seconds.
    usual_s: f64,
    /// β.
    exponent: f64,
    /// How much of the variation within setups it explains: r².
    explained: f64,
}

impl Speed {
    /// Fits it to the windows of each setup: effort and cost of the yardstick. Without windows, or
    /// variation, no effort is corrected.
    pub(super) fn of(setups: impl Iterator<Item = Vec<(f64, f64)>>) -> Self {
        let (mut both, mut costs, mut all, mut usual) = (0.0, 0.0, 0.0, vec![]);
        for windows in setups {
            let seen = windows.iter().filter(|(effort, cost)| *effort > 0.0 && *cost > 0.0);
            let logs: Vec<(f64, f64)> = seen.map(|(effort, cost)| (effort.ln(), cost.ln())).collect();
            let mean_of = |of: fn(&(f64, f64)) -> f64| mean(&logs.iter().map(of).collect::<Vec<_>>());
            let (effort_mean, cost_mean) = (mean_of(|window| window.0), mean_of(|window| window.1));
            for (effort, cost) in &logs {
                both += (effort - effort_mean) * (cost - cost_mean);
                costs += (cost - cost_mean) * (cost - cost_mean);
                all += (effort - effort_mean) * (effort - effort_mean);
            }
            usual.extend(logs.iter().map(|window| window.1));
        }
        if costs <= 0.0 || all <= 0.0 {
            return Speed { usual_s: 1.0, exponent: 0.0, explained: 0.0 };
        }
        Speed { usual_s: mean(&usual).exp(), exponent: -both / costs, explained: both * both / (costs * all) }
    }

    /// Returns an effort, reached while the yardstick cost this much, as it had been at the usual
    /// speed.
    pub(super) fn even(self, effort: f64, cost: f64) -> f64 {
        if cost > 0.0 { effort * (self.exponent * (cost / self.usual_s).ln()).exp() } else { effort }
    }

    /// Says what was fitted.
    pub(super) fn words(self) -> String {
        format!(
            "a fixed piece of work costs {:.2} ms there; effort follows its inverse to the power of {:.2}, which\nexplains {:.0} % of the variation within setups",
            1e3 * self.usual_s,
            self.exponent,
            100.0 * self.explained
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_core_takes_is_given_back_and_what_a_setup_takes_is_not() {
        let effort = |at_best: f64, cost: f64| at_best / (cost * cost);
        let windows = |at_best, costs: [f64; 3]| costs.map(|cost| (effort(at_best, cost), cost)).to_vec();
        let setups = [windows(1.0, [1.0, 1.05, 1.1]), windows(0.9, [1.3, 1.2, 1.4]), vec![]];
        let speed = Speed::of(setups.into_iter());
        assert!((speed.exponent - 2.0).abs() < 1e-9 && speed.explained > 0.99, "{speed:?}");
        let reached = speed.even(effort(0.9, 1.5), 1.5) / speed.even(effort(1.0, 1.0), 1.0);
        assert!((reached - 0.9).abs() < 1e-9, "{reached}");
    }

    #[test]
    fn without_a_yardstick_efforts_are_what_they_are() {
        let speed = Speed::of(std::iter::once(vec![(1.0, 0.0), (0.5, 0.0)]));
        assert_eq!(speed.even(0.7, 0.0).to_bits(), 0.7_f64.to_bits());
    }
}

//! Efforts as if the core had been equally fast all the time.
//!
//! ```text
//! ln jobs = a − β · ln (cost of the yardstick)
//! ```
//!
//! β is fitted to each job by itself, straight to the application, where no setup takes part; each
//! job about its own mean. What a setup itself does to the cost of the yardstick does go into its
//! even effort: the cost is in the table.

use suimon_statistics::mean;

/// How the effort follows the speed of the core.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Speed {
    /// What the yardstick usually costs, processor seconds.
    usual_s: f64,
    /// β.
    exponent: f64,
    /// How much of the variation of each job by itself it explains: r².
    explained: f64,
}

impl Speed {
    /// Fits it to the windows of each job: jobs done, and cost of the yardstick, which is `usual_s`
    /// otherwise. Without windows, or variation, no effort is corrected.
    pub(super) fn of(jobs: impl Iterator<Item = Vec<(f64, f64)>>, usual_s: f64) -> Self {
        let (mut both, mut costs, mut all) = (0.0, 0.0, 0.0);
        for windows in jobs {
            let seen = windows.iter().filter(|(done, cost)| *done > 0.0 && *cost > 0.0);
            let logs: Vec<(f64, f64)> = seen.map(|(done, cost)| (done.ln(), cost.ln())).collect();
            let mean_of = |of: fn(&(f64, f64)) -> f64| mean(&logs.iter().map(of).collect::<Vec<_>>());
            let (done_mean, cost_mean) = (mean_of(|window| window.0), mean_of(|window| window.1));
            for (done, cost) in &logs {
                both += (done - done_mean) * (cost - cost_mean);
                costs += (cost - cost_mean) * (cost - cost_mean);
                all += (done - done_mean) * (done - done_mean);
            }
        }
        if costs <= 0.0 || all <= 0.0 {
            return Speed { usual_s, exponent: 0.0, explained: 0.0 };
        }
        Speed { usual_s, exponent: -both / costs, explained: both * both / (costs * all) }
    }

    /// Returns an effort, reached while the yardstick cost this much, as it had been at the usual
    /// speed.
    pub(super) fn even(self, effort: f64, cost: f64) -> f64 {
        if cost > 0.0 { effort * (self.exponent * (cost / self.usual_s).ln()).exp() } else { effort }
    }

    /// Says what was fitted.
    pub(super) fn words(self) -> String {
        format!(
            "What is done follows the inverse of the yardstick's cost to the power of {:.2}, which explains\n{:.0} % of how it varies",
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
        let jobs = [windows(200.0, [1.0, 1.05, 1.1]), windows(9.0, [1.3, 1.2, 1.4]), vec![]];
        let speed = Speed::of(jobs.into_iter(), 1.2);
        assert!((speed.exponent - 2.0).abs() < 1e-9 && speed.explained > 0.99, "{speed:?}");
        let reached = speed.even(effort(0.9, 1.5), 1.5) / speed.even(effort(1.0, 1.0), 1.0);
        assert!((reached - 0.9).abs() < 1e-9, "{reached}");
    }

    #[test]
    fn without_a_yardstick_efforts_are_what_they_are() {
        let speed = Speed::of(std::iter::once(vec![(1.0, 0.0), (0.5, 0.0)]), 1.0);
        assert_eq!(speed.even(0.7, 0.0).to_bits(), 0.7_f64.to_bits());
    }
}

//! A summary of durations.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use suimon_statistics::Histogram;

/// A summary of durations, in seconds. All zero if there were none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_s: f64,
    /// Least.
    pub min_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 95th percentile.
    pub p95_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Greatest.
    pub max_s: f64,
}

impl Quantiles {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let secs = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        Quantiles {
            count: histogram.count(),
            mean_s: secs(histogram.mean()),
            min_s: secs(histogram.min()),
            p50_s: secs(histogram.quantile(0.50)),
            p90_s: secs(histogram.quantile(0.90)),
            p95_s: secs(histogram.quantile(0.95)),
            p99_s: secs(histogram.quantile(0.99)),
            max_s: secs(histogram.max()),
        }
    }

    /// Returns the exact summary of these durations.
    pub(crate) fn of_seconds(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let count = seconds.len();
        let at = |per_cent: usize| seconds.get(count * per_cent / 100).copied().unwrap_or_default();
        Quantiles {
            count: count as u64,
            mean_s: seconds.iter().sum::<f64>() / count.max(1) as f64,
            min_s: at(0),
            p50_s: at(50),
            p90_s: at(90),
            p95_s: at(95),
            p99_s: at(99),
            max_s: seconds.last().copied().unwrap_or_default(),
        }
    }
}

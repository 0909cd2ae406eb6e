//! Numbers of a table's cells.

use suimon_statistics::{median, quantile};

const MEGA: f64 = 1e6;

/// Returns the megabytes of live objects beyond those of an idle application.
pub(super) fn held_mb(idle_bytes: u64, held_bytes: &[u64]) -> f64 {
    let bytes: Vec<f64> = held_bytes.iter().map(|bytes| *bytes as f64).collect();
    (median(&bytes) - idle_bytes as f64).max(0.0) / MEGA
}

/// Returns the median of all rounds, with the least and the most of several.
pub(super) fn spread(values: &[f64], digits: usize) -> String {
    let (low, high) = (quantile(values, 0.0), quantile(values, 1.0));
    match values.len() {
        0 => "–".into(),
        1 => format!("{:.digits$}", values[0]),
        _ => format!("{:.digits$} ({low:.digits$}–{high:.digits$})", median(values)),
    }
}

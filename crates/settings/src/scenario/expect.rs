//! What is expected.

use crate::journey::values::Reader;
use crate::known::KnownKeys;
use crate::read::seen;
use suimon_sim::{Band, Metric};
use toml::{Table, Value};

/// A share above this cannot be: more than what is reachable, chance and the ends of a window
/// allowed for.
const SHARE_MAX: f64 = 1.5;

macro_rules! metric_keys {
    ($($more:literal),*) => {
        &[
            "goodput_share", "bound_share", "sessions_per_s", "completed", "mid_session_failures",
            "mid_session_failure_share", "first_step_failures", "refusals", "wait_p95_s", "efficiency",
            "settled_after_s", "limit_swing", "trial_windows", "seconds", $($more),*
        ]
    };
}

/// The keys of the tables read here.
pub(super) const TABLES: &[KnownKeys] = &[
    KnownKeys { path: "expect", keys: metric_keys!("between") },
    KnownKeys { path: "expect.between[]", keys: metric_keys!("from", "to") },
];

impl Reader {
    /// Reads the bands of `[expect]`, and those of each `[[expect.between]]`. The run ends at `end`
    /// seconds.
    pub(super) fn expected(&mut self, value: Option<&Value>, end: f64) -> Vec<Band> {
        let Some(table) = value.and_then(Value::as_table) else { return vec![] };
        let mut bands = self.bands("expect", table, None);
        let entries = table.get("between").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, entry) in entries.iter().enumerate() {
            let key = format!("expect.between[{index}]");
            let Some(entry) = entry.as_table() else { continue };
            let mut time = |name: &str, default: f64| {
                let key = format!("{key}.{name}");
                entry.get(name).map_or(default, |value| self.duration(&key, value).as_secs_f64())
            };
            let (from, to) = (time("from", 0.0), time("to", end));
            if from + 1.0 > to || to > end {
                let seen = format!("from {from} s to {to} s");
                self.faults.value(
                    &key,
                    seen,
                    format!("a second or more before the end of the run ({end} s)"),
                );
            }
            let inner = self.bands(&key, entry, Some((from, to)));
            if inner.is_empty() {
                self.faults
                    .missing(key, "what is expected between the two, such as bound_share = { min = 0.9 }");
            }
            bands.extend(inner);
        }
        bands
    }

    fn bands(&mut self, key: &str, table: &Table, between: Option<(f64, f64)>) -> Vec<Band> {
        let metrics = Metric::ALL.iter().filter_map(|metric| Some((*metric, table.get(metric.key())?)));
        metrics
            .map(|(metric, value)| {
                let key = format!("{key}.{}", metric.key());
                let (min, max) = self.band(&key, value);
                let impossible = metric.key().ends_with("goodput_share") || metric.key() == "bound_share";
                if impossible && min.is_some_and(|min| min > SHARE_MAX) {
                    self.faults.value(
                        &key,
                        seen(value),
                        format!("a share: no run reaches more than {SHARE_MAX}"),
                    );
                }
                Band { metric, between, min, max }
            })
            .collect()
    }

    /// Reads `0.9`, which is exactly that, or `{ min = 0.9 }`, `{ max = 3 }` or both.
    fn band(&mut self, key: &str, value: &Value) -> (Option<f64>, Option<f64>) {
        let Some(table) = value.as_table() else {
            let exactly = self.number(key, value, 0.0, true, 1e12);
            return (Some(exactly), Some(exactly));
        };
        for name in table.keys().filter(|name| !matches!(name.as_str(), "min" | "max")) {
            self.faults.other(format!("{key}.{name}: there is no such key; known here are min, max"));
        }
        let mut limit = |name: &str| {
            table.get(name).map(|value| self.number(&format!("{key}.{name}"), value, 0.0, true, 1e12))
        };
        let (min, max) = (limit("min"), limit("max"));
        match (min, max) {
            (None, None) => self.faults.missing(key, "min, max or both"),
            (Some(min), Some(max)) if min > max => {
                self.faults.value(
                    key,
                    seen_band(min, max),
                    "a band: its min is above its max, so nothing lies in it",
                );
            }
            _ => {}
        }
        (min, max)
    }
}

fn seen_band(min: f64, max: f64) -> String {
    format!("{{ min = {min}, max = {max} }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_may_be_expected() {
        for known in TABLES {
            for metric in Metric::ALL {
                assert!(known.keys.contains(&metric.key()), "{} at {}", metric.key(), known.path);
            }
        }
    }
}

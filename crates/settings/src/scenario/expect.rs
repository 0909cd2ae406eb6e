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
            "settled_after_s", "limit_swing", "trial_windows", "nodes", "residents", "resident_moves", "seconds", $($more),*
        ]
    };
}

/// The keys of the tables read here.
pub(super) const TABLES: &[KnownKeys] = &[
    KnownKeys { path: "expect", keys: metric_keys!("between", "service") },
    KnownKeys { path: "expect.between[]", keys: metric_keys!("from", "to") },
    KnownKeys {
        path: "expect.service[]",
        keys: &["name", "from", "to", "per_s", "slowdown", "slowdown_ratio", "share"],
    },
];

impl Reader {
    /// Reads the bands of `[expect]`, those of each `[[expect.between]]`, and those of each
    /// `[[expect.service]]`. The run ends at `end` seconds. `services`: their names.
    pub(super) fn expected(&mut self, value: Option<&Value>, end: f64, services: &[&str]) -> Vec<Band> {
        let Some(table) = value.and_then(Value::as_table) else { return vec![] };
        let mut bands = self.bands("expect", table, Metric::ALL, None, None);
        for (key, entry) in entries(table, "between") {
            let between = self.period(&key, entry, end).unwrap_or((0.0, end));
            let inner = self.bands(&key, entry, Metric::ALL, None, Some(between));
            if inner.is_empty() {
                self.faults
                    .missing(key, "what is expected between the two, such as bound_share = { min = 0.9 }");
            }
            bands.extend(inner);
        }
        for (key, entry) in entries(table, "service") {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            let Some(service) = services.iter().position(|service| *service == name) else {
                let seen = entry.get("name").map_or_else(|| "nothing".to_owned(), seen);
                self.faults.value(format!("{key}.name"), seen, "the name of a [[service]] of this file");
                continue;
            };
            let between = self.period(&key, entry, end);
            let service = Some((service, name.to_owned()));
            let inner = self.bands(&key, entry, Metric::OF_SERVICE, service.as_ref(), between);
            if inner.is_empty() {
                self.faults.missing(key, "what is expected of it, such as slowdown_ratio = { max = 4.4 }");
            }
            bands.extend(inner);
        }
        bands
    }

    /// Reads `from` and `to`; `None` where neither is there.
    fn period(&mut self, key: &str, entry: &Table, end: f64) -> Option<(f64, f64)> {
        let mut time = |name: &str| {
            let value = entry.get(name)?;
            Some(self.duration(&format!("{key}.{name}"), value).as_secs_f64())
        };
        let (from, to) = (time("from"), time("to"));
        if from.is_none() && to.is_none() {
            return None;
        }
        let (from, to) = (from.unwrap_or(0.0), to.unwrap_or(end));
        if from + 1.0 > to || to > end {
            let seen = format!("from {from} s to {to} s");
            self.faults.value(key, seen, format!("a second or more before the end of the run ({end} s)"));
        }
        Some((from, to))
    }

    fn bands(
        &mut self,
        key: &str,
        table: &Table,
        metrics: &[Metric],
        service: Option<&(usize, String)>,
        between: Option<(f64, f64)>,
    ) -> Vec<Band> {
        let metrics = metrics.iter().filter_map(|metric| Some((*metric, table.get(metric.key())?)));
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
                Band { metric, service: service.cloned(), between, min, max }
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

/// Returns the tables of the list `name`, each with its key.
fn entries<'a>(table: &'a Table, name: &'a str) -> impl Iterator<Item = (String, &'a Table)> {
    let list = table.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let entry = move |(index, entry): (usize, &'a Value)| {
        Some((format!("expect.{name}[{index}]"), entry.as_table()?))
    };
    list.iter().enumerate().filter_map(entry)
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
            let metrics = if known.path == "expect.service[]" { Metric::OF_SERVICE } else { Metric::ALL };
            for metric in metrics {
                assert!(known.keys.contains(&metric.key()), "{} at {}", metric.key(), known.path);
            }
        }
    }
}

//! Single values: each is read or reported, and reading goes on with something harmless.

use suimon_model::{Duration, seconds};
use suimon_workload::{Patience, Think};
use toml::Value;

use crate::duration;
use crate::faults::Faults;

/// The greatest coefficient of variation of a think time; beyond it a mean says nothing.
const CV_MAX: f64 = 10.0;
/// The most parts of a mixture.
const PARTS_MAX: usize = 16;

/// Collects faults while values are read.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) faults: Faults,
}

impl Reader {
    /// Returns the text, or `None` after reporting that it is none.
    pub(crate) fn text<'v>(&mut self, key: &str, value: &'v Value) -> Option<&'v str> {
        let text = value.as_str();
        if text.is_none() {
            self.faults.value(key, value, "text in quotes");
        }
        text
    }

    /// Returns the text, which must be there and not empty.
    pub(crate) fn wanted_text(&mut self, key: &str, value: Option<&Value>, wanted: &str) -> String {
        let Some(value) = value else {
            self.faults.missing(key, wanted);
            return String::new();
        };
        let text = self.text(key, value).unwrap_or("-").to_owned();
        if text.is_empty() {
            self.faults.value(key, value, "not empty");
        }
        text
    }

    /// Returns a list of texts, which may be written as one text.
    pub(crate) fn texts(&mut self, key: &str, value: Option<&Value>) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        let one = std::slice::from_ref(value);
        let parts = value.as_array().map_or(one, Vec::as_slice);
        parts.iter().filter_map(|part| self.text(key, part)).map(str::to_owned).collect()
    }

    pub(crate) fn boolean(&mut self, key: &str, value: Option<&Value>, default: bool) -> bool {
        let Some(value) = value else { return default };
        value.as_bool().unwrap_or_else(|| {
            self.faults.value(key, value, "true or false");
            default
        })
    }

    pub(crate) fn whole(&mut self, key: &str, value: &Value, low: u64, high: u64) -> u64 {
        let number = value.as_integer().and_then(|n| u64::try_from(n).ok());
        match number.filter(|n| (low..=high).contains(n)) {
            Some(number) => number,
            None => {
                self.faults.value(key, value, format!("a whole number from {low} to {high}"));
                low
            }
        }
    }

    pub(crate) fn whole_u32(&mut self, key: &str, value: &Value, low: u32, high: u32) -> u32 {
        let number = self.whole(key, value, low.into(), high.into());
        u32::try_from(number).expect("it is at most `high`")
    }

    /// Returns a number above `low` (or at it, where `low_too`) and at most `high`.
    pub(crate) fn number(&mut self, key: &str, value: &Value, low: f64, low_too: bool, high: f64) -> f64 {
        let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
        match number.filter(|n| (*n > low || low_too && *n >= low) && *n <= high) {
            Some(number) => number,
            None => {
                let from = if low_too { "at or above" } else { "above" };
                self.faults.value(key, value, format!("a number {from} {low} and at most {high}"));
                high
            }
        }
    }

    /// Returns a duration at or above zero.
    pub(crate) fn duration(&mut self, key: &str, value: &Value) -> Duration {
        self.duration_or_fault(key, value).unwrap_or_default()
    }

    pub(crate) fn duration_or(&mut self, key: &str, value: Option<&Value>, default: Duration) -> Duration {
        value.map_or(default, |value| self.duration(key, value))
    }

    /// Returns a duration above zero.
    pub(crate) fn duration_above_zero(&mut self, key: &str, value: &Value) -> Duration {
        let duration = self.duration_or_fault(key, value);
        if duration == Some(Duration::ZERO) {
            self.faults.value(key, value, "above 0 s");
        }
        duration.unwrap_or_default()
    }

    fn duration_or_fault(&mut self, key: &str, value: &Value) -> Option<Duration> {
        let Some(secs) = value.as_str().and_then(duration::parse_seconds) else {
            let negative =
                value.as_integer().is_some_and(|n| n < 0) || value.as_float().is_some_and(|n| n < 0.0);
            let allowed = if negative { "at or above 0 s, written as " } else { "" };
            self.faults.value(key, value, format!("{allowed}{}", duration::HOW_WRITTEN));
            return None;
        };
        if secs < 0.0 {
            self.faults.value(key, value, "at or above 0 s");
            return None;
        }
        Some(seconds(secs))
    }

    /// Reads `"3s"`, or `{ mean = "3s", shape = "exponential" }`, or
    /// `{ mean = "3s", shape = "lognormal", cv = 0.5 }`.
    pub(crate) fn think(&mut self, key: &str, value: &Value) -> Think {
        let Some(table) = value.as_table() else { return Think::Constant(self.duration(key, value)) };
        self.only_keys(key, table, &["mean", "shape", "cv"]);
        let mean = match table.get("mean") {
            Some(mean) => self.duration(&format!("{key}.mean"), mean),
            None => {
                self.faults.missing(format!("{key}.mean"), duration::HOW_WRITTEN);
                Duration::ZERO
            }
        };
        let shape = table.get("shape").map_or(Some("constant"), Value::as_str);
        let cv_key = format!("{key}.cv");
        if shape != Some("lognormal")
            && let Some(cv) = table.get("cv")
        {
            self.faults.value(&cv_key, cv, "left out: only the shape \"lognormal\" has one");
        }
        match shape {
            Some("constant") => Think::Constant(mean),
            Some("exponential") => Think::Exponential { mean },
            Some("lognormal") => {
                let cv = table.get("cv").map_or(1.0, |cv| self.number(&cv_key, cv, 0.0, true, CV_MAX));
                Think::Lognormal { mean, cv }
            }
            _ => {
                let seen = &table["shape"];
                let allowed = "\"constant\", \"exponential\" or \"lognormal\"";
                self.faults.value(format!("{key}.shape"), seen, allowed);
                Think::Constant(mean)
            }
        }
    }

    /// Reads `"60s"`, `"endless"`, or `[{ for = "30s", weight = 1 }, { for = "60s", weight = 1 }]`.
    pub(crate) fn patience(&mut self, key: &str, value: &Value) -> Patience {
        if value.as_str() == Some("endless") {
            return Patience::Endless;
        }
        let Some(parts) = value.as_array() else {
            return Patience::Constant(self.duration_above_zero(key, value));
        };
        if parts.is_empty() || parts.len() > PARTS_MAX {
            self.faults.value(key, format!("{} parts", parts.len()), format!("1 to {PARTS_MAX} parts"));
        }
        let part = |(i, part): (usize, &Value)| {
            let key = format!("{key}[{i}]");
            let Some(table) = part.as_table() else {
                self.faults.value(&key, part, "{ for = \"60s\", weight = 1 }");
                return (1.0, Duration::ZERO);
            };
            self.only_keys(&key, table, &["for", "weight"]);
            let weight = table.get("weight");
            let weight =
                weight.map_or(1.0, |weight| self.number(&format!("{key}.weight"), weight, 0.0, false, 1e6));
            let time = match table.get("for") {
                Some(time) => self.duration_above_zero(&format!("{key}.for"), time),
                None => {
                    self.faults.missing(format!("{key}.for"), duration::HOW_WRITTEN);
                    Duration::ZERO
                }
            };
            (weight, time)
        };
        Patience::Mixture(parts.iter().enumerate().map(part).collect())
    }

    fn only_keys(&mut self, key: &str, table: &toml::Table, known: &[&str]) {
        for name in table.keys().filter(|name| !known.contains(&name.as_str())) {
            self.faults.other(format!("{key}.{name}: unknown key, known are {}", known.join(", ")));
        }
    }
}

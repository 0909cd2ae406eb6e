//! What is kept of many runs: medians and extremes, small enough to be committed.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::method::Method;
use crate::machine::Machine;
use crate::trouble::{Result, While};

/// Pages of a session.
pub(super) const PAGES: usize = 7;
/// JSON is broken into lines down to this depth; what is deeper stands in one.
const LINES_DEPTH: usize = 5;

/// The lowest, the middle and the highest of the same number over all seeds; in a series, the middle is the first seed's.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Range(pub(crate) f64, pub(crate) f64, pub(crate) f64);

impl Range {
    /// Returns the range of `values`, rounded to `digits` behind the point.
    pub(super) fn of(values: &[f64], digits: i32) -> Range {
        let fold = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of).unwrap_or(0.0);
        let middle = if values.is_empty() { 0.0 } else { crate::statistics::median(values) };
        Range(fold(f64::min), middle, fold(f64::max)).rounded(digits)
    }

    /// Returns the range of a series at one moment: the first seed's value between the extremes.
    pub(super) fn around_first(values: &[f64], digits: i32) -> Range {
        let Range(low, _, high) = Range::of(values, digits);
        Range(low, values.first().copied().unwrap_or(0.0), high).rounded(digits)
    }

    fn rounded(self, digits: i32) -> Range {
        let unit = 10f64.powi(digits);
        let round = |value: f64| (value * unit).round() / unit;
        Range(round(self.0), round(self.1), round(self.2))
    }
}

/// Everything behind one figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Data {
    pub(crate) figure: String,
    /// The scenario it was played from, or what was measured.
    pub(crate) world: String,
    pub(crate) seeds: Vec<u64>,
    /// A run that takes longer is dead.
    pub(crate) dead_after_s: f64,
    pub(crate) content: Content,
    /// What is only told: settings tried at 400 clients.
    pub(crate) scan: Vec<Tried>,
    /// The paper's two rules at 400 clients where visitors wait 60 s and think 3 s, sessions per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_sixty: Option<Range>,
    /// The same with the costs of the Tomcat shop, where there are measurements to lie beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calibrated: Option<Content>,
    /// What it was measured on; nothing of the paper's simulation depends on that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shop: Option<Shop>,
}

/// The Tomcat shop of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Shop {
    pub(crate) machine: Machine,
    /// Its speed, 1 being the one its pages' costs were measured at; the median of all cells.
    pub(crate) speed: f64,
    /// The fixed number of sessions that was best.
    pub(crate) static_sessions: u32,
}

/// What a figure shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Content {
    /// By number of clients.
    Sweep(Vec<Curve>),
    /// By time, at one number of clients.
    Distribution(Vec<Distribution>),
    /// By page.
    Pages(Vec<Pages>),
    /// By second.
    Series(Vec<Series>),
}

/// One method at every number of clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Curve {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) points: Vec<Point>,
}

/// One method at one number of clients.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) clients: u32,
    /// Of how many runs how many were done in time.
    pub(crate) runs: u32,
    pub(crate) ended: u32,
    /// Sessions ÷ time until all were done; 0 of a dead run.
    pub(crate) sessions_per_s: Range,
    /// Time-outs and errors at any page; refusals at the first page are none, as in the paper.
    pub(crate) failures: Range,
    /// Those of them behind the first page.
    pub(crate) inside: Range,
    pub(crate) refusals: Range,
}

impl Point {
    /// Returns whether most of its runs never ended.
    pub(super) const fn is_dead(&self) -> bool {
        self.ended * 2 < self.runs
    }
}

/// How long sessions took.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) clients: u32,
    /// Seconds; sessions done after no more.
    pub(crate) done: Vec<(f64, Range)>,
}

/// Failures by page.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Pages {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) clients: u32,
    pub(crate) runs: u32,
    pub(crate) ended: u32,
    pub(crate) failures: [Range; PAGES],
}

/// The gate from second to second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) clients: u32,
    pub(crate) moments: Vec<Moment>,
}

/// The gate at one second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Moment {
    pub(crate) at_s: f64,
    /// Between two session starts.
    pub(crate) interval_s: Range,
    /// Waiting at a page, in the mean over the seven pages.
    pub(crate) mean_queue: Range,
    pub(crate) limit_of_page_5: Range,
    pub(crate) limit_of_page_1: Range,
}

/// One setting, tried with 400 clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) method: Method,
    pub(crate) setting: String,
    pub(crate) point: Point,
}

/// Writes it with a line for each point.
pub(super) fn save(path: &Path, data: &Data) -> Result<()> {
    let value = serde_json::to_value(data).trouble("the data cannot be written as JSON")?;
    let mut text = String::new();
    lines(&value, 0, &mut text);
    crate::data::write(path, &(text + "\n"))
}

fn lines(value: &Value, depth: usize, out: &mut String) {
    let items: Vec<(String, &Value)> = match value {
        Value::Object(map) if depth < LINES_DEPTH => {
            map.iter().map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value)).collect()
        }
        Value::Array(list) if depth < LINES_DEPTH && list.iter().any(Value::is_object) => {
            list.iter().map(|value| (String::new(), value)).collect()
        }
        // A tuple whose rows are short stands in one line each.
        Value::Array(list) if list.len() > 20 => list.iter().map(|value| (String::new(), value)).collect(),
        _ => return out.push_str(&value.to_string()),
    };
    let is_row =
        matches!(value, Value::Object(map) if map.values().all(|value| !holds_objects(value))) && depth > 1;
    if is_row || items.is_empty() {
        return out.push_str(&value.to_string());
    }
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    out.push(open);
    for (number, (key, value)) in items.iter().enumerate() {
        out.push_str(if number == 0 { "\n" } else { ",\n" });
        out.push_str(&" ".repeat(depth + 1));
        out.push_str(key);
        lines(value, depth + 1, out);
    }
    out.push('\n');
    out.push_str(&" ".repeat(depth));
    out.push(close);
}

fn holds_objects(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(list) => list.len() > 20 || list.iter().any(Value::is_object),
        _ => false,
    }
}

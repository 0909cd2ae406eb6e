//! Load reports in responses: ORCA, Open Request Cost Aggregation.
//!
//! A response carries one of two headers, as a whole or as a trailer:
//!
//! ```text
//! endpoint-load-metrics: TEXT cpu_utilization=0.3, mem_utilization=0.8, named_metrics.queue=4
//! endpoint-load-metrics: JSON {"cpu_utilization": 0.3, "named_metrics": {"queue": 4}}
//! endpoint-load-metrics: BIN CTMzMzMzM9M/
//! endpoint-load-metrics-bin: CTMzMzMzM9M/
//! ```
//!
//! - `TEXT`: pairs between commas; `=` or `:` between name and value; maps are spelt
//!   `named_metrics.NAME`, `utilization.NAME` and `request_cost.NAME`. An unknown name, and one that
//!   stands twice, make it unreadable.
//! - `JSON`: the JSON form of the protobuf message: names in either spelling, numbers also as text.
//!   Unknown fields are skipped, as by other readers; one that stands twice makes it unreadable.
//! - `BIN`, and the `-bin` header, which wins where both stand: the protobuf message in base64, with
//!   or without padding. Unknown fields are skipped.
//!
//! All numbers must be finite and in the range of their field, in every form.
//!
//! *Source*: `xds/data/orca/v3/orca_load_report.proto`, its ranges included; the gRPC proposal A51;
//! and, for the text form, what Envoy reads.

mod binary;
mod json;
mod text;

use std::collections::BTreeMap;
use std::fmt;

/// The name of the header in which the first word says the format.
pub const HEADER: &str = "endpoint-load-metrics";
/// The name of the header that is always binary.
pub const HEADER_BIN: &str = "endpoint-load-metrics-bin";

/// The longest value of a header that is read, in bytes.
pub const VALUE_MAX: usize = 4096;
/// The most named values of a report, all maps together.
pub const NAMED_MAX: usize = 64;
/// The longest name of one, in bytes.
pub const NAME_MAX: usize = 128;

/// What a node reports. A number that is not said is 0, as in the protobuf message.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OrcaReport {
    /// Share of the processors in use; may exceed 1.
    pub cpu_utilization: f64,
    /// Share of the memory in use, 0 to 1.
    pub mem_utilization: f64,
    /// Share of what the application can do; may exceed 1.
    pub application_utilization: f64,
    /// Requests per second.
    pub rps_fractional: f64,
    /// Errors per second.
    pub eps: f64,
    /// Requests per second, in a field that is no longer used.
    pub rps: u64,
    /// Whatever the application reports, by name.
    pub named_metrics: BTreeMap<String, f64>,
    /// Shares of resources in use, 0 to 1, by name.
    pub utilization: BTreeMap<String, f64>,
    /// What this request cost, by name.
    pub request_cost: BTreeMap<String, f64>,
}

/// Why a report cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadOrca {
    /// Longer than [`VALUE_MAX`].
    TooLong,
    /// It begins with none of `TEXT `, `JSON ` and `BIN `.
    UnknownFormat,
    /// It is not what its format asks for.
    Malformed,
    /// A name that the text form does not have, that is empty, or longer than [`NAME_MAX`].
    BadName,
    /// A name that stands twice.
    Duplicate,
    /// No number, or none that is finite.
    BadNumber,
    /// A number outside of the range of its field.
    OutOfRange,
    /// More than [`NAMED_MAX`] named values.
    TooMany,
}

/// A field with a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Field {
    Cpu,
    Memory,
    Application,
    Requests,
    Errors,
}

/// A field that is a map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Map {
    Named,
    Utilization,
    Cost,
}

impl Field {
    const ALL: [Field; 5] = [Field::Cpu, Field::Memory, Field::Requests, Field::Errors, Field::Application];

    const fn name(self) -> &'static str {
        match self {
            Field::Cpu => "cpu_utilization",
            Field::Memory => "mem_utilization",
            Field::Application => "application_utilization",
            Field::Requests => "rps_fractional",
            Field::Errors => "eps",
        }
    }

    /// Its number in the protobuf message.
    const fn number(self) -> u64 {
        match self {
            Field::Cpu => 1,
            Field::Memory => 2,
            Field::Requests => 6,
            Field::Errors => 7,
            Field::Application => 9,
        }
    }
}

impl Map {
    const ALL: [Map; 3] = [Map::Cost, Map::Utilization, Map::Named];

    const fn name(self) -> &'static str {
        match self {
            Map::Named => "named_metrics",
            Map::Utilization => "utilization",
            Map::Cost => "request_cost",
        }
    }

    const fn number(self) -> u64 {
        match self {
            Map::Cost => 4,
            Map::Utilization => 5,
            Map::Named => 8,
        }
    }
}

impl OrcaReport {
    /// Returns the report in the value of [`HEADER`].
    ///
    /// # Errors
    /// [`BadOrca`]; then nothing of it is to be used.
    pub fn parse(value: &[u8]) -> Result<Self, BadOrca> {
        if value.len() > VALUE_MAX {
            return Err(BadOrca::TooLong);
        }
        if let Some(text) = value.strip_prefix(b"TEXT ") {
            text::read(std::str::from_utf8(text).map_err(|_| BadOrca::Malformed)?)
        } else if let Some(json) = value.strip_prefix(b"JSON ") {
            json::read(json)
        } else if let Some(base64) = value.strip_prefix(b"BIN ") {
            binary::read(base64)
        } else {
            Err(BadOrca::UnknownFormat)
        }
    }

    /// Returns the report in the value of [`HEADER_BIN`].
    ///
    /// # Errors
    /// As [`OrcaReport::parse`].
    pub fn parse_bin(value: &[u8]) -> Result<Self, BadOrca> {
        if value.len() > VALUE_MAX { Err(BadOrca::TooLong) } else { binary::read(value) }
    }

    /// Returns the value of [`HEADER`] in the text form. What is 0 is left out, and so are named
    /// values whose names the form cannot spell: with a blank, `,`, `=` or `:`, or beyond ASCII.
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    /// Returns the report as JSON, without the word `JSON` before it. What is 0 is left out.
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Returns the value of [`HEADER_BIN`].
    pub fn to_bin(&self) -> String {
        binary::write(self)
    }

    /// Returns how busy the node is, as a share of what it can do: of the application if it says
    /// so, else of its processors; `None`: it says neither.
    pub fn utilization(&self) -> Option<f64> {
        [self.application_utilization, self.cpu_utilization].into_iter().find(|share| *share > 0.0)
    }

    fn field(&self, field: Field) -> f64 {
        match field {
            Field::Cpu => self.cpu_utilization,
            Field::Memory => self.mem_utilization,
            Field::Application => self.application_utilization,
            Field::Requests => self.rps_fractional,
            Field::Errors => self.eps,
        }
    }

    fn set(&mut self, field: Field, value: f64) -> Result<(), BadOrca> {
        let place = match field {
            Field::Cpu => &mut self.cpu_utilization,
            Field::Memory => &mut self.mem_utilization,
            Field::Application => &mut self.application_utilization,
            Field::Requests => &mut self.rps_fractional,
            Field::Errors => &mut self.eps,
        };
        let most = if field == Field::Memory { 1.0 } else { f64::MAX };
        *place = in_range(value, 0.0, most)?;
        Ok(())
    }

    fn map(&self, map: Map) -> &BTreeMap<String, f64> {
        match map {
            Map::Named => &self.named_metrics,
            Map::Utilization => &self.utilization,
            Map::Cost => &self.request_cost,
        }
    }

    /// Sets a named value, and returns whether it is the first of its name.
    fn name(&mut self, map: Map, name: &str, value: f64) -> Result<bool, BadOrca> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(BadOrca::BadName);
        }
        let value = match map {
            Map::Utilization => in_range(value, 0.0, 1.0)?,
            Map::Named | Map::Cost => in_range(value, f64::MIN, f64::MAX)?,
        };
        let values = match map {
            Map::Named => &mut self.named_metrics,
            Map::Utilization => &mut self.utilization,
            Map::Cost => &mut self.request_cost,
        };
        let is_first = values.insert(name.to_owned(), value).is_none();
        let count = self.named_metrics.len() + self.utilization.len() + self.request_cost.len();
        if count > NAMED_MAX { Err(BadOrca::TooMany) } else { Ok(is_first) }
    }
}

/// Returns the number, without the sign of a zero.
fn in_range(value: f64, least: f64, most: f64) -> Result<f64, BadOrca> {
    if !value.is_finite() {
        Err(BadOrca::BadNumber)
    } else if (least..=most).contains(&value) {
        Ok(value + 0.0)
    } else {
        Err(BadOrca::OutOfRange)
    }
}

/// Reads a decimal number as JSON and the text form have it: no sign `+`, no `inf`, no `nan`.
fn number(text: &str) -> Result<f64, BadOrca> {
    let is_decimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    let begins = text.bytes().next().is_some_and(|byte| byte != b'+');
    if !is_decimal || !begins {
        return Err(BadOrca::BadNumber);
    }
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or(BadOrca::BadNumber)
}

impl BadOrca {
    /// Returns the short name used in logs; it never changes.
    pub const fn code(self) -> &'static str {
        match self {
            BadOrca::TooLong => "too_long",
            BadOrca::UnknownFormat => "unknown_format",
            BadOrca::Malformed => "malformed",
            BadOrca::BadName => "bad_name",
            BadOrca::Duplicate => "duplicate",
            BadOrca::BadNumber => "bad_number",
            BadOrca::OutOfRange => "out_of_range",
            BadOrca::TooMany => "too_many",
        }
    }
}

impl fmt::Display for BadOrca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl std::error::Error for BadOrca {}

#[cfg(test)]
mod tests;

//! The JSON form of the protobuf message.

use super::{BadOrca, Field, Map, OrcaReport, number};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map as Object, Value};
use std::cell::Cell;
use std::fmt;

pub(super) fn read(json: &[u8]) -> Result<OrcaReport, BadOrca> {
    let fault = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = Message { fault: &fault }.deserialize(&mut reader);
    let read = read.and_then(|report| reader.end().map(|()| report));
    read.map_err(|_| fault.get().unwrap_or(BadOrca::Malformed))
}

pub(super) fn write(report: &OrcaReport) -> String {
    let mut object = Object::new();
    for field in Field::ALL {
        let value = report.field(field);
        if value > 0.0 {
            object.insert(field.name().to_owned(), value.into());
        }
    }
    if report.rps > 0 {
        // The JSON form of a 64 bit number is text.
        object.insert(RPS.to_owned(), report.rps.to_string().into());
    }
    for map in Map::ALL {
        let values = report.map(map);
        if !values.is_empty() {
            let values: Object<String, Value> =
                values.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
            object.insert(map.name().to_owned(), values.into());
        }
    }
    Value::from(object).to_string()
}

const RPS: &str = "rps";

/// Returns whether a key is this name, or its spelling in camel case.
fn is_named(key: &str, name: &str) -> bool {
    if key == name {
        return true;
    }
    let mut spelt = String::with_capacity(name.len());
    for part in name.split('_') {
        let mut letters = part.chars();
        match letters.next() {
            Some(first) if !spelt.is_empty() => spelt.push(first.to_ascii_uppercase()),
            Some(first) => spelt.push(first),
            None => {}
        }
        spelt.push_str(letters.as_str());
    }
    key == spelt
}

/// What reads the message. The reason for a fault is kept beside serde's own error, which is text.
#[derive(Clone, Copy)]
struct Message<'a> {
    fault: &'a Cell<Option<BadOrca>>,
}

impl Message<'_> {
    fn hold<T, E: serde::de::Error>(self, result: Result<T, BadOrca>) -> Result<T, E> {
        result.map_err(|fault| {
            self.fault.set(Some(fault));
            E::custom(fault)
        })
    }
}

impl<'de> DeserializeSeed<'de> for Message<'_> {
    type Value = OrcaReport;
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<OrcaReport, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Message<'_> {
    type Value = OrcaReport;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a load report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<OrcaReport, A::Error> {
        let mut report = OrcaReport::default();
        let mut seen: Vec<&'static str> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let field = Field::ALL.into_iter().find(|field| is_named(&key, field.name()));
            let map = Map::ALL.into_iter().find(|map| is_named(&key, map.name()));
            let name = match (field, map) {
                (Some(field), _) => field.name(),
                (_, Some(map)) => map.name(),
                _ if key == RPS => RPS,
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if seen.contains(&name) {
                return self.hold(Err(BadOrca::Duplicate));
            }
            seen.push(name);
            if let Some(map) = map {
                entries.next_value_seed(Named { message: self, map, report: &mut report })?;
                continue;
            }
            let value = entries.next_value::<Value>()?;
            match field {
                _ if value.is_null() => {}
                Some(field) => self.hold(number_of(&value).and_then(|value| report.set(field, value)))?,
                None => report.rps = self.hold(whole(&value).ok_or(BadOrca::BadNumber))?,
            }
        }
        Ok(report)
    }
}

/// What reads one map of the message.
struct Named<'a, 'r> {
    message: Message<'a>,
    map: Map,
    report: &'r mut OrcaReport,
}

impl<'de> DeserializeSeed<'de> for Named<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Named<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers by name")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some((name, value)) = entries.next_entry::<String, Value>()? {
            let named = number_of(&value).and_then(|value| self.report.name(self.map, &name, value));
            if !self.message.hold(named)? {
                return self.message.hold(Err(BadOrca::Duplicate));
            }
        }
        Ok(())
    }
}

fn number_of(value: &Value) -> Result<f64, BadOrca> {
    match value {
        Value::Number(value) => value.as_f64().ok_or(BadOrca::BadNumber),
        Value::String(text) => number(text),
        _ => Err(BadOrca::BadNumber),
    }
}

fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(value) => value.as_u64(),
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

//! The text form: pairs between commas.

use super::{BadOrca, Field, Map, OrcaReport, number};
use std::fmt::Write as _;

pub(super) fn read(text: &str) -> Result<OrcaReport, BadOrca> {
    let mut report = OrcaReport::default();
    let mut seen: Vec<Field> = Vec::new();
    for pair in text.split(',').map(|pair| pair.trim_matches([' ', '\t'])).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once(['=', ':']).ok_or(BadOrca::Malformed)?;
        let trimmed = |part: &str| part.trim_matches([' ', '\t']).to_owned();
        let (name, value) = (trimmed(name), number(&trimmed(value))?);
        let field = Field::ALL.into_iter().find(|field| field.name() == name);
        let named = || {
            Map::ALL.into_iter().find_map(|map| {
                let name = name.strip_prefix(map.name())?.strip_prefix('.')?;
                Some((map, name))
            })
        };
        if let Some(field) = field {
            if seen.contains(&field) {
                return Err(BadOrca::Duplicate);
            }
            seen.push(field);
            report.set(field, value)?;
        } else if let Some((map, name)) = named() {
            if !report.name(map, name, value)? {
                return Err(BadOrca::Duplicate);
            }
        } else {
            return Err(BadOrca::BadName);
        }
    }
    Ok(report)
}

pub(super) fn write(report: &OrcaReport) -> String {
    let mut text = "TEXT ".to_owned();
    let mut divider = "";
    let mut pair = |map: &str, name: &str, value: f64| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{divider}{map}{name}={value}");
        divider = ",";
    };
    for field in Field::ALL {
        let value = report.field(field);
        if value > 0.0 {
            pair("", field.name(), value);
        }
    }
    for map in Map::ALL {
        let prefix = format!("{}.", map.name());
        for (name, value) in report.map(map).iter().filter(|(name, _)| is_spelt(name)) {
            pair(&prefix, name, *value);
        }
    }
    text
}

fn is_spelt(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=' | b':'))
}

//! Data files: written completely or not at all, and compact.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::trouble::{Result, Trouble, While};

/// A value that fits into this many characters is written in one line.
const LINE_MAX: usize = 120;

/// Writes `data` to `path`; a concurrent reader sees the old file or the new one.
pub(crate) fn save(path: &Path, data: &impl Serialize) -> Result<()> {
    let value = serde_json::to_value(data).trouble("the data cannot be written as JSON")?;
    let mut text = String::new();
    print(&value, 0, 0, &mut text);
    write(path, &(text + "\n"))
}

/// Appends `value`: in one line if it fits behind `used` characters, otherwise with as many of its
/// items per line as fit. Each row of a table and each object in a list begins a line.
fn print(value: &Value, depth: usize, used: usize, out: &mut String) {
    let whole = value.to_string();
    let (brackets, items): (_, Vec<(String, &Value)>) = match value {
        _ if depth + used + whole.len() <= LINE_MAX => return out.push_str(&whole),
        Value::Object(map) => (
            "{}",
            map.iter().map(|(key, value)| (format!("{}:", Value::from(key.as_str())), value)).collect(),
        ),
        Value::Array(list) => ("[]", list.iter().map(|value| (String::new(), value)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return out.push_str(&whole),
    };
    let inner = depth + 1;
    let indent = format!("\n{}", " ".repeat(inner));
    out.push_str(&brackets[..1]);
    let mut room = 0;
    for (number, (key, value)) in items.iter().enumerate() {
        out.push_str(if number == 0 { "" } else { "," });
        let length = key.len() + value.to_string().len() + 1;
        if length > room || (key.is_empty() && value.is_object()) {
            out.push_str(&indent);
            room = LINE_MAX.saturating_sub(inner);
        }
        out.push_str(key);
        print(value, inner, key.len(), out);
        room = room.saturating_sub(length);
    }
    out.push_str(&indent[..inner]);
    out.push_str(&brackets[1..]);
}

/// Writes `text` to `path`; a concurrent reader sees the old file or the new one.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).trouble(path.display())
}

/// Returns the data saved there, if any.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).trouble(path.display())?;
    serde_json::from_str(&text)
        .map(Some)
        .trouble(format!("{}: not the data of this experiment", path.display()))
}

/// Returns what experiment `name` saved at `path`, with `redraw`; otherwise saves and returns what
/// `measure` returns.
pub(crate) fn measured<T: Serialize + DeserializeOwned>(
    path: &Path,
    name: &str,
    redraw: bool,
    measure: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if redraw {
        let missing = || Trouble::Usage(format!("{} is missing: ./experiments/run {name}", path.display()));
        return load(path)?.ok_or_else(missing);
    }
    let data = measure()?;
    save(path, &data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_broken_into_full_lines_and_read_back_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let data = serde_json::json!({
            "short": { "a": 1, "b": [0.1, -2.5e-7] },
            "long": (0..300).map(|n| vec![f64::from(n) / 7.0, 1.0]).collect::<Vec<_>>(),
            "rows": (0..9).map(|n| serde_json::json!({ "n": n, "text": "x".repeat(30) })).collect::<Vec<_>>(),
        });
        save(&path, &data).unwrap();
        assert_eq!(load::<Value>(&path).unwrap(), Some(data));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.lines().all(|line| line.len() <= LINE_MAX + 1), "{text}");
        assert!(text.lines().count() < 120, "{text}");
        assert!(text.contains("\"short\":{\"a\":1,\"b\":[0.1,-2.5e-7]}"), "{text}");
    }

    #[test]
    fn what_was_saved_is_loaded_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        assert_eq!(load::<Vec<u32>>(&path).unwrap(), None);
        save(&path, &vec![1, 2]).unwrap();
        save(&path, &vec![3]).unwrap();
        assert_eq!(load::<Vec<u32>>(&path).unwrap(), Some(vec![3]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let told = |redraw| measured(&path, "some", redraw, || Ok(vec![4]));
        assert_eq!(
            (told(true).unwrap(), told(false).unwrap(), told(true).unwrap()),
            (vec![3], vec![4], vec![4])
        );
        fs::write(&path, "{").unwrap();
        assert!(load::<Vec<u32>>(&path).unwrap_err().to_string().contains("result.json"));
        fs::remove_file(&path).unwrap();
        let missing = told(true).unwrap_err().to_string();
        assert!(missing.contains("./experiments/run some"), "{missing}");
    }
}

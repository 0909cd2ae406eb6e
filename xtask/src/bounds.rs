//! `docs/bounds.md` held against the code: every bound is in the table, with the value that the
//! code has.
//!
//! A bound is a constant of a whole number whose name ends in `_MAX`, in a crate that holds what
//! strangers send, or a setting of the sections [`SECTIONS`]. A row of the table begins with its
//! name (`crates/…/file.rs` and `NAME_MAX`, or the setting's key) and then its value, both between
//! backticks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The table.
const TABLE: &str = "docs/bounds.md";
/// Crates that hold what strangers send, or what comes of it.
const CRATES: [&str; 22] = [
    "admin",
    "agent",
    "cluster",
    "downstream",
    "engine",
    "fastcgi",
    "ffi",
    "fleet",
    "gate",
    "identity",
    "kubernetes",
    "line",
    "message",
    "params",
    "pool",
    "proxy",
    "record",
    "routes",
    "sharing",
    "store",
    "upstream",
    "waiting-room",
];
/// Sections of the settings that are bounds, all of them.
const SECTIONS: [&str; 3] = ["limits", "spool", "timeouts"];
/// A setting there that counts nothing.
const NOT_COUNTED: [&str; 1] = ["spool.directory"];
/// The value of a setting that is not set unless somebody sets it.
const NOT_SET: &str = "not set";
/// Types of bounds that count something.
const COUNTS: [&str; 6] = ["usize", "u8", "u16", "u32", "u64", "u128"];

/// Returns a line for each bound that the table lacks, has wrong, or makes up.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let text =
        fs::read_to_string(root.join(TABLE)).map_err(|error| format!("{TABLE}: cannot be read: {error}"))?;
    let mut bounds = settings(&suimon_settings::example_file());
    for name in CRATES {
        constants(root, &root.join("crates").join(name).join("src"), &mut bounds)?;
    }
    let faults = compare(&text, &bounds);
    if faults.is_empty() {
        println!("{} bounds are in {TABLE} with their values", bounds.len());
    }
    Ok(faults)
}

fn compare(table: &str, bounds: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut missing = bounds.clone();
    for (number, line) in (1..).zip(table.lines()).filter(|(_, line)| line.starts_with("| `")) {
        let mut words = line.split('`').skip(1).step_by(2);
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            faults.push(format!("{TABLE}:{number}: a row needs a name and a value between backticks"));
            continue;
        };
        missing.remove(name);
        match bounds.get(name) {
            None => faults.push(format!("{TABLE}:{number}: there is no bound `{name}`")),
            Some(found) if found != value => {
                faults.push(format!("{TABLE}:{number}: `{name}` is `{found}`, not `{value}`"));
            }
            Some(_) => {}
        }
    }
    faults.extend(missing.iter().map(|(name, value)| format!("{TABLE}: lacks `{name}`, which is `{value}`")));
    faults
}

/// Adds the bounds among the constants of all files in `folder`.
fn constants(root: &Path, folder: &Path, bounds: &mut BTreeMap<String, String>) -> Result<(), String> {
    let trouble = |error| format!("{}: cannot be read: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(trouble)? {
        let path = entry.map_err(trouble)?.path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            constants(root, &path, bounds)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
            let text = fs::read_to_string(&path).map_err(trouble)?;
            let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for (name, value) in own.lines().filter_map(constant) {
                bounds.insert(format!("{file} {name}"), value);
            }
        }
    }
    Ok(())
}

/// Returns name and value, if the line defines a bound.
fn constant(line: &str) -> Option<(&str, String)> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c: char| c != ' ').trim_start(),
        None => line,
    };
    let (name, rest) = line.strip_prefix("const ")?.split_once(':')?;
    let (kind, value) = rest.split_once('=')?;
    let is_bound = name.ends_with("_MAX") && COUNTS.contains(&kind.trim());
    is_bound.then(|| (name, value.trim().trim_end_matches(';').to_string()))
}

/// Returns the settings that are bounds, with their defaults.
fn settings(example: &str) -> BTreeMap<String, String> {
    let mut section = "";
    let mut found = BTreeMap::new();
    for line in example.lines() {
        // A key behind a # is not set; a comment has a blank behind its #.
        let (line, is_set) = line.strip_prefix('#').map_or((line, true), |line| (line, false));
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = line.split_once(" = ")
            && SECTIONS.contains(&section)
            && !key.starts_with(' ')
        {
            let value = if is_set { value.trim_matches('"') } else { NOT_SET };
            let name = format!("{section}.{key}");
            if !NOT_COUNTED.contains(&name.as_str()) {
                found.insert(name, value.to_string());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_bound_of_the_code() {
        assert_eq!(check(&crate::root()), Ok(Vec::new()));
    }

    #[test]
    fn a_bound_that_is_missing_wrong_or_made_up_is_named() {
        let bounds = [("a.rs ONE_MAX", "1 << 20"), ("a.rs TWO_MAX", "2"), ("limits.three", "3")];
        let bounds: BTreeMap<String, String> =
            bounds.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let table = "| bound | value |\n|---|---|\n| `a.rs ONE_MAX` | `1 << 10` | wrong |\n| `a.rs FOUR_MAX` | `4` |\n| `limits.three` | `3`, the default |\n";
        assert_eq!(
            compare(table, &bounds),
            [
                "docs/bounds.md:3: `a.rs ONE_MAX` is `1 << 20`, not `1 << 10`",
                "docs/bounds.md:4: there is no bound `a.rs FOUR_MAX`",
                "docs/bounds.md: lacks `a.rs TWO_MAX`, which is `2`",
            ]
        );
    }

    #[test]
    fn constants_that_count_are_bounds_and_others_are_not() {
        let value = |line| constant(line).map(|(name, value)| (name.to_string(), value));
        let bound = |name: &str, value: &str| Some((name.to_string(), value.to_string()));
        assert_eq!(value("const LOST_BYTES_MAX: usize = 1 << 20;"), bound("LOST_BYTES_MAX", "1 << 20"));
        assert_eq!(value("    pub(super) const A_MAX: u64 = 3;"), bound("A_MAX", "3"));
        assert_eq!(value("pub const HOLD_MAX: f64 = 10.0;"), None);
        assert_eq!(value("const LIMIT: usize = 3;"), None);
    }

    #[test]
    fn settings_that_nobody_sets_are_bounds_too() {
        let example = "[limits]\n\n# Words = more. (number)\n#body_bytes = 5\nurl_bytes = 7\n[log]\nx = 1\n";
        let wanted = [("limits.body_bytes", NOT_SET), ("limits.url_bytes", "7")];
        assert_eq!(
            settings(example),
            wanted.map(|(name, value)| (name.to_string(), value.to_string())).into()
        );
    }
}

//! Which keys a file may have where: what nobody knows is refused, all of it together.

use crate::faults::Faults;
use crate::read::seen;
use toml::{Table, Value};

/// How alike an unknown key and a known one must be to be taken for a slip of the pen: 1 is equal.
const ALIKE: f64 = 0.7;

/// A table that may stand in a file.
#[derive(Clone, Copy)]
pub(crate) struct KnownKeys {
    /// Where, with `[]` behind a name for each of a list of tables, and `*` for any name; empty:
    /// the file itself.
    pub(crate) path: &'static str,
    /// What it may hold.
    pub(crate) keys: &'static [&'static str],
}

/// Notes every key that `known` does not have, and what should be a table and is not. Tables that
/// are not in `known` are not looked into.
pub(crate) fn refuse_unknown(table: &Table, known: &[KnownKeys], faults: &mut Faults) {
    look_at("", "", table, known, faults);
}

fn look_at(path: &str, key: &str, table: &Table, known: &[KnownKeys], faults: &mut Faults) {
    let Some(here) = known.iter().find(|here| here.path == path) else { return };
    let any = here.keys == ["*"];
    for (name, value) in table {
        let full = join(key, name);
        if !any && !here.keys.contains(&name.as_str()) {
            faults.other(format!(
                "{full} = {}: there is no such key; {}",
                seen(value),
                hint(name, here.keys)
            ));
            continue;
        }
        let inner = join(path, if any { "*" } else { name });
        let list = format!("{inner}[]");
        let is = |path: &str| known.iter().any(|known| known.path == path);
        match value {
            Value::Table(table) if is(&inner) => look_at(&inner, &full, table, known, faults),
            Value::Array(entries) if is(&list) => {
                for (index, entry) in entries.iter().enumerate() {
                    let full = format!("{full}[{index}]");
                    match entry {
                        Value::Table(table) => look_at(&list, &full, table, known, faults),
                        other => faults.value(full, seen(other), "a table"),
                    }
                }
            }
            other if is(&list) && !is(&inner) => {
                faults.value(&full, seen(other), format!("tables, each written [[{full}]]"));
            }
            Value::Table(_) => {}
            other if is(&inner) && !is(&list) && !may_be_plain(&inner) => {
                faults.value(&full, seen(other), format!("a table, written [{full}]"));
            }
            _ => {}
        }
    }
}

/// Returns whether what is a table elsewhere may be written as a single value here: `think = "3s"`.
fn may_be_plain(path: &str) -> bool {
    ["think", "patience", "pause", "efficiency"].iter().any(|name| path.ends_with(name))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn hint(name: &str, keys: &[&str]) -> String {
    let alike = |known: &&str| strsim::normalized_damerau_levenshtein(name, known);
    match keys.iter().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|known| alike(known) >= ALIKE) {
        Some(known) => format!("did you mean {known}?"),
        None => format!("known here are {}", keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[KnownKeys] = &[
        KnownKeys { path: "", keys: &["one", "many", "free"] },
        KnownKeys { path: "one", keys: &["colour"] },
        KnownKeys { path: "many[]", keys: &["size", "named"] },
        KnownKeys { path: "many[].named", keys: &["*"] },
        KnownKeys { path: "many[].named.*", keys: &["x"] },
    ];

    fn faults(text: &str) -> String {
        let mut faults = Faults::none();
        refuse_unknown(&text.parse().expect("a table"), KNOWN, &mut faults);
        faults.to_string()
    }

    #[test]
    fn what_is_known_passes() {
        let text = "free = { what = { ever = 1 } }\none = { colour = 1 }\n[[many]]\nsize = 2\nnamed = { a = { x = 1 }, b = { x = 2 } }";
        assert_eq!(faults(text), "");
    }

    #[test]
    fn all_that_is_unknown_is_told_together() {
        let text = "on = 1\none = { color = 1 }\n[[many]]\n[[many]]\nweight = 2\nnamed = { b = { y = 2 } }";
        let told = faults(text);
        assert_eq!(told.lines().count(), 4, "{told}");
        assert!(told.contains("one.color = 1: there is no such key; did you mean colour?"), "{told}");
        assert!(
            told.contains("many[1].weight = 2: there is no such key; known here are size, named"),
            "{told}"
        );
        assert!(told.contains("many[1].named.b.y = 2"), "{told}");
    }

    #[test]
    fn a_value_where_a_table_belongs_is_a_fault() {
        assert_eq!(
            faults("one = 3\nmany = 4"),
            "many = 4: must be tables, each written [[many]]\none = 3: must be a table, written [one]"
        );
    }
}

//! From text to values that each have the form and lie in the range the schema asks for.

use crate::schema::{self, DefaultValue, Form, Key, Section};
use crate::secrets::hidden;
use crate::shape::Checked;
use crate::{Faults, duration};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use suimon_params::upstream::NodeParams;
use toml::{Table, Value};

/// The longest value shown in a fault; a longer one is cut.
const SEEN_CHARS_MAX: usize = 60;

/// How alike an unknown key and a known one must be to be taken for a slip of the pen: 1 is equal.
const ALIKE: f64 = 0.75;

/// The values of one section: those given, and the defaults of the rest.
#[derive(Debug, Default)]
pub(crate) struct Values {
    values: BTreeMap<&'static str, Checked>,
    /// The keys that the file has.
    given: BTreeSet<&'static str>,
}

/// Every section of a file.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    /// By path; an optional section that is left out is not there.
    once: BTreeMap<&'static str, Values>,
    /// By path; in the order of the file.
    repeated: BTreeMap<&'static str, Vec<Values>>,
}

/// The longest file that is read, in bytes: a hundred times any that makes sense.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Returns the text of the file at `path`, or of standard input where that is `-`.
///
/// # Errors
/// If it cannot be read, is no text, or is longer than [`FILE_BYTES_MAX`].
pub fn text_of(path: &Path) -> Result<String, Faults> {
    let wrong = |error: io::Error| Faults::one(format!("{}: cannot be read: {error}", path.display()));
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
    };
    if read.map_err(wrong)? as u64 > FILE_BYTES_MAX {
        let name = path.display();
        return Err(Faults::one(format!(
            "{name}: is longer than {FILE_BYTES_MAX} bytes, which no file of settings is"
        )));
    }
    Ok(text)
}

/// Returns the table that `text` holds, or where its syntax breaks: `name:line:column: what`.
pub(crate) fn parse(name: &str, text: &str) -> Result<Table, Faults> {
    text.parse::<Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let message = error.message().replace('\n', ", ");
        Faults::one(format!("{name}:{line}:{column}: {message}"))
    })
}

/// Returns the values of all sections and notes everything that is wrong; what is wrong has its
/// default.
pub(crate) fn read(table: &Table, faults: &mut Faults) -> Sections {
    let mut sections = Sections::default();
    refuse_unknown("", table, faults);
    for section in schema::SECTIONS {
        let found = find(table, section.path);
        match section.form {
            Form::Repeated(max) => {
                let entries = found.map_or_else(Vec::new, |value| read_repeated(section, value, max, faults));
                sections.repeated.insert(section.path, entries);
            }
            Form::Optional if found.is_none() => {}
            Form::Table | Form::Optional => {
                let empty = Table::new();
                let table = match found {
                    None => &empty,
                    Some(Value::Table(table)) => table,
                    Some(value) => {
                        faults.value(
                            section.path,
                            seen(value),
                            format!("a table, written [{}]", section.path),
                        );
                        &empty
                    }
                };
                refuse_unknown(section.path, table, faults);
                sections.once.insert(section.path, read_keys(section, section.path, table, faults));
            }
        }
    }
    sections
}

fn read_repeated(section: &'static Section, value: &Value, max: usize, faults: &mut Faults) -> Vec<Values> {
    let entries: Option<Vec<&Table>> =
        value.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(Value::as_table).collect();
    let Some(entries) = entries.filter(|_| value.is_array()) else {
        faults.value(section.path, seen(value), format!("tables, each written [[{}]]", section.path));
        return Vec::new();
    };
    if entries.len() > max {
        faults.other(format!(
            "{}: there are {} of them; at most {max} are allowed",
            section.path,
            entries.len()
        ));
        return Vec::new();
    }
    let read_entry = |(index, table): (usize, &&Table)| {
        let prefix = format!("{}[{index}]", section.path);
        for (key, value) in *table {
            let is_known = section.keys.iter().any(|known| known.name == key);
            if !is_known && !schema::is_nested(section.path, key) {
                unknown(&format!("{prefix}.{key}"), value, section.path, key, faults);
            }
        }
        read_keys(section, &prefix, table, faults)
    };
    entries.iter().enumerate().map(read_entry).collect()
}

fn read_keys(section: &'static Section, prefix: &str, table: &Table, faults: &mut Faults) -> Values {
    let (mut values, mut all_given) = (BTreeMap::new(), BTreeSet::new());
    for key in section.keys {
        let path = format!("{prefix}.{}", key.name);
        if table.contains_key(key.name) {
            all_given.insert(key.name);
        }
        let given = match table.get(key.name).map(|value| (value, key.shape.check(value))) {
            Some((_, Ok(checked))) => Some(checked),
            Some((value, Err(allowed))) => {
                match key.shape.faulty_entries(value) {
                    Some(entries) => entries.into_iter().for_each(|(index, entry, allowed)| {
                        faults.value(format!("{path}[{index}]"), seen(entry), allowed);
                    }),
                    None => faults.value(path, seen(value), allowed),
                }
                None
            }
            None => {
                if let DefaultValue::Required { example } = key.default {
                    faults.missing(
                        path,
                        format!("it must be {}, for example {} = {example}", key.shape.allowed(), key.name),
                    );
                }
                None
            }
        };
        if let Some(value) = given.or_else(|| default(key)) {
            values.insert(key.name, value);
        }
    }
    Values { values, given: all_given }
}

/// Returns the value a key has where it is left out, if it then has one.
pub(crate) fn default(key: &Key) -> Option<Checked> {
    let DefaultValue::Is(literal) = key.default else { return None };
    let table: Table =
        format!("x = {literal}").parse().expect("defaults in the schema are TOML; a test reads them all");
    Some(
        key.shape
            .check(&table["x"])
            .expect("defaults in the schema fit their own shape; a test reads them all"),
    )
}

/// Returns the value at a dotted path.
pub(crate) fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((first, rest)) => find(table.get(first)?.as_table()?, rest),
        None => table.get(path),
    }
}

/// Notes every key of the table at `path` that the schema does not know there.
fn refuse_unknown(path: &str, table: &Table, faults: &mut Faults) {
    let keys = schema::section(path).map_or(&[][..], |section| section.keys);
    for (name, value) in table {
        let full = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let known = keys.iter().any(|key| key.name == name) || schema::section(&full).is_some();
        if !known {
            unknown(&full, value, path, name, faults);
        }
    }
}

/// Notes an unknown key, and the known one it is most like.
fn unknown(full: &str, value: &Value, section: &str, name: &str, faults: &mut Faults) {
    let seen = seen(value);
    match nearest(section, name) {
        Some(known) => faults.other(format!("{full} = {seen}: there is no such key; did you mean {known}?")),
        None => {
            faults.other(format!("{full} = {seen}: there is no such key; suimon.example.toml has them all"));
        }
    }
}

/// Returns the full name of the key or section that was probably meant: one of the same name
/// elsewhere, or one much alike.
fn nearest(section: &str, name: &str) -> Option<String> {
    let keys = schema::SECTIONS.iter().flat_map(|at| at.keys.iter().map(move |key| (at.path, key.name)));
    let sections = schema::SECTIONS.iter().map(|at| at.path.rsplit_once('.').unwrap_or(("", at.path)));
    let score = |(path, known): &(&str, &str)| {
        let alike = strsim::normalized_damerau_levenshtein(name, known);
        // Nearer home is likelier, but a key of exactly this name elsewhere is what was meant.
        if *path == section { alike + 0.1 } else { alike - 0.05 }
    };
    let (best, (path, known)) = keys
        .chain(sections)
        .map(|candidate| (score(&candidate), candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(best, _)| *best >= ALIKE)?;
    debug_assert!(best <= 1.1);
    Some(if path.is_empty() { known.to_string() } else { format!("{path}.{known}") })
}

/// Returns a value as it might have been written, cut to a length that can be read. Passwords are
/// hidden before: what is cut could not be told from others.
pub(crate) fn seen(value: &Value) -> String {
    let text = match &hidden(value, false) {
        Value::Table(_) => "{ ... }".to_string(),
        other => other.to_string().replace('\n', " "),
    };
    if text.chars().count() <= SEEN_CHARS_MAX {
        return text;
    }
    text.chars().take(SEEN_CHARS_MAX).chain("...".chars()).collect()
}

impl Sections {
    /// Returns a section that stands once.
    pub(crate) fn once(&self, path: &'static str) -> &Values {
        self.optional(path).expect("the section is in the schema and not optional")
    }

    /// Returns an optional section, if the file has it.
    pub(crate) fn optional(&self, path: &'static str) -> Option<&Values> {
        self.once.get(path)
    }

    /// Returns the nodes where none are named.
    pub(crate) fn default_nodes(&self) -> Vec<NodeParams> {
        let key =
            crate::schema::section("upstream").and_then(|it| it.keys.iter().find(|key| key.name == "nodes"));
        match key.and_then(default) {
            Some(Checked::List(nodes)) => nodes
                .into_iter()
                .filter_map(|node| if let Checked::Node(node) = node { Some(node) } else { None })
                .collect(),
            _ => vec![],
        }
    }

    /// Returns a repeated section's entries.
    pub(crate) fn repeated(&self, path: &'static str) -> &[Values] {
        self.repeated.get(path).map_or(&[], Vec::as_slice)
    }
}

/// Each returns the value of a key that has a default, in the type its shape has; `given_*` that of
/// a key which may be left out. Asking for a key that the schema does not have, or has otherwise,
/// is a mistake of this crate that its tests find.
impl Values {
    fn value(&self, key: &str) -> &Checked {
        self.values.get(key).expect("the key is in the schema and has a default")
    }

    /// Returns whether the file has this key.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.given.contains(key)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        match self.value(key) {
            Checked::Flag(flag) => *flag,
            other => mismatch(key, other),
        }
    }

    pub(crate) fn number(&self, key: &str) -> f64 {
        match self.value(key) {
            Checked::Number(number) => *number,
            other => mismatch(key, other),
        }
    }

    pub(crate) fn count(&self, key: &str) -> u64 {
        self.given_count(key).expect("the key is in the schema and has a default")
    }

    pub(crate) fn given_count(&self, key: &str) -> Option<u64> {
        self.values.get(key).map(|value| match value {
            Checked::Count(count) => *count,
            other => mismatch(key, other),
        })
    }

    /// Returns a count that the schema keeps within `u32`.
    pub(crate) fn small(&self, key: &str) -> u32 {
        u32::try_from(self.count(key)).expect("the schema's range ends within u32")
    }

    /// Returns a count that the schema keeps within `usize`.
    pub(crate) fn size(&self, key: &str) -> usize {
        usize::try_from(self.count(key)).expect("the schema's range ends within usize")
    }

    pub(crate) fn time(&self, key: &str) -> Duration {
        self.given_time(key).expect("the key is in the schema and has a default")
    }

    pub(crate) fn given_time(&self, key: &str) -> Option<Duration> {
        self.values.get(key).map(|value| match value {
            Checked::Time(time) => *time,
            other => mismatch(key, other),
        })
    }

    pub(crate) fn address(&self, key: &str) -> Option<SocketAddr> {
        match self.value(key) {
            Checked::Address(address) => *address,
            other => mismatch(key, other),
        }
    }

    pub(crate) fn given_path(&self, key: &str) -> Option<PathBuf> {
        self.values.get(key).map(|value| match value {
            Checked::Path(path) => path.clone(),
            other => mismatch(key, other),
        })
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.given_text(key).expect("the key is in the schema and has a default")
    }

    pub(crate) fn given_text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|value| match value {
            Checked::Text(text) => text.as_str(),
            other => mismatch(key, other),
        })
    }

    /// Returns what a word stands for, of those that the schema takes.
    pub(crate) fn choice<T>(&self, key: &str, of: impl FnOnce(&str) -> Option<T>) -> T {
        of(self.text(key)).expect("the schema takes no other word")
    }

    /// Returns a word, or the number that stands in its place.
    pub(crate) fn word_or_count(&self, key: &str) -> Result<&str, u64> {
        match self.value(key) {
            Checked::Text(word) => Ok(word),
            Checked::Count(count) => Err(*count),
            other => mismatch(key, other),
        }
    }

    fn list(&self, key: &str) -> &[Checked] {
        match self.value(key) {
            Checked::List(entries) => entries,
            other => mismatch(key, other),
        }
    }

    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let text = |entry: &Checked| match entry {
            Checked::Text(text) => text.clone(),
            other => mismatch(key, other),
        };
        self.list(key).iter().map(text).collect()
    }

    /// Returns the entries of a list that must be there, or none where that was found missing.
    pub(crate) fn given_texts(&self, key: &str) -> Vec<String> {
        if self.values.contains_key(key) { self.texts(key) } else { vec![] }
    }

    pub(crate) fn nodes(&self, key: &str) -> Vec<NodeParams> {
        let node = |entry: &Checked| match entry {
            Checked::Node(node) => node.clone(),
            other => mismatch(key, other),
        };
        self.list(key).iter().map(node).collect()
    }

    pub(crate) fn networks(&self, key: &str) -> Vec<(IpAddr, u8)> {
        let network = |entry: &Checked| match entry {
            Checked::Network(address, prefix) => (*address, *prefix),
            other => mismatch(key, other),
        };
        self.list(key).iter().map(network).collect()
    }
}

fn mismatch(key: &str, value: &Checked) -> ! {
    unreachable!("the schema has {key} in another form than it is asked for: {value:?}")
}

/// Returns a time as it would be written, quotes and all.
pub(crate) fn seen_time(time: Duration) -> String {
    format!("\"{}\"", duration::show(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        let mut faults = Faults::none();
        read(&parse("test.toml", text).unwrap(), &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_default_and_every_example_of_the_schema_fits_its_own_shape() {
        for section in schema::SECTIONS {
            for key in section.keys {
                let (DefaultValue::Is(literal)
                | DefaultValue::Unset { example: literal, .. }
                | DefaultValue::Required { example: literal }) = key.default;
                let table: Table = format!("x = {literal}").parse().unwrap();
                let checked = key.shape.check(&table["x"]);
                assert!(checked.is_ok(), "{}.{} = {literal}: {checked:?}", section.path, key.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_parent_of_a_section_is_a_section() {
        let mut seen = std::collections::BTreeSet::new();
        for section in schema::SECTIONS {
            assert!(seen.insert(section.path.to_string()), "{}", section.path);
            for key in section.keys {
                assert!(
                    seen.insert(format!("{}.{}", section.path, key.name)),
                    "{}.{}",
                    section.path,
                    key.name
                );
            }
            if let Some((parent, _)) = section.path.rsplit_once('.') {
                assert!(schema::section(parent).is_some(), "{}", section.path);
            }
        }
    }

    #[test]
    fn a_syntax_error_is_shown_with_file_line_and_column() {
        let faults = parse("suimon.toml", "[listen]\nhttp = \"0.0.0.0:8000\"\nbacklog == 5\n")
            .unwrap_err()
            .to_string();
        assert!(faults.starts_with("suimon.toml:3:"), "{faults}");
        assert!(!faults.contains('\n'), "{faults}");
    }

    #[test]
    fn all_faults_come_together() {
        let faults = faults_of(
            "[listen]\nhttp = 8000\nbacklog = 0\n[timeouts]\nconnect = \"2 weeks\"\n[nonsense]\nx = 1\n[[route]]\nmode = \"maybe\"\n",
        );
        assert_eq!(faults.len(), 6, "{faults:#?}");
        assert!(faults.iter().any(|fault| fault.starts_with("nonsense = { ... }: there is no such key")));
        assert!(faults.contains(&"listen.backlog = 0: must be a whole number from 1 to 65535".to_string()));
        assert!(faults.iter().any(|fault| fault.starts_with("listen.http = 8000: must be an IP address")));
        assert!(
            faults
                .iter()
                .any(|fault| fault.starts_with("timeouts.connect = \"2 weeks\": must be a time from"))
        );
        assert!(faults.iter().any(|fault| fault.starts_with("route[0].match is missing")));
        assert!(
            faults.iter().any(|fault| fault.starts_with("route[0].mode = \"maybe\": must be \"enforce\""))
        );
    }

    #[test]
    fn a_slip_of_the_pen_is_answered_with_what_was_meant() {
        for (text, meant) in [
            ("[upstream]\nnode = [\"http://x\"]", "did you mean upstream.nodes?"),
            ("[timeouts]\nfirst_bite = \"1s\"", "did you mean timeouts.first_byte?"),
            ("[upstream]\nfirst_byte = \"1s\"", "did you mean timeouts.first_byte?"),
            ("[timeout]\nconnect = \"1s\"", "did you mean timeouts?"),
            ("[[sesion]]\nkind = \"a\"", "did you mean session?"),
            ("[upstream.helth]\npath = \"/\"", "did you mean upstream.health?"),
        ] {
            let faults = faults_of(text);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].ends_with(meant), "{faults:?}");
        }
        assert!(faults_of("[gate]\nbanana = 1")[0].contains("suimon.example.toml has them all"));
    }

    #[test]
    fn a_section_in_the_wrong_form_is_told_its_form() {
        assert!(faults_of("upstream = 5")[0].ends_with("must be a table, written [upstream]"));
        assert!(
            faults_of("[session]\nkind = \"a\"")[0].ends_with("must be tables, each written [[session]]")
        );
        assert!(faults_of("route = [1]")[0].ends_with("must be tables, each written [[route]]"));
    }

    #[test]
    fn long_values_are_cut() {
        let fault = &faults_of(&format!("[admin]\nlisten = \"{}\"", "x".repeat(5000)))[0];
        assert!(fault.len() < 250, "{}", fault.len());
    }
}

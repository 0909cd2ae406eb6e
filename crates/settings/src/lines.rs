//! Where in a file a key stands, so that a fault can name the line.

use crate::faults::{Fault, Faults};
use toml::de::{DeTable, DeValue};

/// A file's keys and their lines.
pub(crate) struct Lines<'t> {
    name: &'t str,
    text: &'t str,
    table: Option<toml::Spanned<DeTable<'t>>>,
}

impl<'t> Lines<'t> {
    /// Returns the lines of the file called `name`. Where its syntax is broken no key has one.
    pub(crate) fn new(name: &'t str, text: &'t str) -> Self {
        Lines { name, text, table: DeTable::parse(text).ok() }
    }

    /// Returns the line, from 1, of the longest beginning of `key` (such as
    /// `journey[0].steps[2].think.mean`) that stands in the file.
    pub(crate) fn of(&self, key: &str) -> Option<usize> {
        let mut table = self.table.as_ref()?.get_ref();
        let mut at = None;
        let mut value: Option<&DeValue<'_>> = None;
        for part in key.split(['.', '[']) {
            let found = match part.strip_suffix(']') {
                Some(index) => match value {
                    Some(DeValue::Array(entries)) => index
                        .parse()
                        .ok()
                        .and_then(|index: usize| entries.get(index))
                        .map(|v| (v.span(), v.get_ref())),
                    _ => None,
                },
                None => {
                    let entry = table.iter().find(|(name, _)| name.get_ref() == part);
                    entry.map(|(name, value)| (name.span(), value.get_ref()))
                }
            };
            let Some((span, inner)) = found else { break };
            at = Some(span.start);
            value = Some(inner);
            if let DeValue::Table(inner) = inner {
                table = inner;
            }
        }
        at.map(|at| self.text.get(..at).unwrap_or(self.text).matches('\n').count() + 1)
    }

    /// Returns `faults` with the name of the file, and the line where the key of each stands,
    /// before them.
    pub(crate) fn name(&self, faults: &Faults) -> Faults {
        let mut named = Faults::none();
        for fault in faults.iter() {
            let key = match fault {
                Fault::Value { key, .. } | Fault::Missing { key, .. } => key,
                Fault::Other(sentence) => sentence.split([' ', ':']).next().unwrap_or_default(),
                Fault::At { place, fault } => {
                    named.at(place.clone(), (**fault).clone());
                    continue;
                }
            };
            let place = match self.of(key) {
                Some(line) => format!("{}:{line}", self.name),
                None => self.name.to_owned(),
            };
            named.at(place, fault.clone());
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[b]\nc = { d = 2 }\n\n[[e]]\nf = 3\n[[e]]\nf = 4\n  [[e.g]]\n  h = 5\n";

    #[test]
    fn keys_are_found_in_tables_lists_and_inline() {
        let lines = Lines::new("file", TEXT);
        for (key, line) in
            [("a", 1), ("b.c", 3), ("b.c.d", 3), ("e[0].f", 6), ("e[1].f", 8), ("e[1].g[0].h", 10)]
        {
            assert_eq!(lines.of(key), Some(line), "{key}");
        }
    }

    #[test]
    fn of_what_is_missing_the_nearest_that_is_there_is_named() {
        let lines = Lines::new("file", TEXT);
        assert_eq!(lines.of("b.missing"), Some(2));
        assert_eq!(lines.of("e[0].missing"), Some(5));
        assert_eq!(lines.of("missing"), None);
        assert_eq!(Lines::new("file", "a = ").of("a"), None);
    }

    #[test]
    fn faults_carry_file_and_line() {
        let mut faults = Faults::none();
        faults.value("e[1].f", 4, "3");
        faults.missing("z", "a number");
        let named = Lines::new("file", TEXT).name(&faults).to_string();
        assert_eq!(named, "file:8: e[1].f = 4: must be 3\nfile: z is missing: a number");
    }
}

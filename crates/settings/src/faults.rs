//! Everything that is wrong with what was read, together: key, value seen, and what is allowed.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A value that cannot be.
    Value {
        /// Where, such as `journey[0].steps[2].think.mean`.
        key: String,
        /// What was there, as it was written.
        seen: String,
        /// What may be there, such as `at or above 0 s`; reads on from "must be".
        allowed: String,
    },
    /// A value that must be there and is not.
    Missing {
        /// Where.
        key: String,
        /// What should be there.
        wanted: String,
    },
    /// Something that a key and a value cannot say, as a whole sentence: a file that cannot be
    /// read, a syntax error, an unknown key.
    Other(
        /// The sentence.
        String,
    ),
    /// One of these, and where in which file it stands.
    At {
        /// Name of the file, and the line from 1 if it is known.
        place: String,
        /// What is wrong there.
        fault: Box<Fault>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Value { key, seen, allowed } => write!(f, "{key} = {seen}: must be {allowed}"),
            Fault::Missing { key, wanted } => write!(f, "{key} is missing: {wanted}"),
            Fault::Other(sentence) => f.write_str(sentence),
            Fault::At { place, fault } => write!(f, "{place}: {fault}"),
        }
    }
}

/// All that is wrong, in the order it was found; shown one to a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    faults: Vec<Fault>,
}

impl Faults {
    /// Returns no faults.
    pub fn none() -> Self {
        Faults::default()
    }

    /// Returns the one fault.
    pub fn one(sentence: impl Into<String>) -> Self {
        Faults { faults: vec![Fault::Other(sentence.into())] }
    }

    /// Adds a value that cannot be: where, what was seen, and what it must be.
    pub fn value(&mut self, key: impl Into<String>, seen: impl fmt::Display, allowed: impl Into<String>) {
        self.add(Fault::Value { key: key.into(), seen: seen.to_string(), allowed: allowed.into() });
    }

    /// Adds a value that is missing.
    pub fn missing(&mut self, key: impl Into<String>, wanted: impl Into<String>) {
        self.add(Fault::Missing { key: key.into(), wanted: wanted.into() });
    }

    /// Adds a sentence.
    pub fn other(&mut self, sentence: impl Into<String>) {
        self.add(Fault::Other(sentence.into()));
    }

    /// Adds a fault with the place where it stands.
    pub(crate) fn at(&mut self, place: String, fault: Fault) {
        self.add(Fault::At { place, fault: Box::new(fault) });
    }

    /// Adds everything `other` holds.
    pub fn append(&mut self, other: Faults) {
        other.faults.into_iter().for_each(|fault| self.add(fault));
    }

    /// Returns the same faults, of keys that stand below `path`.
    pub(crate) fn below(self, path: &str) -> Faults {
        let below = |key: &str| format!("{path}.{key}");
        let of = |fault| match fault {
            Fault::Value { key, seen, allowed } => Fault::Value { key: below(&key), seen, allowed },
            Fault::Missing { key, wanted } => Fault::Missing { key: below(&key), wanted },
            // A sentence begins with the key that it is about.
            Fault::Other(sentence) => Fault::Other(below(&sentence)),
            Fault::At { .. } => fault,
        };
        Faults { faults: self.faults.into_iter().map(of).collect() }
    }

    /// Returns whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns the faults in the order they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter()
    }

    /// Returns `checked`, if nothing is wrong.
    ///
    /// # Errors
    /// Returns the faults, if there are any.
    pub fn into_result<T>(self, checked: T) -> Result<T, Faults> {
        if self.is_empty() { Ok(checked) } else { Err(self) }
    }

    /// What is read in several places (a default shared by many) is wrong only once.
    fn add(&mut self, fault: Fault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_shown_one_to_a_line_with_what_is_allowed() {
        let mut faults = Faults::none();
        faults.value("journey[0].steps[2].think.mean", "-1s", "at or above 0 s");
        faults.missing("journey", "at least one");
        faults.other("unknown key");
        assert_eq!(
            faults.to_string(),
            "journey[0].steps[2].think.mean = -1s: must be at or above 0 s\n\
             journey is missing: at least one\n\
             unknown key"
        );
    }

    #[test]
    fn nothing_wrong_lets_the_checked_value_through() {
        assert_eq!(Faults::none().into_result(7), Ok(7));
        assert_eq!(Faults::one("no").into_result(7), Err(Faults::one("no")));
    }
}

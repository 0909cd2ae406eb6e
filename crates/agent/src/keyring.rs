//! The keys that load reports are sealed with.
//!
//! They stand in a file, one a line: a number from 0 to 255, a space, 64 hexadecimal digits. The first
//! one seals, each opens. Lines that begin with `#` are for people. To change keys, put the new one
//! last on the gateways, then first on all nodes and gateways, and then remove the old one.

use std::fmt;

/// The most keys of a ring: as many as a file of keys may hold.
pub const KEYS_MAX: usize = 16;

/// What makes these keys good for load reports alone, whatever else the same secret is used for.
const PURPOSE: &str = "suimon load report, datagram version 1";

/// Keys by number. The first one seals; each opens what names it.
#[derive(Clone)]
pub struct Keyring {
    keys: Vec<(u8, [u8; 32])>,
}

impl Keyring {
    /// Returns the ring of these numbers and secrets, at least one; what is beyond [`KEYS_MAX`], and
    /// a number that was there before, is left out. `None`: there is none.
    pub fn new(secrets: impl IntoIterator<Item = (u8, [u8; 32])>) -> Option<Self> {
        let mut keys: Vec<(u8, [u8; 32])> = Vec::new();
        for (id, secret) in secrets {
            if keys.len() < KEYS_MAX && !keys.iter().any(|(other, _)| *other == id) {
                keys.push((id, blake3::derive_key(PURPOSE, &secret)));
            }
        }
        (!keys.is_empty()).then_some(Keyring { keys })
    }

    /// Returns the ring in the text of a file of keys.
    ///
    /// # Errors
    /// See [`BadKeys`].
    pub fn parse(text: &str) -> Result<Self, BadKeys> {
        let mut secrets: Vec<(u8, [u8; 32])> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what| BadKeys { line: number, what };
            let (id, digits) =
                line.split_once(char::is_whitespace).ok_or(wrong("is not a number and a key"))?;
            let id =
                id.parse().map_err(|_| wrong("begins with something that is not a number from 0 to 255"))?;
            let secret = secret(digits.trim()).ok_or(wrong("has a key that is not 64 hexadecimal digits"))?;
            if secrets.iter().any(|(other, _)| *other == id) {
                return Err(wrong("has the number of a key above it"));
            }
            if secrets.len() == KEYS_MAX {
                return Err(wrong("is one key too many: remove the oldest"));
            }
            secrets.push((id, secret));
        }
        Keyring::new(secrets).ok_or(BadKeys { line: 0, what: "there is no key in it" })
    }

    /// Returns the key that seals, and its number.
    pub(crate) fn sealing(&self) -> (u8, &[u8; 32]) {
        let (id, key) = self.keys.first().expect("a ring has at least one key");
        (*id, key)
    }

    /// Returns the key of this number.
    pub(crate) fn find(&self, id: u8) -> Option<&[u8; 32]> {
        self.keys.iter().find(|(other, _)| *other == id).map(|(_, key)| key)
    }
}

/// What is wrong with a file of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadKeys {
    /// The line, from 1; 0: the whole.
    pub line: usize,
    /// What is wrong with it, as the rest of a sentence.
    pub what: &'static str,
}

impl fmt::Display for BadKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(self.what),
            line => write!(
                f,
                "line {line} {}; a line is a number from 0 to 255, a space and 64 hexadecimal digits",
                self.what
            ),
        }
    }
}

impl std::error::Error for BadKeys {}

/// Returns the text of a file with this key alone.
pub fn file_text(id: u8, secret: &[u8; 32]) -> String {
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "# Keys of load reports. Keep this file secret: who has it can report for every node.\n\
         # The same on gateways and nodes. One a line: number (0 to 255), 64 hexadecimal digits. The first seals, all open.\n\
         {id} {digits}\n"
    )
}

fn secret(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    let mut secret = [0; 32];
    if digits.len() != 2 * secret.len() {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(secret)
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets do not belong in logs.
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_is_read() {
        let ring = Keyring::parse(&file_text(7, &[0xa5; 32])).unwrap();
        let same = Keyring::new([(7, [0xa5; 32])]).unwrap();
        assert_eq!(ring.sealing(), same.sealing());
        let two = format!("{}# older\n\n 3\t{}\n", file_text(7, &[1; 32]), "0F".repeat(32));
        let two = Keyring::parse(&two).unwrap();
        assert_eq!(two.sealing().0, 7);
        assert_eq!(two.find(3), Keyring::new([(3, [0x0f; 32])]).unwrap().find(3));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let key = "0".repeat(64);
        let many: String = (0..=KEYS_MAX).map(|id| format!("{id} {key}\n")).collect();
        for (text, line, part) in [
            (String::new(), 0, "no key"),
            ("# none\n".to_owned(), 0, "no key"),
            (format!("0 {key}\n{key}\n"), 2, "not a number and a key"),
            (format!("256 {key}"), 1, "from 0 to 255"),
            (format!("1 {}", &key[1..]), 1, "64 hexadecimal"),
            (format!("1 g{}", &key[1..]), 1, "64 hexadecimal"),
            (format!("1 {key}\n1 {key}"), 2, "a key above it"),
            (many, 17, "too many"),
        ] {
            let bad = Keyring::parse(&text).unwrap_err();
            assert!(bad.line == line && bad.to_string().contains(part), "{text}: {bad}");
        }
    }
}

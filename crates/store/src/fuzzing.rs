//! What must hold of code that reads strangers' bytes, for a fuzzer to break: `fuzz/` feeds these,
//! and the tests here replay what it has found.
//!
//! Each function takes any bytes and panics if something does not hold. They exist under the fuzzer
//! and in tests only.

use crate::lines::Stored;
use crate::remembered::Remembered;
use suimon_model::Instant;

/// Seconds since 1970 of a file that is read.
const NOW: u32 = 1_800_000_000;

/// A learned file that can be read is written as one with the same content.
pub fn learned(bytes: &[u8]) {
    let Ok(remembered) = Remembered::parse(bytes) else { return };
    let text = remembered.text();
    let again = Remembered::parse(text.as_bytes()).expect("what is written can be read");
    assert_eq!(again.text(), text);
}

/// A file of lines that can be read is written as one with the same content.
pub fn line_file(bytes: &[u8]) {
    let now = (NOW, Instant::ORIGIN);
    let Ok(stored) = Stored::parse(bytes, now) else { return };
    let text = stored.text(now);
    let again = Stored::parse(text.as_bytes(), now).expect("what is written can be read");
    assert_eq!(again.text(now), text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 2] = [("learned", learned), ("line_file", line_file)];
        for (name, check) in targets {
            corpus(name).iter().for_each(|bytes| check(bytes));
        }
    }

    /// A fuzzer does not find out by itself what a new version of a file must have.
    #[test]
    fn files_to_begin_with_are_read() {
        assert!(corpus("learned").iter().any(|bytes| Remembered::parse(bytes).is_ok()));
        let now = (NOW, Instant::ORIGIN);
        assert!(corpus("line_file").iter().any(|bytes| Stored::parse(bytes, now).is_ok()));
    }
}

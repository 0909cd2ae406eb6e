//! What must hold of whatever reads bytes of strangers, for a fuzzer to break: `fuzz/` feeds these,
//! and the tests here replay what it has found.
//!
//! Each function takes any bytes and panics if something does not hold. It is there under the
//! fuzzer and in tests only.

use crate::decoded;

/// Sizes of the pieces in which the same bytes come.
const PIECES: [usize; 3] = [1, 3, 17];

/// However the bytes of an answer are cut, it says the same, and no more than there is.
pub fn answer(bytes: &[u8]) {
    let whole = decoded(bytes, bytes.len());
    for piece in PIECES {
        assert_eq!(decoded(bytes, piece), whole, "in pieces of {piece}");
    }
    if let Some(Ok(answer)) = whole {
        assert!(answer.body.len() <= bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 1] = [("answer", answer)];
        for (name, check) in targets {
            corpus(name).iter().for_each(|bytes| check(bytes));
        }
    }
}

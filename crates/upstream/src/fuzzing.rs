//! What must hold for all code that reads untrusted bytes. `fuzz/` feeds these functions, and the
//! tests here replay what the fuzzer has found.
//!
//! Each function takes any bytes and panics if something does not hold. They exist only under the
//! fuzzer and in tests.

use crate::decoded;

/// Sizes of the pieces into which the same bytes are cut.
const PIECES: [usize; 3] = [1, 3, 17];

/// However the bytes of an answer are cut, the result is the same, and the body is no longer than
/// they are.
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

//! What must hold of code that reads strangers' bytes, for a fuzzer to break: `fuzz/` feeds these,
//! and the tests here replay what it has found.
//!
//! Each function takes any bytes and panics if something does not hold. They exist under the fuzzer
//! and in tests only.

use crate::identify::{Identifier, strip_own_cookies};
use crate::keys::Keys;
use crate::lease::Leases;
use crate::mint::{Mint, SignedItem};
use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use std::sync::LazyLock;
use suimon_params::Sessions;

static IDENTIFIER: LazyLock<Identifier> = LazyLock::new(|| {
    let leases = Leases::new(Keys::fresh().expect("random bytes"), 3600, None, ["visit"].into_iter());
    Identifier::new(
        &Sessions::default(),
        leases.expect("one name"),
        1000,
        [7; 32],
        std::hash::RandomState::new(),
    )
});

/// No cookie of a stranger's proves anything, none of ours reaches the application, and learning is
/// bounded. Each line is a header: cookies of the request those that begin with `c`, of the answer
/// the others.
pub fn cookies(bytes: &[u8]) {
    let (mut request, mut answer) = (HeaderMap::new(), HeaderMap::new());
    for line in bytes.split(|byte| *byte == b'\n').take(50) {
        let Some((first, value)) = line.split_first() else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        let (headers, name): (_, HeaderName) =
            if *first == b'c' { (&mut request, COOKIE) } else { (&mut answer, SET_COOKIE) };
        headers.append(name, value);
    }
    let visitor = IDENTIFIER.read(&request, None, || Mint::NOW);
    assert!(visitor.lease(None).is_none() && visitor.ticket(None).is_none() && visitor.pass.is_none());
    let session = (suimon_model::KindId(0), suimon_model::SessionId(1));
    IDENTIFIER.learn_response(&visitor, &answer, session, || Mint::NOW);
    strip_own_cookies(&mut request);
    let left = IDENTIFIER.read(&request, None, || Mint::NOW);
    assert!(!left.has_own_cookie, "{request:?}");
}

static MINT: LazyLock<Mint> =
    LazyLock::new(|| Mint::new(&Keys::fresh().expect("random bytes"), &["visit"]).expect("one name"));

/// Nothing is taken for a ticket, a lease or an invitation that is none; a true one is accepted
/// with no byte changed.
pub fn forged(bytes: &[u8]) {
    for kept in SignedItem::ALL {
        assert!(!MINT.takes(kept, bytes), "{kept:?}");
        let (Some((at, rest)), Some(byte)) = (bytes.split_first(), bytes.get(1)) else { continue };
        let number = rest.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        let mut text = MINT.make(kept, 0, number).into_bytes();
        assert!(MINT.takes(kept, &text), "{kept:?}");
        let at = usize::from(*at) % text.len();
        if text[at] != *byte {
            text[at] = *byte;
            assert!(!MINT.takes(kept, &text), "{kept:?} {at}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 2] = [("cookies", cookies), ("forged", forged)];
        for (name, check) in targets {
            corpus(name).iter().for_each(|bytes| check(bytes));
        }
    }
}

//! What must hold of code that reads strangers' bytes, for a fuzzer to break: `fuzz/` feeds these,
//! and the tests here replay what it has found.
//!
//! Each function takes any bytes and panics if something does not hold. They exist under the fuzzer
//! and in tests only.

use crate::framing::Framing;
use crate::proxy_protocol::{HEADER_MAX, Read, read};

/// Sizes of the pieces in which the same bytes come.
const PIECES: [usize; 3] = [1, 3, 17];

/// However the bytes of a connection are split, its framing is the same, and nothing but one colon
/// is ever changed.
pub fn framing(bytes: &[u8]) {
    let scan = |piece: usize| {
        let mut framing = Framing::default();
        let mut seen = bytes.to_vec();
        seen.chunks_mut(piece.max(1)).for_each(|piece| framing.scan(piece));
        (framing.phase(), framing.heads(), seen)
    };
    let whole = scan(bytes.len());
    for piece in PIECES {
        assert_eq!(scan(piece), whole, "in pieces of {piece}");
    }
    let changed: Vec<_> = bytes.iter().zip(&whole.2).filter(|(before, after)| before != after).collect();
    assert!(changed.is_empty() || changed == [(&b':', &0)], "{changed:?}");
}

/// However the bytes of a PROXY header are split, the result is the same, and parsing ends. An
/// address it names is named again by a line written from it.
pub fn proxy_header(bytes: &[u8]) {
    let whole = read(bytes);
    for end in 0..bytes.len() {
        match read(&bytes[..end]) {
            Ok(Read::More) => assert!(end < HEADER_MAX, "{end} bytes, and still more"),
            said => assert_eq!(said, whole, "{end} bytes"),
        }
    }
    let Ok(Read::Header { length, client }) = whole else { return };
    assert!(length <= bytes.len() && length <= HEADER_MAX);
    assert_eq!(read(&bytes[..length]), whole, "without what follows");
    let Some(client) = client else { return };
    let family = if client.is_ipv4() { 4 } else { 6 };
    let line = format!("PROXY TCP{family} {client} {client} 65535 0\r\n");
    assert_eq!(
        read(line.as_bytes()),
        Ok(Read::Header { length: line.len(), client: Some(client) }),
        "{line}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 2] = [("framing", framing), ("proxy_header", proxy_header)];
        for (name, check) in targets {
            corpus(name).iter().for_each(|bytes| check(bytes));
        }
    }
}

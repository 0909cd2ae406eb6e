//! What must hold for all code that reads bytes of strangers. `fuzz/` feeds these functions, and
//! the tests here replay what the fuzzer has found.

use crate::head;
use crate::response::{BadResponse, Decoder, End, Event};
use crate::script;
use bytes::BytesMut;

/// Sizes of the pieces into which the same bytes are cut.
const PIECES: [usize; 3] = [1, 3, 17];
/// The most bytes of a head.
const HEAD_BYTES: usize = 4096;

/// However the bytes of a worker are cut, they are the same response, which is no longer than they
/// are.
pub fn worker(bytes: &[u8]) {
    let whole = decoded(bytes, bytes.len().max(1));
    for piece in PIECES {
        assert_eq!(decoded(bytes, piece), whole, "in pieces of {piece}");
    }
    let (Ok((out, ..)) | Err((out, _))) = &whole;
    assert!(out.len() <= bytes.len());
    let mut searched = 0;
    let at_once = head::take(&mut BytesMut::from(&out[..]), &mut searched, HEAD_BYTES);
    let (mut read, mut searched) = (BytesMut::new(), 0);
    let mut by_byte = Ok(None);
    for byte in out {
        read.extend_from_slice(&[*byte]);
        by_byte = head::take(&mut read, &mut searched, HEAD_BYTES);
        if !matches!(by_byte, Ok(None)) {
            break;
        }
    }
    let status = |parts: Option<http::response::Parts>| parts.map(|parts| (parts.status, parts.headers));
    assert_eq!(by_byte.map(status), at_once.map(status));
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(clean) = script::clean(text)
    {
        assert!(clean.starts_with(b"/") && clean.split(|byte| *byte == b'/').all(|part| part != b".."));
    }
}

type Read = (Vec<u8>, Vec<u8>, Option<End>);

/// Returns what was read of a response, and the fault after it, if there is one.
fn decoded(bytes: &[u8], piece: usize) -> Result<Read, (Vec<u8>, BadResponse)> {
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    let (mut out, mut err, mut end) = (vec![], vec![], None);
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(Event::Stdout(piece))) => out.extend_from_slice(&piece),
                Ok(Some(Event::Stderr(piece))) => err.extend_from_slice(&piece),
                Ok(Some(Event::End(how))) => end = Some(how),
                Ok(None) => break,
                Err(fault) => return Err((out, fault)),
            }
        }
    }
    Ok((out, err, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_testing::corpus;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        corpus("fastcgi").iter().for_each(|bytes| worker(bytes));
    }
}

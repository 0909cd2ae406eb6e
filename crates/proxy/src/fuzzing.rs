//! What must hold of whatever reads bytes of strangers, for a fuzzer to break: `fuzz/` feeds these, and the tests here replay what it has found.
//!
//! Each function takes any bytes and panics if something does not hold. It is there under the fuzzer and in tests only.

use crate::framing::Framing;
use crate::identify::{Identifier, strip_own_cookies};
use crate::keys::Keys;
use crate::lease::Leases;
use crate::mint::{Kept, Mint};
use crate::params::Sessions;
use crate::proxy_protocol::{HEADER_MAX, Read, read};
use crate::remembered::Remembered;
use crate::room::{Form, Stored};
use crate::upstream::decoded;
use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use std::sync::LazyLock;
use suimon_model::Instant;

/// Sizes of the pieces in which the same bytes come.
const PIECES: [usize; 3] = [1, 3, 17];

/// However the bytes of a connection are cut, its framing is the same, and nothing but one colon is ever changed.
pub fn framing(bytes: &[u8]) {
    let scan = |piece: usize| {
        let mut framing = Framing::new();
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

/// However the bytes of a PROXY header come, it says the same, and has an end. Whoever it names is named again by a line that names them.
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

static IDENTIFIER: LazyLock<Identifier> = LazyLock::new(|| {
    let leases = Leases::new(Keys::fresh().expect("random bytes"), 3600, ["visit"].into_iter());
    Identifier::new(&Sessions::default(), leases.expect("one name"), 1000, [7; 32])
});

/// No cookie of a stranger's proves anything, none of ours reaches the application, and none is learned without end. Each line is a header: cookies of
/// the request those that begin with `c`, of the answer the others.
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

/// Nothing is taken for a ticket, a lease or an invitation that is none; of a true one no byte may be another.
pub fn forged(bytes: &[u8]) {
    for kept in Kept::ALL {
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

/// A form that is kept comes back as it was.
pub fn form(bytes: &[u8]) {
    let Some(form) = Form::parse(bytes) else { return };
    let again = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form.fields).finish();
    assert_eq!(Form::parse(again.as_bytes()).map(|again| again.fields), Some(form.fields));
}

/// A file of what was learned that is read is written as one that says the same.
pub fn learned(bytes: &[u8]) {
    let Ok(remembered) = Remembered::parse(bytes) else { return };
    let text = remembered.text();
    let again = Remembered::parse(text.as_bytes()).expect("what is written can be read");
    assert_eq!(again.text(), text);
}

/// A file of lines that is read is written as one that says the same.
pub fn line_file(bytes: &[u8]) {
    let now = (Mint::NOW, Instant::ORIGIN);
    let Ok(stored) = Stored::parse(bytes, now) else { return };
    let text = stored.text(now);
    let again = Stored::parse(text.as_bytes(), now).expect("what is written can be read");
    assert_eq!(again.text(now), text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn what_a_fuzzer_has_found_still_holds() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 8] = [
            ("framing", framing),
            ("proxy_header", proxy_header),
            ("answer", answer),
            ("cookies", cookies),
            ("forged", forged),
            ("form", form),
            ("learned", learned),
            ("line_file", line_file),
        ];
        for (name, check) in targets {
            corpus(name).iter().for_each(|bytes| check(bytes));
        }
    }

    /// A fuzzer does not find out by itself what a new version of a file must have.
    #[test]
    fn files_to_begin_with_are_read() {
        assert!(corpus("learned").iter().any(|bytes| Remembered::parse(bytes).is_ok()));
        let now = (Mint::NOW, Instant::ORIGIN);
        assert!(corpus("line_file").iter().any(|bytes| Stored::parse(bytes, now).is_ok()));
    }

    fn corpus(name: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let corpus: Vec<_> = paths.map(|path| fs::read(path).unwrap()).collect();
        assert!(!corpus.is_empty(), "{}: has nothing", folder.display());
        corpus
    }
}

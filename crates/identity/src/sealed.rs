//! Fixed-width records that a visitor keeps for us and cannot change: bytes and a keyed BLAKE3 of
//! them cut to 128 bits, all in base64url without padding.
//!
//! Widths are fixed and nothing is joined from texts, so there is one way to read a record and one
//! text for each. The key is derived from the file's for each purpose: what is signed for one
//! purpose is invalid for another.

use crate::keys::{Key, Keys};
use bytes::Bytes;
use http::HeaderValue;
use std::fmt::Display;
use std::io::Write as _;

/// Bytes of the signature.
pub const MAC: usize = 16;

/// What records of one purpose are signed and checked with.
#[derive(Debug)]
pub struct Seal {
    keys: Keys,
}

impl Seal {
    /// Returns the seal of a purpose; these words distinguish it from all others.
    pub fn new(purpose: &str, keys: &Keys) -> Self {
        Seal { keys: keys.derived(purpose) }
    }

    /// Returns the seal with the keys as they are in their file: that of leases, which were there
    /// first.
    pub fn of_leases(keys: Keys) -> Self {
        Seal { keys }
    }

    /// Returns the id of the key that signs now.
    pub fn key(&self) -> u8 {
        self.keys.signing().id
    }

    /// Signs the record: its last [`MAC`] bytes, over all before. `record[1]` must be
    /// [`Seal::key`].
    pub fn sign(&self, record: &mut [u8]) {
        let signed = record.len() - MAC;
        let mac = self.mac(self.keys.signing(), &record[..signed]);
        record[signed..].copy_from_slice(&mac);
    }

    /// Returns whether the record is signed with a key of ours, the one it names in its second
    /// byte.
    pub fn is_ours(&self, record: &[u8]) -> bool {
        let (signed, mac) = record.split_at(record.len() - MAC);
        self.keys.find(signed[1]).is_some_and(|key| equal_in_constant_time(&self.mac(key, signed), mac))
    }

    /// Returns eight bytes that nobody without the keys can predict and that are the same for the
    /// same `words`.
    pub fn number(&self, words: &[u8]) -> u64 {
        // Not by the key that signs: after a rotation the number is still the same, until the
        // oldest key is removed.
        let hash = self.mac(self.keys.oldest(), words);
        u64::from_le_bytes(hash[..8].try_into().expect("eight of sixteen bytes"))
    }

    fn mac(&self, key: &Key, bytes: &[u8]) -> [u8; MAC] {
        blake3::keyed_hash(&key.secret, bytes).as_bytes()[..MAC]
            .try_into()
            .expect("sixteen of thirty-two bytes")
    }
}

fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

/// Returns the `Set-Cookie` by which a browser keeps what `value` writes under `name` for `age`
/// seconds, 0 to drop it; `flags` are those beside the ones that all have.
pub fn set_cookie(
    name: impl Display,
    value: impl FnOnce(&mut Vec<u8>),
    age: u32,
    flags: &str,
) -> HeaderValue {
    const INFALLIBLE: &str = "a vector takes all that is written to it";
    let mut line = Vec::with_capacity(192);
    write!(line, "{name}=").expect(INFALLIBLE);
    value(&mut line);
    write!(line, "; Path=/; Max-Age={age}; HttpOnly; {flags}").expect(INFALLIBLE);
    HeaderValue::from_maybe_shared(Bytes::from(line)).expect("base64url and our own text are visible ASCII")
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the length of the text of `bytes` bytes, in characters.
pub const fn text_len(bytes: usize) -> usize {
    (bytes * 4).div_ceil(3)
}

/// Appends the bytes as text.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        let letters = (0..=chunk.len()).map(|at| ALPHABET[(word >> (18 - 6 * at) & 63) as usize]);
        out.extend(letters);
    }
}

/// Returns the bytes of a text, if they are exactly `N`, written as [`encode`] would.
pub fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != text_len(N) {
        return None;
    }
    let mut bytes = [0; N];
    for (from, to) in text.chunks(4).zip(bytes.chunks_mut(3)) {
        let mut word = 0;
        for (at, letter) in from.iter().enumerate() {
            let bits = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            word |= u32::from(bits) << (18 - 6 * at);
        }
        let whole = to.iter_mut().enumerate().fold(word, |word, (at, byte)| {
            *byte = (word >> (16 - 8 * at)) as u8;
            word & !(0xFF << (16 - 8 * at))
        });
        // One text for one record: the bits left over at the end are zero.
        if whole != 0 {
            return None;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_is_one_text_for_each_record(bytes in any::<[u8; 32]>(), at in 0_usize..43, letter in any::<u8>()) {
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            prop_assert_eq!(text.len(), text_len(32));
            prop_assert_eq!(decode::<32>(&text), Some(bytes));
            let before = std::mem::replace(&mut text[at], letter);
            prop_assert_eq!(decode::<32>(&text) == Some(bytes), letter == before);
        }

        #[test]
        fn any_bytes_are_met_without_a_stumble(text in proptest::collection::vec(any::<u8>(), 0..90)) {
            let _ = decode::<32>(&text);
            let _ = decode::<55>(&text);
            let _ = decode::<1>(&text);
        }
    }

    #[test]
    fn what_is_signed_for_one_purpose_is_nothing_for_another() {
        let keys = Keys::fresh().unwrap();
        let (one, other) = (Seal::new("one", &keys), Seal::new("other", &keys));
        let mut record = [7; 24];
        record[1] = one.key();
        one.sign(&mut record);
        assert!(one.is_ours(&record) && !other.is_ours(&record));
        assert_ne!(one.number(b"x"), other.number(b"x"));
    }
}

//! The ways to forge an item from what a gateway wrote.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use suimon_identity::mint::SignedItem;
use suimon_model::Rng;

use super::{ALPHABET, Bench, KINDS, NUMBERS, TAG};

/// Bytes of the signature, at the end of each.
pub(super) const MAC: usize = 16;
/// Where the version, the key's id and the kind's tag are in each.
const VERSION: usize = 0;
const KEY: usize = 1;

/// A way to forge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Bits,
    Letters,
    Swapped,
    Fields,
    Sewn,
    Length,
    Alphabet,
    Purpose,
    Names,
    OtherKeys,
    MadeUp,
}

impl Way {
    pub(super) const ALL: [Way; 11] = [
        Way::Bits,
        Way::Letters,
        Way::Swapped,
        Way::Fields,
        Way::Sewn,
        Way::Length,
        Way::Alphabet,
        Way::Purpose,
        Way::Names,
        Way::OtherKeys,
        Way::MadeUp,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Way::Bits => "one to eight bits turned over",
            Way::Letters => "one to four letters replaced",
            Way::Swapped => "bytes, or runs of them, that change places",
            Way::Fields => "fields of another true one",
            Way::Sewn => "two true ones cut at one place and sewn together",
            Way::Length => "cut, lengthened, or two in one",
            Way::Alphabet => "the same bytes in another spelling",
            Way::Purpose => "a true one of another sort",
            Way::Names => "another version, key or kind named in it",
            Way::OtherKeys => "signed rightly, with keys that are not ours",
            Way::MadeUp => "made up, with the right beginning",
        }
    }
}

/// Returns where the fields of a sort end, including the signature; the first begins at 0.
pub(super) fn fields(kept: SignedItem) -> &'static [usize] {
    match kept {
        SignedItem::Ticket => &[1, 2, 4, 5, 9, 11, 17, 21, 25, 27, 31, 35, 37, 53],
        SignedItem::Lease => &[1, 2, 4, 12, 16, 32],
        SignedItem::Invitation => &[1, 2, 4, 8, 16, 32],
    }
}

impl Bench {
    pub(super) fn edited(&self, rng: &mut Rng, kept: SignedItem, way: Way) -> String {
        let text = self.pick(rng, kept);
        match way {
            Way::Bits => {
                let mut bytes = bytes_of(text);
                for _ in 0..=rng.below(8) {
                    let bit = rng.below(bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                text_of(&bytes)
            }
            Way::Letters => {
                let mut letters = text.as_bytes().to_vec();
                for _ in 0..=rng.below(4) {
                    let at = rng.below(letters.len());
                    letters[at] = ALPHABET[rng.below(64)];
                }
                String::from_utf8(letters).expect("letters of the alphabet")
            }
            Way::Swapped => {
                let mut bytes = bytes_of(text);
                let length = 1 + rng.below(8);
                let places = bytes.len() - length + 1;
                let (one, other) = (rng.below(places), rng.below(places));
                (0..length).for_each(|at| bytes.swap(one + at, other + at));
                text_of(&bytes)
            }
            Way::Fields => {
                let (mut bytes, other) = (bytes_of(text), bytes_of(self.pick(rng, kept)));
                let ends = fields(kept);
                for _ in 0..=rng.below(3) {
                    let field = rng.below(ends.len());
                    let begin = if field == 0 { 0 } else { ends[field - 1] };
                    bytes[begin..ends[field]].copy_from_slice(&other[begin..ends[field]]);
                }
                text_of(&bytes)
            }
            Way::Sewn => {
                let other = self.pick(rng, kept);
                let at = rng.below(text.len() + 1);
                format!("{}{}", &text[..at], &other[at..])
            }
            Way::Length => self.of_other_length(rng, kept, text),
            Way::Alphabet => respelt(rng, text),
            Way::Purpose => {
                let others: Vec<SignedItem> =
                    SignedItem::ALL.into_iter().filter(|other| *other != kept).collect();
                let other = others[rng.below(others.len())];
                let other = bytes_of(self.pick(rng, other));
                let mut bytes = bytes_of(text);
                // As long as an item of this sort, even if the other one is not; the signature
                // stays at the end.
                let shared = bytes.len().min(other.len()) - MAC;
                let end = bytes.len() - MAC;
                bytes[..shared].copy_from_slice(&other[..shared]);
                bytes[end..].copy_from_slice(&other[other.len() - MAC..]);
                text_of(&bytes)
            }
            Way::Names => {
                let mut bytes = bytes_of(text);
                for _ in 0..=rng.below(2) {
                    match rng.below(3) {
                        0 => bytes[VERSION] = rng.below(256) as u8,
                        1 => bytes[KEY] = rng.below(3) as u8,
                        _ => bytes[TAG..TAG + 2].copy_from_slice(&self.tags[rng.below(self.tags.len())]),
                    }
                }
                text_of(&bytes)
            }
            Way::OtherKeys => self.others.make(kept, rng.below(KINDS.len()), rng.below(NUMBERS) as u64),
            Way::MadeUp => {
                let mut bytes = bytes_of(text);
                let from = TAG + 2 + rng.below(bytes.len() - MAC - TAG - 1);
                bytes[from..].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
                text_of(&bytes)
            }
        }
    }

    fn of_other_length(&self, rng: &mut Rng, kept: SignedItem, text: &str) -> String {
        let mut bytes = bytes_of(text);
        match rng.below(6) {
            0 => text[..rng.below(text.len())].to_string(),
            1 => text[1 + rng.below(text.len() - 1)..].to_string(),
            2 => {
                let more: Vec<u8> = (0..=rng.below(40)).map(|_| ALPHABET[rng.below(64)]).collect();
                format!("{text}{}", String::from_utf8(more).expect("letters of the alphabet"))
            }
            3 => format!("{text}{}", self.pick(rng, kept)),
            4 => {
                bytes.remove(rng.below(bytes.len()));
                text_of(&bytes)
            }
            _ => {
                let at = rng.below(bytes.len() + 1);
                bytes.insert(at, rng.bits() as u8);
                text_of(&bytes)
            }
        }
    }
}

/// Returns another spelling of the same bytes.
fn respelt(rng: &mut Rng, text: &str) -> String {
    let bytes = bytes_of(text);
    match rng.below(8) {
        0 => STANDARD.encode(&bytes),
        1 => format!("{text}{}", "=".repeat(1 + rng.below(3))),
        2 => {
            // The last letter has unused bits: two for 71 letters, four for 43.
            let (rest, last) = text.split_at(text.len() - 1);
            let place = ALPHABET.iter().position(|letter| *letter == last.as_bytes()[0]).unwrap_or_default();
            let spare = if bytes.len() % 3 == 1 { 16 } else { 4 };
            format!("{rest}{}", char::from(ALPHABET[place - place % spare + 1 + rng.below(spare - 1)]))
        }
        3 => text.replace('-', "+").replace('_', "/") + if text.contains(['-', '_']) { "" } else { "=" },
        4 => {
            let at = rng.below(text.len());
            format!("{}%{:02X}{}", &text[..at], text.as_bytes()[at], &text[at + 1..])
        }
        5 => {
            let blank = [" ", "\t", "\n", "\r\n", "\"", "\0", ".", ","][rng.below(8)];
            let at = rng.below(text.len() + 1);
            format!("{}{blank}{}", &text[..at], &text[at..])
        }
        6 => {
            let turned = text.bytes().map(|letter| if rng.chance(0.5) { turned(letter) } else { letter });
            String::from_utf8(turned.collect()).expect("ASCII")
        }
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Returns a letter in the opposite case.
fn turned(letter: u8) -> u8 {
    if letter.is_ascii_alphabetic() { letter ^ 0x20 } else { letter }
}

pub(super) fn bytes_of(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).expect("true ones are base64url")
}

pub(super) fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

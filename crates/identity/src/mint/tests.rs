//! Whatever is done to a true one, it is none any more.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

const KINDS: [&str; 2] = ["visit", "shopping"];

fn mint_of(lines: &[(u8, char)]) -> Mint {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text: String =
        lines.iter().map(|(id, digit)| format!("{id} {}\n", digit.to_string().repeat(64))).collect();
    std::fs::write(file.path(), text).unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    Mint::new(&Keys::open(file.path()).unwrap(), &KINDS).unwrap()
}

/// A gateway whose keys were rotated once.
fn mint() -> &'static Mint {
    static MINT: LazyLock<Mint> = LazyLock::new(|| mint_of(&[(2, 'b'), (1, 'a')]));
    &MINT
}

/// What may be done to a text.
#[derive(Clone, Debug)]
enum Edit {
    Flip(prop::sample::Index),
    Letter(prop::sample::Index, u8),
    Swap(prop::sample::Index, prop::sample::Index),
    Transplant(prop::sample::Index, prop::sample::Index),
    Cut(prop::sample::Index),
    Append(Vec<u8>),
    Case,
}

fn edit() -> impl Strategy<Value = Edit> {
    use prop::sample::Index;
    prop_oneof![
        any::<Index>().prop_map(Edit::Flip),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Letter(at, byte)),
        (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Edit::Swap(one, other)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Edit::Transplant(from, to)),
        any::<Index>().prop_map(Edit::Cut),
        prop::collection::vec(any::<u8>(), 1..9).prop_map(Edit::Append),
        Just(Edit::Case),
    ]
}

fn kept() -> impl Strategy<Value = SignedItem> {
    prop::sample::select(SignedItem::ALL.to_vec())
}

/// Returns the text with `edit` done to it; `other` is another true one of its sort.
fn edited(text: &[u8], other: &[u8], edit: &Edit) -> Vec<u8> {
    let mut text = text.to_vec();
    if text.is_empty() {
        return text;
    }
    let bytes = URL_SAFE_NO_PAD.decode(&text);
    match (edit, bytes) {
        (Edit::Flip(at), Ok(mut bytes)) => {
            let bit = at.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            URL_SAFE_NO_PAD.encode(bytes).into_bytes()
        }
        (Edit::Swap(one, other), Ok(mut bytes)) => {
            let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
            bytes.swap(one, other);
            URL_SAFE_NO_PAD.encode(bytes).into_bytes()
        }
        (Edit::Transplant(from, to), Ok(mut bytes)) => {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let (from, to) = (from.min(to), from.max(to));
            if let Ok(other) = URL_SAFE_NO_PAD.decode(other)
                && let (Some(there), Some(here)) = (other.get(from..to), bytes.get_mut(from..to))
            {
                here.copy_from_slice(there);
            }
            URL_SAFE_NO_PAD.encode(bytes).into_bytes()
        }
        (Edit::Letter(at, byte), _) => {
            let at = at.index(text.len());
            text[at] = *byte;
            text
        }
        (Edit::Cut(at), _) => {
            text.truncate(at.index(text.len()));
            text
        }
        (Edit::Append(more), _) => {
            text.extend_from_slice(more);
            text
        }
        (Edit::Case, _) => text.iter().map(|letter| letter ^ 0x20).collect(),
        (Edit::Flip(_) | Edit::Swap(..) | Edit::Transplant(..), Err(_)) => text,
    }
}

#[test]
fn true_ones_are_taken_and_each_is_another() {
    let mint = mint();
    for kept in SignedItem::ALL {
        let mut seen = std::collections::HashSet::new();
        for number in 0..1000 {
            for kind in 0..KINDS.len() {
                let text = mint.make(kept, kind, number);
                assert!(mint.takes(kept, text.as_bytes()), "{kept:?} {number}");
                assert!(seen.insert(text));
            }
        }
    }
}

#[test]
fn one_sort_is_none_of_another_and_others_keys_are_none_of_ours() {
    let mint = mint();
    let strangers = [mint_of(&[(2, 'c'), (1, 'd')]), mint_of(&[(2, 'a'), (1, 'b')]), mint_of(&[(9, 'b')])];
    for kept in SignedItem::ALL {
        let text = mint.make(kept, 0, 5);
        for other in SignedItem::ALL.into_iter().filter(|other| *other != kept) {
            assert!(!mint.takes(other, text.as_bytes()), "{kept:?} as {other:?}");
        }
        for stranger in &strangers {
            assert!(!mint.takes(kept, stranger.make(kept, 0, 5).as_bytes()), "{kept:?}");
        }
        let before = mint_of(&[(1, 'a')]).make(kept, 0, 5);
        assert!(mint.takes(kept, before.as_bytes()), "{kept:?} of the key that signed before");
    }
}

#[test]
fn there_is_one_way_to_write_each() {
    let mint = mint();
    for (kept, number) in
        SignedItem::ALL.into_iter().flat_map(|kept| (0..200).map(move |number| (kept, number)))
    {
        let text = mint.make(kept, 1, number);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        let mut others = vec![
            STANDARD.encode(&bytes),
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE.encode(&bytes),
            format!(" {text}"),
            format!("{text} "),
            format!("\"{text}\""),
            text.replace('-', "%2D"),
            text.replace('_', "%5F"),
            text.to_lowercase(),
            text.to_uppercase(),
            String::new(),
        ];
        // The bits that the last letter has left over.
        let (rest, last) = text.split_at(text.len() - 1);
        others.extend(
            ('0'..='z')
                .filter(|letter| letter.is_ascii_alphanumeric())
                .map(|letter| format!("{rest}{letter}")),
        );
        assert!(!last.is_empty());
        for other in others.iter().filter(|other| **other != text) {
            assert!(!mint.takes(kept, other.as_bytes()), "{kept:?}: {other} for {text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_to_a_true_one_it_is_none(
        kept in kept(),
        number in 0_u64..1 << 40,
        kind in 0..KINDS.len(),
        other in 0_u64..1 << 40,
        edits in prop::collection::vec(edit(), 1..5),
    ) {
        let mint = mint();
        let (own, other) = (mint.make(kept, kind, number), mint.make(kept, kind, other));
        let forged = edits.iter().fold(own.clone().into_bytes(), |text, edit| edited(&text, other.as_bytes(), edit));
        let is_true = forged == own.as_bytes() || forged == other.as_bytes();
        prop_assert_eq!(mint.takes(kept, &forged), is_true, "{:?}: {}", kept, String::from_utf8_lossy(&forged));
    }

    #[test]
    fn no_bytes_are_one_and_none_are_a_reason_to_panic(text in prop::collection::vec(any::<u8>(), 0..120)) {
        let mint = mint();
        for kept in SignedItem::ALL {
            prop_assert!(!mint.takes(kept, &text));
            let as_text = URL_SAFE_NO_PAD.encode(&text);
            prop_assert!(!mint.takes(kept, as_text.as_bytes()));
        }
    }
}

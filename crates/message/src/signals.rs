//! What the application says to the gateway in headers of its answers, and what it is told in those of its requests.
//!
//! | header of an answer | says |
//! |---|---|
//! | `Suimon-Session: end` | the session has ended: its place is free |
//! | `Suimon-Session: checkout` | its visitor pays: it goes first in every queue |
//! | `Suimon-Session: weight=N` | it is worth N others, 1 to 100, of the first that says so |
//! | `Suimon-Line: closed` | sold out: everybody who waits is told so, and no number is drawn |
//! | `Suimon-Line: open` | and the contrary |
//! | `Suimon-Pass: once` | of the page where passes are to be had: its visitor may draw a number |
//! | `Suimon-Pass: account=NAME` | of that page: who they are, of whom one place at a time is enough |
//!
//! | header of a request | tells |
//! |---|---|
//! | `Suimon-Waiting: N` | visitors who wait to be let in, in line and held |
//! | `Suimon-Held: N` | milliseconds this request was held |
//!
//! None of them ever reaches a client, or comes from one: `headers` sees to it.

use crate::headers::list;
use http::header::{HeaderMap, HeaderName};
use suimon_gate::Word;
use suimon_line::Command;

const SESSION: HeaderName = HeaderName::from_static("suimon-session");
const LINE: HeaderName = HeaderName::from_static("suimon-line");
const PASS: HeaderName = HeaderName::from_static("suimon-pass");
/// Tells the application how many visitors wait.
pub const WAITING: HeaderName = HeaderName::from_static("suimon-waiting");
/// Tells the application how long a request was held.
pub const HELD: HeaderName = HeaderName::from_static("suimon-held");

/// The longest name of an account, bytes.
const ACCOUNT_MAX: usize = 200;

/// What the application says of a visitor who may draw a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Passed {
    /// One number.
    Once,
    /// They are who has this name, and may have one place at a time.
    Account(String),
}

/// Returns what is said of a visitor who may draw a number.
pub fn of_pass(headers: &HeaderMap) -> Option<Passed> {
    // A name is taken as it stands, commas and all.
    let word = headers.get(PASS)?.to_str().ok()?.trim_ascii();
    if word == "once" {
        return Some(Passed::Once);
    }
    let name = word.strip_prefix("account=")?;
    (1..=ACCOUNT_MAX).contains(&name.len()).then(|| Passed::Account(name.to_owned()))
}

/// Returns what is said of the session.
pub fn of_session(headers: &HeaderMap) -> impl Iterator<Item = Word> {
    list(headers, &SESSION).filter_map(|word| match word {
        "end" => Some(Word::Ends),
        "checkout" => Some(Word::Checkout),
        word => {
            let weight = word.strip_prefix("weight=")?.parse().ok()?;
            (1..=Word::WEIGHT_MAX).contains(&weight).then_some(Word::Weighs(weight))
        }
    })
}

/// Returns what is said of the line; the last word counts.
pub fn of_line(headers: &HeaderMap) -> Option<Command> {
    let commands = list(headers, &LINE).filter_map(|word| match word {
        "closed" => Some(Command::Close),
        "open" => Some(Command::Move),
        _ => None,
    });
    commands.last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;
    use suimon_testing::headers;

    #[test]
    fn words_are_known_and_what_is_none_is_ignored() {
        let of = |lines: &[&str]| of_session(&headers(&SESSION, lines)).collect::<Vec<_>>();
        assert_eq!(of(&["checkout, weight=3"]), [Word::Checkout, Word::Weighs(3)]);
        assert_eq!(of(&["end", "Checkout"]), [Word::Ends]);
        assert_eq!(of(&["weight=0", "weight=101", "weight=x", "weight", ""]), []);
        let line = |lines: &[&str]| of_line(&headers(&LINE, lines));
        assert_eq!(line(&["closed"]), Some(Command::Close));
        assert_eq!(line(&["closed", "open"]), Some(Command::Move));
        assert_eq!(line(&["shut"]), None);
        let pass = |line: &str| of_pass(&headers(&PASS, &[line]));
        assert_eq!(pass("once"), Some(Passed::Once));
        assert_eq!(pass("account=Doe, J."), Some(Passed::Account("Doe, J.".to_owned())));
        assert_eq!(
            (pass("account="), pass("twice"), pass(&format!("account={}", "x".repeat(201)))),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_met_without_a_stumble(
            lines in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..60),
                    "(end|checkout|weight=[0-9]{0,12}|closed|open|[ ,=-]){0,5}".prop_map(String::into_bytes),
                ],
                0..4,
            ),
        ) {
            let mut headers = HeaderMap::new();
            for line in lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
                headers.append(&SESSION, line.clone());
                headers.append(&LINE, line.clone());
                headers.append(&PASS, line);
            }
            for word in of_session(&headers) {
                // Said again as it was understood, it is understood the same.
                let said = match word {
                    Word::Ends => "end".to_owned(),
                    Word::Checkout => "checkout".to_owned(),
                    Word::Weighs(weight) => format!("weight={weight}"),
                };
                prop_assert_eq!(of_session(&self::headers(&SESSION, &[&said])).collect::<Vec<_>>(), [word]);
                prop_assert!(!matches!(word, Word::Weighs(weight) if !(1..=Word::WEIGHT_MAX).contains(&weight)));
            }
            let _ = of_line(&headers);
            prop_assert!(!matches!(of_pass(&headers), Some(Passed::Account(name)) if name.len() > ACCOUNT_MAX));
        }
    }
}

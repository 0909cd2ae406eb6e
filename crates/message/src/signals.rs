//! Signals between the application and the gateway, in headers of answers and of requests.
//!
//! | header of an answer | says |
//! |---|---|
//! | `Suimon-Session: end` | the session has ended and gives up its place |
//! | `Suimon-Session: checkout` | the visitor is paying: the session goes first in every queue |
//! | `Suimon-Session: weight=N` | the session counts as N sessions, 1 to 100; the first such header
//! counts |
//! | `Suimon-Line: closed` | sold out: waiting visitors are told so, and no tickets are issued |
//! | `Suimon-Line: open` | no longer sold out |
//! | `Suimon-Pass: once` | on the page that gives passes: its visitor may get one ticket |
//! | `Suimon-Pass: account=NAME` | on that page: the visitor has this account, which may hold one
//! place at a time |
//! | `Suimon-Paused: SECONDS` | for how long the application has paused inside this request |
//!
//! | header of a request | says |
//! |---|---|
//! | `Suimon-Waiting: N` | visitors who wait to be admitted, in line and held |
//! | `Suimon-Held: N` | milliseconds this request was held |
//! | `Suimon-Pause: RATIO` | seconds of pause that the application is to take for each second of work |
//!
//! None of them is ever passed to a client or accepted from one: `headers` removes them.

use crate::lists::list;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;
use suimon_gate::SessionSignal;
use suimon_line::Command;

const SESSION: HeaderName = HeaderName::from_static("suimon-session");
const LINE: HeaderName = HeaderName::from_static("suimon-line");
const PASS: HeaderName = HeaderName::from_static("suimon-pass");
/// Tells the application how many visitors wait.
pub const WAITING: HeaderName = HeaderName::from_static("suimon-waiting");
/// Tells the application how long a request was held.
pub const HELD: HeaderName = HeaderName::from_static("suimon-held");
/// Tells the application how much to pause inside a request.
const PAUSE: HeaderName = HeaderName::from_static("suimon-pause");
const PAUSED: HeaderName = HeaderName::from_static("suimon-paused");

/// A ratio is told to the thousandth.
const PAUSE_STEPS: f64 = 1e3;

/// The longest text of a number of seconds, bytes.
const SECONDS_BYTES_MAX: usize = 16;

/// The longest name of an account, bytes.
const ACCOUNT_MAX: usize = 200;

/// What the application says of a visitor who may get a ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PassGrant {
    /// One ticket.
    Once,
    /// The visitor has the account of this name, which may hold one place at a time.
    Account(String),
}

/// Returns what the application says of a visitor who may get a ticket.
pub fn pass_grant(headers: &HeaderMap) -> Option<PassGrant> {
    // A name is taken whole, including commas.
    let word = headers.get(PASS)?.to_str().ok()?.trim_ascii();
    if word == "once" {
        return Some(PassGrant::Once);
    }
    let name = word.strip_prefix("account=")?;
    (1..=ACCOUNT_MAX).contains(&name.len()).then(|| PassGrant::Account(name.to_owned()))
}

/// Returns the signals about the session.
pub fn session_signals(headers: &HeaderMap) -> impl Iterator<Item = SessionSignal> {
    list(headers, &SESSION).filter_map(|word| match word {
        "end" => Some(SessionSignal::Ends),
        "checkout" => Some(SessionSignal::Checkout),
        word => {
            let weight = word.strip_prefix("weight=")?.parse().ok()?;
            (1..=SessionSignal::WEIGHT_MAX).contains(&weight).then_some(SessionSignal::Weighs(weight))
        }
    })
}

/// Returns the command for the line; the last one counts.
pub fn line_command(headers: &HeaderMap) -> Option<Command> {
    let commands = list(headers, &LINE).filter_map(|word| match word {
        "closed" => Some(Command::Close),
        "open" => Some(Command::Move),
        _ => None,
    });
    commands.last()
}

/// Returns the header that tells the application how much to pause inside a request, if it is to.
pub fn pause(ratio: f64) -> Option<(HeaderName, HeaderValue)> {
    // Rounded up: one that pauses a little less than it should is held back for the rest.
    let ratio = (ratio * PAUSE_STEPS).ceil() / PAUSE_STEPS;
    let value = HeaderValue::try_from(format!("{ratio}")).ok().filter(|_| ratio > 0.0)?;
    Some((PAUSE, value))
}

/// Returns for how long the application says it has paused inside a request. The last one counts.
pub fn paused(headers: &HeaderMap) -> Option<Duration> {
    let word = headers.get_all(PAUSED).iter().next_back()?.to_str().ok()?.trim_ascii();
    // Digits and a point: no signs, no exponents, no names of numbers.
    let is_plain =
        word.len() <= SECONDS_BYTES_MAX && word.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    Duration::try_from_secs_f64(word.parse().ok().filter(|_| is_plain)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use suimon_testing::headers;

    #[test]
    fn words_are_known_and_what_is_none_is_ignored() {
        let of = |lines: &[&str]| session_signals(&headers(&SESSION, lines)).collect::<Vec<_>>();
        assert_eq!(of(&["checkout, weight=3"]), [SessionSignal::Checkout, SessionSignal::Weighs(3)]);
        assert_eq!(of(&["end", "Checkout"]), [SessionSignal::Ends]);
        assert_eq!(of(&["weight=0", "weight=101", "weight=x", "weight", ""]), []);
        let line = |lines: &[&str]| line_command(&headers(&LINE, lines));
        assert_eq!(line(&["closed"]), Some(Command::Close));
        assert_eq!(line(&["closed", "open"]), Some(Command::Move));
        assert_eq!(line(&["shut"]), None);
        let pass = |line: &str| pass_grant(&headers(&PASS, &[line]));
        assert_eq!(pass("once"), Some(PassGrant::Once));
        assert_eq!(pass("account=Doe, J."), Some(PassGrant::Account("Doe, J.".to_owned())));
        assert_eq!(
            (pass("account="), pass("twice"), pass(&format!("account={}", "x".repeat(201)))),
            (None, None, None)
        );
    }

    #[test]
    fn a_ratio_is_told_in_digits() {
        let of = |ratio| pause(ratio).map(|(_, value)| value.to_str().unwrap().to_owned());
        assert_eq!((of(0.0), of(2.0).as_deref()), (None, Some("2")));
        assert_eq!((of(1.0 / 3.0).as_deref(), of(99.0).as_deref()), (Some("0.334"), Some("99")));
        assert_eq!(of(1e-9).as_deref(), Some("0.001"));
    }

    #[test]
    fn what_was_paused_is_a_plain_number_of_seconds() {
        let of = |lines: &[&str]| paused(&headers(&PAUSED, lines));
        assert_eq!(of(&["0.25"]), Some(Duration::from_millis(250)));
        assert_eq!(of(&["1", " 2.5 "]), Some(Duration::from_millis(2500)));
        for other in ["", "-1", "1e3", "inf", "NaN", "1.2.3", "1,5", "00000000000000001"] {
            assert_eq!(of(&[other]), None, "{other}");
        }
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
                headers.append(&PASS, line.clone());
                headers.append(&PAUSED, line);
            }
            for word in session_signals(&headers) {
                // Written again as it was understood, it is understood the same.
                let said = match word {
                    SessionSignal::Ends => "end".to_owned(),
                    SessionSignal::Checkout => "checkout".to_owned(),
                    SessionSignal::Weighs(weight) => format!("weight={weight}"),
                };
                prop_assert_eq!(session_signals(&self::headers(&SESSION, &[&said])).collect::<Vec<_>>(), [word]);
                prop_assert!(!matches!(word, SessionSignal::Weighs(weight) if !(1..=SessionSignal::WEIGHT_MAX).contains(&weight)));
            }
            let _ = (line_command(&headers), paused(&headers));
            prop_assert!(!matches!(pass_grant(&headers), Some(PassGrant::Account(name)) if name.len() > ACCOUNT_MAX));
        }
    }
}

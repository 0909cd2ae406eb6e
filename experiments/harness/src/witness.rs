//! Visitors who come in the middle of a fault and ask until they are served.

use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::http::Visitor;
use crate::trouble::{Result, Trouble};

/// How many come, when, and from one to the next.
pub(crate) const WITNESSES: usize = 5;
const AFTER: Duration = Duration::from_millis(1500);
const EVERY: Duration = Duration::from_millis(300);
/// How long one waits for an answer, between two questions at least, and in all.
const PATIENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(2200);
const LASTS: Duration = Duration::from_secs(60);

/// A visitor who came while nodes were gone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Witness {
    /// Answers: seconds since the first question, the status, the state of the line, and the place in it.
    pub(crate) answers: Vec<(f64, u16, String, Option<u64>)>,
    /// When it was served.
    pub(crate) served_after_s: Option<f64>,
}

impl Witness {
    /// Returns whether it was told that the application is down.
    pub(crate) fn was_told(&self) -> bool {
        self.answers.iter().any(|(_, _, state, _)| state == "application_down")
    }

    /// Returns whether it kept the place that it got, if any, and was served.
    pub(crate) fn kept_place(&self) -> bool {
        let places: Vec<u64> = self.answers.iter().filter_map(|(.., place)| *place).collect();
        self.served_after_s.is_some() && places.windows(2).all(|pair| pair[1] <= pair[0])
    }

    /// Returns what happened to it, in one line.
    pub(crate) fn line(&self) -> String {
        let told = |(at, status, state, place): &(f64, u16, String, Option<u64>)| {
            let place = place.map_or(String::new(), |place| format!(" {place}"));
            format!("{at:.1} s: {status} {state}{place}")
        };
        let told: Vec<String> = self.answers.iter().map(told).collect();
        let served = self.served_after_s.map_or("never".to_owned(), |at| format!("at {at:.1} s"));
        format!("{}; served {served}", told.join(", "))
    }
}

/// Witnesses on their way.
pub(crate) struct Witnesses(Vec<JoinHandle<Witness>>);

impl Witnesses {
    /// Returns those who begin a while from now to ask `to` for `path`, as nodes of the laboratory serve it.
    pub(crate) fn send(to: SocketAddr, path: &'static str) -> Self {
        let go = |number: usize| {
            thread::spawn(move || {
                thread::sleep(AFTER + EVERY * number as u32);
                ask(to, path)
            })
        };
        Witnesses((0..WITNESSES).map(go).collect())
    }

    /// Returns what they saw, once the last is served or has given up.
    pub(crate) fn end(self) -> Result<Vec<Witness>> {
        let panicked = |_| Trouble::Failed("a witness panicked".to_owned());
        self.0.into_iter().map(|witness| witness.join().map_err(panicked)).collect()
    }
}

fn ask(to: SocketAddr, path: &str) -> Witness {
    let mut visitor = Visitor::new(to, PATIENCE);
    let began = Instant::now();
    let mut witness = Witness { answers: Vec::new(), served_after_s: None };
    while began.elapsed() < LASTS {
        let Ok(answer) = visitor.ask(path, None) else {
            witness.answers.push((began.elapsed().as_secs_f64(), 0, "no answer".to_owned(), None));
            thread::sleep(ASK_AGAIN);
            continue;
        };
        let at = began.elapsed().as_secs_f64();
        if answer.status == 200 && answer.body.starts_with(b"served by") {
            witness.served_after_s = Some(at);
            break;
        }
        let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let state = said["state"].as_str().unwrap_or("none").to_owned();
        witness.answers.push((at, answer.status, state, said["position"].as_u64()));
        let after = said["poll_after_s"].as_f64().filter(|after| (0.0..10.0).contains(after)).unwrap_or(1.0);
        thread::sleep(Duration::from_secs_f64(after).max(ASK_AGAIN));
    }
    witness
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_keeps_its_place_if_it_never_moves_back() {
        let answer = |place| (1.0, 503, "application_down".to_owned(), Some(place));
        let with = |places: &[u64]| Witness {
            answers: places.iter().map(|place| answer(*place)).collect(),
            served_after_s: Some(9.0),
        };
        assert!(with(&[3, 3, 1]).kept_place() && with(&[3]).was_told());
        assert!(!with(&[3, 4]).kept_place());
    }
}

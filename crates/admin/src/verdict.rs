//! The verdict in one sentence: made here once, and shown alike by `suimon status`, in `/api/state`
//! and everywhere else.

use crate::nodes::NodeState;
use crate::state::{KindState, Totals};
use serde::{Deserialize, Serialize};

/// It is reported once this many of the requests that ended within the last minute have failed, and
/// this share of them.
const FAILED_MIN: f64 = 3.0;
const FAILED_SHARE: f64 = 0.05;

/// How things stand.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// `ok`, `busy` (requests wait, as they should), `warning` or `critical`.
    pub level: String,
    /// One word: `idle`, `open`, `holding`, `line`, `full`, `paused`, `opening`, `closed`,
    /// `degraded`, `application_down` or `draining`.
    pub situation: String,
    /// The same for people.
    pub sentence: String,
    /// Since when it is in this situation, seconds since 1970.
    pub since: f64,
}

/// Remembers since when it holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct SituationClock {
    situation: String,
    at: f64,
}

impl SituationClock {
    /// Returns the verdict with its time, at `now`, seconds since 1970.
    pub(crate) fn note(&mut self, verdict: Verdict, now: f64) -> Verdict {
        if verdict.situation != self.situation {
            self.situation.clone_from(&verdict.situation);
            self.at = now;
        }
        Verdict { since: self.at, ..verdict }
    }
}

/// Returns the verdict.
pub(crate) fn of(is_draining: bool, totals: &Totals, kinds: &[KindState], nodes: &[NodeState]) -> Verdict {
    let up = nodes.iter().filter(|node| node.status == "up").count();
    let inside = count(totals.sessions_active as u64, "active session", "active sessions");
    let waiting = people(totals.in_line);
    let is = |state: &'static str| {
        move |kind: &&KindState| kind.line.as_ref().is_some_and(|line| line.state == state)
    };
    let stopped = |state| kinds.iter().find(is(state)).map(|kind| of_kind(kind, kinds));
    if is_draining {
        let sentence = format!("The gateway is shutting down and admits nobody; {inside}.");
        return verdict("warning", "draining", sentence);
    }
    if up == 0 && !nodes.is_empty() {
        let sentence = format!("The application does not answer; {waiting}, {inside}.");
        return verdict("critical", "application_down", sentence);
    }
    if let Some(of) = stopped("paused") {
        let sentence = format!("The line{of} is paused, nobody is admitted; {waiting}, {inside}.");
        return verdict("warning", "paused", sentence);
    }
    if let Some(of) = stopped("closed") {
        let sentence = format!("The line{of} is closed, newcomers are turned away; {inside}.");
        return verdict("warning", "closed", sentence);
    }
    if let Some(of) = stopped("opening") {
        let sentence = format!("The line{of} is not open yet: {waiting}.");
        return verdict("busy", "opening", sentence);
    }
    let (level, situation, sentence) = flowing(totals, kinds, &inside);
    let lost = lost(kinds);
    let partly = (up < nodes.len()).then(|| format!(" {up} of {} nodes are up.", nodes.len()));
    match (&lost, &partly) {
        (None, None) => verdict(level, situation, sentence),
        (_, Some(partly)) => {
            verdict("warning", "degraded", format!("{sentence}{partly}{}", lost.unwrap_or_default()))
        }
        (Some(lost), None) => verdict("warning", situation, format!("{sentence}{lost}")),
    }
}

/// Returns the verdict while the gateway works normally.
fn flowing(totals: &Totals, kinds: &[KindState], inside: &str) -> (&'static str, &'static str, String) {
    let busiest = kinds.iter().max_by_key(|kind| kind.in_line.unwrap_or(0));
    if let Some(kind) = busiest.filter(|kind| kind.in_line.unwrap_or(0) > kind.held as u64) {
        let told = match (kind.wait.low_seconds, kind.wait.high_seconds) {
            (Some(low), Some(high)) => format!(", {} for a newcomer", range(low, high)),
            _ => String::new(),
        };
        let why = match (kind.sessions_max, kind.gate.as_str()) {
            (Some(most), "full") => {
                format!("{} of {most} sessions in use, {} of them active", kind.remembered, kind.active)
            }
            _ => format!("{:.1} admitted per second, {inside}", kind.last_minute.admitted),
        };
        return ("busy", "line", format!("{}{told}; {why}.", people(totals.in_line)));
    }
    if totals.held > 0 {
        let longest = kinds.iter().filter_map(|kind| kind.wait.held_seconds).fold(0.0, f64::max);
        let held = count(totals.held as u64, "newcomer is held", "newcomers are held");
        return ("busy", "holding", format!("{held} for up to {}; {inside}.", duration(longest)));
    }
    if let Some(kind) = kinds.iter().find(|kind| kind.gate == "full") {
        let most = kind.sessions_max.unwrap_or_default();
        return ("ok", "full", format!("{} of {most} sessions in use; nobody waits.", kind.remembered));
    }
    if totals.requests == 0 {
        return ("ok", "idle", "No requests yet.".to_owned());
    }
    let queued = match totals.queued {
        0 => String::new(),
        queued => {
            format!(", {}", count(queued as u64, "request waits for a slot", "requests wait for a slot"))
        }
    };
    ("ok", "open", format!("Everyone is admitted at once; {inside}{queued}."))
}

/// Returns a sentence about sessions that ended badly within the last minute.
fn lost(kinds: &[KindState]) -> Option<String> {
    let sum = |of: fn(&KindState) -> f64| kinds.iter().map(|kind| of(kind) * kind.last_minute.seconds).sum();
    let failed: f64 = sum(|kind| kind.last_minute.failed);
    let ended: f64 =
        failed + sum(|kind| kind.last_minute.finished + kind.last_minute.silent + kind.last_minute.abandoned);
    (failed > FAILED_MIN - 0.5 && failed > FAILED_SHARE * ended)
        .then(|| format!(" {failed:.0} sessions ended with an error in the last minute."))
}

fn verdict(level: &str, situation: &str, sentence: String) -> Verdict {
    Verdict { level: level.to_owned(), situation: situation.to_owned(), sentence, since: 0.0 }
}

/// Returns whose line it is, where there are several kinds.
fn of_kind(kind: &KindState, kinds: &[KindState]) -> String {
    if kinds.len() > 1 { format!(" of {}", kind.name) } else { String::new() }
}

fn people(waiting: u64) -> String {
    match waiting {
        0 => "Nobody waits".to_owned(),
        1 => "1 visitor waits".to_owned(),
        some => format!("{some} visitors wait"),
    }
}

fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// Returns a wait from one time to another, in everyday words.
pub(crate) fn range(low: f64, high: f64) -> String {
    if high < 90.0 {
        return format!("{:.0}\u{2013}{:.0} s", low.floor(), high.ceil());
    }
    let (low, high) = ((low / 60.0).floor(), (high / 60.0).ceil());
    if high - low < 0.5 { format!("{high:.0} min") } else { format!("{low:.0}\u{2013}{high:.0} min") }
}

fn duration(seconds: f64) -> String {
    if seconds < 9.95 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::state::{State, tests::Still};
    use crate::windows::Windows;
    use suimon_gate::GateState;

    fn told(still: &Still) -> Verdict {
        State::of(still, "9.9.9", &Windows::default(), &mut SituationClock::default(), 0).verdict
    }

    fn short(still: &Still) -> (String, String) {
        let Verdict { level, situation, .. } = told(still);
        (level, situation)
    }

    fn is(level: &str, situation: &str) -> (String, String) {
        (level.to_owned(), situation.to_owned())
    }

    #[test]
    fn it_is_calm_while_nobody_waits() {
        let mut still = Still::default();
        assert_eq!(told(&still).sentence, "Everyone is admitted at once; 24 active sessions.");
        still.view.routes[0].gate.waiting = 1;
        assert!(
            told(&still).sentence.ends_with("24 active sessions, 1 request waits for a slot."),
            "{}",
            told(&still).sentence
        );
        still.view.requests = 0;
        assert_eq!(short(&still), is("ok", "idle"));
    }

    #[test]
    fn who_waits_and_how_long_is_said_of_a_line() {
        let mut still = Still::default();
        still.waits(480, (240.0, 300.0));
        assert_eq!(short(&still), is("busy", "line"));
        let sentence = told(&still).sentence;
        assert!(sentence.starts_with("480 visitors wait, 4–5 min for a newcomer; "), "{sentence}");
        let kind = &mut still.view.kinds[0].1;
        (kind.gate_state, kind.sessions_max, kind.remembered) = (GateState::Full, Some(3), 3);
        assert!(told(&still).sentence.contains("3 of 3 sessions in use"), "{}", told(&still).sentence);
    }

    #[test]
    fn a_dead_application_is_said_before_anything_else() {
        let mut still = Still::default();
        still.waits(480, (240.0, 300.0));
        still.node_status = "down";
        assert_eq!(short(&still), is("critical", "application_down"));
        assert!(told(&still).sentence.contains("480 visitors wait"));
        assert!(!still.is_draining());
    }

    #[test]
    fn sessions_that_end_in_an_error_are_a_warning() {
        let mut still = Still::default();
        (still.view.kinds[0].1.ends.silent, still.view.kinds[0].1.ends.failed) = (90, 2);
        assert_eq!(short(&still), is("ok", "open"), "one or two are chance");
        still.view.kinds[0].1.ends.failed = 9;
        assert_eq!(short(&still), is("warning", "open"));
    }

    #[test]
    fn it_is_known_since_when_it_is_so() {
        let mut since = SituationClock::default();
        let mut at =
            |situation: &str, now| since.note(verdict("ok", situation, String::new()), now).since.to_bits();
        let told = [at("open", 1.0), at("open", 2.0), at("line", 3.0), at("line", 9.0)];
        assert_eq!(told, [1.0, 1.0, 3.0, 3.0].map(f64::to_bits));
    }
}

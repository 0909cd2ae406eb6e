//! The notice to one visitor, before it has a form: the page puts it into words, its twin into
//! JSON.

use serde_json::{Map, Value};
use std::time::Duration;
use suimon_line::{PositionStatus, Wait};

/// A wait of at most this many seconds is nearly over.
const SOON: u32 = 30;
/// A visitor is told that the line is slower than before if the turn comes later by this share of
/// the wait, ...
const SLOWER: f64 = 0.25;
/// ... and not within this many seconds of the first time that was shown: that one is a guess.
const SLOWER_AFTER: u32 = 30;
/// How long the page announces its visitor's turn before it lets them in, seconds: time to read it.
/// Their session has begun by then.
const SHOWN: u32 = 2;
/// Seconds after which a called visitor who was not held at the gate is to come again.
const NEXT_RETRY: u32 = 3;

/// How things stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeState {
    Waiting,
    Soon,
    Next,
    YourTurn,
    Paused,
    Closed,
    Opening,
    Full,
    Pass,
    ApplicationDown,
}

impl NoticeState {
    /// All of them.
    pub const ALL: [NoticeState; 10] = [
        NoticeState::Waiting,
        NoticeState::Soon,
        NoticeState::Next,
        NoticeState::YourTurn,
        NoticeState::Paused,
        NoticeState::Closed,
        NoticeState::Opening,
        NoticeState::Full,
        NoticeState::Pass,
        NoticeState::ApplicationDown,
    ];

    /// Returns its name, which never changes.
    pub fn name(self) -> &'static str {
        match self {
            NoticeState::Waiting => "waiting",
            NoticeState::Soon => "soon",
            NoticeState::Next => "next",
            NoticeState::YourTurn => "your_turn",
            NoticeState::Paused => "paused",
            NoticeState::Closed => "closed",
            NoticeState::Opening => "opening",
            NoticeState::Full => "full",
            NoticeState::Pass => "pass",
            NoticeState::ApplicationDown => "application_down",
        }
    }
}

/// The notice. Times of day are seconds since 1970.
#[derive(Clone, PartialEq, Debug)]
pub struct WaitNotice {
    pub state: NoticeState,
    /// The number drawn, counted from 1.
    pub position: Option<u64>,
    /// People present ahead, never more than shown before.
    pub ahead: Option<u64>,
    /// The time left, from and to, seconds.
    pub eta: Option<(u32, u32)>,
    /// Whether the turn comes later than predicted before.
    pub is_slower: bool,
    pub poll_after: u32,
    pub updated_at: u32,
    /// When the line opens, and until when the turn or the place is held.
    pub opens_at: Option<u32>,
    pub expires_at: Option<u32>,
    /// Where to get a pass, with which a number may be drawn.
    pub pass_url: Option<String>,
    /// The operator's words.
    pub message: String,
}

/// What was shown before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastNotice {
    /// The fewest people ahead.
    pub fewest_ahead: u32,
    /// The latest time of the turn as shown; 0: nothing was shown.
    pub turn_by: u32,
    /// When the number was drawn.
    pub drawn: u32,
}

impl LastNotice {
    /// Nothing.
    pub const NOTHING: LastNotice = LastNotice { fewest_ahead: u32::MAX, turn_by: 0, drawn: 0 };
}

impl WaitNotice {
    /// Returns the notice of `standing` at `now`, and what to remember of it. `time_of` turns the
    /// gate's time into seconds since 1970.
    pub fn of(
        standing: PositionStatus,
        before: LastNotice,
        now: u32,
        time_of: impl Fn(suimon_model::Instant) -> u32,
    ) -> (WaitNotice, LastNotice) {
        let mut notice = WaitNotice {
            state: NoticeState::Closed,
            position: None,
            ahead: None,
            eta: None,
            is_slower: false,
            poll_after: 60,
            updated_at: now,
            opens_at: None,
            expires_at: None,
            pass_url: None,
            message: String::new(),
        };
        let mut after = before;
        match standing {
            PositionStatus::Called(wait) => {
                if wait.high.is_zero() {
                    // Nobody knows when a session ends, and only then can this one begin.
                    notice.note_ahead(wait.ahead, &mut after);
                } else {
                    notice.note_wait(wait, before, &mut after);
                }
                notice.state = NoticeState::Next;
                notice.poll_after = NEXT_RETRY;
            }
            PositionStatus::Closed => {}
            PositionStatus::Opening(at, wait) => {
                notice.state = NoticeState::Opening;
                notice.opens_at = Some(time_of(at));
                notice.poll_after = whole_seconds(wait.poll_after);
            }
            PositionStatus::Paused(wait) => {
                notice.state = NoticeState::Paused;
                notice.note_ahead(wait.ahead, &mut after);
                notice.poll_after = whole_seconds(wait.poll_after);
            }
            PositionStatus::ApplicationDown(wait) => {
                notice.state = NoticeState::ApplicationDown;
                notice.note_ahead(wait.ahead, &mut after);
                notice.poll_after = whole_seconds(wait.poll_after);
            }
            PositionStatus::Waiting(wait) => notice.note_wait(wait, before, &mut after),
        }
        (notice, after)
    }

    fn note_wait(&mut self, wait: Wait, before: LastNotice, after: &mut LastNotice) {
        let low = u32::try_from(wait.low.as_secs()).unwrap_or(u32::MAX);
        let high = whole_seconds(wait.high).max(low);
        if high == 0 && wait.ahead > 0 {
            // It is not known yet.
            self.state = NoticeState::Waiting;
            self.note_ahead(wait.ahead, after);
            self.poll_after = whole_seconds(wait.poll_after);
            return;
        }
        self.state = if high <= SOON { NoticeState::Soon } else { NoticeState::Waiting };
        self.note_ahead(wait.ahead, after);
        self.eta = Some((low, high));
        self.poll_after = whole_seconds(wait.poll_after);
        let turn_by = self.updated_at.saturating_add(high);
        let was_told = before.turn_by > 0;
        self.is_slower = was_told
            && self.updated_at.saturating_sub(before.drawn) >= SLOWER_AFTER
            && f64::from(turn_by.saturating_sub(before.turn_by)) > SLOWER * f64::from(high).max(60.0);
        after.turn_by = if was_told && !self.is_slower { turn_by.min(before.turn_by) } else { turn_by };
    }

    fn note_ahead(&mut self, ahead: u64, after: &mut LastNotice) {
        after.fewest_ahead = after.fewest_ahead.min(u32::try_from(ahead).unwrap_or(u32::MAX));
        self.ahead = Some(u64::from(after.fewest_ahead));
    }

    /// Returns it as JSON.
    pub fn json(&self) -> String {
        let mut out = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(name.to_owned(), value);
            }
        };
        put("state", Some(self.state.name().into()));
        put("position", self.position.map(Value::from));
        put("ahead_present", self.ahead.map(Value::from));
        put("eta_low_s", self.eta.map(|(low, _)| low.into()));
        put("eta_high_s", self.eta.map(|(_, high)| high.into()));
        put("slower", self.is_slower.then_some(true.into()));
        put("poll_after_s", Some(self.poll_after.into()));
        put("updated_at", Some(super::time::rfc3339(self.updated_at).into()));
        put("enter_after_s", (self.state == NoticeState::YourTurn).then(|| SHOWN.into()));
        put("opens_at", self.opens_at.map(|at| super::time::rfc3339(at).into()));
        put("expires_at", self.expires_at.map(|at| super::time::rfc3339(at).into()));
        put("pass_url", self.pass_url.as_deref().map(Value::from));
        put("message", (!self.message.is_empty()).then(|| self.message.as_str().into()));
        Value::Object(out).to_string()
    }
}

/// Returns whole seconds, rounded up.
fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs() + u64::from(time.subsec_nanos() > 0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_model::seconds;

    fn wait(ahead: u64, low: f64, high: f64) -> PositionStatus {
        PositionStatus::Waiting(Wait {
            ahead,
            low: seconds(low),
            high: seconds(high),
            poll_after: seconds(9.2),
        })
    }

    fn notice(standing: PositionStatus, before: LastNotice, now: u32) -> (WaitNotice, LastNotice) {
        WaitNotice::of(standing, before, now, |_| 5)
    }

    #[test]
    fn people_ahead_are_never_told_to_be_more_and_a_later_turn_is_told_to_be_slower() {
        let (first, after) = notice(wait(100, 300.0, 400.0), LastNotice::NOTHING, 1000);
        assert_eq!((first.ahead, first.eta, first.is_slower), (Some(100), Some((300, 400)), false));
        let (second, after) = notice(wait(120, 300.0, 420.0), after, 1010);
        assert_eq!((second.ahead, second.is_slower), (Some(100), false), "half a minute is no news");
        let (third, after) = notice(wait(90, 300.0, 390.0 + 80.0), after, 1040);
        assert_eq!((third.ahead, third.is_slower), (Some(90), false), "nor is a sixth of the wait");
        let (fourth, after) = notice(wait(90, 300.0, 900.0), after, 1040);
        assert!(fourth.is_slower);
        let (fifth, _) = notice(wait(80, 300.0, 880.0), after, 1060);
        assert!(!fifth.is_slower, "it was told");
    }

    #[test]
    fn where_nothing_is_known_of_the_pace_no_time_is_told() {
        let (first, after) = notice(wait(100, 0.0, 0.0), LastNotice::NOTHING, 1000);
        assert_eq!((first.state, first.ahead, first.eta), (NoticeState::Waiting, Some(100), None));
        let (second, _) = notice(wait(90, 300.0, 400.0), after, 1010);
        assert_eq!((second.eta, second.is_slower), (Some((300, 400)), false), "it is the first that is told");
        assert_eq!(notice(wait(0, 0.0, 0.0), after, 1010).0.state, NoticeState::Soon);
    }

    #[test]
    fn half_a_minute_after_the_number_was_drawn_at_the_earliest_it_is_told_to_be_slower() {
        let drawn = LastNotice { drawn: 1000, ..LastNotice::NOTHING };
        let (_, after) = notice(wait(100, 100.0, 120.0), drawn, 1000);
        assert!(!notice(wait(100, 300.0, 400.0), after, 1003).0.is_slower);
        assert!(notice(wait(100, 300.0, 400.0), after, 1030).0.is_slower);
    }

    #[test]
    fn whoever_is_called_is_told_how_many_are_ahead_at_the_gate_and_never_more_than_before() {
        let left = Wait { ahead: 2, low: seconds(4.0), high: seconds(11.2), poll_after: seconds(2.0) };
        let (first, after) = notice(PositionStatus::Called(left), LastNotice::NOTHING, 1000);
        assert_eq!((first.state, first.ahead, first.eta), (NoticeState::Next, Some(2), Some((4, 12))));
        let more = Wait { ahead: 3, low: Duration::ZERO, high: Duration::ZERO, ..left };
        let (again, _) = notice(PositionStatus::Called(more), after, 1010);
        assert_eq!((again.state, again.ahead, again.eta), (NoticeState::Next, Some(2), None));
        assert!(!again.json().contains("enter_after_s"), "nobody has let them in: {}", again.json());
    }

    #[test]
    fn the_next_one_is_told_no_time_where_nobody_knows_when_a_session_ends() {
        let left = Wait { ahead: 0, low: Duration::ZERO, high: Duration::ZERO, poll_after: seconds(2.0) };
        let (next, after) = notice(PositionStatus::Called(left), LastNotice::NOTHING, 1000);
        assert_eq!((next.state, next.ahead, next.eta), (NoticeState::Next, Some(0), None));
        let known = Wait { high: seconds(0.4), ..left };
        assert_eq!(notice(PositionStatus::Called(known), after, 1010).0.eta, Some((0, 1)));
    }

    #[test]
    fn the_twin_says_what_is_known_and_nothing_else() {
        let (notice, _) = notice(wait(3, 4.0, 9.5), LastNotice::NOTHING, 1_752_238_722);
        assert_eq!(
            notice.json(),
            r#"{"ahead_present":3,"eta_high_s":10,"eta_low_s":4,"poll_after_s":10,"state":"soon","updated_at":"2025-07-11T12:58:42Z"}"#
        );
    }
}

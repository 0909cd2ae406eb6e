//! A visitor in a waiting room: what the waiting page's script does, and what people do with it.
//!
//! It reacts only to responses. A ticket in a cookie means a position in line. A poll at the same
//! address returns JSON with the position's status and the time of the next poll.

mod farm;
mod forge;
mod report;

pub use farm::FarmReport;
pub(crate) use farm::{FarmedPosition, Farmer, NextOnFarm};
pub(crate) use forge::Forger;
pub use forge::{Edit, ForgeReport};
pub(crate) use report::LineBooks;
pub use report::{LineReport, OrderReport, ToldReport};

use http::header::{ACCEPT, COOKIE, HOST, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use suimon_model::{Instant, Rng};
use suimon_workload::{InLine, Manner};

use crate::answer::Answer;
use crate::target::BaseUrl;

/// Most waits kept for the report. If there are more, only the first are kept and judged.
const WAITS_MAX: usize = 100_000;
const POLL: HeaderName = HeaderName::from_static("suimon-poll");
const TICKET: HeaderName = HeaderName::from_static("suimon-ticket");
/// How long the page announces a visitor's turn before it enters, unless told otherwise.
pub(crate) const ENTERING: Duration = Duration::from_secs(5);
/// Time from the page's arrival to the script's first poll, seconds.
const FIRST_POLL: (f64, f64) = (2.0, 4.0);
/// How long the script waits before it polls again, if a poll got no response.
const UNANSWERED: Duration = Duration::from_secs(30);
/// How long visitors who close the tab stay away, seconds.
const AWAY: (f64, f64) = (60.0, 180.0);
/// Most predicted waits kept per wait.
const TOLD_MAX: usize = 64;
/// A predicted wait is judged only if at least this much time was left, seconds.
const JUDGED_FROM_S: f64 = 30.0;

/// Who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// A visitor with one ticket.
    Visitor,
    /// A visitor with several tickets. Each wait is that of one ticket, and at most one of them is
    /// admitted.
    Farmer,
    /// A visitor who tries edited tickets. The wait is that of the visitor's own ticket.
    Forger,
}

impl From<Manner> for Who {
    fn from(manner: Manner) -> Who {
        match manner {
            Manner::Waits => Who::Visitor,
            Manner::Farms => Who::Farmer,
            Manner::Forges => Who::Forger,
        }
    }
}

/// One wait in line, from the waiting page to the session's first good response or the end of
/// patience.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineWait {
    /// Who waited.
    pub who: Who,
    /// The line's name, as at the end of its ticket cookies' names.
    pub line: String,
    /// When it began, seconds since the run began.
    pub from_s: f64,
    /// How long it took, seconds.
    pub waited_s: f64,
    /// Whether the visitor was admitted.
    pub entered: bool,
    /// The position, counted from 1, if it was shown.
    pub position: Option<u64>,
    /// Whether the visitor closed the tab for a while.
    pub away: bool,
    /// Requests of the page's script.
    pub polls: u32,
    /// The predicted waits that were shown, the earliest first. If there are more than 64, every
    /// second one is left out, except the first and the first after a minute.
    pub told: Vec<LineTold>,
}

/// A predicted wait that a visitor was shown.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineTold {
    /// When it was shown, seconds since the wait began.
    pub after_s: f64,
    /// Seconds left, at least.
    pub low_s: f64,
    /// Seconds left, at most.
    pub high_s: f64,
}

/// The response to a poll, as far as a script needs it.
#[derive(Debug, Deserialize)]
struct WaitNoticeJson {
    state: String,
    poll_after_s: Option<f64>,
    enter_after_s: Option<f64>,
    position: Option<u64>,
    eta_low_s: Option<f64>,
    eta_high_s: Option<f64>,
}

/// A visitor who waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    began: Instant,
    /// When the visitor leaves for good.
    gives_up: Option<Instant>,
    /// From when to when the visitor is away and does not poll.
    away: Option<(Instant, Instant)>,
    seen: LineWait,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextInLine {
    /// Poll at this time.
    Poll(Instant),
    /// Ask for the page itself at this time.
    Enter(Instant),
    /// Give up at this time.
    GiveUp(Instant),
}

impl NextInLine {
    /// Returns the time of this action.
    pub(crate) const fn at(self) -> Instant {
        match self {
            NextInLine::Poll(at) | NextInLine::Enter(at) | NextInLine::GiveUp(at) => at,
        }
    }
}

impl LineWait {
    /// A predicted wait shown this many seconds after the beginning, or later, rests on more than
    /// the first guess.
    pub const SETTLED_S: f64 = 60.0;

    /// Returns the first predicted wait shown at `from_s` seconds after the beginning or later, and
    /// how long it took from then on, seconds. Returns `None` if that time is too short to judge
    /// the prediction.
    pub fn judged(&self, from_s: f64) -> Option<(LineTold, f64)> {
        let told = self.told.iter().find(|told| told.after_s >= from_s)?;
        let left = self.waited_s - told.after_s;
        (left >= JUDGED_FROM_S).then_some((*told, left))
    }
}

impl Waiting {
    /// Returns a visitor who has just got the waiting page.
    pub(crate) fn begin(now: Instant, line: String, who: Who, policy: &InLine, rng: &mut Rng) -> Self {
        let away = rng.chance(policy.away).then(|| {
            let from = now + suimon_model::seconds(rng.between(0.0, 300.0));
            (from, from + suimon_model::seconds(rng.between(AWAY.0, AWAY.1)))
        });
        Waiting {
            began: now,
            gives_up: policy.gives_up_at(now, rng),
            away,
            seen: LineWait {
                who,
                line,
                from_s: now.as_secs_f64(),
                waited_s: 0.0,
                entered: false,
                position: None,
                away: false,
                polls: 0,
                told: Vec::new(),
            },
        }
    }

    /// Returns the script's first poll.
    pub(crate) fn first(&mut self, now: Instant, rng: &mut Rng) -> NextInLine {
        self.at(now, suimon_model::seconds(rng.between(FIRST_POLL.0, FIRST_POLL.1)))
    }

    /// Takes the response to a poll; `None`: there was none.
    pub(crate) fn answered(&mut self, now: Instant, answer: Option<&Answer>) -> NextInLine {
        self.seen.polls += 1;
        let Some(answer) = answer else { return self.at(now, UNANSWERED) };
        if answer.status == StatusCode::NO_CONTENT.as_u16() {
            return NextInLine::Enter(now);
        }
        let Ok(notice) = serde_json::from_slice::<WaitNoticeJson>(&answer.body) else {
            return self.at(now, answer.retry_after().unwrap_or(UNANSWERED));
        };
        self.seen.position = self.seen.position.or(notice.position);
        if let (Some(low_s), Some(high_s)) = (notice.eta_low_s, notice.eta_high_s) {
            if self.seen.told.len() == TOLD_MAX {
                thin_out(&mut self.seen.told);
            }
            self.seen.told.push(LineTold { after_s: now.secs_since(self.began), low_s, high_s });
        }
        match notice.state.as_str() {
            // At the session gate: a client that asks for the page now is held until it is
            // admitted, as the page's script is.
            "next" => NextInLine::Enter(now),
            "your_turn" => {
                let after = notice.enter_after_s.map_or(ENTERING, suimon_model::seconds);
                NextInLine::Enter(now + after)
            }
            "closed" => NextInLine::GiveUp(now),
            _ => self.at(now, notice.poll_after_s.map_or(UNANSWERED, suimon_model::seconds)),
        }
    }

    /// Returns the position, counted from 1, if it was shown.
    pub(crate) fn position(&self) -> Option<u64> {
        self.seen.position
    }

    /// Notes that the visitor was admitted or gave up, and returns the whole wait.
    pub(crate) fn end(mut self, now: Instant, entered: bool) -> LineWait {
        self.seen.waited_s = now.secs_since(self.began);
        self.seen.entered = entered;
        self.seen
    }

    fn at(&mut self, now: Instant, after: Duration) -> NextInLine {
        let mut at = now + after;
        if let Some((from, to)) = self.away
            && at >= from
            && at < to
        {
            at = to;
            self.seen.away = true;
        }
        match self.gives_up {
            Some(gives_up) if gives_up <= at => NextInLine::GiveUp(gives_up.max(now)),
            _ => NextInLine::Poll(at),
        }
    }
}

/// The status of a position, as a poll returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PollResult {
    /// The position exists, and its turn has not come.
    NotYet,
    /// The position exists, and its turn has come.
    Due,
    /// The response is not about any position.
    Unknown,
}

/// Returns the status of the position that was polled.
pub(crate) fn standing(answer: Option<&Answer>) -> PollResult {
    let Some(answer) = answer else { return PollResult::Unknown };
    // A visitor without a position never gets this status.
    if answer.status == StatusCode::NO_CONTENT.as_u16() {
        return PollResult::Due;
    }
    let notice = serde_json::from_slice::<WaitNoticeJson>(&answer.body).ok();
    match notice.as_ref().map(|notice| notice.state.as_str()) {
        Some("next" | "your_turn") => PollResult::Due,
        Some("waiting" | "soon" | "opening" | "paused" | "application_down") => PollResult::NotYet,
        _ => PollResult::Unknown,
    }
}

/// Returns the script's poll for the page at `path`; or a program's poll, with its ticket in a
/// header.
pub(crate) fn poll(
    base: &BaseUrl,
    path: &str,
    cookies: Option<HeaderValue>,
    ticket: Option<&str>,
) -> Option<Request<Full<bytes::Bytes>>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = path.parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, base.host_header.clone());
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(POLL, HeaderValue::from_static("1"));
    if let Some(cookies) = cookies {
        headers.insert(COOKIE, cookies);
    }
    if let Some(ticket) = ticket {
        headers.insert(TICKET, HeaderValue::from_str(ticket).ok()?);
    }
    Some(request)
}

/// Removes every second predicted wait, except the first and the first that was shown after a
/// minute.
fn thin_out(told: &mut Vec<LineTold>) {
    let settled = told.iter().position(|told| told.after_s >= LineWait::SETTLED_S);
    let mut index = 0..;
    told.retain(|_| index.next().is_some_and(|index| index % 2 == 0 || Some(index) == settled));
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use suimon_model::seconds;

    fn second(n: f64) -> Instant {
        Instant::ORIGIN + seconds(n)
    }

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, headers: HeaderMap::new(), body: body.into() }
    }

    fn waiting(policy: &InLine) -> Waiting {
        Waiting::begin(second(10.0), "00ff".to_owned(), Who::Visitor, policy, &mut Rng::stream(1, 1))
    }

    #[test]
    fn the_script_does_as_it_is_told() {
        let mut waiting = waiting(&InLine::default());
        let notice = r#"{"state":"waiting","poll_after_s":12,"position":7,"eta_low_s":40,"eta_high_s":60}"#;
        assert_eq!(
            waiting.answered(second(13.0), Some(&answer(200, notice))),
            NextInLine::Poll(second(25.0))
        );
        assert_eq!(waiting.answered(second(25.0), None), NextInLine::Poll(second(55.0)));
        let next = answer(200, r#"{"state":"next","ahead_present":1,"poll_after_s":3}"#);
        assert_eq!(waiting.answered(second(55.0), Some(&next)), NextInLine::Enter(second(55.0)));
        let turn = answer(200, r#"{"state":"your_turn","enter_after_s":2,"poll_after_s":2}"#);
        assert_eq!(waiting.answered(second(69.0), Some(&turn)), NextInLine::Enter(second(71.0)));
        let wait = waiting.end(second(74.0), true);
        assert_eq!((wait.position, wait.polls, wait.waited_s), (Some(7), 4, 64.0));
        assert_eq!((wait.from_s, wait.line.as_str(), wait.away), (10.0, "00ff", false));
        assert_eq!(wait.told, [LineTold { after_s: 3.0, low_s: 40.0, high_s: 60.0 }]);
    }

    #[test]
    fn of_a_long_wait_the_beginning_the_minute_and_the_end_are_kept() {
        let mut waiting = waiting(&InLine::default());
        for n in 1..=1000 {
            let notice = format!(r#"{{"state":"waiting","poll_after_s":7,"eta_low_s":1,"eta_high_s":{n}}}"#);
            waiting.answered(second(10.0 + f64::from(n) * 7.0), Some(&answer(200, &notice)));
        }
        let told = waiting.end(second(7020.0), true).told;
        assert!((TOLD_MAX / 2..=TOLD_MAX).contains(&told.len()));
        let after = |index: usize| told[index].after_s.round() as u32;
        assert_eq!((after(0), after(1), after(told.len() - 1)), (7, 63, 7000));
    }

    #[test]
    fn whoever_has_had_enough_leaves_and_whoever_is_inside_enters() {
        let mut waiting = waiting(&InLine { patience: Some(Duration::from_millis(1)), ..InLine::default() });
        assert!(matches!(waiting.first(second(10.0), &mut Rng::stream(1, 2)), NextInLine::GiveUp(_)));
        assert_eq!(waiting.answered(second(11.0), Some(&answer(204, ""))), NextInLine::Enter(second(11.0)));
        let closed = answer(200, r#"{"state":"closed","poll_after_s":60}"#);
        assert_eq!(waiting.answered(second(12.0), Some(&closed)), NextInLine::GiveUp(second(12.0)));
    }
}

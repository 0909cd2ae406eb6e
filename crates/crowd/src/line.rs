//! A visitor in a waiting room: what the page's script does, and what people do with it.
//!
//! Played on what the answers say: a ticket in a cookie means a place in line; its JSON twin at the
//! same address says how things stand and when to ask again.

mod farm;
mod forge;
mod report;

pub use farm::FarmReport;
pub(crate) use farm::{FarmedPlace, Farmer, NextOnFarm};
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

/// Waits that are kept whole for the report; of more only the first are, and only they are judged.
const WAITS_MAX: usize = 100_000;
const POLL: HeaderName = HeaderName::from_static("suimon-poll");
const TICKET: HeaderName = HeaderName::from_static("suimon-ticket");
/// How long the page announces its visitor's turn before it lets them in, unless told otherwise.
pub(crate) const ENTERING: Duration = Duration::from_secs(5);
/// How long after the page's arrival the script asks for the first time, seconds.
const FIRST_POLL: (f64, f64) = (2.0, 4.0);
/// How long the script waits before it asks again, without an answer.
const UNANSWERED: Duration = Duration::from_secs(30);
/// How long visitors who close the tab stay away, seconds.
const AWAY: (f64, f64) = (60.0, 180.0);
/// Of what was told during one wait so much is kept.
const TOLD_MAX: usize = 64;
/// With less time left than this when it was told, seconds, a wait says nothing of an estimate.
const JUDGED_FROM_S: f64 = 30.0;

/// Who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// Somebody who wants one place.
    Visitor,
    /// Somebody who wants more: the wait is that of one place of theirs, and all but one come to
    /// nothing.
    Farmer,
    /// Somebody who wants a better place: the wait is that of their own.
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

/// One wait in line, from the page to the session's first good answer or the end of patience.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineWait {
    /// Whose.
    pub who: Who,
    /// Which line: what its tickets' cookies have at the end of their name.
    pub line: String,
    /// When it began, seconds since the run did.
    pub from_s: f64,
    /// How long it took.
    pub waited_s: f64,
    /// Whether the visitor got in.
    pub entered: bool,
    /// The number drawn, counted from 1, if it is told.
    pub position: Option<u64>,
    /// Whether the visitor closed the tab for a while.
    pub away: bool,
    /// Requests of the page's script.
    pub polls: u32,
    /// What was told of the time left, the earliest first. Of more than 64 every second was left
    /// out, but for the first and the first after a minute.
    pub told: Vec<LineTold>,
}

/// What a visitor was told of the time left.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineTold {
    /// So long after the wait began, seconds.
    pub after_s: f64,
    /// Seconds left, at least.
    pub low_s: f64,
    /// Seconds left, at most.
    pub high_s: f64,
}

/// What the twin says, as far as a script needs it.
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
    /// Leaves for good then.
    gives_up: Option<Instant>,
    /// Does not ask between these.
    away: Option<(Instant, Instant)>,
    seen: LineWait,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextInLine {
    /// To ask how things stand, then.
    Poll(Instant),
    /// To ask for the page itself, then.
    Enter(Instant),
    /// To give up, then.
    GiveUp(Instant),
}

impl NextInLine {
    /// Returns when.
    pub(crate) const fn at(self) -> Instant {
        match self {
            NextInLine::Poll(at) | NextInLine::Enter(at) | NextInLine::GiveUp(at) => at,
        }
    }
}

impl LineWait {
    /// A wait shown this many seconds after the beginning, or later, rests on more than the first
    /// guess.
    pub const SETTLED_S: f64 = 60.0;

    /// Returns what was told first from `from_s` seconds after the beginning on, and how long it
    /// took from then on, seconds, if that was long enough to judge what was told by.
    pub fn judged(&self, from_s: f64) -> Option<(LineTold, f64)> {
        let told = self.told.iter().find(|told| told.after_s >= from_s)?;
        let left = self.waited_s - told.after_s;
        (left >= JUDGED_FROM_S).then_some((*told, left))
    }
}

impl Waiting {
    /// Returns a visitor who has just been shown the page.
    pub(crate) fn begin(now: Instant, line: String, who: Who, policy: &InLine, rng: &mut Rng) -> Self {
        let away = rng.chance(policy.away).then(|| {
            let from = now + suimon_model::seconds(rng.between(0.0, 300.0));
            (from, from + suimon_model::seconds(rng.between(AWAY.0, AWAY.1)))
        });
        Waiting {
            began: now,
            gives_up: policy
                .patience
                .map(|mean| now + suimon_model::seconds(rng.exponential(mean.as_secs_f64()))),
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

    /// Returns when the script asks for the first time.
    pub(crate) fn first(&mut self, now: Instant, rng: &mut Rng) -> NextInLine {
        self.at(now, suimon_model::seconds(rng.between(FIRST_POLL.0, FIRST_POLL.1)))
    }

    /// Takes in what the twin has answered; `None`: nobody did.
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
            // At the gate: a client that asks for the page there is held until it is admitted, as
            // the page's script is.
            "next" => NextInLine::Enter(now),
            "your_turn" => {
                let after = notice.enter_after_s.map_or(ENTERING, suimon_model::seconds);
                NextInLine::Enter(now + after)
            }
            "closed" => NextInLine::GiveUp(now),
            _ => self.at(now, notice.poll_after_s.map_or(UNANSWERED, suimon_model::seconds)),
        }
    }

    /// Returns the number drawn, counted from 1, if it was told.
    pub(crate) fn position(&self) -> Option<u64> {
        self.seen.position
    }

    /// Takes note that the visitor got in, or gave up, and returns the whole wait.
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

/// How a place stands, as the twin says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PollResult {
    /// There is such a place, and it is not its turn yet.
    NotYet,
    /// There is, and its holder may come in.
    Due,
    /// It is not said of any place.
    Unknown,
}

/// Returns how the place stands that was asked for.
pub(crate) fn standing(answer: Option<&Answer>) -> PollResult {
    let Some(answer) = answer else { return PollResult::Unknown };
    // The page does not say so to a visitor without a place.
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

/// Returns the script's request for the page at `path`; or a program's, that has its ticket in a
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

/// Leaves out every second, but for the first and the first that was told after a minute.
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

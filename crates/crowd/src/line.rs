//! A visitor in a waiting room: what the page's script does, and what people do with it.
//!
//! Played on what the answers say: a ticket in a cookie means a place in line; its JSON twin at the same address says how things stand and when to ask again.

use http::header::{ACCEPT, COOKIE, HOST, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use suimon_model::{Instant, Rng};
use suimon_workload::InLine;

use crate::answer::Answer;
use crate::target::BaseUrl;

const POLL: HeaderName = HeaderName::from_static("suimon-poll");
/// The page says for so long that it is its visitor's turn before it lets them in.
pub(crate) const ENTERING: Duration = Duration::from_secs(5);
/// The script asks for the first time so long after the page has come, seconds.
const FIRST_POLL: (f64, f64) = (2.0, 4.0);
/// Without an answer it asks again after so long.
const UNANSWERED: Duration = Duration::from_secs(30);
/// Somebody who closes the tab comes back after so long, seconds.
const AWAY: (f64, f64) = (60.0, 180.0);
/// Waits that are kept whole for the report; of more only the first are.
pub(crate) const WAITS_MAX: usize = 100_000;

/// One wait in line, from the page to the session's first good answer or the end of patience.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineWait {
    /// When it began, seconds since the run did.
    pub from_s: f64,
    /// How long it took.
    pub waited_s: f64,
    /// Whether the visitor got in.
    pub entered: bool,
    /// The number drawn, counted from 1, if it is told.
    pub position: Option<u64>,
    /// Requests of the page's script.
    pub polls: u32,
    /// What was told first, and what last before the turn: so long after the beginning, the time left, from and to.
    pub told: Vec<LineTold>,
}

/// What a visitor was told of the time left.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineTold {
    /// So long after the wait began, seconds.
    pub after_s: f64,
    /// Seconds left, at the least.
    pub low_s: f64,
    /// Seconds left, at the most.
    pub high_s: f64,
}

/// What the twin says, as far as a script needs it.
#[derive(Debug, Deserialize)]
struct Twin {
    state: String,
    poll_after_s: Option<f64>,
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

impl Waiting {
    /// Returns a visitor who has just been shown the page.
    pub(crate) fn begin(now: Instant, origin: Instant, policy: &InLine, rng: &mut Rng) -> Self {
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
                from_s: now.secs_since(origin),
                waited_s: 0.0,
                entered: false,
                position: None,
                polls: 0,
                told: Vec::new(),
            },
        }
    }

    /// Returns when the script asks for the first time.
    pub(crate) fn first(&self, now: Instant, rng: &mut Rng) -> NextInLine {
        self.at(now, suimon_model::seconds(rng.between(FIRST_POLL.0, FIRST_POLL.1)))
    }

    /// Takes in what the twin has answered; `None`: nobody did.
    pub(crate) fn answered(&mut self, now: Instant, answer: Option<&Answer>) -> NextInLine {
        self.seen.polls += 1;
        let Some(answer) = answer else { return self.at(now, UNANSWERED) };
        if answer.status == StatusCode::NO_CONTENT.as_u16() {
            return NextInLine::Enter(now);
        }
        let Ok(twin) = serde_json::from_slice::<Twin>(&answer.body) else {
            return self.at(now, answer.retry_after().unwrap_or(UNANSWERED));
        };
        self.seen.position = self.seen.position.or(twin.position);
        if let (Some(low_s), Some(high_s)) = (twin.eta_low_s, twin.eta_high_s) {
            let told = LineTold { after_s: now.secs_since(self.began), low_s, high_s };
            self.seen.told.truncate(1);
            self.seen.told.push(told);
        }
        match twin.state.as_str() {
            "your_turn" => NextInLine::Enter(now + ENTERING),
            "closed" => NextInLine::GiveUp(now),
            _ => self.at(now, twin.poll_after_s.map_or(UNANSWERED, suimon_model::seconds)),
        }
    }

    /// Takes note that the visitor got in, or gave up, and returns the whole wait.
    pub(crate) fn end(mut self, now: Instant, entered: bool) -> LineWait {
        self.seen.waited_s = now.secs_since(self.began);
        self.seen.entered = entered;
        self.seen
    }

    fn at(&self, now: Instant, after: Duration) -> NextInLine {
        let mut at = now + after;
        if let Some((from, to)) = self.away
            && at >= from
            && at < to
        {
            at = to;
        }
        match self.gives_up {
            Some(gives_up) if gives_up <= at => NextInLine::GiveUp(gives_up.max(now)),
            _ => NextInLine::Poll(at),
        }
    }
}

/// Returns the script's request for the page at `path`.
pub(crate) fn poll(
    base: &BaseUrl,
    path: &str,
    cookies: Option<HeaderValue>,
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
    Some(request)
}

/// All waits of a run, summed up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LineReport {
    /// Visitors who were shown the waiting room.
    pub visitors: u64,
    /// Of these, how many got in, and gave up.
    pub entered: u64,
    /// See `entered`.
    pub gave_up: u64,
    /// Requests of the page's script.
    pub polls: u64,
    /// Median of |told − waited| ÷ waited, of those who got in, by the middle of the range that they were told first; waits of half a minute or more.
    pub estimate_error: Option<f64>,
    /// Share of them whose wait was within the range that they were told first.
    pub within_range: Option<f64>,
    /// Visitors with a later number who got in earlier: of 95 of 100 visitors not more than so many.
    pub overtaken_p95: u64,
    /// Every wait, as far as they were kept.
    pub waits: Vec<LineWait>,
}

/// Waits shorter than this say nothing of an estimate, seconds.
const JUDGED_FROM_S: f64 = 30.0;

impl LineReport {
    /// Returns the sum of these waits, in the order in which they ended; `visitors` were shown the room.
    pub(crate) fn of(visitors: u64, waits: &[LineWait]) -> Self {
        let entered: Vec<&LineWait> = waits.iter().filter(|wait| wait.entered).collect();
        let judged = entered.iter().filter_map(|wait| {
            let told = wait.told.first()?;
            let left = wait.waited_s - told.after_s;
            (left >= JUDGED_FROM_S).then_some((told, left))
        });
        let judged: Vec<(&LineTold, f64)> = judged.collect();
        let mut errors: Vec<f64> = judged
            .iter()
            .map(|(told, left)| ((told.low_s + told.high_s) / 2.0 - left).abs() / left)
            .collect();
        errors.sort_by(f64::total_cmp);
        let within = judged.iter().filter(|(told, left)| (told.low_s..=told.high_s).contains(left)).count();
        LineReport {
            visitors,
            entered: entered.len() as u64,
            gave_up: waits.len() as u64 - entered.len() as u64,
            polls: waits.iter().map(|wait| u64::from(wait.polls)).sum(),
            estimate_error: errors.get(errors.len() / 2).copied(),
            within_range: (!judged.is_empty()).then(|| within as f64 / judged.len() as f64),
            overtaken_p95: overtaken_p95(&entered),
            waits: waits.to_vec(),
        }
    }
}

/// Quadratic in the worst case, which is a crowd that gets in backwards; there are few of them at a time.
fn overtaken_p95(entered: &[&LineWait]) -> u64 {
    let numbers: Vec<u64> = entered.iter().filter_map(|wait| wait.position).collect();
    let mut sorted: Vec<u64> = Vec::with_capacity(numbers.len());
    let mut overtaken: Vec<u64> = Vec::with_capacity(numbers.len());
    for number in numbers {
        let at = sorted.partition_point(|earlier| *earlier < number);
        overtaken.push((sorted.len() - at) as u64);
        sorted.insert(at, number);
    }
    overtaken.sort_unstable();
    overtaken.get(overtaken.len() * 95 / 100).copied().unwrap_or_default()
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
        Waiting::begin(second(10.0), Instant::ORIGIN, policy, &mut Rng::stream(1, 1))
    }

    #[test]
    fn the_script_does_as_it_is_told() {
        let mut waiting = waiting(&InLine::default());
        let twin = r#"{"state":"waiting","poll_after_s":12,"position":7,"eta_low_s":40,"eta_high_s":60}"#;
        assert_eq!(waiting.answered(second(13.0), Some(&answer(200, twin))), NextInLine::Poll(second(25.0)));
        assert_eq!(waiting.answered(second(25.0), None), NextInLine::Poll(second(55.0)));
        let turn = answer(200, r#"{"state":"your_turn","poll_after_s":10}"#);
        assert_eq!(waiting.answered(second(55.0), Some(&turn)), NextInLine::Enter(second(60.0)));
        let wait = waiting.end(second(63.0), true);
        assert_eq!((wait.position, wait.polls, wait.waited_s), (Some(7), 3, 53.0));
        let report = LineReport::of(1, &[wait]);
        assert_eq!((report.estimate_error, report.within_range), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn whoever_has_had_enough_leaves_and_whoever_is_inside_enters() {
        let mut waiting = waiting(&InLine { patience: Some(Duration::from_millis(1)), ..InLine::default() });
        assert!(matches!(waiting.first(second(10.0), &mut Rng::stream(1, 2)), NextInLine::GiveUp(_)));
        assert_eq!(waiting.answered(second(11.0), Some(&answer(204, ""))), NextInLine::Enter(second(11.0)));
        let closed = answer(200, r#"{"state":"closed","poll_after_s":60}"#);
        assert_eq!(waiting.answered(second(12.0), Some(&closed)), NextInLine::GiveUp(second(12.0)));
    }

    #[test]
    fn order_is_told_by_who_was_overtaken() {
        let wait = |position| LineWait {
            from_s: 0.0,
            waited_s: 1.0,
            entered: true,
            position: Some(position),
            polls: 1,
            told: vec![],
        };
        let in_order: Vec<_> = (0..100).map(wait).collect();
        assert_eq!(LineReport::of(100, &in_order).overtaken_p95, 0);
        let backwards: Vec<_> = (0..100).rev().map(wait).collect();
        assert_eq!(LineReport::of(100, &backwards).overtaken_p95, 95);
    }
}

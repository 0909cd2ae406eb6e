//! Rules for a line: the gateway's, and other ones.

use super::RateProfile;
use std::collections::{BTreeMap, VecDeque};
use suimon_line::{Lane, Line, Params, Position, PositionStatus};
use suimon_model::{Duration, Instant, seconds};

/// A rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Policy {
    /// A counter of the number being served, raised by time alone: numbers of absent people are
    /// lost.
    Counter,
    /// The same, raised faster by the share of recent no-shows.
    Compensated,
    /// People who came in the same minute are admitted in any order. The next minute's people
    /// follow only when all of the former have begun or were silent for five minutes.
    Minutes,
    /// The gateway's: calls people ahead by how many are present, and starts sessions by tokens.
    Ours,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Policy::Counter, Policy::Compensated, Policy::Minutes, Policy::Ours];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Counter => "counter",
            Policy::Compensated => "counter, no-shows compensated",
            Policy::Minutes => "minutes, 5 min grace",
            Policy::Ours => "Suimon",
        }
    }
}

/// The answer to a person who asks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Answer {
    /// Nothing now; an answer may follow.
    Nothing,
    /// Ask again after this time.
    Again(Duration),
    /// Called: the page enters in a moment.
    Enters,
    /// A session begins.
    Begins,
}

/// The answer to a person who asks for the application's page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AtGate {
    /// Held until the session may begin.
    Held,
    /// Called, but must come again.
    SentBack,
    /// Not called.
    NotCalled,
}

/// A tenth of the time left, within these bounds, seconds: the assumed polling interval of rules
/// that predict a wait.
const POLL: (f64, f64) = (3.0, 60.0);
/// The assumed polling interval of rules that predict nothing.
const POLL_FIXED: Duration = Duration::from_secs(20);
/// The longest time between two calls of a rule.
const WAKE: Duration = Duration::from_millis(250);
/// How often no-shows are counted, seconds, and the weight of the newest count.
const COMPENSATED_EVERY: f64 = 10.0;
const COMPENSATED_WEIGHT: f64 = 0.3;
const GRACE: f64 = 300.0;
/// Seconds for which the gate holds a called visitor.
const HOLD: f64 = 5.0;

pub(super) struct Rule {
    policy: Policy,
    per_second: f64,
    pace: RateProfile,
    next: u64,
    ended: Vec<(u32, Answer)>,
    tokens: f64,
    tokens_at: Instant,
    // Counters.
    served: f64,
    served_at: Instant,
    looked: Option<(Instant, f64, u64)>,
    came: u64,
    shown: f64,
    // Minutes: the people of each minute, and when each was last heard of.
    minutes: VecDeque<BTreeMap<u64, Instant>>,
    minute_of: BTreeMap<u64, usize>,
    // Ours.
    line: Line,
    held: BTreeMap<u64, (u32, Instant)>,
}

impl Rule {
    pub(super) fn new(policy: Policy, per_second: f64, pace: RateProfile) -> Self {
        Rule {
            policy,
            per_second,
            pace,
            next: 0,
            ended: vec![],
            tokens: 0.0,
            tokens_at: Instant::ORIGIN,
            served: 0.0,
            served_at: Instant::ORIGIN,
            looked: None,
            came: 0,
            shown: 1.0,
            minutes: VecDeque::new(),
            minute_of: BTreeMap::new(),
            line: Line::new(Params::default(), Instant::ORIGIN),
            held: BTreeMap::new(),
        }
    }

    pub(super) fn draw(&mut self, now: Instant) -> u64 {
        let number = self.next;
        self.next += 1;
        match self.policy {
            Policy::Counter | Policy::Compensated => {}
            Policy::Minutes => {
                let minute = (now.as_secs_f64() / 60.0) as usize;
                while self.minutes.len() <= minute {
                    self.minutes.push_back(BTreeMap::new());
                }
                self.minutes[minute].insert(number, now);
                self.minute_of.insert(number, minute);
            }
            Policy::Ours => {
                let position = self.line.draw(Lane::Normal);
                debug_assert_eq!(
                    position.map(|position| position.number),
                    Some(number),
                    "there is room for all"
                );
            }
        }
        number
    }

    pub(super) fn contact(&mut self, now: Instant, number: u64, who: u32) -> Answer {
        self.serve(now);
        match self.policy {
            Policy::Counter | Policy::Compensated if (number as f64) < self.served => {
                self.came += 1;
                self.ended.push((who, Answer::Begins));
                Answer::Nothing
            }
            Policy::Counter | Policy::Compensated => {
                let left = (number as f64 - self.served) / self.per_second;
                Answer::Again(seconds((0.1 * left).clamp(POLL.0, POLL.1)))
            }
            Policy::Minutes => {
                let minute = self.minute_of[&number];
                let is_open = self.minutes.iter().take(minute).all(BTreeMap::is_empty);
                if is_open && self.tokens >= 1.0 {
                    self.tokens -= 1.0;
                    self.minutes[minute].remove(&number);
                    self.ended.push((who, Answer::Begins));
                    return Answer::Nothing;
                }
                self.minutes[minute].insert(number, now);
                Answer::Again(POLL_FIXED)
            }
            Policy::Ours => match self.line.contact(now, position(number)) {
                PositionStatus::Called(_) => Answer::Enters,
                PositionStatus::Waiting(wait) => Answer::Again(wait.poll_after),
                PositionStatus::Opening(..)
                | PositionStatus::Paused(_)
                | PositionStatus::ApplicationDown(_)
                | PositionStatus::Closed => Answer::Nothing,
            },
        }
    }

    /// A person asks for the application's page; the number may be called, and was drawn just now
    /// if it `is_fresh`. Returns the answer.
    pub(super) fn at_gate(&mut self, now: Instant, number: u64, who: u32, is_fresh: bool) -> AtGate {
        if self.policy != Policy::Ours {
            return AtGate::NotCalled;
        }
        self.serve(now);
        if !self.line.standing(now, position(number)).is_called() {
            return AtGate::NotCalled;
        }
        let is_passed_by = self.held.last_key_value().is_some_and(|(last, _)| *last > number);
        if self.held.len() >= self.line.held_at_once() && !is_passed_by {
            return AtGate::SentBack;
        }
        if is_fresh && self.line.expected_before(position(number)) > self.held.range(..number).count() as u64
        {
            return AtGate::SentBack;
        }
        self.line.check_in(now, position(number));
        self.held.insert(number, (who, now));
        self.begin();
        AtGate::Held
    }

    /// Returns the predicted wait, low and high, seconds. A counter predicts the numbers before
    /// this one ÷ its rate.
    pub(super) fn told(&self, now: Instant, number: u64) -> Option<(f64, f64)> {
        match self.policy {
            Policy::Counter | Policy::Compensated => {
                let left = (number as f64 - self.served) / self.per_second;
                Some((left, left))
            }
            Policy::Minutes => None,
            Policy::Ours => match self.line.standing(now, position(number)) {
                PositionStatus::Waiting(wait) => Some((wait.low.as_secs_f64(), wait.high.as_secs_f64())),
                _ => None,
            },
        }
    }

    /// A person has given up. Lines are not told of it.
    pub(super) fn leaves(&mut self, number: u64) {
        self.held.remove(&number);
    }

    pub(super) fn wake(&mut self, now: Instant) -> Instant {
        self.serve(now);
        match self.policy {
            Policy::Counter => {}
            Policy::Compensated => self.compensate(now),
            Policy::Minutes => {
                if let Some(minute) = self.minutes.iter_mut().find(|minute| !minute.is_empty()) {
                    minute.retain(|_, heard| now.secs_since(*heard) < GRACE);
                }
            }
            Policy::Ours => {
                self.line.tick(now, Some(self.pace.at(now) * self.per_second), HOLD);
                let overdue: Vec<(u64, u32)> = self
                    .held
                    .iter()
                    .filter(|(_, (_, since))| now.secs_since(*since) > HOLD)
                    .map(|(number, (who, _))| (*number, *who))
                    .collect();
                for (number, who) in overdue {
                    self.held.remove(&number);
                    self.ended.push((who, Answer::Again(super::NOT_LET_IN)));
                }
                self.begin();
                // The gate admits as soon as a token is there.
                if !self.held.is_empty() {
                    return now + WAKE.min(seconds(((1.0 - self.tokens) / self.per_second).max(1e-3)));
                }
            }
        }
        now + WAKE
    }

    pub(super) fn outcomes(&mut self, now: Instant) -> Vec<(u32, Answer)> {
        if self.policy == Policy::Ours && !self.held.is_empty() {
            self.serve(now);
            self.begin();
        }
        std::mem::take(&mut self.ended)
    }

    /// Adds the tokens and the count due by now.
    fn serve(&mut self, now: Instant) {
        let passed = now.secs_since(self.tokens_at);
        self.tokens_at = now;
        self.tokens =
            (self.tokens + passed * self.pace.at(now) * self.per_second).min(self.per_second.max(1.0));
        if matches!(self.policy, Policy::Counter | Policy::Compensated) {
            let raised = now.secs_since(self.served_at) * self.per_second / self.shown;
            self.served = (self.served + raised).min(self.next as f64);
            self.served_at = now;
        }
    }

    fn begin(&mut self) {
        while self.tokens >= 1.0
            && let Some((number, (who, _))) = self.held.pop_first()
        {
            self.tokens -= 1.0;
            self.line.claimed(position(number));
            self.ended.push((who, Answer::Begins));
        }
    }

    fn compensate(&mut self, now: Instant) {
        let Some((at, served, came)) = self.looked else {
            self.looked = Some((now, self.served, self.came));
            return;
        };
        if now.secs_since(at) < COMPENSATED_EVERY {
            return;
        }
        let called = self.served - served;
        if called > 0.0 {
            let shown = ((self.came - came) as f64 / called).clamp(0.05, 1.0);
            self.shown += COMPENSATED_WEIGHT * (shown - self.shown);
        }
        self.looked = Some((now, self.served, self.came));
    }
}

fn position(number: u64) -> Position {
    Position { lane: Lane::Normal, number }
}

//! One user: plays its sessions one after another, each as the workload's [`Visitor`] says.

mod farming;
mod forging;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::header::SET_COOKIE;
use suimon_model::{Instant, KindId, Rng};
use suimon_statistics::Histogram;
use suimon_workload::{InLine, Journey, Manner, Next, Start, Step, StepOutcome, Tally, Visitor, Workload};

use crate::answer::{Answer, needs_body};
use crate::asking::{Values, request};
use crate::clock::Clock;
use crate::html::text;
use crate::jar::Jar;
use crate::line::{self, Farmer, Forger, LineBooks, NextInLine, Waiting};
use crate::target::{Addresses, BaseUrl};
use crate::trouble::Trouble;
use crate::wire::{self, Wire};

/// The longest that a waiting page's script waits for the response to a poll.
const POLL_PATIENCE: Duration = Duration::from_secs(30);
/// How many failures are reported with what the server said.
const FIRST_FAILURES_MAX: usize = 20;
/// How much of what it said, in characters.
const SAID_CHARS_MAX: usize = 400;

/// What all users of a run share; they run on one thread.
pub(crate) struct Shared {
    pub(crate) workload: Arc<Workload>,
    pub(crate) base: BaseUrl,
    pub(crate) addresses: Addresses,
    pub(crate) clock: Clock,
    pub(crate) books: RefCell<Books>,
    /// Requests repeated because a kept connection was closed.
    pub(crate) reconnects: Cell<u64>,
}

/// What is counted during a run.
pub(crate) struct Books {
    pub(crate) tally: Tally,
    /// Failures in the measured time, by kind.
    pub(crate) troubles: BTreeMap<Trouble, u64>,
    /// The first of them.
    pub(crate) first_failures: Vec<Failure>,
    /// Delay between the planned and the actual time of sending, in the measured time: the crowd's
    /// own slowness.
    pub(crate) send_delay: Histogram,
    /// What visitors saw of a waiting room, over the whole run.
    pub(crate) line: LineBooks,
}

/// A failure in the measured time, and what the server said.
pub(crate) struct Failure {
    pub(crate) at: Instant,
    pub(crate) kind: KindId,
    pub(crate) step: usize,
    pub(crate) trouble: Trouble,
    /// As [`beginning`] has it; empty where nothing was answered.
    pub(crate) said: String,
}

/// Plays all sessions of a user.
pub(crate) async fn play(shared: Rc<Shared>, start: Start) {
    let mut user = User {
        number: start.user,
        rng: shared.workload.rng_of(start.user),
        jar: Jar::default(),
        wire: None,
        values: Values::new(),
        said: String::new(),
        manner: Manner::Waits,
        waiting: None,
        farmer: None,
        forger: None,
        shared: Rc::clone(&shared),
    };
    let mut played = 0;
    let mut begins = start.at;
    loop {
        played += 1;
        user.values.clear();
        user.values.insert("user".into(), (u64::from(start.user) + 1).to_string());
        user.values.insert("session".into(), played.to_string());
        user.session(begins).await;
        if !shared.workload.returning {
            user.jar = Jar::default();
            user.wire = None;
        }
        match shared.workload.next_session(shared.clock.now(), played, &mut user.rng) {
            Some(next) => begins = next,
            None => return,
        }
    }
}

struct User {
    shared: Rc<Shared>,
    /// The user's number, from 0.
    number: u32,
    rng: Rng,
    jar: Jar,
    wire: Option<Wire>,
    values: Values,
    /// What the latest answer says, if it was not a good one.
    said: String,
    /// What the user does in a waiting room.
    manner: Manner,
    /// While the session waits to be admitted: the position it may be admitted with, ...
    waiting: Option<Waiting>,
    /// ... and all other tickets, if the user farms.
    farmer: Option<Farmer>,
    /// What a user who forges does meanwhile.
    forger: Option<Forger>,
}

impl User {
    async fn session(&mut self, begins: Instant) {
        let shared = Rc::clone(&self.shared);
        let kind = shared.workload.choose(self.number, &mut self.rng);
        let journey = Arc::clone(shared.workload.journey(kind));
        self.manner = journey.in_line.manner(&mut self.rng);
        self.values.insert("address".into(), address(self.number, self.manner));
        let (mut visitor, mut next) = Visitor::begin(&shared.workload, kind, begins, &mut self.rng);
        let mut first = true;
        while let Next::Ask { step, at } = next {
            wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
            let now = shared.clock.now();
            let patience = visitor.asked(now, &mut self.rng);
            shared.books.borrow_mut().asked(now, at, std::mem::take(&mut first));
            let answered = self.ask(&journey.steps[step], now, patience).await;
            if answered.is_ok() {
                self.leave_line(true);
            }
            if self.manner == Manner::Farms && matches!(answered, Err((Trouble::Refused, _))) {
                shared.books.borrow_mut().line.farm.put_off += 1;
            }
            let (outcome, trouble) = match answered {
                Ok(()) => (StepOutcome::Passed, None),
                Err((Trouble::InLine, _)) if !self.wait_in_line(&journey, step).await => {
                    (StepOutcome::LeftLine, None)
                }
                Err((trouble, retry_after)) => (trouble.outcome(retry_after), Some(trouble)),
            };
            let turn = visitor.answered(shared.clock.now(), outcome, &mut self.rng);
            shared.books.borrow_mut().answered(&turn, trouble, std::mem::take(&mut self.said));
            next = turn.next;
        }
        // The visitor gave up waiting in line, after refusals, or waiting for the page itself.
        self.leave_line(false);
    }

    /// Notes that the session has begun, or never will.
    fn leave_line(&mut self, entered: bool) {
        let now = self.shared.clock.now();
        self.forger = None;
        let books = &mut self.shared.books.borrow_mut().line;
        if let Some(waiting) = self.waiting.take() {
            books.ended(waiting.end(now, entered));
        }
        if let Some(farmer) = self.farmer.take() {
            books.farm.ended(now, &farmer, entered);
            farmer.end(now).into_iter().for_each(|wait| books.ended(wait));
        }
    }

    /// Waits in line until it is time to ask for the page again; false if the visitor gives up.
    async fn wait_in_line(&mut self, journey: &Journey, step: usize) -> bool {
        if self.manner == Manner::Farms {
            // On the heap, because few users farm and all others would carry this future's size.
            return Box::pin(self.farm(journey, step)).await;
        }
        let shared = Rc::clone(&self.shared);
        let now = shared.clock.now();
        let mut waiting = match self.waiting.take() {
            Some(waiting) => {
                // The page was requested with the own ticket.
                if let Some(forger) = &mut self.forger {
                    forger.heard(now);
                }
                waiting
            }
            None => {
                self.begin_forging(now, journey);
                self.begin_waiting(now, &journey.in_line)
            }
        };
        let mut next = waiting.first(now, &mut self.rng);
        loop {
            match next {
                NextInLine::Enter(at) => {
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    self.waiting = Some(waiting);
                    return true;
                }
                NextInLine::GiveUp(at) => {
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    self.waiting = Some(waiting);
                    return false;
                }
                NextInLine::Poll(at) => {
                    if self.forger.is_some() {
                        // On the heap, as above.
                        Box::pin(self.forge_until(at, &waiting, &journey.steps[step])).await;
                    }
                    wire::idle(&mut self.wire, shared.clock.sleep_until(at)).await;
                    let answer = self.poll(&journey.steps[step], None).await;
                    if let Some(forger) = &mut self.forger {
                        forger.heard(shared.clock.now());
                    }
                    next = waiting.answered(shared.clock.now(), answer.as_ref());
                }
            }
        }
    }

    /// Returns the wait for the ticket in the jar.
    fn begin_waiting(&mut self, now: Instant, policy: &InLine) -> Waiting {
        let books = &mut self.shared.books.borrow_mut().line;
        if self.manner == Manner::Waits {
            books.begun();
        }
        let mut line = String::new();
        if let Some(ticket) = self.jar.ticket() {
            ticket.line.clone_into(&mut line);
            books.forge.seen(self.number, ticket.value);
        }
        Waiting::begin(now, line, self.manner.into(), policy, &mut self.rng)
    }

    /// Polls the status of the own position, as the page's script does; or that of a `ticket` in a
    /// header.
    async fn poll(&mut self, step: &Step, ticket: Option<&str>) -> Option<Answer> {
        let shared = &self.shared;
        let now = shared.clock.now();
        let page = request(step, &shared.base, &self.values, &mut self.jar, now).ok()?;
        let path = page.uri().to_string();
        let poll = line::poll(&shared.base, &path, self.jar.header(&path, now), ticket)?;
        let asked = wire::ask(&shared.addresses, &mut self.wire, poll, true, &shared.reconnects);
        let answer = tokio::time::timeout(POLL_PATIENCE, asked).await.ok()?.ok()?;
        for cookie in answer.headers.get_all(SET_COOKIE) {
            self.jar.store(&shared.base, &path, cookie, shared.clock.now());
        }
        Some(answer)
    }

    /// Requests a step within the visitor's patience and keeps the values it captures.
    async fn ask(
        &mut self,
        step: &Step,
        now: Instant,
        patience: Option<Duration>,
    ) -> Result<(), (Trouble, Option<Duration>)> {
        let shared = &self.shared;
        let plain = |trouble| (trouble, None);
        let request = request(step, &shared.base, &self.values, &mut self.jar, now).map_err(plain)?;
        let path = request.uri().path().to_owned();
        let asked =
            wire::ask(&shared.addresses, &mut self.wire, request, needs_body(step), &shared.reconnects);
        let answer = match patience {
            None => asked.await,
            // Dropping an unfinished request closes its connection.
            Some(patience) => tokio::time::timeout(patience, asked).await.unwrap_or(Err(Trouble::TimedOut)),
        };
        let answer = answer.map_err(plain)?;
        for cookie in answer.headers.get_all(SET_COOKIE) {
            self.jar.store(&shared.base, &path, cookie, shared.clock.now());
        }
        if answer.gives_place() {
            return Err(plain(Trouble::InLine));
        }
        match answer.judge(step) {
            Ok(values) => {
                self.values.extend(values);
                Ok(())
            }
            Err(refusal) => {
                if shared.books.borrow().first_failures.len() < FIRST_FAILURES_MAX {
                    self.said = beginning(&answer.body);
                }
                Err((refusal.trouble, refusal.retry_after))
            }
        }
    }
}

/// Returns the beginning of what a page shows to people, without what would move a terminal's cursor.
fn beginning(body: &[u8]) -> String {
    let shown = text(&String::from_utf8_lossy(body));
    shown.chars().filter(|c| !c.is_control()).take(SAID_CHARS_MAX).collect()
}

/// Returns the address that a user claims to have. Each user has a network of its own within
/// 2001:db8::/32, the range for examples; all users who farm or forge share one network.
fn address(user: u32, manner: Manner) -> String {
    let network = match manner {
        Manner::Waits => user % 0xFF_FFFF,
        Manner::Farms | Manner::Forges => 0xFF_FFFF,
    };
    // A subscriber's network prefix has 56 bits; these are the last 24 of them.
    let (high, low) = (network >> 8, (network & 0xFF) << 8);
    format!("2001:db8:{high:x}:{low:x}::{:x}:{:x}", user >> 16, user & 0xFFFF)
}

impl Books {
    fn asked(&mut self, now: Instant, planned: Instant, begins: bool) {
        if begins {
            self.tally.begun(now);
        }
        self.tally.asked(now);
        if self.tally.window().holds(now) {
            self.send_delay.record(now.since(planned));
        }
    }

    fn answered(&mut self, turn: &suimon_workload::Turn, trouble: Option<Trouble>, said: String) {
        self.tally.fold(turn);
        if let Some(trouble) = trouble
            && turn.is_failure()
            && self.tally.window().holds(turn.at)
        {
            *self.troubles.entry(trouble).or_default() += 1;
            if self.first_failures.len() < FIRST_FAILURES_MAX {
                let (at, kind, step) = (turn.at, turn.kind, turn.step);
                self.first_failures.push(Failure { at, kind, step, trouble, said });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn visitors_have_networks_of_their_own_and_all_others_have_one() {
        let of = |user: u32, manner| address(user, manner).parse::<Ipv6Addr>().unwrap();
        let network = |user: u32, manner| u128::from(of(user, manner)) >> 72;
        assert_ne!(network(0, Manner::Waits), network(1, Manner::Waits));
        assert_ne!(network(255, Manner::Waits), network(256, Manner::Waits));
        assert_eq!(network(1, Manner::Farms), network(70_000, Manner::Forges));
        assert_ne!(of(1, Manner::Farms), of(70_000, Manner::Farms));
        assert_eq!(u128::from(of(u32::MAX, Manner::Waits)) >> 96, 0x2001_0db8);
    }
}

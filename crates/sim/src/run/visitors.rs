//! What the visitors of a run do: they arrive, send requests, get answers, wait in line, give up
//! and return.

use super::{Event, PLACES, Run};
use std::cmp::Reverse;
use suimon_gate::{Arrival, InLine, Membership};
use suimon_line::{Position, PositionStatus};
use suimon_model::{Duration, Instant, KindId, RequestId, Rng, SessionId};
use suimon_workload::{Next, StepOutcome as Answer, Visitor};

/// A newcomer who is held for longer than this at the session gate notices the delay.
const HELD_LONG: Duration = Duration::from_secs(1);
/// Time after which a called visitor asks again, if its request was held for as long as a
/// connection should be.
const CALLED_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct User {
    rng: Rng,
    pub(super) visitor: Visitor,
    /// The session named by the user's cookies, ...
    pub(super) session: Option<(KindId, SessionId)>,
    /// ... or the user's position in line.
    pub(super) position: Option<Position>,
    request: Option<RequestId>,
    /// His number.
    number: u32,
    /// Sessions played, this one included.
    played: u32,
    first: bool,
}

impl Run<'_> {
    /// Starts all users who are due now.
    pub(super) fn begin(&mut self, now: Instant) {
        while let Some(start) = self.starts.next_if(|start| start.at <= now) {
            if self.users_now >= self.workload.arrivals.users_max() as usize {
                self.outcome.not_started += 1;
                continue;
            }
            let rng = self.workload.rng_of(start.user);
            self.users_now += 1;
            self.begin_session(start.at, start.user, rng, None, 1);
        }
        if let Some(start) = self.starts.peek() {
            let at = start.at;
            self.at(at, Event::Begin);
        }
    }

    fn begin_session(
        &mut self,
        at: Instant,
        number: u32,
        mut rng: Rng,
        session: Option<(KindId, SessionId)>,
        played: u32,
    ) {
        let kind = self.workload.choose(number, &mut rng);
        let (visitor, next) = Visitor::begin(&self.workload, kind, at, &mut rng);
        let user = User { rng, visitor, session, position: None, request: None, number, played, first: true };
        let index = match self.free_users.pop() {
            Some(index) => {
                self.users[index] = Some(user);
                index
            }
            None => {
                self.users.push(Some(user));
                self.users.len() - 1
            }
        };
        if let Next::Ask { at, .. } = next {
            self.at(at, Event::Ask(index));
        }
    }

    pub(super) fn ask(&mut self, now: Instant, index: usize) -> Result<(), String> {
        let user = self.users[index].as_mut().expect("a user who asks is there");
        let patience = user.visitor.asked(now, &mut user.rng);
        if std::mem::take(&mut user.first) {
            self.tally.begun(now);
        }
        self.tally.asked(now);
        let kind = self.scenario.gate.kind_of[user.visitor.kind().index()];
        let route = self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()];
        let ends = self.scenario.gate.kinds[kind.index()].ends.contains(&route);
        let session = match user.session {
            Some((kind, session)) => Membership::Member { kind, session, leased: true, ends },
            None => match user.position {
                Some(position) => {
                    let session = session_of(self.seed, kind, position);
                    Membership::Placed { kind, position, session, draws: true }
                }
                None => Membership::Newcomer(kind),
            },
        };
        let arrival = Arrival { route: self.gate_route(route), session: Some(session) };
        let request = self.gate.handle_arrival(now, arrival);
        if !matches!(session, Membership::Member { .. }) && self.tally.window().holds(now) {
            self.outcome.gates.newcomers += 1;
            if self.gate.is_held(request) {
                self.at(now + HELD_LONG, Event::Look(request));
            }
        }
        self.checker.arrived(request, &arrival);
        self.users[index].as_mut().expect("a user who asks is there").request = Some(request);
        self.owners.insert(request, index);
        let order = self.next_order();
        self.drain_gate(now)?;
        // Most are answered by now where many are refused, and need no event in a minute.
        let waits = |user: &User| user.request == Some(request);
        if let Some(patience) = patience.filter(|_| self.users[index].as_ref().is_some_and(waits)) {
            self.heap.push(Reverse((now + patience, order, Event::GiveUp(index, request))));
        }
        self.checker.no_idle_slot(now, arrival.route, &self.gate)
    }

    pub(super) fn give_up(&mut self, now: Instant, index: usize, request: RequestId) -> Result<(), String> {
        let Some(user) = self.users[index].as_mut().filter(|user| user.request == Some(request)) else {
            return Ok(());
        };
        if user.visitor.step_number() == 0 {
            // The user did not wait for the answer with the lease.
            user.session = None;
        }
        self.owners.remove(&request);
        if self.scenario.gate.unaware {
            let route = self.scenario.steps[user.visitor.kind().index()][user.visitor.step_number()];
            self.unnoticed.insert(request, route);
        } else {
            self.gate.handle_departure(now, request);
            self.checker.departed(request);
        }
        self.answered(now, index, Answer::TimedOut);
        self.drain_gate(now)
    }

    pub(super) fn wait_in_line(&mut self, now: Instant, wait: &InLine) -> Result<(), String> {
        self.checker.waits_in_line(wait)?;
        if self.unnoticed.remove(&wait.request).is_some() {
            return Ok(());
        }
        let owner = self.owners.remove(&wait.request).ok_or("nobody's request waits in line")?;
        let user = self.users[owner].as_mut().expect("a request has its user until it ends");
        user.position = wait.position;
        let mut in_line = |again_after| user.visitor.in_line(now, again_after, &mut user.rng);
        let answer = match wait.standing {
            PositionStatus::Called(_) => in_line(CALLED_AGAIN),
            PositionStatus::Waiting(left)
            | PositionStatus::Opening(_, left)
            | PositionStatus::Paused(left)
            | PositionStatus::ApplicationDown(left) => in_line(left.poll_after),
            PositionStatus::Closed => Answer::Refused { retry_after: None },
        };
        self.answered(now, owner, answer);
        Ok(())
    }

    /// A visitor's request has ended; the visitor goes on, returns later, or leaves.
    pub(super) fn answered(&mut self, now: Instant, index: usize, answer: Answer) {
        let user = self.users[index].as_mut().expect("an answered user is there");
        user.request = None;
        let turn = user.visitor.answered(now, answer, &mut user.rng);
        self.tally.fold(&turn);
        if turn.outcome == Answer::Passed {
            let route = self.scenario.steps[turn.kind.index()][turn.step];
            let cost = &self.costs[route.index()];
            let alone = cost.cpu + cost.elsewhere + cost.pauses.seconds();
            self.outcome.services.answered(now, route, turn.took, (alone, cost.cpu));
        }
        if let Next::Ask { at, .. } = turn.next {
            return self.at(at, Event::Ask(index));
        }
        let mut user = self.users[index].take().expect("the user was there a line ago");
        self.free_users.push(index);
        if !self.workload.returning
            && let Some((_, session)) = user.session.take()
        {
            self.checker.forget(session);
        }
        match self.workload.next_session(now, user.played, &mut user.rng) {
            Some(at) => self.begin_session(at, user.number, user.rng, user.session, user.played + 1),
            None => self.users_now -= 1,
        }
    }
}

/// Returns the session that a position begins: the same for every client that presents it.
fn session_of(seed: u64, kind: KindId, position: Position) -> SessionId {
    let position = position.number << 8 | u64::from(kind.0) << 2 | position.lane.index() as u64;
    SessionId(Rng::stream(seed ^ PLACES, position).bits())
}

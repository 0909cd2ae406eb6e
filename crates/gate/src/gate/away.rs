//! An application that does not answer: nobody is admitted, and requests of sessions that have
//! begun wait for it to come back.

use super::Gate;
use crate::requests::{Request, Requests, Stage};
use std::collections::{BTreeMap, VecDeque};
use suimon_model::{
    Duration, Instant, KindId, PoolId, Quantity, Reason, Record, RequestId, SessionId, Signals, Subject,
    seconds,
};

/// Most requests that wait for the application's return; further ones are answered at once.
pub(super) const AWAITING_MAX: usize = 10_000;
/// Most of these per session: more than a browser opens connections, and few enough that one
/// session cannot use up all of them.
pub(super) const AWAITING_OF_SESSION_MAX: u32 = 8;
/// Longest wait for its return, seconds: an application that is started anew is often back only after more
/// than ten, ...
pub(super) const AWAITED_MAX: f64 = 20.0;
/// ... and for no more than this share of its visitor's patience.
const AWAITED_SHARE: f64 = 0.7;

/// Whether the application does not answer, and the requests that wait for it.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// Since when it does not.
    since: Option<Instant>,
    /// In the order in which they came.
    awaiting: VecDeque<RequestId>,
    /// How many of them are of each session: see [`Outage::count_again`].
    of: BTreeMap<SessionId, u32>,
}

suimon_model::saved_struct!(Outage { since, awaiting } without { of }, |it: &Outage| {
    it.awaiting.len() <= AWAITING_MAX && (it.since.is_some() || it.awaiting.is_empty())
});

impl Outage {
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.awaiting.len()
    }

    pub(super) fn awaits(&self, request: RequestId) -> bool {
        self.awaiting.contains(&request)
    }

    pub(super) fn forget(&mut self, request: RequestId, session: Option<SessionId>) {
        self.awaiting.retain(|other| *other != request);
        self.is_over(session);
    }

    /// Counts those of each session, which are not saved.
    pub(super) fn count_again(&mut self, requests: &Requests) {
        self.of.clear();
        for request in self.awaiting.iter().filter_map(|id| requests.get(*id)) {
            if let Some((_, session)) = request.session() {
                *self.of.entry(session).or_default() += 1;
            }
        }
    }

    /// Returns whether there is room for one more of `session`.
    fn has_room(&self, session: Option<SessionId>) -> bool {
        let of = session.and_then(|session| self.of.get(&session)).copied().unwrap_or(0);
        self.awaiting.len() < AWAITING_MAX && of < AWAITING_OF_SESSION_MAX
    }

    fn wait(&mut self, request: RequestId, session: Option<SessionId>) {
        self.awaiting.push_back(request);
        if let Some(session) = session {
            *self.of.entry(session).or_default() += 1;
        }
    }

    /// Takes note that one of `session` waits no longer.
    fn is_over(&mut self, session: Option<SessionId>) {
        let Some(session) = session else { return };
        if let Some(of) = self.of.get_mut(&session) {
            *of -= 1;
            if *of == 0 {
                self.of.remove(&session);
            }
        }
    }
}

impl Gate {
    /// Takes note whether the application answers: what takes the requests that have no other pool.
    /// While it does not, nobody is called or
    /// admitted, newcomers get a place, and requests of sessions that have begun wait for it,
    /// without a slot: at most [`AWAITING_MAX`], and of one session [`AWAITING_OF_SESSION_MAX`],
    /// for at most [`AWAITED_MAX`] seconds. Those of a further pool that has workers go on.
    pub fn handle_application(&mut self, now: Instant, is_up: bool) {
        if is_up != self.away.is_on() {
            return;
        }
        let since = std::mem::replace(&mut self.away.since, (!is_up).then_some(now));
        for index in 0..self.kinds.len() {
            let kind = &mut self.kinds[index];
            kind.application(now, is_up);
            if !kind.holds() {
                continue;
            }
            let mut signals = Signals::none().with("waiting", kind.waiting_for_turn() as f64);
            if let Some(since) = since {
                signals = signals.with("away_seconds", now.secs_since(since));
            }
            self.fresh.push(Record {
                at: now,
                subject: Subject::Kind(KindId(index as u32)),
                quantity: Quantity::Moving,
                old: f64::from(u8::from(!is_up)),
                new: f64::from(u8::from(is_up)),
                reason: if is_up { Reason::ApplicationUp } else { Reason::ApplicationDown },
                signals,
            });
        }
        if is_up {
            self.sessions.application_is_back(now);
            self.away.of.clear();
            for request in std::mem::take(&mut self.away.awaiting) {
                self.waiting -= 1;
                self.enter_route_gate(now, request);
            }
        }
        if !is_up {
            self.serve_all(now);
        }
        self.admit_from_lines(now);
        self.publish();
    }

    /// Lets requests go on that wait for the application, as the workers of their pool are back.
    pub(super) fn resume_awaiting(&mut self, now: Instant, pool: PoolId) {
        let is_of = |id: &RequestId| {
            self.requests.get(*id).is_some_and(|request| self.routes[request.route.index()].pool == pool)
        };
        let (resumed, others): (VecDeque<RequestId>, _) = self.away.awaiting.iter().copied().partition(is_of);
        self.away.awaiting = others;
        for request in resumed {
            let session = self.requests.get(request).and_then(Request::session).map(|(_, session)| session);
            self.away.is_over(session);
            self.waiting -= 1;
            self.enter_route_gate(now, request);
        }
    }

    /// Returns whether the application does not answer, as far as the gate was told.
    pub fn is_application_away(&self) -> bool {
        self.away.is_on()
    }

    /// Returns how long a request of `kind` waits for an application that does not answer.
    pub fn awaits_application(&self, kind: Option<KindId>) -> Duration {
        let patience = kind.map_or(f64::INFINITY, |kind| self.kinds[kind.index()].patience());
        seconds((AWAITED_SHARE * patience).min(AWAITED_MAX))
    }

    /// Sends a request of a session that has begun on to its route, or has it wait for an
    /// application that does not answer.
    pub(super) fn enter_application(&mut self, now: Instant, id: RequestId) {
        let entry = self.requests.get(id).expect("the request was inserted by the caller");
        if !self.away.is_on() || self.has_own_workers(entry.route) {
            return self.enter_route_gate(now, id);
        }
        let (kind, session) = (entry.kind(), entry.session().map(|(_, session)| session));
        if !self.away.has_room(session) {
            return self.refuse(now, id, Reason::ApplicationDown, kind);
        }
        let until = now + self.awaits_application(kind);
        let entry = self.requests.get_mut(id).expect("the request was inserted by the caller");
        entry.stage = Stage::AwaitsApplication(until);
        self.waiting += 1;
        self.away.wait(id, session);
    }

    /// Gives an error to requests that have waited for the application as long as they may.
    pub(super) fn expire_awaiting(&mut self, now: Instant) {
        let requests = &self.requests;
        let is_over = |id: &RequestId| {
            requests.get(*id).is_none_or(
                |request| matches!(request.stage, Stage::AwaitsApplication(until) if until <= now),
            )
        };
        let over: Vec<RequestId> = self.away.awaiting.iter().copied().filter(is_over).collect();
        if over.is_empty() {
            return;
        }
        self.away.awaiting.retain(|id| !is_over(id));
        for id in over {
            self.waiting -= 1;
            let request = self.requests.get(id);
            let kind = request.and_then(Request::kind);
            self.away.is_over(request.and_then(Request::session).map(|(_, session)| session));
            self.refuse(now, id, Reason::ApplicationDown, kind);
        }
    }
}

//! The checkers: what must hold after every event, whatever the scenario and the laws.
//!
//! They keep accounts of their own, from what goes into the gate and what comes out of it, and
//! never look inside.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use suimon_gate::{Arrival, Counts, Gate, InLine, Membership, QueueOrder, Refusal, Start};
use suimon_model::{Instant, RequestId, RouteId, SessionId};

/// A violation: something that must never happen, and did.
#[derive(Clone, PartialEq, Debug)]
pub struct Violation {
    /// The scenario.
    pub scenario: String,
    /// The seed that reproduces it.
    pub seed: u64,
    /// When it happened.
    pub at: Instant,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { scenario, seed, at, what } = self;
        write!(f, "{scenario}, seed {seed}, at {:.3} s: {what}", at.as_secs_f64())
    }
}

impl std::error::Error for Violation {}

/// Accounts of what is inside the gate.
#[derive(Debug)]
pub(crate) struct Checker {
    order: QueueOrder,
    waiting: HashMap<RequestId, Waiting>,
    /// By route: waiting requests of members and admitted newcomers, in the order in which they
    /// must start.
    queues: Vec<BTreeSet<(u32, u64, RequestId)>>,
    in_flight: Vec<usize>,
    /// By route, all requests that arrived, and those that have ended: for conservation.
    offered: Vec<u64>,
    settled: Vec<u64>,
    /// Requests so far of each admitted session.
    requests: BTreeMap<SessionId, u32>,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    route: RouteId,
    member: Option<SessionId>,
    position: Option<(u32, u64, RequestId)>,
    /// The request's number in its session, if it is a member's.
    number: u32,
}

/// Up to this request of its session, no visitor asks for too much.
const BUDGET_MIN: u32 = 8;
/// The highest request number that the order distinguishes: see the gate's queue.
const PRIORITY_MAX: u32 = 1000;

impl Checker {
    pub(crate) fn new(order: QueueOrder, routes: usize) -> Self {
        Checker {
            order,
            waiting: HashMap::new(),
            queues: vec![BTreeSet::new(); routes],
            in_flight: vec![0; routes],
            offered: vec![0; routes],
            settled: vec![0; routes],
            requests: BTreeMap::new(),
            arrivals: 0,
        }
    }

    pub(crate) fn arrived(&mut self, request: RequestId, arrival: &Arrival) {
        self.offered[arrival.route.index()] += 1;
        self.arrivals += 1;
        let member = match arrival.session {
            Some(Membership::Member { session, .. }) => Some(session),
            Some(Membership::Placed { session, .. }) if self.requests.contains_key(&session) => Some(session),
            Some(
                Membership::Newcomer(_)
                | Membership::WithoutLine(_)
                | Membership::Drawing { .. }
                | Membership::Placed { .. }
                | Membership::Entering { .. },
            )
            | None => None,
        };
        let number = member.map_or(0, |session| {
            let requests = self.requests.entry(session).or_insert(0);
            *requests += 1;
            *requests
        });
        let position = member.map(|_| {
            let position = match self.order {
                QueueOrder::FirstIn => 0,
                QueueOrder::LaterInSession => number.min(PRIORITY_MAX),
            };
            (PRIORITY_MAX - position, self.arrivals, request)
        });
        if let Some(position) = position {
            self.queues[arrival.route.index()].insert(position);
        }
        self.waiting.insert(request, Waiting { route: arrival.route, member, position, number });
    }

    /// Returns whether `request`, which waits, must let later requests go first.
    fn goes_behind(&self, gate: &Gate, request: RequestId) -> bool {
        let number = self.waiting.get(&request).map_or(0, |waiting| waiting.number);
        gate.is_late(request) || gate.is_beyond(request) && number > BUDGET_MIN
    }

    /// A request goes to the application: it must be the next one, and still belong to its session.
    pub(crate) fn started(&mut self, start: &Start, gate: &Gate) -> Result<(), String> {
        let request = start.request;
        let Some(waiting) = self.waiting.remove(&request) else {
            return Err(format!("{request:?} was started, but does not wait"));
        };
        let index = waiting.route.index();
        if let Some(position) = waiting.position {
            // Earlier requests go first, if they can still be answered in time and ask for no more
            // than a visitor does.
            let mut before = self.queues[index].range(..position);
            if before.any(|before| !self.goes_behind(gate, before.2)) {
                return Err(format!("{request:?} was started before members who were to go first"));
            }
            // A request of a session that asks for more goes last.
            let mut all = self.queues[index].iter().filter(|other| other.2 != request);
            if gate.is_beyond(request) && all.any(|other| !gate.is_beyond(other.2)) {
                return Err(format!(
                    "{request:?}, beyond what a visitor asks for, was started before others"
                ));
            }
            self.queues[index].remove(&position);
        } else if self.order == QueueOrder::LaterInSession && !self.queues[index].is_empty() {
            // A newcomer has the lowest priority: no member's request is earlier in its session.
            let first = self.queues[index].first().expect("not empty");
            if PRIORITY_MAX - first.0 > 1 && !self.goes_behind(gate, first.2) {
                return Err(format!(
                    "a newcomer, {request:?}, was started while {:?}, a member, waited",
                    first.2
                ));
            }
        }
        match (waiting.member, start.session) {
            (Some(session), Some((_, same))) if session == same => {}
            (Some(session), other) => return Err(format!("{session:?} was taken for {other:?}")),
            (None, Some((_, session))) => _ = self.requests.insert(session, 1),
            (None, None) => {}
        }
        self.in_flight[index] += 1;
        match gate.limit(waiting.route) {
            Some(limit) if self.in_flight[index] > limit as usize => Err(format!(
                "{request:?} was started at {:?}, where {} were in flight at a limit of {limit}",
                waiting.route, self.in_flight[index]
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn refused(&mut self, refusal: &Refusal) -> Result<(), String> {
        let request = refusal.request;
        let Some(waiting) = self.waiting.remove(&request) else {
            return Err(format!("{request:?} was refused, but does not wait"));
        };
        self.settled[waiting.route.index()] += 1;
        match waiting.member {
            Some(session) => {
                Err(format!("{session:?} had been let in, and was refused ({})", refusal.reason.code()))
            }
            None => Ok(()),
        }
    }

    /// A newcomer is sent to the line: it must not have been admitted before.
    pub(crate) fn waits_in_line(&mut self, wait: &InLine) -> Result<(), String> {
        let request = wait.request;
        let Some(waiting) = self.waiting.remove(&request) else {
            return Err(format!("{request:?} was sent to the line, but does not wait"));
        };
        self.settled[waiting.route.index()] += 1;
        match waiting.member {
            Some(session) => Err(format!("{session:?} had been let in, and was sent to the line")),
            None => Ok(()),
        }
    }

    /// The client of a request disconnected: the request no longer waits, if it did.
    pub(crate) fn departed(&mut self, request: RequestId) {
        let Some(waiting) = self.waiting.remove(&request) else { return };
        if let Some(position) = waiting.position {
            self.queues[waiting.route.index()].remove(&position);
        }
        self.settled[waiting.route.index()] += 1;
    }

    pub(crate) fn ended(&mut self, route: RouteId) {
        self.in_flight[route.index()] -= 1;
        self.settled[route.index()] += 1;
    }

    pub(crate) fn forget(&mut self, session: SessionId) {
        self.requests.remove(&session);
    }

    /// After an event: no request waits at `route` while a slot is free there.
    pub(crate) fn no_idle_slot(&self, now: Instant, route: RouteId, gate: &Gate) -> Result<(), String> {
        let index = route.index();
        let waiting = self.queues[index].len();
        let (waiting_there, in_flight_there) = gate.load(route);
        if in_flight_there != self.in_flight[index] || waiting_there < waiting {
            return Err(format!(
                "{route:?}: the gate sees {in_flight_there} in flight and {waiting_there} waiting, its books {} and at least {waiting}",
                self.in_flight[index]
            ));
        }
        if gate.is_held_by_service(now, route) || gate.lacks_worker(route) {
            return Ok(());
        }
        match gate.limit(route) {
            None if waiting_there > 0 => {
                Err(format!("{waiting_there} wait at {route:?}, which has no limit"))
            }
            Some(limit) if waiting_there > 0 && in_flight_there < limit as usize => Err(format!(
                "{waiting_there} wait at {route:?} while {in_flight_there} of {limit} slots are used"
            )),
            _ => Ok(()),
        }
    }

    /// From time to time: every request is counted exactly once, in these accounts and in the
    /// gate's.
    pub(crate) fn conserved(&self, now: Instant, gate: &Gate) -> Result<(), String> {
        let snapshot = gate.snapshot(now);
        let mut inside = 0;
        for (index, view) in snapshot.routes.iter().enumerate() {
            let Counts { offered, completed, failed, abandoned, refused } = view.counts;
            let settled = completed + failed + abandoned + refused;
            if (offered, settled) != (self.offered[index], self.settled[index]) {
                return Err(format!(
                    "route {index}: the gate counts {offered} offered and {settled} settled, its books {} and {}",
                    self.offered[index], self.settled[index]
                ));
            }
            inside += offered - settled;
        }
        let seen = (snapshot.waiting + snapshot.in_flight) as u64;
        if inside != seen {
            return Err(format!("{inside} requests are inside, and {seen} wait or are in flight"));
        }
        Ok(())
    }
}

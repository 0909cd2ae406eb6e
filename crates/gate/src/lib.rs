//! The gate: sessions by kind, a queue and a limit for each route, and the laws that move them.
//!
//! One machine, told the time: `handle_*` says what happened, `poll_output` what should happen, `poll_timeout`
//! when to call again.

mod api;

pub use api::{
    Arrival, Counts, KindParams, KindView, Membership, Mode, Order, Output, Params, Refusal, RouteView,
    Snapshot, Start, Token,
};

use std::collections::VecDeque;
use suimon_model::{Ending, Instant, KindId, RequestId, RouteId};

/// The gate.
#[derive(Debug)]
pub struct Gate {
    outputs: VecDeque<Output>,
    next: u64,
}

impl Gate {
    /// Returns a gate that knows no routes and no kinds yet.
    pub fn new(_params: Params, _now: Instant) -> Self {
        Gate { outputs: VecDeque::new(), next: 0 }
    }

    /// Declares a route and returns its id; ids count up from 0.
    pub fn declare_route(&mut self, _mode: Mode) -> RouteId {
        RouteId(0)
    }

    /// Declares a kind of session and returns its id; ids count up from 0.
    pub fn declare_kind(&mut self, _params: KindParams) -> KindId {
        KindId(0)
    }

    /// Takes in a request. If it may go on, or is refused, an output for it follows from `poll_output` at once; otherwise it waits.
    pub fn handle_arrival(&mut self, _now: Instant, arrival: Arrival) -> RequestId {
        self.next += 1;
        let request = RequestId(self.next);
        let session = match arrival.session {
            Some(Membership::Newcomer(kind)) => Some((kind, suimon_model::SessionId(self.next))),
            Some(Membership::Member { kind, session, .. }) => Some((kind, session)),
            None => None,
        };
        self.outputs.push_back(Output::Start(Start {
            request,
            token: Token { request },
            session,
            lease_due: session.is_some(),
            waited: std::time::Duration::ZERO,
        }));
        request
    }

    /// Takes note that the client of `request` has gone. Waiting: it leaves the queue at once and its id is forgotten. In the
    /// application: its slot stays with its token, as ghost work. Unknown or stale ids are ignored.
    pub fn handle_departure(&mut self, _now: Instant, _request: RequestId) {}

    /// Takes back a slot.
    pub fn handle_end(&mut self, _now: Instant, _token: Token, _ending: Ending) {}

    /// Does what is due by `now`: see `poll_timeout`.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// Returns the next thing that should happen, until there is none. Call after every `handle_*`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when `handle_timeout` is to be called, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Begins to refuse newcomers, so that what is under way can end (graceful shutdown).
    pub fn drain(&mut self, _now: Instant) {}

    /// Returns everything that can be seen of the gate at `now`.
    pub fn snapshot(&self, _now: Instant) -> Snapshot {
        Snapshot { routes: vec![], kinds: vec![], waiting: 0, in_flight: 0, sessions: 0, records: vec![], probing: None }
    }
}

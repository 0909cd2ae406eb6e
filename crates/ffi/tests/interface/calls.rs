//! Each call of the gate alone decides what the same call decides in Rust, bit for bit: what C gives is read as it
//! is meant, and what is decided is told as it is.

use crate::gate::{self, SECOND};
use proptest::prelude::*;
use std::collections::BTreeMap;
use suimon::c::*;
use suimon_gate::{Arrival, Gate, KindParams, LeaseDue, Membership, Output, Permit, RouteMode};
use suimon_model::{
    Duration, Failure, Instant, KindId, Limit, Outcome, Quantity, RequestId, RouteId, SessionId, Subject,
};
use suimon_settings::Settings;

/// Few sessions, so that some newcomers are held and refused.
const SETTINGS: &str = "[gate]\nsession_law = \"static\"\nstatic_sessions = 3\n";
const MODES: [(i32, RouteMode); 4] = [
    (SUIMON_ENFORCE, RouteMode::Enforce),
    (2, RouteMode::Fixed(Limit::of(2))),
    (SUIMON_OBSERVE, RouteMode::Observe),
    (SUIMON_OFF, RouteMode::Off),
];
/// Patience and hold of each kind of session, nanoseconds.
const KINDS: [(u64, u64); 2] = [(30 * SECOND, SECOND / 2), (0, 0)];
/// A session that nobody has begun.
const STRANGER: u64 = 77;

#[derive(Clone, Copy, Debug)]
enum Call {
    Arrive {
        route: u32,
        membership: u32,
        kind: u32,
        flags: u32,
        /// Which of those that have begun; beyond them: a stranger's.
        session: usize,
    },
    /// Which of all requests that have arrived: many have ended, or wait.
    End(usize, u32),
    Depart(usize),
    Suspend(usize, u64),
    Resume(usize),
    Tick,
}

fn call() -> impl Strategy<Value = Call> {
    let which = 0..12_usize;
    let arrive = (0..4_u32, 0..4_u32, 0..2_u32, 0..4_u32, 0..6_usize);
    prop_oneof![
        6 => arrive.prop_map(|(route, membership, kind, flags, session)| {
            Call::Arrive { route, membership, kind, flags, session }
        }),
        5 => (which.clone(), 0..4_u32).prop_map(|(which, outcome)| Call::End(which, outcome)),
        1 => which.clone().prop_map(Call::Depart),
        1 => (which.clone(), 0..SECOND).prop_map(|(which, waited)| Call::Suspend(which, waited)),
        1 => which.prop_map(Call::Resume),
        4 => Just(Call::Tick),
    ]
}

/// The same gate twice, told the same.
struct Pair {
    c: gate::Gate,
    rust: Gate,
    now: u64,
    permits: BTreeMap<u64, Permit>,
    /// The newest last.
    requests: Vec<u64>,
    sessions: Vec<u64>,
    refused: usize,
}

impl Pair {
    fn new() -> Pair {
        let params = Settings::parse("settings", SETTINGS).unwrap().proxy.gate;
        let (c, mut rust) = (gate::open(SETTINGS).unwrap(), Gate::new(params, Instant::from_nanos(0)));
        for (number, mode) in MODES {
            assert_eq!(c.route(0, number), (SUIMON_OK, rust.declare_route(Instant::from_nanos(0), mode).0));
        }
        for (patience, hold) in KINDS {
            let time = |nanos: u64| (nanos > 0).then(|| Duration::from_nanos(nanos));
            let params = KindParams { patience: time(patience), hold: time(hold), ..KindParams::default() };
            let kind = rust.declare_kind(Instant::from_nanos(0), params);
            assert_eq!(c.kind_of(0, patience, hold), kind.0);
        }
        Pair {
            c,
            rust,
            now: 0,
            permits: BTreeMap::new(),
            requests: Vec::new(),
            sessions: Vec::new(),
            refused: 0,
        }
    }

    fn play(&mut self, call: Call, pause: u64) {
        self.now += pause;
        let now = Instant::from_nanos(self.now);
        match call {
            Call::Arrive { route, membership, kind, flags, session } => {
                let session = self.sessions.get(session).copied().unwrap_or(STRANGER);
                let (told, request) =
                    self.c.take_in(self.now, GateArrival { route, membership, kind, flags, session });
                let kind = KindId(kind);
                let session = match membership {
                    SUIMON_NEWCOMER => Some(Membership::Newcomer(kind)),
                    SUIMON_WITHOUT_LINE => Some(Membership::WithoutLine(kind)),
                    SUIMON_MEMBER => Some(Membership::Member {
                        kind,
                        session: SessionId(session),
                        leased: flags == SUIMON_LEASED || flags == SUIMON_LEASED + SUIMON_ENDS,
                        ends: flags >= SUIMON_ENDS,
                    }),
                    _ => None,
                };
                let arrived = self.rust.handle_arrival(now, Arrival { route: RouteId(route), session });
                assert_eq!((told, request), (SUIMON_OK, arrived.0));
                self.requests.push(request);
            }
            Call::End(which, outcome) => {
                let Some(request) = self.request(which) else { return };
                let told = self.c.end(self.now, request, outcome);
                let outcome = match outcome {
                    SUIMON_COMPLETED => Outcome::Completed,
                    SUIMON_DECLINED => Outcome::Declined,
                    SUIMON_FAILED => Outcome::Failed(Failure::ServerError),
                    _ => Outcome::Abandoned,
                };
                match self.permits.remove(&request) {
                    None => assert_eq!(told, SUIMON_UNKNOWN),
                    Some(permit) => {
                        assert_eq!(told, SUIMON_OK);
                        self.rust.handle_end(now, permit, outcome);
                    }
                }
            }
            Call::Depart(which) => {
                let Some(request) = self.request(which) else { return };
                assert_eq!(self.c.depart(self.now, request), SUIMON_OK);
                self.rust.handle_departure(now, RequestId(request));
            }
            Call::Suspend(which, waited) => {
                let Some(request) = self.request(which) else { return };
                assert_eq!(self.c.suspend(self.now, request, waited), SUIMON_OK);
                self.rust.handle_suspend(now, RequestId(request), Duration::from_nanos(waited));
            }
            Call::Resume(which) => {
                let Some(request) = self.request(which) else { return };
                assert_eq!(self.c.resume(self.now, request), SUIMON_OK);
                self.rust.handle_resume(now, RequestId(request));
            }
            Call::Tick => {
                let Some(due) = self.rust.poll_timeout() else { return };
                self.now = self.now.max(due.as_nanos());
                assert_eq!(self.c.tick_at(self.now), SUIMON_OK);
                self.rust.handle_timeout(Instant::from_nanos(self.now));
            }
        }
        self.agree();
    }

    fn request(&self, which: usize) -> Option<u64> {
        self.requests.iter().rev().nth(which).copied()
    }

    /// Holds both to the same decisions.
    fn agree(&mut self) {
        while let Some(output) = self.rust.poll_output() {
            let told = self.c.poll().expect("C is told as much");
            self.compare(&told, output);
        }
        assert_eq!(self.c.poll(), None);
        assert_eq!(self.c.hashes().0, self.rust.trace().value());
        assert_eq!(self.c.next_timeout(), self.rust.poll_timeout().map(Instant::as_nanos));
    }

    fn compare(&mut self, told: &GateOutput, output: Output) {
        match output {
            Output::Start(start) => {
                assert_eq!((told.what, told.request), (SUIMON_START, start.request.0));
                assert_eq!(told.has_session == 1, start.session.is_some());
                if let Some((kind, session)) = start.session {
                    assert_eq!((told.kind, told.session), (kind.0, session.0));
                    self.sessions.push(session.0);
                }
                let lease = match start.lease {
                    LeaseDue::No => 0,
                    LeaseDue::IfUnknown => 1,
                    LeaseDue::Yes => 2,
                };
                let limit = start.limit.unwrap_or(SUIMON_NONE);
                assert_eq!((told.lease, told.limit, told.count), (lease, limit, start.in_flight as u64));
                assert_eq!(u128::from(told.waited), start.waited.as_nanos());
                assert_eq!(u128::from(told.held), start.held.as_nanos());
                self.permits.insert(told.request, start.permit);
            }
            Output::Refuse(refusal) => {
                self.refused += 1;
                assert_eq!((told.what, told.request), (SUIMON_REFUSE, refusal.request.0));
                assert_eq!((told.reason, told.count), (refusal.reason as u32, refusal.waiting as u64));
                assert_eq!(u128::from(told.retry_after), refusal.retry_after.as_nanos());
                assert_eq!(u128::from(told.predicted_wait), refusal.predicted_wait.as_nanos());
            }
            Output::Wait(wait) => panic!("{wait:?}: a kind that C declares has no line"),
            Output::Resumed(request) => {
                assert_eq!((told.what, told.request), (SUIMON_RESUMED, request.0));
            }
            Output::Decided(record) => {
                assert_eq!((told.what, told.reason), (SUIMON_DECIDED, record.reason as u32));
                let subject = match record.subject {
                    Subject::Route(route) => (0, route.0),
                    Subject::Kind(kind) => (1, kind.0),
                    Subject::Service(service) => (2, service.0),
                };
                assert_eq!((told.subject, told.subject_number), subject);
                let quantity = match record.quantity {
                    Quantity::Limit => 0,
                    Quantity::Interval => 1,
                    Quantity::Moving => 2,
                    Quantity::Cap => 3,
                };
                assert_eq!((told.quantity, told.at), (quantity, record.at.as_nanos()));
                assert_eq!(
                    (told.old.to_bits(), told.new.to_bits()),
                    (record.old.to_bits(), record.new.to_bits())
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn the_same_calls_decide_the_same_as_in_rust(
        calls in proptest::collection::vec((call(), 0..SECOND / 5), 1..200),
    ) {
        let mut pair = Pair::new();
        for (call, pause) in calls {
            pair.play(call, pause);
        }
    }
}

#[test]
fn such_calls_start_hold_and_refuse() {
    let mut pair = Pair::new();
    let newcomer = Call::Arrive { route: 1, membership: SUIMON_NEWCOMER, kind: 0, flags: 0, session: 0 };
    for _ in 0..6 {
        pair.play(newcomer, 1);
    }
    for _ in 0..30 {
        pair.play(Call::Tick, 1);
    }
    assert!(pair.sessions.len() >= 2 && pair.refused > 0, "{:?}, {} refused", pair.sessions, pair.refused);
}

//! The gate alone, and recordings.

use crate::support::with_room;
use std::ptr;
use std::thread;
use suimon::c::*;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// An open gate; closed when it goes.
pub(crate) struct Gate(*mut GateHandle);

// Any thread may use it.
// SAFETY: the library says so of gates.
unsafe impl Sync for Gate {}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { suimon_gate_close(self.0) };
    }
}

pub(crate) fn open(settings: &str) -> Result<Gate, String> {
    let mut gate = ptr::null_mut();
    let (_, why, _) = with_room(10_000, |out| {
        // SAFETY: text with its length, and a buffer.
        gate = unsafe { suimon_gate_open(settings.as_ptr(), settings.len(), 0, out) };
        0
    });
    if gate.is_null() { Err(why) } else { Ok(Gate(gate)) }
}

fn restore(bytes: &[u8]) -> Result<Gate, String> {
    let mut gate = ptr::null_mut();
    let (_, why, _) = with_room(10_000, |out| {
        // SAFETY: bytes with their length, and a buffer.
        gate = unsafe { suimon_gate_restore(bytes.as_ptr(), bytes.len(), out) };
        0
    });
    if gate.is_null() { Err(why) } else { Ok(Gate(gate)) }
}

// SAFETY, in all of these: a gate that is open, and places of this function's own.
impl Gate {
    pub(crate) fn route(&self, now: u64, mode: i32) -> (i32, u32) {
        let mut route = 99;
        (unsafe { suimon_gate_route(self.0, now, mode, &raw mut route) }, route)
    }

    fn kind(&self, now: u64) -> u32 {
        self.kind_of(now, 30 * SECOND, 0)
    }

    pub(crate) fn kind_of(&self, now: u64, patience: u64, hold: u64) -> u32 {
        let mut kind = 99;
        assert_eq!(unsafe { suimon_gate_kind(self.0, now, patience, hold, &raw mut kind) }, SUIMON_OK);
        kind
    }

    fn arrive(&self, now: u64, route: u32, membership: u32, session: u64) -> (i32, u64) {
        self.take_in(now, GateArrival { route, membership, kind: 0, flags: SUIMON_LEASED, session })
    }

    pub(crate) fn take_in(&self, now: u64, arrival: GateArrival) -> (i32, u64) {
        let mut request = u64::MAX;
        (unsafe { suimon_gate_arrive(self.0, now, &raw const arrival, &raw mut request) }, request)
    }

    pub(crate) fn depart(&self, now: u64, request: u64) -> i32 {
        unsafe { suimon_gate_depart(self.0, now, request) }
    }

    pub(crate) fn suspend(&self, now: u64, request: u64, client_time: u64) -> i32 {
        unsafe { suimon_gate_suspend(self.0, now, request, client_time) }
    }

    pub(crate) fn resume(&self, now: u64, request: u64) -> i32 {
        unsafe { suimon_gate_resume(self.0, now, request) }
    }

    pub(crate) fn end(&self, now: u64, request: u64, outcome: u32) -> i32 {
        unsafe { suimon_gate_end(self.0, now, request, outcome) }
    }

    pub(crate) fn poll(&self) -> Option<GateOutput> {
        let mut output = GateOutput::default();
        let told = unsafe { suimon_gate_poll(self.0, &raw mut output) };
        (told == SUIMON_OK).then_some(output)
    }

    pub(crate) fn next_timeout(&self) -> Option<u64> {
        let mut at = 0;
        (unsafe { suimon_gate_next_timeout(self.0, &raw mut at) } == SUIMON_OK).then_some(at)
    }

    pub(crate) fn tick_at(&self, now: u64) -> i32 {
        unsafe { suimon_gate_tick(self.0, now) }
    }

    fn tick(&self) -> u64 {
        let at = self.next_timeout().unwrap();
        assert_eq!(self.tick_at(at), SUIMON_OK);
        at
    }

    pub(crate) fn hashes(&self) -> (u64, u64) {
        let (mut trace, mut answers) = (0, 0);
        assert_eq!(unsafe { suimon_gate_trace(self.0, &raw mut trace) }, SUIMON_OK);
        assert_eq!(unsafe { suimon_gate_answers(self.0, &raw mut answers) }, SUIMON_OK);
        (trace, answers)
    }

    fn state(&self, now: u64) -> serde_json::Value {
        let (told, text, _) = with_room(100_000, |out| unsafe { suimon_gate_state(self.0, now, out) });
        assert_eq!(told, SUIMON_OK);
        serde_json::from_str(&text).unwrap()
    }

    fn save(&self, now: u64) -> Vec<u8> {
        let mut bytes = vec![0_u8; 1 << 20];
        let mut out = Buffer { data: bytes.as_mut_ptr(), capacity: bytes.len(), length: 0 };
        assert_eq!(unsafe { suimon_gate_save(self.0, now, &raw mut out) }, SUIMON_OK);
        bytes.truncate(out.length);
        bytes
    }
}

#[test]
fn a_request_waits_for_the_one_slot_and_starts_when_it_is_free() {
    let gate = open("").unwrap();
    assert_eq!(gate.route(0, 1), (SUIMON_OK, 0));
    let (_, first) = gate.arrive(10, 0, SUIMON_SESSIONLESS, 0);
    let (_, second) = gate.arrive(20, 0, SUIMON_SESSIONLESS, 0);
    let started = gate.poll().unwrap();
    assert_eq!((started.what, started.request, started.limit, started.count), (SUIMON_START, first, 1, 1));
    assert_eq!((started.kind, started.has_session), (SUIMON_NONE, 0));
    assert!(gate.poll().is_none());
    assert_eq!(gate.end(SECOND, second, SUIMON_COMPLETED), SUIMON_UNKNOWN, "it waits");
    assert_eq!(gate.end(SECOND, first, 4), SUIMON_INVALID);
    assert_eq!(gate.end(SECOND, first, SUIMON_COMPLETED), SUIMON_OK);
    assert_eq!(gate.end(SECOND, first, SUIMON_COMPLETED), SUIMON_UNKNOWN);
    let started = gate.poll().unwrap();
    assert_eq!((started.request, started.waited), (second, SECOND - 20));
    let state = gate.state(SECOND);
    assert_eq!((&state["in_flight"], &state["routes"][0]["completed"]), (&1.into(), &1.into()));
}

#[test]
fn a_suspended_request_holds_no_slot_and_gets_it_again() {
    let gate = open("").unwrap();
    gate.route(0, 1);
    let (_, first) = gate.arrive(0, 0, SUIMON_SESSIONLESS, 0);
    let (_, second) = gate.arrive(0, 0, SUIMON_SESSIONLESS, 0);
    gate.poll();
    // SAFETY: a gate that is open.
    unsafe {
        assert_eq!(suimon_gate_suspend(gate.0, 10, first, 5), SUIMON_OK);
        assert_eq!(gate.poll().unwrap().request, second);
        assert_eq!(suimon_gate_resume(gate.0, 20, first), SUIMON_OK);
        assert!(gate.poll().is_none());
        assert_eq!(suimon_gate_depart(gate.0, 25, second), SUIMON_OK);
    }
    assert_eq!(gate.end(30, second, SUIMON_ABANDONED), SUIMON_OK);
    let resumed = gate.poll().unwrap();
    assert_eq!((resumed.what, resumed.request), (SUIMON_RESUMED, first));
    assert_eq!(gate.end(40, first, SUIMON_FAILED), SUIMON_OK);
    let route = &gate.state(40)["routes"][0];
    assert_eq!(
        (&route["failed"], &route["abandoned"], &route["in_flight"]),
        (&1.into(), &1.into(), &0.into())
    );
}

#[test]
fn a_gate_that_is_saved_goes_on_in_another_as_if_nothing_had_happened() {
    let gate = open("[gate]\nsession_law = \"static\"\nstatic_sessions = 1\n").unwrap();
    gate.route(0, SUIMON_ENFORCE);
    gate.kind(0);
    let (_, first) = gate.arrive(10, 0, SUIMON_NEWCOMER, 0);
    let started = gate.poll().unwrap();
    assert_eq!((started.what, started.kind, started.has_session), (SUIMON_START, 0, 1));
    gate.arrive(20, 0, SUIMON_NEWCOMER, 0);
    while gate.poll().is_some() {}
    let other = restore(&gate.save(30)).unwrap();
    let go_on = |gate: &Gate| {
        let mut told = Vec::new();
        for _ in 0..100 {
            let now = gate.tick();
            gate.arrive(now, 0, SUIMON_NEWCOMER, 0);
            told.extend(std::iter::from_fn(|| gate.poll()));
        }
        assert_eq!(gate.end(100 * SECOND, first, SUIMON_COMPLETED), SUIMON_OK);
        told.extend(std::iter::from_fn(|| gate.poll()));
        (told, gate.hashes().0)
    };
    let (told, trace) = go_on(&gate);
    assert!(told.iter().any(|output| output.what == SUIMON_REFUSE), "{told:?}");
    assert_eq!(go_on(&other), (told.clone(), trace));
    let refused = told.iter().find(|output| output.what == SUIMON_REFUSE).unwrap();
    // SAFETY: a buffer.
    let (code, reason, _) = with_room(100, |out| unsafe { suimon_reason(refused.reason, out) });
    assert!(code == SUIMON_OK && !reason.is_empty(), "{refused:?}");
    // SAFETY: a buffer.
    let (code, _, _) = with_room(100, |out| unsafe { suimon_reason(10_000, out) });
    assert_eq!(code, SUIMON_UNKNOWN);
}

#[test]
fn what_a_gate_cannot_take_is_refused_and_changes_nothing() {
    let gate = open("").unwrap();
    assert_eq!(gate.arrive(0, 0, SUIMON_SESSIONLESS, 0).0, SUIMON_INVALID, "there is no route");
    assert_eq!(gate.route(0, -3).0, SUIMON_INVALID);
    gate.route(0, SUIMON_OFF);
    assert_eq!(gate.arrive(0, 1, SUIMON_SESSIONLESS, 0).0, SUIMON_INVALID);
    assert_eq!(gate.arrive(0, 0, SUIMON_MEMBER, 7).0, SUIMON_INVALID, "there is no kind");
    assert_eq!(gate.arrive(0, 0, 9, 0).0, SUIMON_INVALID);
    // SAFETY: a gate and bytes; and NULL where it is tried.
    unsafe {
        for event in [&b""[..], b"\xff\0", b"\0\x02", b"\0\0\0", b"\x01\0\x63"] {
            assert_eq!(
                suimon_gate_apply(gate.0, 0, event.as_ptr(), event.len()),
                SUIMON_INVALID,
                "{event:?}"
            );
        }
        // A request of no session, at the first route.
        assert_eq!(suimon_gate_apply(gate.0, 0, [1, 0, 0].as_ptr(), 3), SUIMON_OK);
        assert_eq!(suimon_gate_tick(ptr::null_mut(), 0), SUIMON_INVALID);
        assert_eq!(suimon_gate_poll(gate.0, ptr::null_mut()), SUIMON_INVALID);
    }
    assert_eq!(gate.poll().unwrap().what, SUIMON_START);
    assert_eq!(gate.state(0)["routes"][0]["offered"], 1);
    assert!(open("gate.order = \"last\"").err().unwrap().contains("gate.order"));
    assert!(restore(b"nothing").err().unwrap().contains("at byte 0"));
}

#[test]
fn a_gate_of_which_nothing_is_polled_takes_no_more_at_last() {
    let gate = open("").unwrap();
    gate.route(0, SUIMON_OFF);
    let taken = (0..200_000).take_while(|_| gate.arrive(0, 0, SUIMON_SESSIONLESS, 0).0 == SUIMON_OK).count();
    assert_eq!(taken, 65_536);
    while gate.poll().is_some() {}
    assert_eq!(gate.arrive(0, 0, SUIMON_SESSIONLESS, 0).0, SUIMON_OK);
}

#[test]
fn many_threads_may_use_one_gate() {
    const THREADS: u64 = 4;
    const EACH: u64 = 5_000;
    let gate = open("").unwrap();
    gate.route(0, 2);
    let serve = || {
        while let Some(output) = gate.poll() {
            if output.what == SUIMON_START {
                assert_eq!(gate.end(0, output.request, SUIMON_COMPLETED), SUIMON_OK);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    assert_eq!(gate.arrive(0, 0, SUIMON_SESSIONLESS, 0).0, SUIMON_OK);
                    serve();
                }
            });
        }
    });
    serve();
    let state = gate.state(0);
    let route = &state["routes"][0];
    assert_eq!((&route["completed"], &state["in_flight"]), (&(THREADS * EACH).into(), &0.into()));
}

//! Calls of gates and recordings.

use super::{CALLS, Script, told, with_room};
use crate::c::*;
use serde_json::Value;
use std::ptr;

/// Gates of one input; the handle behind them is NULL and stays so.
const GATES: usize = 2;
/// Room for all that can be told of a gate.
const ROOM: usize = 1 << 17;
/// Room for an event. One that is larger is asked for in vain.
const EVENT_ROOM: usize = 1 << 10;

/// What calls gates.
struct Caller {
    gates: [*mut GateHandle; GATES + 1],
    now: u64,
    /// Requests, of all gates.
    requests: Vec<u64>,
}

// SAFETY, in all of this file: gates that are open or NULL, bytes with their length, and places of the function's own.

pub(super) fn play(mut script: Script<'_>) {
    let mut caller = Caller { gates: [ptr::null_mut(); GATES + 1], now: 0, requests: Vec::new() };
    caller.gates[0] = unsafe { suimon_gate_open(ptr::null(), 0, 0, ptr::null_mut()) };
    assert!(!caller.gates[0].is_null(), "no settings are none that are wrong");
    for _ in 0..CALLS {
        let Some(function) = script.next_of(24) else { break };
        caller.call(function, &mut script);
    }
    caller.gates.iter().for_each(|gate| caller.end(*gate));
}

impl Caller {
    fn call(&mut self, function: u8, script: &mut Script<'_>) {
        let at = usize::from(script.byte()) % self.gates.len();
        let (gate, now) = (self.gates[at], self.now);
        match function {
            0 => {
                let text = script.text();
                let opened = unsafe { suimon_gate_open(text.as_ptr(), text.len(), now, ptr::null_mut()) };
                self.replace(at, opened);
            }
            1 => self.replace(at, ptr::null_mut()),
            2 => {
                let (mode, mut route) = (script.number() as i32 - 2, 0);
                told(unsafe { suimon_gate_route(gate, now, mode, &raw mut route) });
            }
            3 => {
                let (patience, hold) = (script.number(), script.number());
                // Nobody need be told the number.
                told(unsafe { suimon_gate_kind(gate, now, patience << 24, hold << 24, ptr::null_mut()) });
            }
            4..=7 => self.arrive(gate, script),
            8 | 9 => {
                let request = script.one_of(&self.requests);
                let outcome = u32::from(script.byte() % 5);
                let ended = told(unsafe { suimon_gate_end(gate, now, request, outcome) });
                let again = told(unsafe { suimon_gate_end(gate, now, request, SUIMON_COMPLETED) });
                assert!(ended != SUIMON_OK || again == SUIMON_UNKNOWN, "{request} is ended twice");
            }
            10 => _ = told(unsafe { suimon_gate_depart(gate, now, script.one_of(&self.requests)) }),
            11 => {
                let (request, client_time) = (script.one_of(&self.requests), script.number());
                told(unsafe { suimon_gate_suspend(gate, now, request, client_time) });
            }
            12 => _ = told(unsafe { suimon_gate_resume(gate, now, script.one_of(&self.requests)) }),
            13 => _ = told(unsafe { suimon_gate_tick(gate, now) }),
            14 => {
                let event = script.text();
                told(unsafe { suimon_gate_apply(gate, now, event.as_ptr(), event.len()) });
            }
            15 => _ = self.poll(gate),
            16 => {
                if told(unsafe { suimon_gate_next_timeout(gate, &raw mut self.now) }) == SUIMON_OK {
                    told(unsafe { suimon_gate_tick(gate, self.now) });
                }
            }
            17 => _ = script.with_room(|out| unsafe { suimon_gate_state(gate, now, out) }),
            18 => {
                // What was let in and not told yet is not saved: its caller would never end it.
                while self.poll(gate) == SUIMON_OK {}
                let (saved, state) = with_room(ROOM, |out| unsafe { suimon_gate_save(gate, now, out) });
                if saved == SUIMON_OK {
                    let restored =
                        unsafe { suimon_gate_restore(state.as_ptr(), state.len(), ptr::null_mut()) };
                    assert!(!restored.is_null(), "what was saved is taken");
                    self.replace(usize::from(script.byte()) % GATES, restored);
                }
            }
            19 => {
                let length = usize::try_from(script.number()).unwrap_or(usize::MAX);
                read(script.bytes(length));
            }
            20 => {
                let (mut trace, mut answers) = (0, 0);
                told(unsafe { suimon_gate_trace(gate, &raw mut trace) });
                told(unsafe { suimon_gate_answers(gate, &raw mut answers) });
            }
            21 => {
                let reason = script.number() as u32;
                script.with_room(|out| unsafe { suimon_reason(reason, out) });
            }
            22 => self.now = self.now.saturating_add(script.number() << 20),
            // Time that jumps, backwards, too.
            _ => self.now = script.number(),
        }
    }

    /// Polls once. A request that an event has brought is known from its start.
    fn poll(&mut self, gate: *mut GateHandle) -> i32 {
        let mut output = GateOutput::default();
        let polled = told(unsafe { suimon_gate_poll(gate, &raw mut output) });
        if polled == SUIMON_OK && output.what == SUIMON_START {
            self.requests.push(output.request);
        }
        polled
    }

    fn arrive(&mut self, gate: *mut GateHandle, script: &mut Script<'_>) {
        let arrival = GateArrival {
            route: u32::from(script.byte() % 4),
            membership: u32::from(script.byte() % 5),
            kind: u32::from(script.byte() % 3),
            flags: script.byte().into(),
            session: script.number(),
        };
        let mut request = 0;
        if told(unsafe { suimon_gate_arrive(gate, self.now, &raw const arrival, &raw mut request) })
            == SUIMON_OK
        {
            self.requests.push(request);
        }
    }

    /// Puts a gate in the place of another one, which ends. What is NULL stays NULL.
    fn replace(&mut self, at: usize, gate: *mut GateHandle) {
        let at = if at < GATES { at } else { 0 };
        let before = std::mem::replace(&mut self.gates[at], gate);
        self.end(before);
    }

    /// Ends all requests of a gate, after which nothing is in flight, and the gate.
    fn end(&self, gate: *mut GateHandle) {
        if gate.is_null() {
            return;
        }
        let now = self.now;
        for request in &self.requests {
            told(unsafe { suimon_gate_depart(gate, now, *request) });
            told(unsafe { suimon_gate_end(gate, now, *request, SUIMON_ABANDONED) });
        }
        let mut output = GateOutput::default();
        // Who is let in by the end of another is ended, too.
        while told(unsafe { suimon_gate_poll(gate, &raw mut output) }) == SUIMON_OK {
            if output.what == SUIMON_START {
                told(unsafe { suimon_gate_end(gate, now, output.request, SUIMON_ABANDONED) });
            }
        }
        let (told, state) = with_room(ROOM, |out| unsafe { suimon_gate_state(gate, now, out) });
        assert_eq!(told, SUIMON_OK);
        let state: Value = serde_json::from_slice(&state).expect("it is JSON");
        assert_eq!((&state["in_flight"], &state["suspended"]), (&0.into(), &0.into()), "{state:#}");
        unsafe { suimon_gate_close(gate) };
    }
}

/// Reads bytes as a recording, and as the state of a gate.
fn read(bytes: &[u8]) {
    let restored = unsafe { suimon_gate_restore(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
    unsafe { suimon_gate_close(restored) };
    let recording = unsafe { suimon_recording_open(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
    let mut part = RecordingPart::default();
    with_room(ROOM, |out| unsafe { suimon_recording_header(recording, out) });
    // There are no more events than bytes.
    let next = |_: &usize| {
        with_room(EVENT_ROOM, |out| unsafe { suimon_recording_next(recording, &raw mut part, out) }).0
            == SUIMON_OK
    };
    assert!((0..=bytes.len()).take_while(next).count() <= bytes.len(), "it has no end");
    unsafe { suimon_recording_close(recording) };
}

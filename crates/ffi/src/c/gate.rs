//! The gate alone: a pure machine that is told the time.

use super::{Buffer, bytes, call, given, room, write};
use crate::code::{Code, Fault};
use crate::gate::OwnedGate;
use crate::out::Out;
use crate::output::{GateOutput, reason};
use std::ptr;
use std::sync::Mutex;
use suimon_gate::{Arrival, KindParams, Membership, RouteMode};
use suimon_model::{Duration, Failure, Instant, KindId, Limit, Outcome, RequestId, RouteId, SessionId};
use suimon_record::Event;

/// A route: a limit is found and enforced.
pub const SUIMON_ENFORCE: i32 = 0;
/// A route: it is measured, and nobody waits.
pub const SUIMON_OBSERVE: i32 = -1;
/// A route: it is only counted.
pub const SUIMON_OFF: i32 = -2;

/// A request of no session: it only passes the gate of its route.
pub const SUIMON_SESSIONLESS: u32 = 0;
/// A request that would begin a session of its kind.
pub const SUIMON_NEWCOMER: u32 = 1;
/// The same, which gets no position in line.
pub const SUIMON_WITHOUT_LINE: u32 = 2;
/// A request of a session that was admitted.
pub const SUIMON_MEMBER: u32 = 3;

/// Of a member: its session is proved, and known whatever the gate knows.
pub const SUIMON_LEASED: u32 = 1;
/// Of a member: once completed, it ends its session.
pub const SUIMON_ENDS: u32 = 2;

/// The application answered, and the client was there to receive it.
pub const SUIMON_COMPLETED: u32 = 0;
/// It answered that it does not do what was asked (4xx).
pub const SUIMON_DECLINED: u32 = 1;
/// It did not answer, or with an error of its own.
pub const SUIMON_FAILED: u32 = 2;
/// The client had gone before the answer was ready.
pub const SUIMON_ABANDONED: u32 = 3;

/// A request that arrives at a gate.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GateArrival {
    /// Its route, as suimon_gate_route has given it.
    pub route: u32,
    /// SUIMON_SESSIONLESS, SUIMON_NEWCOMER, SUIMON_WITHOUT_LINE or SUIMON_MEMBER.
    pub membership: u32,
    /// The kind of its session, as suimon_gate_kind has given it; unless it is of none.
    pub kind: u32,
    /// Of a member: SUIMON_LEASED and SUIMON_ENDS, added.
    pub flags: u32,
    /// Of a member: its session.
    pub session: u64,
}

/// A gate. Any thread may use it; a lock inside lets in one at a time.
#[derive(Debug)]
pub struct GateHandle(Mutex<OwnedGate>);

/// Opens a gate that knows no routes and no kinds of session yet. `settings`: suimon.toml as text, of which
/// [gate] and what is below it count. Times are nanoseconds since an origin that the caller chooses; the gate
/// reads no clock and starts no thread. Returns NULL on failure, and why as text in `error`, which may be NULL.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_open(
    settings: *const u8,
    length: usize,
    now: u64,
    error: *mut Buffer,
) -> *mut GateHandle {
    // SAFETY: the caller promises bytes and a buffer.
    unsafe {
        opened(room(error), || {
            let settings = bytes(settings, length, "settings")?;
            let settings =
                str::from_utf8(settings).map_err(|error| Fault::invalid(format!("settings: {error}")))?;
            OwnedGate::open(settings, Instant::from_nanos(now))
        })
    }
}

/// Opens a gate in the state that a file of a recording begins with, or that suimon_gate_save has written: it goes
/// on exactly as that one would have. Only bytes of the same build are taken. What was in the application still
/// holds its slot, and is ended by its number. Returns NULL on failure, as suimon_gate_open does.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_restore(
    recording: *const u8,
    length: usize,
    error: *mut Buffer,
) -> *mut GateHandle {
    // SAFETY: the caller promises bytes and a buffer.
    unsafe { opened(room(error), || OwnedGate::restore(bytes(recording, length, "recording")?)) }
}

fn opened(error: Option<Out<'_>>, open: impl FnOnce() -> Result<OwnedGate, Fault>) -> *mut GateHandle {
    let mut opened = ptr::null_mut();
    call(error, |_| {
        opened = Box::into_raw(Box::new(GateHandle(Mutex::new(open()?))));
        Ok(Code::Ok)
    });
    opened
}

/// Does something with a gate.
///
/// # Safety
/// `gate` is NULL, or a gate that is not closed.
unsafe fn with(
    gate: *const GateHandle,
    out: Option<Out<'_>>,
    work: impl FnOnce(&mut OwnedGate, &mut Option<Out<'_>>) -> Result<Code, Fault>,
) -> i32 {
    call(out, |out| {
        // SAFETY: it is NULL, or the caller promises a gate.
        let gate = unsafe { gate.as_ref() }.ok_or(Fault::invalid("gate: NULL"))?;
        // A gate in which something panicked may be anything.
        let mut gate = gate.0.lock().map_err(|_| Fault::invalid("gate: it has failed before"))?;
        work(&mut gate, out)
    })
}

/// Declares a route, whose number is written to `route`; they count up from 0. `mode`: SUIMON_ENFORCE,
/// SUIMON_OBSERVE, SUIMON_OFF, or a fixed limit from 1 on.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_route(
    gate: *mut GateHandle,
    now: u64,
    mode: i32,
    route: *mut u32,
) -> i32 {
    // SAFETY: the caller promises a gate and a place for a number.
    unsafe {
        with(gate, None, |gate, _| {
            let mode = match mode {
                SUIMON_ENFORCE => RouteMode::Enforce,
                SUIMON_OBSERVE => RouteMode::Observe,
                SUIMON_OFF => RouteMode::Off,
                limit => RouteMode::Fixed(Limit::of(
                    u32::try_from(limit).map_err(|_| Fault::invalid("mode: there is none"))?,
                )),
            };
            write(route, gate.route(Instant::from_nanos(now), mode)?);
            Ok(Code::Ok)
        })
    }
}

/// Declares a kind of session, whose number is written to `kind`; they count up from 0. `patience`: how long its
/// visitors wait for an answer; 0: it is learned. `hold`: how long a newcomer is held at most; 0: 0.7 of the
/// patience, at most 10 s.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_kind(
    gate: *mut GateHandle,
    now: u64,
    patience: u64,
    hold: u64,
    kind: *mut u32,
) -> i32 {
    // SAFETY: the caller promises a gate and a place for a number.
    unsafe {
        with(gate, None, |gate, _| {
            let time = |nanos: u64| (nanos > 0).then(|| Duration::from_nanos(nanos));
            let params = KindParams { patience: time(patience), hold: time(hold), ..KindParams::default() };
            write(kind, gate.kind(Instant::from_nanos(now), params)?);
            Ok(Code::Ok)
        })
    }
}

/// Takes in a request, whose number is written to `request`. What becomes of it follows from suimon_gate_poll, at
/// once or when its time has come.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_arrive(
    gate: *mut GateHandle,
    now: u64,
    arrival: *const GateArrival,
    request: *mut u64,
) -> i32 {
    // SAFETY: the caller promises a gate, an arrival and a place for a number.
    unsafe {
        with(gate, None, |gate, _| {
            let arrival = arrival.as_ref().ok_or(Fault::invalid("arrival: NULL"))?;
            write(request, gate.arrive(Instant::from_nanos(now), arrival_of(arrival)?)?);
            Ok(Code::Ok)
        })
    }
}

fn arrival_of(given: &GateArrival) -> Result<Arrival, Fault> {
    let (kind, session) = (KindId(given.kind), SessionId(given.session));
    let (leased, ends) = (given.flags & SUIMON_LEASED != 0, given.flags & SUIMON_ENDS != 0);
    let session = match given.membership {
        SUIMON_SESSIONLESS => None,
        SUIMON_NEWCOMER => Some(Membership::Newcomer(kind)),
        SUIMON_WITHOUT_LINE => Some(Membership::WithoutLine(kind)),
        SUIMON_MEMBER => Some(Membership::Member { kind, session, leased, ends }),
        _ => return Err(Fault::invalid("membership: there is none")),
    };
    Ok(Arrival { route: RouteId(given.route), session })
}

/// Gives back the slot of a request that was started. `outcome`: SUIMON_COMPLETED, SUIMON_DECLINED, SUIMON_FAILED
/// or SUIMON_ABANDONED. SUIMON_UNKNOWN: it has none.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_end(gate: *mut GateHandle, now: u64, request: u64, outcome: u32) -> i32 {
    let outcome = match outcome {
        SUIMON_COMPLETED => Some(Outcome::Completed),
        SUIMON_DECLINED => Some(Outcome::Declined),
        SUIMON_FAILED => Some(Outcome::Failed(Failure::ServerError)),
        SUIMON_ABANDONED => Some(Outcome::Abandoned),
        _ => None,
    };
    // SAFETY: the caller promises a gate.
    unsafe {
        with(gate, None, |gate, _| {
            let outcome = outcome.ok_or(Fault::invalid("outcome: there is none"))?;
            gate.apply(Instant::from_nanos(now), Event::End(RequestId(request), outcome)).map(|()| Code::Ok)
        })
    }
}

/// Says that the client of a request has left. One that waits is forgotten; one in the application keeps its slot.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_depart(gate: *mut GateHandle, now: u64, request: u64) -> i32 {
    // SAFETY: the caller promises a gate.
    unsafe { tell(gate, now, Event::Departure(RequestId(request))) }
}

/// Suspends a request: the application waits for its client, who was waited for `client_time` nanoseconds of its
/// stay so far. It holds no slot from now on.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_suspend(
    gate: *mut GateHandle,
    now: u64,
    request: u64,
    client_time: u64,
) -> i32 {
    // SAFETY: the caller promises a gate.
    unsafe { tell(gate, now, Event::Suspend(RequestId(request), Duration::from_nanos(client_time))) }
}

/// Says that the client of a suspended request is waited for no longer: SUIMON_RESUMED follows once it has a slot.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_resume(gate: *mut GateHandle, now: u64, request: u64) -> i32 {
    // SAFETY: the caller promises a gate.
    unsafe { tell(gate, now, Event::Resume(RequestId(request))) }
}

/// Does what is due: the time of suimon_gate_next_timeout has come.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_tick(gate: *mut GateHandle, now: u64) -> i32 {
    // SAFETY: the caller promises a gate.
    unsafe { tell(gate, now, Event::Timeout) }
}

/// Does what a recorded event says; see suimon_recording_next. Every call of a gate can be one, those of lines,
/// services, nodes and workers, too.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_apply(
    gate: *mut GateHandle,
    now: u64,
    event: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: the caller promises a gate and bytes.
    unsafe {
        with(gate, None, |gate, _| {
            let event = Event::from_bytes(bytes(event, length, "event")?);
            let event = event.map_err(|damage| Fault::invalid(damage.to_string()))?;
            gate.apply(Instant::from_nanos(now), event).map(|()| Code::Ok)
        })
    }
}

/// # Safety
/// As that of `with`.
unsafe fn tell(gate: *const GateHandle, now: u64, event: Event) -> i32 {
    // SAFETY: the caller promises a gate.
    unsafe { with(gate, None, |gate, _| gate.apply(Instant::from_nanos(now), event).map(|()| Code::Ok)) }
}

/// Tells the next thing that should happen. To be called after every call that can change something, until
/// SUIMON_NOTHING.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_poll(gate: *mut GateHandle, output: *mut GateOutput) -> i32 {
    // SAFETY: the caller promises a gate and a place for an output.
    unsafe {
        with(gate, None, |gate, _| {
            if output.is_null() {
                return Err(Fault::invalid("output: NULL"));
            }
            let Some(polled) = gate.poll() else { return Ok(Code::Nothing) };
            write(output, polled);
            Ok(Code::Ok)
        })
    }
}

/// Tells when suimon_gate_tick is due, if nothing else happens before. SUIMON_NOTHING: never.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_next_timeout(gate: *const GateHandle, at: *mut u64) -> i32 {
    // SAFETY: the caller promises a gate and a place for a number.
    unsafe {
        with(gate, None, |gate, _| {
            let Some(due) = gate.next_timeout() else { return Ok(Code::Nothing) };
            write(at, due.as_nanos());
            Ok(Code::Ok)
        })
    }
}

/// Tells everything that can be seen of a gate, as JSON.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_state(gate: *const GateHandle, now: u64, json: *mut Buffer) -> i32 {
    // SAFETY: the caller promises a gate and a buffer.
    unsafe {
        with(gate, room(json), |gate, out| {
            let state = gate.state(Instant::from_nanos(now)).to_string();
            Ok(if given(out)?.put(state.as_bytes()) { Code::Ok } else { Code::TooSmall })
        })
    }
}

/// Writes all that later decisions can rest on, for suimon_gate_restore. Outputs that were not polled are not in it: poll
/// all of them first.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_save(gate: *const GateHandle, now: u64, state: *mut Buffer) -> i32 {
    // SAFETY: the caller promises a gate and a buffer.
    unsafe {
        with(gate, room(state), |gate, out| {
            let state = gate.save(Instant::from_nanos(now))?;
            Ok(if given(out)?.put(&state) { Code::Ok } else { Code::TooSmall })
        })
    }
}

/// Tells the hash of all decisions so far: the same calls give the same hash, on every machine.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_trace(gate: *const GateHandle, trace: *mut u64) -> i32 {
    // SAFETY: the caller promises a gate and a place for a number.
    unsafe {
        with(gate, None, |gate, _| {
            write(trace, gate.trace());
            Ok(Code::Ok)
        })
    }
}

/// Tells the hash of all starts, refusals and positions since the gate was opened or restored.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_answers(gate: *const GateHandle, answers: *mut u64) -> i32 {
    // SAFETY: the caller promises a gate and a place for a number.
    unsafe {
        with(gate, None, |gate, _| {
            write(answers, gate.answers());
            Ok(Code::Ok)
        })
    }
}

/// Ends a gate. The pointer is dead then: no other call with it may be under way, or come later. NULL is nothing to
/// end.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_gate_close(gate: *mut GateHandle) {
    if !gate.is_null() {
        call(None, |_| {
            // SAFETY: it was made by `Box::into_raw`, and the caller promises that nobody uses it.
            drop(unsafe { Box::from_raw(gate) });
            Ok(Code::Ok)
        });
    }
}

/// Tells the short name of a reason, which never changes: docs/reasons.md has them all.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_reason(number: u32, text: *mut Buffer) -> i32 {
    // SAFETY: the caller promises a buffer.
    call(unsafe { room(text) }, |out| {
        let code = reason(number).ok_or(Fault::Unknown)?;
        Ok(if given(out)?.put(code.as_bytes()) { Code::Ok } else { Code::TooSmall })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::c::{SUIMON_INVALID, SUIMON_OK, SUIMON_PANICKED};

    #[test]
    fn a_panic_goes_no_further_and_its_gate_is_not_used_again() {
        // SAFETY: no settings, no buffer, and a gate that is closed once.
        unsafe {
            let gate = suimon_gate_open(ptr::null(), 0, 0, ptr::null_mut());
            assert_eq!(suimon_gate_tick(gate, 0), SUIMON_OK);
            assert_eq!(with(gate, None, |_, _| panic!("a fault of the gate")), SUIMON_PANICKED);
            assert_eq!(suimon_gate_tick(gate, 0), SUIMON_INVALID);
            suimon_gate_close(gate);
        }
    }
}

//! What C sees: types, constants and functions, and all unsafe code of this crate.
//!
//! What every function relies on, and its caller promises:
//!
//! - A pointer to bytes leads to as many as the length beside it says, which nothing changes during the call;
//!   one of length 0 may be NULL.
//! - A buffer leads to `capacity` bytes that nothing else uses during the call; it is NULL only where a function
//!   says that it may be.
//! - A number to be written has a place that nothing else uses during the call.
//! - A handle is one that this library has given; what may be done with it after its end is said there.
//!
//! No function lets a panic out: the caller cannot take one.

#![expect(unsafe_code, reason = "C gives pointers, and knows functions by names that the linker keeps")]

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate;
mod recording;
mod server;

pub use crate::output::*;
pub use crate::recording::{RecordingPart, SUIMON_END, SUIMON_EVENT, SUIMON_MARK};
pub use gate::*;
pub use recording::*;
pub use server::*;

use crate::code::{Code, Fault};
use crate::out::Out;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// Done; of a request: it is let in.
pub const SUIMON_OK: i32 = 0;
/// Not decided yet.
pub const SUIMON_WAITS: i32 = 1;
/// Not let in: the answer is in the buffer.
pub const SUIMON_ANSWERED: i32 = 2;
/// There is nothing to tell, within the time or at all.
pub const SUIMON_NOTHING: i32 = 3;
/// An argument makes no sense; the buffer says which, as text.
pub const SUIMON_INVALID: i32 = -1;
/// There is no such request: it has ended.
pub const SUIMON_UNKNOWN: i32 = -2;
/// The buffer is too small; its `length` says what is needed. Nothing is lost: ask again.
pub const SUIMON_TOO_SMALL: i32 = -3;
/// A fault of ours, caught here.
pub const SUIMON_PANICKED: i32 = -4;
/// The server is closed.
pub const SUIMON_CLOSED: i32 = -5;

/// Where bytes are written. `length` is what was or would have been written.
#[repr(C)]
#[derive(Debug)]
pub struct Buffer {
    /// The room; nothing is read from it.
    pub data: *mut u8,
    /// Its bytes.
    pub capacity: usize,
    /// Bytes that were written, or are needed.
    pub length: usize,
}

/// Returns the bytes that a caller gives.
///
/// # Safety
/// As the module says of bytes.
unsafe fn bytes<'a>(data: *const u8, length: usize, name: &'static str) -> Result<&'a [u8], Fault> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() || isize::try_from(length).is_err() {
        return Err(Fault::invalid(format!("{name}: NULL, or longer than there is memory")));
    }
    // SAFETY: it is not NULL, and the caller promises that so many bytes are there.
    Ok(unsafe { slice::from_raw_parts(data, length) })
}

/// Returns the room that a caller gives; `None`: there is none.
///
/// # Safety
/// As the module says of buffers.
unsafe fn room<'a>(buffer: *mut Buffer) -> Option<Out<'a>> {
    // SAFETY: it is NULL, or the caller promises a buffer.
    let Buffer { data, capacity, length } = unsafe { buffer.as_mut() }?;
    let room: &mut [MaybeUninit<u8>] = if data.is_null() || isize::try_from(*capacity).is_err() {
        &mut []
    } else {
        // SAFETY: it is not NULL, and the caller promises so many bytes; they need not hold anything.
        unsafe { slice::from_raw_parts_mut(data.cast(), *capacity) }
    };
    Some(Out::new(room, length))
}

/// Writes a number where a caller wants it.
///
/// # Safety
/// As the module says of numbers.
unsafe fn write<T>(place: *mut T, number: T) {
    if !place.is_null() {
        // SAFETY: it is not NULL, and the caller promises that it is a place for one.
        unsafe { place.write(number) };
    }
}

/// Returns the buffer that a function cannot do without.
fn given<'a, 'b>(out: &'a mut Option<Out<'b>>) -> Result<&'a mut Out<'b>, Fault> {
    out.as_mut().ok_or(Fault::invalid("the buffer is NULL"))
}

/// Does what a function is for, and returns its result as C sees it.
fn call(mut out: Option<Out<'_>>, work: impl FnOnce(&mut Option<Out<'_>>) -> Result<Code, Fault>) -> i32 {
    // What a panic leaves behind is locked and put right by whoever locks it next.
    match catch_unwind(AssertUnwindSafe(|| work(&mut out))) {
        Ok(Ok(Code::Ok)) => SUIMON_OK,
        Ok(Ok(Code::Waits)) => SUIMON_WAITS,
        Ok(Ok(Code::Answered)) => SUIMON_ANSWERED,
        Ok(Ok(Code::Nothing)) => SUIMON_NOTHING,
        Ok(Ok(Code::TooSmall)) => SUIMON_TOO_SMALL,
        Ok(Err(Fault::Unknown)) => SUIMON_UNKNOWN,
        Ok(Err(Fault::Closed)) => SUIMON_CLOSED,
        Ok(Err(Fault::Invalid(why))) => {
            if let Some(out) = &mut out {
                out.cut(&why);
            }
            SUIMON_INVALID
        }
        Err(_) => SUIMON_PANICKED,
    }
}

//! A recording, event by event.

use super::{Buffer, bytes, call, given, room, write};
use crate::code::{Code, Fault};
use crate::recording::{Recording, RecordingPart};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// One file of a recording being read. Any thread may use it; a lock inside lets in one at a time.
#[derive(Debug)]
pub struct RecordingHandle(Mutex<Recording>);

/// Opens one file of a recording (`suimon serve --record`, or `record.file` in the settings), given as its bytes,
/// which are copied. Returns NULL on failure, and why as text in `error`, which may be NULL.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_recording_open(
    recording: *const u8,
    length: usize,
    error: *mut Buffer,
) -> *mut RecordingHandle {
    let mut opened = ptr::null_mut();
    // SAFETY: the caller promises bytes and a buffer.
    unsafe {
        call(room(error), |_| {
            let recording = Recording::open(bytes(recording, length, "recording")?)?;
            opened = Box::into_raw(Box::new(RecordingHandle(Mutex::new(recording))));
            Ok(Code::Ok)
        });
    }
    opened
}

/// Tells the next piece: an event, with its bytes in the buffer; a mark; or the end, after which there is
/// SUIMON_NOTHING. SUIMON_INVALID: the file is damaged there, and the buffer says how.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_recording_next(
    recording: *mut RecordingHandle,
    part: *mut RecordingPart,
    out: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a recording, a place for a part and a buffer.
    unsafe {
        call(room(out), |out| {
            let recording = recording.as_ref().ok_or(Fault::invalid("recording: NULL"))?;
            if part.is_null() {
                return Err(Fault::invalid("part: NULL"));
            }
            let mut told = RecordingPart::default();
            let mut recording = recording.0.lock().unwrap_or_else(PoisonError::into_inner);
            let code = recording.next(&mut told, given(out)?)?;
            write(part, told);
            Ok(code)
        })
    }
}

/// Tells what a recording says of itself, as JSON: program, run, segment, when it begins (`at`, nanoseconds of the
/// gate's clock), names of routes and kinds.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_recording_header(
    recording: *const RecordingHandle,
    json: *mut Buffer,
) -> i32 {
    // SAFETY: the caller promises a recording and a buffer.
    unsafe {
        call(room(json), |out| {
            let recording = recording.as_ref().ok_or(Fault::invalid("recording: NULL"))?;
            let recording = recording.0.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(if given(out)?.put(recording.header().as_bytes()) { Code::Ok } else { Code::TooSmall })
        })
    }
}

/// Ends the reading of a recording. The pointer is dead then: no other call with it may be under way, or come later. NULL is nothing to
/// end.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn suimon_recording_close(recording: *mut RecordingHandle) {
    if !recording.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller promises that nobody uses it.
        drop(unsafe { Box::from_raw(recording) });
    }
}

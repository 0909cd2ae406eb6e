//! What must hold of the C interface for any order of calls, for a fuzzer to break: `fuzz/` feeds it, and the test
//! here replays what it has found. It exists under the fuzzer and in tests only.
//!
//! A caller promises pointers that are good, and keeps to it here. All else is anything: which handle, which number,
//! which bytes, how much room, and what comes after what.

mod gate;
mod server;

use super::{Buffer, SUIMON_NOTHING, SUIMON_PANICKED};
use std::ptr;

/// Calls of one input.
const CALLS: usize = 300;
/// What stands behind the room that a function was given.
const BEHIND: [u8; 16] = [0xa5; 16];

/// No call panics, writes beyond its room or keeps a slot: once all is ended, nothing is in flight. Bytes that begin
/// with `s` are calls of a server, all others of gates and recordings.
pub fn calls(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b's', script)) => server::play(Script(script)),
        Some((_, script)) => gate::play(Script(script)),
        None => {}
    }
}

/// Bytes that say what is called. Where they are over, all is 0.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// Returns what is called next, by number.
    fn next_of(&mut self, functions: u8) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.byte() % functions)
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Returns a text, its length before it.
    fn text(&mut self) -> &'a [u8] {
        let length = self.byte();
        self.bytes(length.into())
    }

    /// Returns a number, mostly a small one.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => self.bytes(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
            small => small.into(),
        }
    }

    /// Returns one of those that are known, or any other.
    fn one_of(&mut self, known: &[u64]) -> u64 {
        let number = self.number();
        usize::try_from(number).ok().and_then(|at| known.get(at)).copied().unwrap_or(number)
    }

    /// Returns what `call` does with some room, which it may be without.
    fn with_room(&mut self, call: impl FnOnce(*mut Buffer) -> i32) -> i32 {
        let capacity = [0, 3, 64, 1 << 16][usize::from(self.byte() % 4)];
        match self.byte() % 8 {
            0 => told(call(ptr::null_mut())),
            1 => {
                let mut nowhere = Buffer { data: ptr::null_mut(), capacity, length: 0 };
                told(call(&raw mut nowhere))
            }
            _ => with_room(capacity, call).0,
        }
    }
}

/// Returns what a function has returned, and what it has written to so much room.
fn with_room(capacity: usize, call: impl FnOnce(*mut Buffer) -> i32) -> (i32, Vec<u8>) {
    let mut bytes = vec![0; capacity + BEHIND.len()];
    bytes[capacity..].copy_from_slice(&BEHIND);
    let mut buffer = Buffer { data: bytes.as_mut_ptr(), capacity, length: 0 };
    let code = told(call(&raw mut buffer));
    assert!(bytes.ends_with(&BEHIND), "written beyond {capacity} bytes");
    bytes.truncate(buffer.length.min(capacity));
    (code, bytes)
}

/// Returns what a function has returned, which is one of the header's codes, and no panic.
fn told(code: i32) -> i32 {
    assert!((SUIMON_PANICKED - 1..=SUIMON_NOTHING).contains(&code) && code != SUIMON_PANICKED, "{code}");
    code
}

#[cfg(test)]
mod tests {
    use suimon_testing::corpus;

    #[test]
    fn what_the_fuzzer_has_found_holds() {
        corpus("c_interface").iter().for_each(|bytes| super::calls(bytes));
    }
}

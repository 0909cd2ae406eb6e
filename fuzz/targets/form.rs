//! Forms that the waiting page keeps.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_waiting_room::fuzzing::form(bytes));

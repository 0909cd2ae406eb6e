//! Calls of the C interface, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon::c::fuzzing::calls(bytes));

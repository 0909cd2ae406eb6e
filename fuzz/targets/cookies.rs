//! Request heads, for what is made of their cookies and tickets.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_identity::fuzzing::cookies(bytes));

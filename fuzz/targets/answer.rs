//! Responses of the application over HTTP/1.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_upstream::fuzzing::answer(bytes));

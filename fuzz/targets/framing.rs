//! Requests on one HTTP/1 connection, for the check of their framing.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_downstream::fuzzing::framing(bytes));

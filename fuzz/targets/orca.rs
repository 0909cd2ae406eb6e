//! Load reports in headers of responses: ORCA in its three forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_agent::fuzzing::orca(bytes));

//! Recordings.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_record::fuzzing::recording(bytes));

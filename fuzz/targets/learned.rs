//! Files of what was learned.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_store::fuzzing::learned(bytes));

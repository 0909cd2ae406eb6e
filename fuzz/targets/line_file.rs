//! Files of the waiting room's lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_store::fuzzing::line_file(bytes));

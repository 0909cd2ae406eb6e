//! Responses of FastCGI workers, the heads in them, and paths that lead to programs.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_fastcgi::fuzzing::worker(bytes));

//! PROXY headers of balancers, version 1 and 2.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_downstream::fuzzing::proxy_header(bytes));

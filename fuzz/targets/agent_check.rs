//! Lines of HAProxy's agent-check, and the kernel's texts about load.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_agent::fuzzing::agent_check(bytes));

//! Load reports of agents as datagrams, bare and sealed with a key.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_agent::fuzzing::datagram(bytes));

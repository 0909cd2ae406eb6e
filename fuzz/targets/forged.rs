//! Tickets, leases and invitations that are not ours, or are and were changed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suimon_identity::fuzzing::forged(bytes));

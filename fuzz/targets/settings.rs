//! Settings files.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(faults) = suimon_settings::Settings::parse("fuzzed.toml", text) {
        assert!(!faults.to_string().is_empty());
    }
});

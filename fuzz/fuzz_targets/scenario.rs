//! Arbitrary bytes as a scenario file: a plan, or errors that can be shown.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_scenario::fuzz_one(data));

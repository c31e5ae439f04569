//! Arbitrary bytes as requests to a live run, replies of it, and what agents and parts tell each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_control::fuzz::fuzz_one(data));

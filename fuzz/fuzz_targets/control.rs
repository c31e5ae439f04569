//! Arbitrary bytes as requests to a live run, its replies, and messages between agents and parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_control::fuzz::fuzz_one(data));

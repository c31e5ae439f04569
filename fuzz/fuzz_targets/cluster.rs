//! Arbitrary bytes as what agents and commands ask, answer and order: survived, and a run that is taken can be used.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_cluster::fuzz_one(data));

//! Arbitrary bytes as messages of agents and commands: no panic, and an accepted run is usable.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_cluster::fuzz_one(data));

//! Arbitrary bytes to every importer: a scenario that loads, or an error that can be shown.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_topology::fuzz_one(data));

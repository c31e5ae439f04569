//! Arbitrary datagrams to a mesh agent in a run: counted, answered within the MTU, no panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_mesh::fuzz_one(data));

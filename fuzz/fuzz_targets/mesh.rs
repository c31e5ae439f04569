//! Arbitrary datagrams to an agent of the mesh in a run: counted, answered within the MTU, survived.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_mesh::fuzz_one(data));

//! Arbitrary datagrams to a sealed and to a plain end of a tunnel: counted, no panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_tunnel::fuzz_one(data));

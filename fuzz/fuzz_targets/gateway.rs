//! The parts of the gateway that read what others have written, on arbitrary bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_gateway::fuzz_one(data));

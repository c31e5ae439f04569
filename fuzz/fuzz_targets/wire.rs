//! Every entry point of `wire` on arbitrary bytes: ten of virtio-net header, then a frame.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_wire::fuzz_one(data));

//! Arbitrary bytes as requests to an init, its replies, and the kernel's answers on a netlink socket.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_node::fuzz_one(data));

//! Arbitrary packets at a redirector in front of three replicas: no panic, bounded memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_failover::fuzz_one(data));

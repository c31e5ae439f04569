//! Arbitrary bytes as messages and files of another machine's part, merged into a run folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_host::fuzz::fuzz_alone(data));

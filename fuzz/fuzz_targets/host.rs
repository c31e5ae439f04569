//! Arbitrary bytes as news, notices, plans and files of another machine of a run, put together into a run folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windtunnel_host::fuzz::fuzz_alone(data));

//! Any bytes are read as a capture or refused with a place, and what is read gives a workload. New finds go into the
//! first folder: `cargo +nightly fuzz run capture corpus/capture seeds/capture`.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/capture/tests/support/bytes.rs"]
mod bytes;
#[path = "../../crates/workload/tests/support/bytes.rs"]
mod workloads;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (packets, _) = bytes::capture(input);
    workloads::extract(&packets);
});

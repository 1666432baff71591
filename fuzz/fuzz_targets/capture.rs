//! Any bytes are read as a capture or refused with a place. New finds go into the first folder:
//! `cargo +nightly fuzz run capture corpus/capture seeds/capture`.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/capture/tests/support/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    bytes::capture(input);
});

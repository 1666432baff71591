//! Any text is read as a discipline or refused with a place and a reason: `cargo +nightly fuzz run spec`.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/disciplines/tests/support/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bytes::spec(input));

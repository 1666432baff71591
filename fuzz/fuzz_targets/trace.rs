//! Any bytes are a trace of operations, or refused with a place inside them: `cargo +nightly fuzz run trace`.
#![no_main]

#[path = "../../crates/replay/tests/support/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bytes::trace(input));

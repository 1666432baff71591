//! Any bytes are a packet with a label, without one, or refused; what is written can be read and taken out again. New finds
//! go into the first folder: `cargo +nightly fuzz run label corpus/label seeds/label`.
#![no_main]

#[path = "../../crates/wire/tests/support/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = bytes::label(input);
});

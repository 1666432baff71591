//! Any bytes are control packets of reservations or refused, and whatever a table is told, it holds no more than it may. New finds go into
//! the first folder: `cargo +nightly fuzz run reserve corpus/reserve seeds/reserve`.
#![no_main]

#[path = "../../crates/reserve/tests/support/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = bytes::messages(input);
});

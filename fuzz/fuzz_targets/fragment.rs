//! Any bytes are fragments that become frames, wait, or are lost for a reason, within bounded memory. New finds go into the first folder:
//! `cargo +nightly fuzz run fragment corpus/fragment seeds/fragment`.
#![no_main]

#[path = "../../crates/wire/tests/support/fragments.rs"]
mod fragments;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = fragments::fragments(input);
});

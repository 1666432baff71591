//! Any discipline under any operations keeps the contract: `cargo +nightly fuzz run contract`.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/disciplines/tests/support/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Err(violation) = bytes::contract(input) {
        panic!("{}", violation.0);
    }
});

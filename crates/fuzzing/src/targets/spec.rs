//! Any text is read as a discipline or refused with a place and a reason.

#[path = "../../../disciplines/tests/support/bytes.rs"]
pub(super) mod bytes;

/// The input is a discipline as it is written on the command line.
pub fn run(input: &[u8]) {
    bytes::spec(input);
}

//! Any text is parsed as a discipline, or rejected with a position and a reason.

#[path = "../../../disciplines/tests/support/bytes.rs"]
pub(super) mod bytes;

/// Input: a discipline as on the command line.
pub fn run(input: &[u8]) {
    bytes::spec(input);
}

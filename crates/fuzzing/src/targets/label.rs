//! Any bytes are parsed as a packet with or without a label, or rejected. A written label can be read and
//! removed.

#[path = "../../../wire/tests/support/bytes.rs"]
mod bytes;

/// Input: an IP packet.
pub fn run(input: &[u8]) {
    let _ = bytes::label(input);
}

//! Any bytes are a packet with a label, without one, or refused; what is written can be read and taken out again.

#[path = "../../../wire/tests/support/bytes.rs"]
mod bytes;

/// The input is an IP packet.
pub fn run(input: &[u8]) {
    let _ = bytes::label(input);
}

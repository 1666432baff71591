//! Any bytes are control packets of reservations or refused, and the table holds no more than it may.

#[path = "../../../reserve/tests/support/bytes.rs"]
mod bytes;

/// The first byte says whether there is a key; the rest are control packets.
pub fn run(input: &[u8]) {
    let _ = bytes::messages(input);
}

//! Control frames: the bits of a set, and their lengths.

/// Asks for an acknowledgement, and nothing else.
pub(super) const PING: u8 = 1;
/// The server confirms the handshake.
pub(super) const DONE: u8 = 2;
/// Requests another frequency of acknowledgements: draft-ietf-quic-ack-frequency.
pub(super) const FREQUENCY: u8 = 4;
/// Asks for an acknowledgement at once: the same draft.
pub(super) const IMMEDIATE: u8 = 8;

/// The bits that are retransmitted if they are lost.
pub(super) const KEPT: u8 = DONE | FREQUENCY;

/// Length of these frames, bytes.
pub(super) fn bytes(control: u8) -> u32 {
    // The frame types of the draft take two bytes; a request has a number and three parameters.
    let lengths = [(PING, 1), (DONE, 1), (FREQUENCY, 2 + 1 + 1 + 4 + 1), (IMMEDIATE, 2)];
    lengths.iter().filter(|(bit, _)| control & bit != 0).map(|(_, length)| length).sum()
}

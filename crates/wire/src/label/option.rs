//! The label as an option: its length, value and position.

use crate::error::WireError;

/// Length of the option in both versions, in bytes: type, length, value. An IPv4 packet grows by this length.
pub const OPTION: usize = 4;

/// The value of the label at position `at`.
pub(super) fn value(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at + 2], packet[at + 3]])
}

/// The position of the label, if it is the only one.
pub(super) fn only(known: Option<usize>, at: usize) -> Result<Option<usize>, WireError> {
    match known {
        None => Ok(Some(at)),
        Some(first) => Err(WireError::Twice { first, second: at }),
    }
}

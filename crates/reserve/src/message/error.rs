//! Errors in the bytes of a message.

/// An error in the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Too few bytes.
    #[error("a message has 72 bytes; here are {0}")]
    Short(usize),
    /// The first two bytes are wrong.
    #[error("bytes 0 and 1 are {0:02x?}; a message begins with 47 57")]
    Magic([u8; 2]),
    /// Another version of the protocol.
    #[error("byte 2: version {0}; only version 2 is known: use the same version of Giveway on both sides")]
    Version(u8),
    /// The length field is wrong.
    #[error("bytes 4 and 5: a length of {0}; every message has 72")]
    Length(u16),
    /// The message is damaged.
    #[error("bytes 6 and 7: the checksum is wrong")]
    Checksum,
    /// The tag does not match the key.
    #[error("bytes 64 to 71: the tag does not match the key, so the sender does not have the key")]
    Forged,
    /// Unknown kind.
    #[error("byte 3: kind {0}; there are 1 start, 2 end, 3 granted, 4 refused")]
    Kind(u8),
    /// A reason in a message that is not a refusal, or an unknown reason in a refusal.
    #[error("byte 21: reason {0} in a message of kind {1}")]
    Reason(u8, u8),
    /// Reserved bytes are not zero.
    #[error("bytes 22, 23, 54 and 55 must be 0")]
    Reserved,
    /// An end has times.
    #[error("bytes 32 to 47: both times of an end must be 0")]
    Times,
    /// The link address of the sender is not the source address of the frame, or does not belong to a
    /// machine, as [`crate::Message::check_owner`] requires.
    #[error(
        "bytes 48 to 53: the link address is not the source address of the frame, or it is a group address or zero"
    )]
    Owner,
}

impl MessageError {
    /// Names of the counters, by [`MessageError::index`].
    pub const NAMES: [&str; 11] = [
        "short", "magic", "version", "length", "checksum", "forged", "kind", "reason", "reserved", "times",
        "owner",
    ];

    /// Index in [`MessageError::NAMES`].
    pub fn index(&self) -> usize {
        match self {
            MessageError::Short(_) => 0,
            MessageError::Magic(_) => 1,
            MessageError::Version(_) => 2,
            MessageError::Length(_) => 3,
            MessageError::Checksum => 4,
            MessageError::Forged => 5,
            MessageError::Kind(_) => 6,
            MessageError::Reason(..) => 7,
            MessageError::Reserved => 8,
            MessageError::Times => 9,
            MessageError::Owner => 10,
        }
    }
}

//! The error type of the crate.

/// An error in a label, or in the settings of fragmentation. Positions are in bytes from the beginning of the
/// packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The packet is neither IPv4 nor IPv6, or is empty.
    #[error("this is not an IP packet: the version in its first four bits is {}", .0.map_or_else(|| "missing".to_owned(), |version| version.to_string()))]
    NotIp(
        /// The first four bits; `None` for an empty packet.
        Option<u8>,
    ),
    /// The packet is truncated.
    #[error("the packet ends after {bytes} bytes, within its {within}")]
    CutOff {
        /// Length of the packet.
        bytes: usize,
        /// The incomplete header.
        within: &'static str,
    },
    /// A header contradicts itself.
    #[error("the packet is malformed at byte {at}: {reason}")]
    Malformed {
        /// Position of the invalid field or option.
        at: usize,
        /// Description of the mistake.
        reason: &'static str,
    },
    /// The option differs in length from a label: it belongs to another experiment.
    #[error("the option {kind} at byte {at} is not a label: it is {length} bytes long, not 4")]
    Foreign {
        /// Type of the option.
        kind: u8,
        /// Position of the option.
        at: usize,
        /// Length of the option, with its type and length fields.
        length: usize,
    },
    /// The packet has two labels.
    #[error("the packet has two labels, at bytes {first} and {second}")]
    Twice {
        /// Position of the first.
        first: usize,
        /// Position of the second.
        second: usize,
    },
    /// A label cannot be inserted, because the packet has one.
    #[error("the packet has a label already, at byte {at}: rewrite it, or remove it first")]
    Labelled {
        /// Position of the label.
        at: usize,
    },
    /// A label cannot be rewritten, because the packet has none.
    #[error("the packet has no label to rewrite: insert one")]
    Unlabelled,
    /// [`Label::NONE`](giveway_qdisc::Label::NONE) cannot be written.
    #[error("Label::NONE has no encoding: remove the label instead")]
    Nothing,
    /// A header or the packet would become too long.
    #[error("a label does not fit: {reason}")]
    NoRoom {
        /// The limit.
        reason: &'static str,
    },
    /// The size of fragments is out of range: [`Size`](crate::fragment::Size).
    #[error("{bytes} bytes: fragments have {least} to {most} bytes; the TRR paper has 500 and 800")]
    Size {
        /// The size, in bytes.
        bytes: u64,
        /// The smallest size, in bytes.
        least: u16,
        /// The largest size, in bytes.
        most: u16,
    },
    /// The EtherType for fragments is in use.
    #[error("0x{0:04x} is the type of {1}: take one for local experiments, 0x88b5 or 0x88b6")]
    EtherType(
        /// The EtherType.
        u16,
        /// Its use.
        &'static str,
    ),
}

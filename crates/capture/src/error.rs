//! Errors in reading a capture.

/// An error in reading a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(#[source] std::io::Error),
    /// The magic number of the file is not that of pcap or pcapng.
    #[error("is neither pcap nor pcapng: it begins with {0}")]
    NotACapture(String),
    /// The file has a link type that is not supported.
    #[error(
        "was captured on link type {0}; known are Ethernet (1), raw IP (12, 14, 101, 228, 229), loopback (0, 108) \
         and Linux cooked (113, 276)"
    )]
    UnknownLink(u16),
    /// Reading failed.
    #[error("cannot be read beyond byte {offset} (after {packets} packets): {error}")]
    Read {
        /// Position in the uncompressed file, bytes.
        offset: u64,
        /// Packets read until there.
        packets: u64,
        /// The error of the operating system.
        #[source]
        error: std::io::Error,
    },
    /// The file is damaged, or truncated.
    #[error("is damaged at byte {offset} (after {packets} packets): {what}")]
    Damaged {
        /// Position of the invalid record in the uncompressed file, bytes.
        offset: u64,
        /// Packets read until there.
        packets: u64,
        /// Description of the damage.
        what: String,
    },
}

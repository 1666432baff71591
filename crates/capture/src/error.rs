//! Errors in reading a capture.

use crate::foreign::Foreign;

/// An error in reading a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(#[source] std::io::Error),
    /// The file does not start with the magic number of pcap or pcapng.
    #[error("is neither pcap nor pcapng: it begins with {0}")]
    NotACapture(String),
    /// The file has a format that is not read.
    #[error("{0}")]
    Foreign(Foreign),
    /// The file has a link type that is not supported.
    #[error(
        "uses link type {0}{name}, which is not supported; supported: Ethernet (1), raw IP (12, 14, 101, 228, 229), loopback (0, \
         108) and Linux cooked (113, 276)",
        name = named(*.0)
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
    #[error("is damaged at byte {offset} (after {packets} packets): {reason}")]
    Damaged {
        /// Position of the invalid record in the uncompressed file, bytes.
        offset: u64,
        /// Packets read until there.
        packets: u64,
        /// Description of the damage.
        reason: String,
    },
}

impl CaptureError {
    /// The sentence on a file with this name. A command in it names the file.
    pub fn about(&self, file: &str) -> String {
        match self {
            CaptureError::Foreign(foreign) => format!("{file} {}", foreign.about(file)),
            other => format!("{file} {other}"),
        }
    }
}

/// Link types on which people capture, and what to do instead.
fn named(link: u16) -> &'static str {
    match link {
        105 | 119 | 127 | 163 | 192 => {
            " (frames of Wi-Fi in the air, mostly encrypted: capture on the interface of the host or the access \
             point, without monitor mode)"
        }
        9 | 50 | 51 | 166 => " (PPP: capture on the interface ppp0, or on the Ethernet interface below it)",
        187 | 201 | 254 => " (Bluetooth)",
        189 | 220 | 249 => " (USB)",
        227 | 190 => " (CAN bus)",
        _ => "",
    }
}

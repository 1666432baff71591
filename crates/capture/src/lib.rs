//! Captures: reads pcap and pcapng files packet by packet, with the fields that a queue uses, and
//! [writes](Writer) pcapng for tools that read captures.
//!
//! A file is read on demand and never held in memory. `file` splits it into frames, `link` removes the link
//! header of a frame, and `ip` reads the headers below. A damaged file yields the packets before the damage,
//! then one error with its position.
//!
//! ```
//! use giveway_capture::{EnhancedPacket, InterfaceDescription, LinkType, Reader, Writer};
//!
//! let mut writer = Writer::new(Vec::new(), "an example")?;
//! let interface = InterfaceDescription { name: "eth0", description: "", link: LinkType::RAW, speed: 0, snap: 0 };
//! writer.interface(&interface)?;
//! writer.packet(&EnhancedPacket { interface: 0, time: 7, bytes: 1500, data: &[0x45; 64], comment: None })?;
//! let file = writer.finish()?;
//!
//! let packets: Vec<_> = Reader::new(std::io::Cursor::new(file))?.collect::<Result<_, _>>()?;
//! assert_eq!((packets.len(), packets[0].time), (1, 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod file;
mod headers;
mod ip;
mod link;
mod writer;

use std::io::Read;
use std::path::Path;

use giveway_qdisc::{Ecn, FiveTuple};

use file::Frames;
pub use headers::{Headers, Transport};
pub use link::{LinkType, Macs};
pub use writer::{EnhancedPacket, InterfaceDescription, Writer};

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of capture: nanoseconds since 1970, or since the epoch of the tool that wrote the file.
    pub time: u64,
    /// IP length on the wire, in bytes, whatever part of the packet was captured; at most the length of the
    /// frame without its link header, whatever the IP header says. For a packet that is not IP, the frame
    /// without its link header.
    pub bytes: u32,
    /// Link type of its interface.
    pub link: LinkType,
    /// Number of its interface, from 0 over all sections of the file; 0 for pcap, which has one.
    pub interface: u32,
    /// The addresses of its Ethernet header, if it has one.
    pub mac: Option<Macs>,
    /// Its IP header fields, if it is IP and its IP header was captured.
    pub ip: Option<Ip>,
}

/// Header fields of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Addresses, ports and protocol.
    pub tuple: FiveTuple,
    /// Its ECN field.
    pub ecn: Ecn,
    /// True for a short packet ([`giveway_qdisc::Meta::short`]): at most 64 bytes, and UDP or TCP without
    /// data.
    pub short: bool,
    /// Number of TCP or UDP data bytes; `None` for other protocols, for all but the first fragment, and if
    /// too little was captured.
    pub data: Option<u32>,
    /// Fields of its TCP header, if they were captured.
    pub tcp: Option<Tcp>,
}

/// Fields of a TCP header: RFC 9293, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from the highest bit down.
    pub flags: u8,
}

/// An error in reading a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(#[source] std::io::Error),
    /// The file has the magic number of no known format.
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

/// An iterator over the packets of a capture, in the order of the file. It ends after an error.
#[derive(Debug)]
pub struct Reader {
    frames: Frames,
    over: bool,
}

impl Reader {
    /// Opens a pcap or pcapng file, compressed with gzip or not.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a capture, or has a link type that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, CaptureError> {
        let file = std::fs::File::open(path).map_err(CaptureError::Open)?;
        Reader::new(file)
    }

    /// Reads a capture from any input.
    ///
    /// # Errors
    /// If the input is not a capture, or has a link type that is not supported.
    pub fn new(input: impl Read + Send + 'static) -> Result<Reader, CaptureError> {
        Ok(Reader { frames: Frames::new(Box::new(input))?, over: false })
    }

    /// Number of packets read so far.
    pub fn packets(&self) -> u64 {
        self.frames.packets()
    }
}

/// Parses the headers of one frame, as [`Reader`] does for every frame of a file.
///
/// `frame` has the captured bytes, and `wire_bytes` is the length on the wire. It never fails: a frame that
/// is damaged or not IP has no [`Ip`].
pub fn parse_headers(link: LinkType, frame: &[u8], wire_bytes: u32) -> FrameHeaders {
    let (above, behind_link) = link::strip(link, frame, wire_bytes);
    let ip = above.and_then(|data| ip::read(data, behind_link));
    let at = above.map_or(0, |data| frame.len() - data.len());
    FrameHeaders {
        bytes: ip.map_or(behind_link, |(_, bytes)| bytes),
        behind_link,
        at,
        ip: ip.map(|(ip, _)| ip),
    }
}

/// Parsed headers of a frame: the result of [`parse_headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeaders {
    /// IP length of its header, bytes, but at most `behind_link`; `behind_link` for a frame that is not IP.
    pub bytes: u32,
    /// Length of the frame on the wire without its link header, in bytes: padding counts, and nothing that
    /// the sender writes into the packet changes it. At most two VLAN tags and a PPPoE header belong to the
    /// link header.
    pub behind_link: u32,
    /// Offset of the IP header in the frame; 0 for a frame that is not IP.
    pub at: usize,
    /// Its IP header fields, if it is IP.
    pub ip: Option<Ip>,
}

impl Iterator for Reader {
    type Item = Result<Packet, CaptureError>;

    fn next(&mut self) -> Option<Result<Packet, CaptureError>> {
        if self.over {
            return None;
        }
        let next = match self.frames.next() {
            Ok(None) => None,
            Ok(Some(frame)) => {
                let FrameHeaders { bytes, ip, .. } = parse_headers(frame.link, frame.data, frame.wire_bytes);
                Some(Ok(Packet {
                    time: frame.time,
                    bytes,
                    link: frame.link,
                    interface: frame.interface,
                    mac: link::macs(frame.link, frame.data),
                    ip,
                }))
            }
            Err(error) => Some(Err(error)),
        };
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

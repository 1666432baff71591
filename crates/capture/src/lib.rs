//! Captures: pcap and pcapng files, packet by packet, as far as a queue needs to know them; and [`Writer`], for what a
//! simulation wants to show to the tools that read captures.
//!
//! A file is read as it is needed and never held in memory. The way of a packet: `file` cuts the file into frames,
//! `link` takes the frame's own header off, `ip` reads the headers below it. Whatever a damaged file still gives is
//! given; then comes one error that says where it broke.
//!
//! ```no_run
//! for packet in capture::Reader::open("evening.pcapng.gz")? {
//!     let packet = packet?;
//!     println!("{} ns: {} bytes", packet.time, packet.bytes);
//! }
//! # Ok::<(), capture::CaptureError>(())
//! ```

#![forbid(unsafe_code)]

mod file;
mod headers;
mod ip;
mod link;
mod writer;

use std::io::Read;
use std::path::Path;

use qdisc::{Ecn, FiveTuple};

use file::Frames;
pub use headers::{Headers, Transport};
pub use link::{LinkType, Macs};
pub use writer::{EnhancedPacket, InterfaceDescription, Writer};

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was captured: nanoseconds since 1970, or since whatever the tool that wrote the file counted from.
    pub time: u64,
    /// Its IP length on the wire, however much of it was captured; never more than the frame had room for,
    /// whatever its IP header says. For what is not IP: the frame without its link header.
    pub bytes: u32,
    /// The header that was in front of it.
    pub link: LinkType,
    /// On which interface of the file, counted from 0 over all sections; 0 for pcap, which has one.
    pub interface: u32,
    /// The addresses of its Ethernet header, where it has one.
    pub mac: Option<Macs>,
    /// What it is, if it is IP and its IP header was captured.
    pub ip: Option<Ip>,
}

/// What the headers of an IP packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Addresses, ports and protocol.
    pub tuple: FiveTuple,
    /// Its ECN field.
    pub ecn: Ecn,
    /// At most 64 bytes, and UDP or TCP without data ([`qdisc::Meta::short`]).
    pub short: bool,
    /// Bytes of TCP or UDP data in it; `None` for other protocols, for all but the first fragment, and where too
    /// little was captured to know.
    pub data: Option<u32>,
    /// Fields of its TCP header, where they were captured.
    pub tcp: Option<Tcp>,
}

/// Fields of a TCP header, RFC 9293 section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from the highest bit down.
    pub flags: u8,
}

/// Why a capture cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(#[source] std::io::Error),
    /// It begins like nothing that is known.
    #[error("is neither pcap nor pcapng: it begins with {0}")]
    NotACapture(String),
    /// It was captured on a kind of link whose headers are not known here.
    #[error(
        "was captured on link type {0}; known are Ethernet (1), raw IP (12, 14, 101, 228, 229), loopback (0, 108) \
         and Linux cooked (113, 276)"
    )]
    UnknownLink(u16),
    /// The system could not read on.
    #[error("cannot be read beyond byte {offset} (after {packets} packets): {error}")]
    Read {
        /// Where, in the uncompressed file.
        offset: u64,
        /// Packets read until there.
        packets: u64,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// It is damaged, or cut off.
    #[error("is damaged at byte {offset} (after {packets} packets): {what}")]
    Damaged {
        /// Where the record begins that makes no sense, in the uncompressed file.
        offset: u64,
        /// Packets read until there.
        packets: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// Reads the packets of a capture in the order of the file. After an error there are no more.
#[derive(Debug)]
pub struct Reader {
    frames: Frames,
    over: bool,
}

impl Reader {
    /// Opens a pcap or pcapng file, compressed with gzip or not.
    ///
    /// # Errors
    /// When it cannot be opened, is no capture, or is one of an unknown kind of link.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, CaptureError> {
        let file = std::fs::File::open(path).map_err(CaptureError::Open)?;
        Reader::new(file)
    }

    /// Reads from anything that holds a capture.
    ///
    /// # Errors
    /// When it is no capture, or is one of an unknown kind of link.
    pub fn new(input: impl Read + Send + 'static) -> Result<Reader, CaptureError> {
        Ok(Reader { frames: Frames::new(Box::new(input))?, over: false })
    }

    /// Packets read so far.
    pub fn packets(&self) -> u64 {
        self.frames.packets()
    }
}

/// What the headers of one frame say, wherever it comes from: [`Reader`] asks this of every frame of a file.
///
/// `frame` is what there is of it, `wire_bytes` how long it was on the wire. Nothing in it can make this fail: what is not
/// IP, or is damaged, has no [`Ip`].
pub fn look(link: LinkType, frame: &[u8], wire_bytes: u32) -> Look {
    let (above, behind_link) = link::strip(link, frame, wire_bytes);
    let ip = above.and_then(|data| ip::read(data, behind_link));
    let at = above.map_or(0, |data| frame.len() - data.len());
    Look { bytes: ip.map_or(behind_link, |(_, bytes)| bytes), behind_link, at, ip: ip.map(|(ip, _)| ip) }
}

/// See [`look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its IP length, as its header says, but at most `behind_link`; for what is not IP, `behind_link`.
    pub bytes: u32,
    /// Length of the frame on the wire without its link header, in bytes: padding counts, and nothing that
    /// the sender writes into the packet changes it. At most two VLAN tags and a PPPoE header belong to the
    /// link header.
    pub behind_link: u32,
    /// Where in the frame its IP header begins; 0 for what is not IP.
    pub at: usize,
    /// What it is, if it is IP.
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
                let Look { bytes, ip, .. } = look(frame.link, frame.data, frame.wire_bytes);
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

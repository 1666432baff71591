//! The reader: the packets of a file, with the header fields of each.

use std::io::Read;
use std::path::Path;

use giveway_files::input;

use crate::error::CaptureError;
use crate::file::{Frame, Frames};
use crate::ip::{self, Ip};
use crate::link::{self, LinkType, Macs};
use crate::tunnel::{Tunnels, Unpacked, unpack};

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of capture: nanoseconds since 1970, or since the epoch of the tool that wrote the file.
    pub time: u64,
    /// IP length on the wire, with all headers of its encapsulations, in bytes, even if less of the packet
    /// was captured; at most the length of the frame without its link header, even if the IP header has a
    /// larger one. For a packet that is not IP, the length of the frame without its link header.
    pub bytes: u32,
    /// Link type of its interface.
    pub link: LinkType,
    /// Number of its interface, from 0 over all sections of the file; 0 for pcap, which has one.
    pub interface: u32,
    /// The addresses of its Ethernet header, if it has one; with several, of the innermost frame.
    pub mac: Option<Macs>,
    /// Its IP header fields, if it is IP and its IP header was captured; in a tunnel, of the innermost packet
    /// that is not encrypted.
    pub ip: Option<Ip>,
    /// The encapsulations that were found.
    pub tunnels: Tunnels,
}

impl Packet {
    /// Reads the headers of a frame and of the packets in it.
    pub(crate) fn of(frame: &Frame<'_>) -> Packet {
        let Unpacked { bytes, mac, ip, tunnels } = unpack(frame.link, frame.data, frame.wire_bytes);
        let Frame { time, link, interface, .. } = *frame;
        Packet { time, bytes, link, interface, mac, ip, tunnels }
    }
}

/// An iterator over the packets of a capture, in the order of the file. It ends after an error.
#[derive(Debug)]
pub struct Reader {
    frames: Frames,
    over: bool,
}

impl Reader {
    /// Opens a pcap or pcapng file, compressed with gzip, zstd or lz4, or not. A pipe is an error: its writer
    /// may never come. [`Reader::new`] reads from one.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a capture, or has a link type that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, CaptureError> {
        let file = input::open(path.as_ref()).map_err(CaptureError::Open)?;
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

impl Iterator for Reader {
    type Item = Result<Packet, CaptureError>;

    fn next(&mut self) -> Option<Result<Packet, CaptureError>> {
        if self.over {
            return None;
        }
        let next = match self.frames.next() {
            Ok(None) => None,
            Ok(Some(frame)) => Some(Ok(Packet::of(&frame))),
            Err(error) => Some(Err(error)),
        };
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Parses the outer headers of one frame. Unlike [`Reader`] it does not look into encapsulations, because a
/// router forwards by the outer headers.
///
/// `frame` contains the captured bytes, and `wire_bytes` is the length on the wire. It never fails: a frame
/// that is damaged or not IP has no [`Ip`].
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

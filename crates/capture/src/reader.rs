//! The reader: the packets of a file, with the header fields of each.

use std::io::Read;
use std::path::Path;

use crate::error::CaptureError;
use crate::file::Frames;
use crate::ip::{self, Ip};
use crate::link::{self, LinkType, Macs};

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of capture: nanoseconds since 1970, or since the epoch of the tool that wrote the file.
    pub time: u64,
    /// IP length on the wire, in bytes, even if less of the packet was captured; at most the length of the
    /// frame without its link header, even if the IP header has a larger one. For a packet that is not IP,
    /// the length of the frame without its link header.
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

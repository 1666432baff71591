//! The headers of a captured packet: Ethernet, IPv4 (RFC 791) and TCP (RFC 9293).
//!
//! A packet costs the machine time on the clock that it measures with, so only the fields that are needed are
//! read.

use std::fmt::{self, Write};

/// A TCP packet over IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Address of its sender.
    pub from: [u8; 4],
    /// Port of the client, which identifies the connection.
    pub port: u16,
    /// Identification field of IP.
    pub id: u16,
    /// True if its ECN field says that it was marked.
    pub marked: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes of data.
    pub bytes: u32,
    /// Its flags.
    pub flags: Flags,
    /// Blocks of the option SACK, RFC 2018, each with its first byte and the byte behind its last one.
    pub sack: Vec<(u32, u32)>,
}

/// Flags of TCP: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from the highest bit down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub u8);

/// Length of the Ethernet header.
const ETHERNET: usize = 14;
/// Kinds of TCP options: RFC 9293, section 3.1, and RFC 2018.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;

impl Segment {
    /// Reads the headers of an Ethernet frame, of which the captured part may be shorter than the frame.
    /// `None` if it is not TCP over IPv4. `client` is the address of the client.
    pub(crate) fn read(frame: &[u8], client: [u8; 4]) -> Option<Segment> {
        let ip = frame.get(ETHERNET..)?;
        let (version, protocol) = (ip.first()? >> 4, *ip.get(9)?);
        if (version, protocol) != (4, 6) {
            return None;
        }
        let ip_header = usize::from(ip[0] & 15) * 4;
        let tcp = ip.get(ip_header..)?;
        let tcp_header = usize::from(*tcp.get(12)? >> 4) * 4;
        let from = [ip[12], ip[13], ip[14], *ip.get(15)?];
        let port = if from == client { short(tcp, 0) } else { short(tcp, 2) };
        let total = usize::from(short(ip, 2));
        Some(Segment {
            from,
            port,
            id: short(ip, 4),
            marked: ip[1] & 3 == 3,
            seq: long(tcp, 4),
            ack: long(tcp, 8),
            bytes: total.saturating_sub(ip_header + tcp_header) as u32,
            flags: Flags(*tcp.get(13)?),
            sack: tcp.get(20..tcp_header).map(blocks).unwrap_or_default(),
        })
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The blocks of the option SACK among the options of a packet.
fn blocks(mut options: &[u8]) -> Vec<(u32, u32)> {
    loop {
        match *options {
            [NO_OPERATION, ref rest @ ..] => options = rest,
            [] | [END, ..] | [_] => return Vec::new(),
            [kind, length, ..] => {
                let Some(value) = options.get(2..usize::from(length)) else { return Vec::new() };
                if kind == SACK {
                    return value.chunks_exact(8).map(|block| (long(block, 0), long(block, 4))).collect();
                }
                options = &options[usize::from(length)..];
            }
        }
    }
}

impl Flags {
    /// SYN: the packet opens a connection.
    pub(crate) fn syn(self) -> bool {
        self.0 & 2 != 0
    }

    /// ACK: the acknowledgement number is valid.
    pub(crate) fn acknowledges(self) -> bool {
        self.0 & 16 != 0
    }
}

/// A letter for each flag, as in `tcpdump`, from the lowest bit up, with `A` for ACK.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'W'].into_iter().enumerate();
        let set = letters.filter(|(bit, _)| self.0 & (1 << bit) != 0);
        set.map(|(_, letter)| letter).try_for_each(|letter| f.write_char(letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledgement from 10.0.2.1:5001 to 10.0.1.1:40001 with a timestamp and two SACK blocks.
    fn acknowledgement() -> Vec<u8> {
        let mut frame = vec![0; ETHERNET];
        frame.extend([0x45, 0, 0, 72, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 2, 1, 10, 0, 1, 1]);
        frame.extend([0x13, 0x89, 0x9c, 0x41, 0, 0, 0, 7, 0, 0, 1, 0, 0xd0, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        frame.extend([1, 1, 5, 18, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0]);
        frame
    }

    #[test]
    fn an_acknowledgement_is_read_with_its_sack_blocks() {
        let read = Segment::read(&acknowledgement(), [10, 0, 1, 1]).unwrap();
        assert_eq!((read.from, read.port, read.id), ([10, 0, 2, 1], 40001, 0x1234));
        assert_eq!((read.seq, read.ack, read.bytes, read.marked), (7, 256, 0, false));
        assert_eq!(read.sack, [(0x200, 0x300), (0x400, 0x500)]);
        assert_eq!(read.flags.to_string(), "A");
    }

    #[test]
    fn the_bytes_of_data_are_those_of_the_packet_and_not_of_its_captured_part() {
        let mut frame = acknowledgement();
        frame[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&1500u16.to_be_bytes());
        assert_eq!(Segment::read(&frame, [10, 0, 1, 1]).unwrap().bytes, 1500 - 72);
    }

    #[test]
    fn a_truncated_header_is_no_segment() {
        let frame = acknowledgement();
        for bytes in 0..ETHERNET + 20 + 14 {
            assert_eq!(Segment::read(&frame[..bytes], [10, 0, 1, 1]), None, "{bytes} bytes");
        }
    }
}

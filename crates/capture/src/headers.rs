//! Headers for packets without bytes: the form of a simulated packet on a wire.
//!
//! A packet is truncated after its headers, as in a capture with a snap length; the lengths in them describe
//! the whole packet.

use giveway_qdisc::{Dscp, Ecn};

/// An IPv4 packet with TCP or UDP in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    /// Sender.
    pub from: [u8; 4],
    /// Receiver.
    pub to: [u8; 4],
    /// Port of the sender.
    pub from_port: u16,
    /// Port of the receiver.
    pub to_port: u16,
    /// IP length in bytes. A length above 65,535 does not fit the field, so 0 is written, as by senders that
    /// leave segmentation to their network card.
    pub bytes: u32,
    /// The identification field, RFC 791. Packets are never fragmented here, so any value is valid (RFC 6864
    /// section 4.1).
    pub id: u16,
    /// Its DSCP.
    pub dscp: Dscp,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The transport header.
    pub transport: Transport<'a>,
}

/// The transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP header: RFC 9293, section 3.1. The checksum is 0, because it covers data that does not exist.
    Tcp {
        /// Sequence number.
        seq: u32,
        /// Acknowledgement number.
        ack: u32,
        /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from the highest bit down.
        flags: u8,
        /// The window field.
        window: u16,
        /// Options as they are on the wire, at most 40 bytes; filled up with no-operations until the data
        /// have the right length.
        options: &'a [u8],
        /// Data bytes.
        data: u32,
    },
    /// A UDP header: RFC 768. The checksum is 0, which means that there is none.
    Udp,
}

const IP: usize = 20;
const UDP: usize = 8;
const TCP: usize = 20;
/// Largest TCP header, bytes: its length has four bits, in units of four bytes.
const LONGEST_TCP: usize = 60;
const NO_OPERATION: u8 = 1;
const DO_NOT_FRAGMENT: [u8; 2] = [0x40, 0];
const HOPS: u8 = 64;

impl Headers<'_> {
    /// Largest number of bytes that [`write`](Headers::write) adds: a snap length.
    pub const LONGEST: usize = IP + LONGEST_TCP;

    /// Adds the headers to `out`; never more bytes than the packet has.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let total = u16::try_from(self.bytes).unwrap_or(0);
        let ecn = match self.ecn {
            Ecn::NotCapable => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Marked => 3,
        };
        let protocol = match self.transport {
            Transport::Tcp { .. } => 6,
            Transport::Udp => 17,
        };
        out.extend([0x45, self.dscp.number() << 2 | ecn]);
        out.extend(total.to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(DO_NOT_FRAGMENT);
        out.extend([HOPS, protocol, 0, 0]);
        out.extend(self.from);
        out.extend(self.to);
        let checksum = checksum(&out[start..]).to_be_bytes();
        out[start + 10..start + 12].copy_from_slice(&checksum);

        out.extend(self.from_port.to_be_bytes());
        out.extend(self.to_port.to_be_bytes());
        match self.transport {
            Transport::Tcp { seq, ack, flags, window, options, data } => {
                // The rest of the packet is header, up to the largest one.
                let space = (self.bytes as usize).saturating_sub(IP + data as usize) / 4 * 4;
                let shortest = (TCP + options.len()).next_multiple_of(4);
                let header = space.max(shortest).min(LONGEST_TCP);
                out.extend(seq.to_be_bytes());
                out.extend(ack.to_be_bytes());
                out.extend([(header as u8 / 4) << 4, flags]);
                out.extend(window.to_be_bytes());
                out.extend([0; 4]); // checksum, urgent pointer
                out.extend(options);
                out.resize(start + IP + header, NO_OPERATION);
            }
            Transport::Udp => {
                // 0 above 65,535, as in the IP header (RFC 2675 section 4).
                let length = u16::try_from((self.bytes as usize).saturating_sub(IP).max(UDP)).unwrap_or(0);
                out.extend(length.to_be_bytes());
                out.extend([0; 2]);
            }
        }
        out.truncate(start + self.bytes as usize);
    }
}

/// RFC 1071: the one's complement of the one's complement sum.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

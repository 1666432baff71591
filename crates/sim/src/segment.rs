//! What a simulated packet carries besides its [`Meta`](qdisc::Meta): the fields of a TCP or UDP header.

use qdisc::{Span, Time};

/// A TCP segment or a UDP datagram, without its data: only how long that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Which connection or stream.
    pub conn: u32,
    /// The serial number of that connection: tells a late packet of a finished one from the next one in its place.
    pub serial: u32,
    /// Which source of traffic it belongs to: its place in the plan.
    pub source: u16,
    /// Which host beyond a node one of its ends is; 0 where both are at their nodes.
    pub host: u16,
    /// The node that this host stands behind; means nothing where `host` is 0.
    pub host_node: u16,
    /// When it was sent, in microseconds modulo 2^32: of data segments.
    pub sent: u32,
    /// Flags, see the constants.
    pub flags: u8,
    /// How many of `sack` are used.
    pub sacks: u8,
    /// Data bytes.
    pub len: u16,
    /// First sequence number. The SYN has number 0, data begin with 1, the FIN takes the number after them.
    pub seq: u64,
    /// The next sequence number that the sender of this segment expects. In a datagram, which acknowledges nothing, the
    /// field holds the send time ([`Segment::datagram_sent`]): a field of its own would exceed the 64 bytes of a segment.
    pub ack: u64,
    /// What it has beyond that, RFC 2018, as distances from `ack`; most recent first.
    pub sack: [(u32, u32); 3],
}

impl Segment {
    /// Opens a connection.
    pub const SYN: u8 = 1;
    /// The sender has no more data after this.
    pub const FIN: u8 = 2;
    /// `ack` is valid.
    pub const ACK: u8 = 4;
    /// Congestion was experienced, RFC 3168.
    pub const ECE: u8 = 8;
    /// The sender has reduced its window, RFC 3168.
    pub const CWR: u8 = 16;
    /// From the side that accepted the connection.
    pub const REPLY: u8 = 32;
    /// A UDP datagram: `seq` is its number in its stream. It has no acknowledgement, window or SACK blocks.
    pub const DATAGRAM: u8 = 64;
    /// The connection is given up.
    pub const RST: u8 = 128;

    /// A datagram of `len` data bytes, number `number` of the stream `stream`, which the source `source` sends at `sent`.
    #[inline]
    pub fn datagram(stream: u32, source: u16, number: u64, len: u16, sent: Time) -> Segment {
        Segment {
            conn: stream,
            source,
            flags: Segment::DATAGRAM,
            len,
            seq: number,
            ack: sent.as_ps(),
            ..Segment::default()
        }
    }
    /// The send time of a datagram, exact to the picosecond. Meaningless for a TCP segment.
    #[inline]
    pub const fn datagram_sent(&self) -> Time {
        Time::from_ps(self.ack)
    }

    /// A time as it stands in `sent`.
    #[inline]
    pub const fn stamp(now: Time) -> u32 {
        (now.as_ps() / 1_000_000) as u32
    }
    /// How long ago it was sent, to the microsecond; of data segments that were on their way for less than 71 minutes.
    #[inline]
    pub const fn age(&self, now: Time) -> Span {
        Span::us(Segment::stamp(now).wrapping_sub(self.sent) as u64)
    }
    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
    /// Sequence numbers that it takes: its data, and one each for SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len) + u64::from(self.has(Segment::SYN)) + u64::from(self.has(Segment::FIN))
    }
    /// The blocks of data beyond `ack` that the sender of this segment has.
    #[inline]
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sack[..usize::from(self.sacks)]
            .iter()
            .map(|(from, to)| (self.ack + u64::from(*from), self.ack + u64::from(*to)))
    }
}

/// IP and transport header without options, in bytes.
pub const TCP_HEADER: u32 = 40;
/// IP and UDP header, in bytes.
pub const UDP_HEADER: u32 = 28;
/// A SYN with the options for segment size, SACK and window scale (4 + 2 + 3, padded to 12).
pub const SYN_BYTES: u32 = TCP_HEADER + 12;

/// The length of the SACK option with `blocks` blocks, padded to a multiple of four: RFC 2018 section 3.
pub const fn sack_option(blocks: u8) -> u32 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u32 }
}

// Together with its Meta a packet fits two cache lines.
const _: () = assert!(size_of::<Segment>() <= 64);

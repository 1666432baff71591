//! The payload of a simulated packet, in addition to its [`Meta`](giveway_qdisc::Meta): the fields of a TCP
//! or UDP header, or of a QUIC packet ([`crate::quic::packet`]).

use giveway_qdisc::{Span, Time};

/// The header of a TCP segment or of a UDP datagram, with the length of its data. The data itself does not
/// exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number of the connection or of the stream.
    pub conn: u32,
    /// Number of connections that had the number `conn` before. It distinguishes a late packet of a
    /// connection that is over from packets of the next one. In a datagram it is 1 for a
    /// [copy](Segment::copied), and otherwise 0.
    pub serial: u32,
    /// Number of the source of traffic: its index in the plan.
    pub source: u16,
    /// Number of the host on an access link that is one end of the connection; 0 if both ends are at their
    /// nodes.
    pub host: u16,
    /// The node that the access link of `host` leads to; meaningless if `host` is 0.
    pub host_node: u16,
    /// Send time of a data segment, in microseconds modulo 2^32.
    pub sent: u32,
    /// Flags: a combination of the constants of this type.
    pub flags: u16,
    /// Number of SACK blocks in `sack`.
    pub sacks: u8,
    /// The ACE field of accurate ECN, 3 bits: RFC 9768, section 3.2.2. In a SYN or SYN-ACK it is the flags
    /// AE, CWR and ECE.
    pub ace: u8,
    /// Number of data bytes.
    pub len: u16,
    /// First sequence number. The SYN has number 0, data start with 1, the FIN takes the number after
    /// the data.
    pub seq: u64,
    /// The next sequence number that the sender of this segment expects. In a datagram, which has no
    /// acknowledgement, the field holds the send time ([`Segment::datagram_sent`]): a separate field would
    /// exceed the 64 bytes of a segment.
    pub ack: u64,
    /// SACK blocks (RFC 2018) as signed distances from `ack`; the most recent first. With
    /// [`Segment::ACCECN`] the last has the counters of the AccECN option instead: bytes with a mark, and
    /// bytes with ECT(1), modulo 2^24 (RFC 9768, section 3.2.3).
    pub sack: [(u32, u32); 3],
}

impl Segment {
    /// Opens a connection.
    pub const SYN: u16 = 1;
    /// The sender has no more data after this.
    pub const FIN: u16 = 2;
    /// `ack` is valid.
    pub const ACK: u16 = 4;
    /// Congestion was experienced, RFC 3168.
    pub const ECE: u16 = 8;
    /// The sender has reduced its window, RFC 3168.
    pub const CWR: u16 = 16;
    /// The segment comes from the end that accepted the connection.
    pub const REPLY: u16 = 32;
    /// A UDP datagram: `seq` is its number in its stream. It has no acknowledgement, window or SACK blocks.
    pub const DATAGRAM: u16 = 64;
    /// The connection is aborted.
    pub const RST: u16 = 128;
    /// The first SACK block reports a duplicate: D-SACK, RFC 2883.
    pub const DSACK: u16 = 256;
    /// The segment carries the AccECN option: RFC 9768, section 3.2.3.
    pub const ACCECN: u16 = 512;
    /// A QUIC packet. Its fields have another meaning: [`crate::quic::packet`].
    pub const QUIC: u16 = 1024;
    /// A QUIC packet that the receiver must acknowledge.
    pub const ELICITING: u16 = 2048;

    /// A datagram of `len` data bytes, number `number` of the stream `stream`, which the source `source`
    /// sends at `sent`.
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

    /// The one-way delay of a packet with data that reaches its receiver now: exact for a datagram, and to
    /// the microsecond for a TCP segment. `None` for a packet that carries no data, and for the copy of a
    /// datagram.
    #[inline]
    pub fn delay(&self, now: Time) -> Option<Span> {
        match self.has(Segment::DATAGRAM) {
            true => (self.serial == 0).then(|| now.since(self.datagram_sent())),
            false => (self.len > 0).then(|| self.age(now)),
        }
    }

    /// The copy of this segment that a wire makes. The receiver of a datagram ignores its copy, even if the
    /// datagram itself is lost behind that wire.
    pub fn copied(&self) -> Segment {
        let serial = if self.has(Segment::DATAGRAM) { 1 } else { self.serial };
        Segment { serial, ..*self }
    }
    /// True for the copy of a datagram.
    #[inline]
    pub fn is_copied_datagram(&self) -> bool {
        self.has(Segment::DATAGRAM) && self.serial == 1
    }

    /// A time in the format of `sent`.
    #[inline]
    pub const fn stamp(now: Time) -> u32 {
        (now.as_ps() / 1_000_000) as u32
    }
    /// Time since a data segment was sent, to the microsecond. Exact for delays of less than 71 minutes.
    #[inline]
    pub const fn age(&self, now: Time) -> Span {
        Span::us(Segment::stamp(now).wrapping_sub(self.sent) as u64)
    }
    /// True if all of `flags` are set.
    #[inline]
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
    /// True if the segment is an acknowledgement without data, SACK blocks and additional flags.
    #[inline]
    pub fn is_plain_ack(&self) -> bool {
        self.flags & !Segment::REPLY == Segment::ACK && self.len == 0 && self.sacks == 0
    }
    /// Length in sequence space: the data bytes, and one each for SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len) + u64::from(self.has(Segment::SYN)) + u64::from(self.has(Segment::FIN))
    }
    /// The SACK blocks: ranges of sequence numbers that the sender of this segment has received. All are
    /// above `ack` except the block of a [D-SACK](Segment::DSACK), which comes first.
    #[inline]
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let at = |distance: u32| self.ack.wrapping_add_signed(i64::from(distance.cast_signed()));
        self.sack[..usize::from(self.sacks)].iter().map(move |(from, to)| (at(*from), at(*to)))
    }
    /// The counters of the AccECN option: bytes that arrived with a mark, and with ECT(1), modulo 2^24.
    pub fn accecn(&self) -> Option<(u32, u32)> {
        self.has(Segment::ACCECN).then_some(self.sack[2])
    }
}

/// Length of the IP and TCP header without options, in bytes.
pub const TCP_HEADER: u32 = 40;
/// Length of the IP and UDP header, in bytes.
pub const UDP_HEADER: u32 = 28;
/// Length of the IP packet of a SYN, in bytes, with the options for segment size, SACK and window scale (4 +
/// 2 + 3, padded to 12).
pub const SYN_BYTES: u32 = TCP_HEADER + 12;

/// Length of the SACK option with `blocks` blocks, in bytes, padded to a multiple of four: RFC 2018, section
/// 3.
pub const fn sack_option(blocks: u8) -> u32 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u32 }
}
/// Length of the timestamp option, in bytes, padded to a multiple of four: RFC 7323, section 3.
pub const TIMESTAMPS: u32 = 12;
/// Length of the AccECN option with two of its three counters, in bytes, padded to a multiple of four: RFC
/// 9768, section 3.2.3.
pub const ACCECN_OPTION: u32 = 8;

// A packet, a segment and its Meta, fits two cache lines.
const _: () = assert!(size_of::<Segment>() <= 64);

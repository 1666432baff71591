//! Packets, and the metadata by which disciplines decide.

use crate::dscp::Dscp;
use crate::label::Label;
use crate::units::{Rate, Time};

/// A packet: metadata for the discipline, and a payload for the backend.
///
/// It is neither `Copy` nor `Clone`, so it is in one place: a packet that is dropped cannot also be sent.
#[derive(Debug)]
pub struct Packet<P> {
    /// Metadata: everything by which a discipline decides.
    pub meta: Meta,
    /// Data of the backend, which disciplines never read: a TCP segment, or a frame buffer.
    pub payload: P,
}

/// Metadata of a packet. The backend fills it in before it offers the packet to a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meta {
    /// IP length in bytes, which limits, quanta and rates count.
    pub bytes: u32,
    /// Traffic class for `prio` and other classful disciplines; 0 is the most urgent.
    pub class: u16,
    /// Explicit congestion notification, RFC 3168 section 5.
    pub ecn: Ecn,
    /// DSCP, length class and acknowledgement of the packet.
    pub header: Header,
    /// Flow of the packet.
    pub flow: FlowKey,
    /// Source host: the number of its node, or 16 bits of a hash of its address.
    pub from: u16,
    /// Destination host: the number of its node, or 16 bits of a hash of its address.
    pub to: u16,
    /// Time of arrival at this port.
    pub arrived: Time,
    /// Rate of the flow as measured by an edge router, which travels with the packet. CSFQ and FPIP use it.
    pub label: Label,
    /// Bytes that the flow sent before this packet; `u32::MAX` for 4 GiB or more. Run2C uses it.
    pub offset: u32,
    /// Bytes that the flow has still to send, this packet included; zero if unknown, `u32::MAX` for 4 GiB or
    /// more and for a flow without an end. SRPT uses it.
    pub remaining: u32,
    /// Reserved rate of the flow; zero for best effort. TRR and the WFQ family use it.
    pub reserved: Rate,
    /// Next hops after this link. BSQ uses them.
    pub next_hops: NextHops,
}

/// Key of a flow: a keyed 64-bit hash of its 5-tuple. The two directions of a connection are two flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub u64);

/// Facts from the headers of a packet, in one byte: its DSCP, whether it is short, and whether it advances.
///
/// A short packet, in the sense of P-SPF (section 2.2), has at most 64 bytes, and is UDP or TCP without data.
///
/// A packet advances if it is a TCP acknowledgement whose only news is its number: that number is higher than
/// in each packet of its flow before, and the packet has no data, no SACK blocks, no feedback of ECN, and no
/// flag but ACK. If two such packets are one behind the other, the first is redundant (RFC 3449, section
/// 5.2.1). A byte has no space for the number itself, and the order of the flow is enough.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Header(u8);

impl Header {
    /// Bit of a short packet. The DSCP is in the upper six bits.
    const SHORT: u8 = 1;
    /// Bit of a packet that advances.
    const ADVANCES: u8 = 2;

    /// The facts of a packet with this DSCP.
    #[inline]
    pub const fn new(dscp: Dscp, short: bool) -> Header {
        Header(dscp.number() << 2 | short as u8)
    }

    /// The facts as a byte: the DSCP in the upper six bits, bit 1 of a packet that advances, and bit 0 of a
    /// short packet.
    #[inline]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// The inverse of [`Header::byte`].
    pub const fn from_byte(byte: u8) -> Header {
        Header(byte)
    }

    /// The DSCP; 0 if the packet has none.
    #[inline]
    pub const fn dscp(self) -> Dscp {
        Dscp::of_service(self.0)
    }

    /// True for a short packet.
    #[inline]
    pub const fn is_short(self) -> bool {
        self.0 & Header::SHORT != 0
    }

    /// True for a packet that advances.
    #[inline]
    pub const fn advances(self) -> bool {
        self.0 & Header::ADVANCES != 0
    }

    /// The facts, of a packet that advances or does not.
    #[inline]
    pub const fn with_advance(self, advances: bool) -> Header {
        Header(self.0 & !Header::ADVANCES | (advances as u8) << 1)
    }

    /// The facts with another DSCP.
    #[inline]
    pub const fn with_dscp(self, dscp: Dscp) -> Header {
        Header(dscp.number() << 2 | self.0 & 0b11)
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = if self.is_short() { ", short" } else { "" };
        write!(f, "Header({}{short}{})", self.dscp(), if self.advances() { ", advances" } else { "" })
    }
}

/// The ECN field of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECT: the transport does not support ECN, so congestion is signalled by drops.
    #[default]
    NotCapable,
    /// ECT(0): classic ECN.
    Ect0,
    /// ECT(1): L4S, RFC 9331.
    Ect1,
    /// Congestion experienced (CE): marked.
    Marked,
}

/// Next hops after a link, nearest first, as node numbers; at most [`NextHops::MAX`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct NextHops {
    /// Node number plus one; zero ends the list.
    hops: [u16; NextHops::MAX],
}

impl NextHops {
    /// Largest number of next hops that a packet carries.
    pub const MAX: usize = 6;

    /// The first [`NextHops::MAX`] hops of `hops`.
    pub fn new(hops: impl IntoIterator<Item = u16>) -> NextHops {
        let mut next_hops = NextHops::default();
        for (slot, hop) in next_hops.hops.iter_mut().zip(hops) {
            *slot = hop.checked_add(1).expect("node numbers leave room for the end mark");
        }
        next_hops
    }

    /// The first `hops` hops, at most four, packed into a number; zero if there are none.
    #[inline]
    pub(crate) fn first(&self, hops: usize) -> u64 {
        let [a, b, c, d, ..] = self.hops.map(u64::from);
        let four = a | b << 16 | c << 32 | d << 48;
        if hops < 4 { four & !(u64::MAX << (16 * hops)) } else { four }
    }

    /// The next hops, nearest first.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.hops.iter().take_while(|hop| **hop != 0).map(|hop| hop - 1)
    }
}

impl std::fmt::Debug for NextHops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<P> Packet<P> {
    /// A packet of `bytes` bytes of `flow`, with default metadata otherwise.
    pub fn new(flow: FlowKey, bytes: u32, payload: P) -> Packet<P> {
        Packet { meta: Meta { bytes, flow, ..Meta::default() }, payload }
    }

    /// Its length in bytes.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.meta.bytes
    }
}

// The metadata of a packet fits one cache line.
const _: () = assert!(size_of::<Meta>() <= 64);

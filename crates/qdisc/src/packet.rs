//! What a discipline sees of a packet.

use crate::label::Label;
use crate::units::{Rate, Time};

/// A packet: what is known about it, and what the host needs to carry it on.
///
/// Neither `Copy` nor `Clone`: it is in one place, and whoever drops it gives it away.
#[derive(Debug)]
pub struct Packet<P> {
    /// Everything that a discipline may decide by.
    pub meta: Meta,
    /// The host's own: a TCP segment, a cell, a frame buffer. Disciplines never look inside.
    pub payload: P,
}

/// Everything that a discipline may know about a packet, filled in by the host's classifier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meta {
    /// IP length in bytes: what limits, quanta and rates count.
    pub bytes: u32,
    /// Traffic class, 0 the most urgent; what `prio` and other classful disciplines sort by.
    pub class: u16,
    /// Explicit congestion notification, RFC 3168 section 5.
    pub ecn: Ecn,
    /// At most 64 bytes, and UDP or TCP without data: P-SPF's short packets (section 2.2).
    pub short: bool,
    /// Which flow it belongs to.
    pub flow: FlowKey,
    /// The host that it comes from: a node's number, or 16 bits of a hash of its address.
    pub from: u16,
    /// The host that it is for, likewise.
    pub to: u16,
    /// When it arrived at this port.
    pub arrived: Time,
    /// The rate of its flow as an edge router measured it; travels with the packet. CSFQ, FPIP.
    pub label: Label,
    /// Bytes that the flow sent before this packet. Run2C. It stays at the largest number: 4 GiB or more.
    pub offset: u32,
    /// Bytes that the flow has still to send, this packet's included, where its sender knows. SRPT. Zero: not known. It
    /// stays at the largest number, which is that of flows without an end, too.
    pub remaining: u32,
    /// The rate that is reserved for the flow. TRR and the WFQ family. Zero: best effort.
    pub reserved: Rate,
    /// The next hops beyond this link. BSQ.
    pub ahead: Ahead,
}

/// A flow: the keyed 64-bit hash of its 5-tuple, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub u64);

/// The ECN field of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not take marks: congestion is told by dropping.
    #[default]
    NotCapable,
    /// ECT(0): classic ECN.
    Ect0,
    /// ECT(1): L4S, RFC 9331.
    Ect1,
    /// Congestion experienced: already marked.
    Marked,
}

/// The next hops beyond a link, nearest first, as node numbers. At most [`Ahead::MOST`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Node number plus one; zero ends the list.
    hops: [u16; Ahead::MOST],
}

impl Ahead {
    /// How far a discipline can look ahead.
    pub const MOST: usize = 6;

    /// The first hops of `hops`.
    pub fn new(hops: impl IntoIterator<Item = u16>) -> Ahead {
        let mut ahead = Ahead::default();
        for (slot, hop) in ahead.hops.iter_mut().zip(hops) {
            *slot = hop.checked_add(1).expect("node numbers leave room for the end mark");
        }
        ahead
    }

    /// The first hops, four at most, in a number that is different for different ones; zero when there are none.
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

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<P> Packet<P> {
    /// A packet of `bytes` of `flow`; everything else as it is by default.
    pub fn new(flow: FlowKey, bytes: u32, payload: P) -> Packet<P> {
        Packet { meta: Meta { bytes, flow, ..Meta::default() }, payload }
    }

    /// Its length in bytes.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.meta.bytes
    }
}

// What a discipline reads of a packet is one cache line.
const _: () = assert!(size_of::<Meta>() <= 64);

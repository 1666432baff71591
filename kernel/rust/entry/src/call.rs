// SPDX-License-Identifier: MIT OR Apache-2.0

//! Arguments and results of a call that are not plain numbers.

use giveway_qdisc::{Ecn, FlowKey, Header, Label, Meta, NextHops, Rate, Time};

/// An arriving packet, as the shim describes it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Arrival {
    /// Hash of the flow.
    pub flow: u64,
    /// Label, in the bits of [`Label::bits`].
    pub label: u64,
    /// Reserved rate, in bit/s.
    pub reserved: u64,
    /// IP length.
    pub bytes: u32,
    /// Number of the slot that holds the packet.
    pub slot: u32,
    /// Bytes that the flow sent before.
    pub offset: u32,
    /// Bytes that the flow has still to send.
    pub remaining: u32,
    /// Traffic class.
    pub class: u16,
    /// Source host.
    pub from: u16,
    /// Destination host.
    pub to: u16,
    /// Next hops; `u16::MAX` ends the list.
    pub hops: [u16; NextHops::MAX],
    /// ECN field as in the IP header.
    pub ecn: u8,
    /// DSCP and facts of the packet, as in [`Header::byte`].
    pub header: u8,
}

impl Arrival {
    /// The metadata by which a discipline decides.
    #[inline]
    pub fn meta(&self, now: Time) -> Meta {
        Meta {
            bytes: self.bytes,
            class: self.class,
            // The codepoints of RFC 3168, section 5.
            ecn: match self.ecn & 3 {
                0 => Ecn::NotCapable,
                1 => Ecn::Ect1,
                2 => Ecn::Ect0,
                _ => Ecn::Marked,
            },
            header: Header::from_byte(self.header),
            flow: FlowKey(self.flow),
            from: self.from,
            to: self.to,
            arrived: now,
            label: Label::from_bits(self.label),
            offset: self.offset,
            remaining: self.remaining,
            reserved: Rate::bit(self.reserved),
            next_hops: NextHops::new(self.hops.into_iter().take_while(|hop| *hop != u16::MAX)),
        }
    }
}

/// The values that a call exchanges with the shim.
#[repr(C)]
pub struct Call {
    /// The packet that arrives with the next call of `arrive`.
    pub arrival: Arrival,
    /// Time before which no packet may leave, in picoseconds, after [`Outcome::LATER`].
    pub at: u64,
    /// Label of the packet that left.
    pub label: u64,
    /// DSCP and facts of the packet that left.
    pub header: u64,
}

/// The arguments and results of the current call.
#[unsafe(export_name = "gw_call")]
pub static mut CALL: Call = Call {
    arrival: Arrival {
        flow: 0,
        label: 0,
        reserved: 0,
        bytes: 0,
        slot: 0,
        offset: 0,
        remaining: 0,
        class: 0,
        from: 0,
        to: 0,
        hops: [u16::MAX; NextHops::MAX],
        ecn: 0,
        header: 0,
    },
    at: 0,
    label: 0,
    header: 0,
};

/// Result of a dequeue: the slot of the packet in the lower 32 bits, and the kind above.
pub struct Outcome;

impl Outcome {
    /// A packet leaves.
    pub const PACKET: u64 = 1 << 32;
    /// It is to be marked as having experienced congestion.
    pub const MARKED: u64 = 1 << 33;
    /// No packet may leave before [`Call::at`].
    pub const LATER: u64 = 1 << 34;
    /// There is no backlog.
    pub const EMPTY: u64 = 0;
}

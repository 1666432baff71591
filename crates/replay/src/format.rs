//! The format of a trace, byte by byte, version 1.
//!
//! Integers of fixed length are little-endian. A *varint* has 1 to 10 bytes of 7 bits each, the lowest first;
//! the high bit of a byte is set if another one follows; a value of more than 64 bits is an error. A *signed*
//! varint has its sign in the lowest bit (0, -1, 1, -2 become 0, 1, 2, 3); differences wrap around at 2^64,
//! so that every pair of values can be encoded. A *text* is a varint with its length in bytes, and its bytes
//! in UTF-8. Times are picoseconds since the epoch of the backend.
//!
//! **The file** has a header, and then chunks up to one of kind 4.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `89 47 57 54 0d 0a 1a 0a` |
//! | 2 | version: 1 |
//! | text | name of the program that wrote the trace |
//!
//! **A chunk** has a header of 13 bytes before its content:
//!
//! | bytes | content |
//! | --- | --- |
//! | 1 | kind: 1 the build of a section, 2 operations, 3 the end of a section, 4 the end of the file |
//! | 4 | section; 0 in a chunk of kind 4 |
//! | 4 | length of the content, at most 2^24 |
//! | 4 | check: the low 32 bits of SipHash-2-4 with key 0 over the 9 bytes before it and the content |
//!
//! Chunks of several sections may alternate. Sections have ascending numbers in the order of their builds. If
//! the file ends within a chunk of operations, its complete operations are valid, although its check cannot
//! be verified.
//!
//! **The build of a section**: name (text), spec of the discipline (text), rate in bit/s (varint), MTU in
//! bytes (varint), seed (8 bytes), path of its random streams (text), neighbour (varint), number of known
//! downstream links (varint), and for each: from node, to node, rate in bit/s (varints).
//!
//! **Operations** follow each other without a gap. A relative value refers to an earlier operation of the
//! same section, also in an earlier chunk, or to 0 if there is none. The first byte:
//!
//! | bits | meaning |
//! | --- | --- |
//! | 0-1 | 0 enqueue, 1 dequeue with a packet, 2 dequeue without a packet, 3 reset |
//! | 2 | packets were dropped |
//! | 3 | packets were marked |
//! | 4-5 | of a packet that left: its ECN field, as in IP (0 not capable, 1 ECT(1), 2 ECT(0), 3 marked) |
//! | 6 | of a packet that left: it has a label |
//! | 4 | of a dequeue without a packet: 0 empty, 1 a time |
//! | 4 | of a reset: 1 if it is a change of the rate of the link instead |
//!
//! All other bits are 0. Then, in this order:
//!
//! 1. the time, signed, since the operation before;
//! 2. of an enqueue: a varint of bits for the fields of the metadata that differ from the packet enqueued
//!    before (the first time: from all zero), and these fields, from the lowest bit: 0 length in bytes
//!    (varint), 1 class (varint), 2 ECN field (byte), 3 headers (byte: the DSCP in the upper six bits, 2 if
//!    the packet advances, and 1 if it is short), 4 flow (8 bytes), 5 from (varint), 6 to (varint), 7 label
//!    (varint: 0 none, 1 short, a departure time in picoseconds with the highest of 64 bits set, otherwise
//!    the rate in bit/s plus 1), 8 offset (varint), 9 remaining (varint), 10 reserved (varint, bit/s), 11
//!    next hops (a byte with their number, at most 6, and a varint each), 12 arrival: of this packet,
//!    signed, since the time of this operation; where bit 12 is not set, it is that time. Packets are
//!    numbered in the order of enqueues, from 0;
//! 3. of a packet that left: its number, signed, relative to the one after that which left before (the first
//!    time: to 0); the label as in an enqueue, where bit 6 is set;
//! 4. of a time: signed, since the time of this operation; of a change of the rate: the rate in bit/s
//!    (varint, not 0);
//! 5. if packets were dropped: their count (varint, not 0), and for each its number, signed, relative to the
//!    one dropped before (the first time: to 0), and the reason (byte: its index in [`DropReason::ALL`]);
//! 6. if packets were marked: their count (varint, not 0), and for each its length (varint), flow (8 bytes),
//!    arrival (signed, since the time of this operation) and offset (varint).
//!
//! **The end of a section**: a byte: 0 the discipline was dropped, 1 the ring was full before, 2 the trace
//! was closed before. Then five varints: operations, packets enqueued, packets that left, packets dropped,
//! marks. They count the trace, not operations after its end.

use giveway_qdisc::{DropReason, FlowKey, Label, LinkContext, Meta, Rate, Time};

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = [0x89, b'G', b'W', b'T', 0x0d, 0x0a, 0x1a, 0x0a];
/// Version of the format.
pub const VERSION: u16 = 1;
/// Largest length of the content of a chunk, in bytes.
pub const LONGEST: u32 = 1 << 24;
/// Length of the header of a chunk, in bytes.
pub const HEAD: usize = 13;

pub(crate) const BUILD: u8 = 1;
pub(crate) const OPERATIONS: u8 = 2;
pub(crate) const END: u8 = 3;
pub(crate) const FILE_END: u8 = 4;

// The first byte of an operation.
pub(crate) const ENQUEUE: u8 = 0;
pub(crate) const PACKET: u8 = 1;
pub(crate) const NO_PACKET: u8 = 2;
pub(crate) const RESET: u8 = 3;
pub(crate) const DROPPED: u8 = 1 << 2;
pub(crate) const MARKED: u8 = 1 << 3;
pub(crate) const ECN_SHIFT: u32 = 4;
pub(crate) const LABELLED: u8 = 1 << 6;
pub(crate) const AT: u8 = 1 << 4;
pub(crate) const RATE: u8 = 1 << 4;

/// The configuration of a discipline: all that is needed to build it.
#[derive(Clone, Debug)]
pub struct Build {
    /// Name of its port, as in "eth0->eth1".
    pub name: String,
    /// Spec of the discipline with its parameters.
    pub spec: String,
    /// Its link.
    pub context: LinkContext,
}

/// A call of a discipline and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Time of the call.
    pub now: Time,
    /// The call.
    pub call: Call,
    /// Dropped packets by number, in the order of their drops.
    pub dropped: Vec<(u64, DropReason)>,
    /// Marked packets, in the order of their marks.
    pub marked: Vec<Mark>,
}

/// A call of a discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Call {
    /// A packet arrives. Packets are numbered in the order of their arrivals.
    Enqueue(Meta),
    /// The link is free, and the discipline answers.
    Dequeue(Answer),
    /// The backlog is dropped.
    Reset,
    /// The rate of the link changes.
    Rate(Rate),
}

/// The answer to a dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A packet leaves.
    Packet {
        /// Number of the packet in the order of arrivals, from 0.
        number: u64,
        /// Its label when it leaves.
        label: Label,
        /// Its ECN field when it leaves.
        ecn: giveway_qdisc::Ecn,
    },
    /// No packet may leave before this time.
    At(Time),
    /// The backlog is empty.
    Empty,
}

/// The fields that identify a marked packet. Disciplines mark metadata, which has no packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Length of the packet, in bytes.
    pub bytes: u32,
    /// Flow of the packet.
    pub flow: FlowKey,
    /// Time of arrival.
    pub arrived: Time,
    /// Bytes that its flow had sent before.
    pub offset: u32,
}

impl Mark {
    /// The identifying fields of a packet.
    pub fn of(meta: &Meta) -> Mark {
        Mark { bytes: meta.bytes, flow: meta.flow, arrived: meta.arrived, offset: meta.offset }
    }
}

/// Reason for the end of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The discipline was dropped.
    Whole,
    /// The ring was full. Later operations are not in the trace.
    Overrun,
    /// The trace was closed before the discipline was dropped.
    Early,
}

impl Close {
    pub(crate) const ALL: [Close; 3] = [Close::Whole, Close::Overrun, Close::Early];
}

/// Counters of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of calls.
    pub operations: u64,
    /// Number of enqueued packets.
    pub arrived: u64,
    /// Number of packets that left.
    pub sent: u64,
    /// Number of dropped packets.
    pub dropped: u64,
    /// Number of marks.
    pub marked: u64,
}

impl Totals {
    pub(crate) fn count(&mut self, operation: &Operation) {
        self.operations += 1;
        self.arrived += u64::from(matches!(operation.call, Call::Enqueue(_)));
        self.sent += u64::from(matches!(operation.call, Call::Dequeue(Answer::Packet { .. })));
        self.dropped += operation.dropped.len() as u64;
        self.marked += operation.marked.len() as u64;
    }
}

/// The values to which differences refer. Encoder and decoder update them with the same rules.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub now: u64,
    pub meta: Meta,
    /// One more than the number of the packet that left last.
    pub sent: u64,
    pub dropped: u64,
}

pub(crate) fn signed(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

pub(crate) fn unsigned(from: u64, difference: u64) -> u64 {
    from.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

/// The header of a chunk.
pub fn head(kind: u8, section: u32, length: u32, content: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = kind;
    head[1..5].copy_from_slice(&section.to_le_bytes());
    head[5..9].copy_from_slice(&length.to_le_bytes());
    let checked = [&head[..9], content].concat();
    let check = giveway_qdisc::hash::SipHasher::new(0, 0).hash(&checked) as u32;
    head[9..].copy_from_slice(&check.to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_exact() {
        for (from, to) in [(0, 0), (5, 4), (4, 5), (0, u64::MAX), (u64::MAX, 0), (1 << 63, 0), (0, 1 << 63)] {
            assert_eq!(unsigned(from, signed(from, to)), to, "{from} to {to}");
        }
        assert_eq!([signed(7, 7), signed(7, 6), signed(7, 8), signed(7, 5)], [0, 1, 2, 3]);
    }
}

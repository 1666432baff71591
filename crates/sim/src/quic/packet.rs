//! A QUIC packet as a [`Segment`]: its number, its acknowledgement, and its length on the wire.
//!
//! | field | meaning |
//! | --- | --- |
//! | `seq` | packet number |
//! | `len` | bytes of stream data |
//! | `ace` | [`PacketType`]: the header |
//! | `ack` | largest number acknowledged, 48 bits, and above it the acknowledgement delay in units of 8 µs |
//! | `sacks` | number of acknowledged ranges |
//! | `sack` | the ranges, and the counts of ECN, in six words |
//!
//! The first word stores the length of the first range less one; each further word has the gap and the length
//! of a range. With ECN the last two are the counts of marked and of capable packets.
//!
//! The frames with data are not in the segment: the receiver looks them up at the sender, by packet number
//! ([`super::sent`]). Lengths follow RFC 9000: a header with a connection number of 8 bytes and a packet
//! number of 2, numbers of variable length (section 16), and 16 bytes of authentication.

use giveway_qdisc::Span;

use crate::segment::{Segment, UDP_HEADER};

/// Length of the authentication of each packet, bytes: RFC 9001, section 5.3.
pub const TAG: u32 = 16;
/// Length of the header of a packet after the handshake: flags, connection number, packet number.
pub const SHORT_HEADER: u32 = 1 + 8 + 2;
/// Length of the header of a packet of the handshake, and of a 0-RTT packet: RFC 9000, section 17.2.
pub const LONG_HEADER: u32 = 1 + 4 + 1 + 8 + 1 + 8 + 2 + 2;
/// Length of the header of an Initial packet, which has an empty token besides.
pub const INITIAL_HEADER: u32 = LONG_HEADER + 1;
/// Minimum length of a datagram with an Initial packet, UDP payload: RFC 9000, section 14.1.
pub const MIN_INITIAL: u32 = 1200;
/// Length of a stream frame without its offset and its stream number: the type and the length.
const STREAM_FRAME: u32 = 1 + 2;

/// Maximum number of ranges that an acknowledgement reports, with ECN counts and without.
const MAX_RANGES: (usize, usize) = (4, 6);

/// The header of a packet: the level of its encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PacketType {
    /// The first packet of an end.
    Initial,
    /// Data of the client before the handshake is complete.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// Everything after the handshake.
    OneRtt,
}

impl PacketType {
    /// The kind of a segment.
    pub fn of(segment: &Segment) -> PacketType {
        match segment.ace {
            0 => PacketType::Initial,
            1 => PacketType::ZeroRtt,
            2 => PacketType::Handshake,
            _ => PacketType::OneRtt,
        }
    }

    /// Length of header and authentication, bytes.
    pub const fn overhead(self) -> u32 {
        TAG + match self {
            PacketType::Initial => INITIAL_HEADER,
            PacketType::ZeroRtt | PacketType::Handshake => LONG_HEADER,
            PacketType::OneRtt => SHORT_HEADER,
        }
    }
}

/// Length of a number of variable length: RFC 9000, section 16.
#[inline]
pub const fn varint(number: u64) -> u32 {
    match number {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Length of the header of a stream frame: RFC 9000, section 19.8.
#[inline]
pub const fn stream_frame(stream: u32, offset: u64) -> u32 {
    // The first bidirectional streams of a client have the numbers 0, 4, 8 and so on.
    let offset = if offset > 0 { varint(offset) } else { 0 };
    STREAM_FRAME + varint(stream as u64 * 4) + offset
}

/// The counts of packets by their ECN field: RFC 9000, section 19.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets that arrived with Congestion Experienced.
    pub marked: u32,
    /// Packets that arrived with ECT(0) or ECT(1).
    pub capable: u32,
}

/// An acknowledgement: RFC 9000, section 19.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame {
    /// The largest packet number acknowledged.
    pub largest: u64,
    /// Time from the arrival of that packet to the acknowledgement, to 8 µs.
    pub delay: Span,
    /// The counts of ECN, if the receiver reports them.
    pub ecn: Option<EcnCounts>,
    words: [u32; 6],
    ranges: u8,
}

impl AckFrame {
    /// Writes the ranges of packet numbers that were received, ascending and without their last numbers.
    #[inline]
    pub fn write(received: &[(u64, u64)], delay: Span, ecn: Option<EcnCounts>, segment: &mut Segment) -> u32 {
        let Some((first, end)) = received.last().copied() else { return 0 };
        let (largest, units) = (end - 1, (delay.as_ps() / 8_000_000).min(0xffff));
        let mut words = [0; 6];
        words[0] = u32::try_from(largest - first).unwrap_or(u32::MAX);
        let mut bytes = 1 + varint(largest) + varint(units) + 1 + varint(u64::from(words[0]));
        let most = if ecn.is_some() { MAX_RANGES.0 } else { MAX_RANGES.1 };
        let (mut count, mut above) = (1, first);
        for (from, to) in received.iter().rev().skip(1).copied().take(most - 1) {
            let (gap, length) = (above - to, (to - 1 - from).min(0xffff));
            // Half a word is left for a gap: ranges below it are reported no more.
            if gap > 0xffff {
                break;
            }
            words[count] = (gap as u32) << 16 | length as u32;
            bytes += varint(gap) + varint(length);
            (count, above) = (count + 1, from);
        }
        if let Some(EcnCounts { marked, capable }) = ecn {
            (words[4], words[5]) = (marked, capable);
            bytes += varint(marked.into()) + varint(capable.into()) + 1;
        }
        segment.flags |= Segment::ACK;
        if ecn.is_some() {
            segment.flags |= Segment::ACCECN;
        }
        segment.ack = largest | units << 48;
        segment.sacks = count as u8;
        segment.sack = [(words[0], words[1]), (words[2], words[3]), (words[4], words[5])];
        bytes
    }

    /// The acknowledgement of a packet, if it has one.
    #[inline]
    pub fn read(segment: &Segment) -> Option<AckFrame> {
        if !segment.has(Segment::ACK) {
            return None;
        }
        let [(a, b), (c, d), (marked, capable)] = segment.sack;
        Some(AckFrame {
            largest: segment.ack & 0xffff_ffff_ffff,
            delay: Span::us((segment.ack >> 48) * 8),
            ecn: segment.has(Segment::ACCECN).then_some(EcnCounts { marked, capable }),
            words: [a, b, c, d, marked, capable],
            ranges: segment.sacks,
        })
    }

    /// The ranges, the largest numbers first, each with its first and its last number.
    #[inline]
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut above = None;
        self.words[..usize::from(self.ranges)].iter().map(move |word| {
            let (last, length) = match above {
                None => (self.largest, u64::from(*word)),
                Some(above) => (above - u64::from(word >> 16) - 1, u64::from(word & 0xffff)),
            };
            let first = last - length;
            above = Some(first);
            (first, last)
        })
    }
}

/// Length of the IP packet of a datagram with `payload` bytes.
#[inline]
pub const fn on_wire(payload: u32) -> u32 {
    payload + UDP_HEADER
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_the_lengths_of_the_standard() {
        assert_eq!([0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30].map(varint), [1, 1, 2, 2, 4, 4, 8]);
        assert_eq!(PacketType::OneRtt.overhead(), 27);
        assert_eq!(stream_frame(0, 0), 4, "type, number and length");
        assert_eq!(stream_frame(20, 100_000), 9);
    }

    proptest! {
        /// The newest ranges come back as they were written.
        #[test]
        fn an_acknowledgement_is_read_as_written(
            steps in prop::collection::vec((1_u64..70_000, 1_u64..70_000), 1..9),
            delay in 0_u64..600,
            ecn in prop::option::of((any::<u32>(), any::<u32>())),
        ) {
            let (mut at, mut received) = (0, Vec::new());
            for (gap, length) in steps {
                received.push((at + gap, at + gap + length));
                at += gap + length;
            }
            let ecn = ecn.map(|(marked, capable)| EcnCounts { marked, capable });
            let mut segment = Segment::default();
            let bytes = AckFrame::write(&received, Span::ms(delay), ecn, &mut segment);
            let frame = AckFrame::read(&segment).expect("it has one");
            prop_assert_eq!(frame.ecn, ecn);
            prop_assert_eq!(frame.delay, Span::ms(delay).min(Span::us(8 * 0xffff)));
            let read: Vec<_> = frame.ranges().collect();
            prop_assert!(bytes >= 5 && read.len() <= 6);
            let (from, to) = received[received.len() - 1];
            prop_assert_eq!(read[0], (from, to - 1));
            for ((from, to), (first, last)) in received.iter().rev().zip(&read) {
                prop_assert_eq!(*last, to - 1);
                // A long range is cut; what is left is reported by another acknowledgement.
                prop_assert_eq!(*first, (*from).max(if *last == frame.largest { 0 } else { last - last.min(&0xffff) }));
                if first > from {
                    break;
                }
            }
        }
    }
}

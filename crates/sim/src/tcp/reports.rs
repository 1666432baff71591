//! The reports of a receiver beyond the data that it has in order: duplicates, marks, and acknowledgements at
//! once at the start of a connection. Most connections have none of it.
//!
//! # Principles
//! - D-SACK: the first block of the acknowledgement of a segment that arrives twice is that segment. RFC
//!   2883.
//! - DCTCP: the echo reports the segments acknowledged, and an acknowledgement leaves at once where marks
//!   start or end. RFC 8257, section 3.2.
//! - Accurate ECN: each acknowledgement has the count of packets that arrived with a mark, modulo 8, and an
//!   option has the count of their bytes. RFC 9768, section 3.2.
//! - Linux acknowledges the first segments of a connection at once, so that the window of the sender grows,
//!   and again after a duplicate. It acknowledges at once as long as its receive window opens, too
//!   ([`Opening`]).
//!
//! # Deviations
//! - The AccECN option is in each acknowledgement without data. RFC 9768, section 3.2.3.3 lets a receiver
//!   leave it out while the counters do not change.
//! - A segment has space for three SACK blocks, or for two and the AccECN option.

use giveway_qdisc::{Span, Time};

use crate::segment::Segment;

use super::TcpConfig;
use super::ecn_mode::EcnMode;
use super::marks::INITIAL;
use super::right_sizing::Opening;

/// The reports of one receiver.
#[derive(Debug)]
pub struct Reports {
    /// The segment that arrived twice and is not reported yet: its first sequence number and the one after.
    duplicate: Option<(u64, u64)>,
    /// Segments that are still acknowledged at once.
    quick: u32,
    /// Set if the receive window grows.
    opening: Option<Opening>,
    /// DCTCP: the last segment was marked (DCTCP.CE).
    pub marking: bool,
    /// Accurate ECN: packets with a mark, modulo 8, from the initial value on.
    packets: u8,
    /// Accurate ECN: bytes with a mark, modulo 2^24.
    marked: u32,
    /// Accurate ECN: bytes with ECT(1), modulo 2^24.
    ect1: u32,
}

impl Reports {
    /// `None` if the receiver reports none of it.
    pub fn new(config: &TcpConfig) -> Option<Box<Reports>> {
        let opening = Opening::new(config);
        let is_plain = opening.is_none() && !config.dsack && config.quick_acks == 0;
        if is_plain && !config.accecn && !config.echoes_precisely() {
            return None;
        }
        Some(Box::new(Reports {
            duplicate: None,
            quick: config.quick_acks,
            opening,
            marking: false,
            packets: INITIAL,
            marked: 0,
            ect1: 0,
        }))
    }

    /// A segment arrived twice.
    pub fn on_duplicate(&mut self, from: u64, to: u64, config: &TcpConfig) {
        // A duplicate means that the sender retransmits, with a small window: it needs every acknowledgement.
        self.quick = config.quick_acks;
        if config.dsack {
            self.duplicate = Some((from, to));
        }
    }

    /// A segment with data arrived: `delivered` bytes have arrived in order so far. True if it must be
    /// acknowledged at once. `rtt` is the round-trip time of the handshake.
    #[inline]
    pub fn is_urgent(&mut self, delivered: u64, rtt: Span, now: Time, config: &TcpConfig) -> bool {
        let opening = &mut self.opening;
        let opens = opening.as_mut().is_some_and(|one| one.on_arrival(delivered, rtt, now, config.mss.0));
        let quick = self.quick > 0;
        self.quick -= u32::from(quick);
        opens || quick
    }

    /// A segment of `len` bytes arrived.
    #[inline]
    pub fn count(&mut self, len: u32, marked: bool, ect1: bool) {
        if marked {
            self.packets = self.packets.wrapping_add(1) & 7;
            self.marked = self.marked.wrapping_add(len) & 0xff_ffff;
        }
        if ect1 {
            self.ect1 = self.ect1.wrapping_add(len) & 0xff_ffff;
        }
    }

    /// Writes the reports into a segment that is about to leave with the acknowledgement and its SACK blocks.
    pub fn write(&mut self, segment: &mut Segment, mode: EcnMode) {
        if let Some((from, to)) = self.duplicate.take() {
            // RFC 2883, section 4: the block of the duplicate comes first, and the others follow.
            segment.sack.rotate_right(1);
            // The duplicate may lie below what is acknowledged (RFC 2883, section 4.1), so the distance may
            // be negative.
            let distance = |seq: u64| (seq.wrapping_sub(segment.ack)) as u32;
            segment.sack[0] = (distance(from), distance(to));
            segment.sacks = (segment.sacks + 1).min(segment.sack.len() as u8);
            segment.flags |= Segment::DSACK;
        }
        if mode == EcnMode::Accurate {
            segment.ace = self.packets;
            if segment.len == 0 {
                segment.flags |= Segment::ACCECN;
                // The option takes the place of the third block.
                segment.sacks = segment.sacks.min(2);
                segment.sack[2] = (self.marked, self.ect1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_is_the_first_block() {
        let config = TcpConfig { dsack: true, ..TcpConfig::rfc() };
        let mut reports = Reports::new(&config).unwrap();
        let mut segment = Segment { ack: 5001, sacks: 1, ..Segment::default() };
        segment.sack[0] = (1000, 2000);
        reports.on_duplicate(3001, 4001, &config);
        reports.write(&mut segment, EcnMode::Off);
        assert!(segment.has(Segment::DSACK));
        assert_eq!(segment.blocks().collect::<Vec<_>>(), [(3001, 4001), (6001, 7001)]);
        let mut next = Segment { ack: 5001, ..Segment::default() };
        reports.write(&mut next, EcnMode::Off);
        assert_eq!((next.sacks, next.has(Segment::DSACK)), (0, false), "it is reported once");
    }

    /// Nine marked packets: the count is modulo 8, and starts with 5 (RFC 9768, section 3.2.1).
    #[test]
    fn marks_are_counted_modulo_eight_and_bytes_exactly() {
        let config = TcpConfig { ecn: true, accecn: true, ..TcpConfig::rfc() };
        let mut reports = Reports::new(&config).unwrap();
        for n in 0..9 {
            reports.count(1000, n != 4, n == 4);
        }
        let mut segment = Segment::default();
        reports.write(&mut segment, EcnMode::Accurate);
        assert_eq!((segment.ace, segment.accecn()), (5, Some((8000, 1000))));
    }
}

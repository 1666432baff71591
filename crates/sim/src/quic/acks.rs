//! The packets that an end has received, and when it acknowledges them: RFC 9000, section 13.2, and
//! draft-ietf-quic-ack-frequency.

use giveway_qdisc::{Ecn, Span, Time};

use super::config::QuicConfig;
use super::packet::{AckFrame, EcnCounts};
use super::spans::Spans;
use crate::segment::Segment;

/// Maximum number of ranges that are kept: RFC 9000, section 13.2.3. Packet numbers never repeat, so that a
/// lost packet leaves a gap for ever.
const MAX_RANGES: usize = 32;

/// The packets that an end has received.
#[derive(Debug)]
pub(super) struct Acks {
    received: Spans,
    /// Packets below this number count as received.
    floor: u64,
    /// The largest number, and its arrival.
    largest: Option<u64>,
    largest_at: Time,
    /// The largest number when the last acknowledgement left.
    reported: Option<u64>,
    /// Packets that must be acknowledged, since the last acknowledgement.
    waiting: u32,
    /// Time at which an acknowledgement is due; never if none waits.
    pub due: Time,
    counts: EcnCounts,
    /// Number of packets that are acknowledged at once, and of packets by which one may be late: as the other
    /// end has requested.
    every: u32,
    reordering: u32,
}

impl Acks {
    pub fn new() -> Acks {
        Acks {
            received: Spans::default(),
            floor: 0,
            largest: None,
            largest_at: Time::ZERO,
            reported: None,
            waiting: 0,
            due: Time::NEVER,
            counts: EcnCounts::default(),
            // RFC 9000, section 13.2.2: at least every second packet, before the other end requests more.
            every: 2,
            reordering: 1,
        }
    }

    /// The other end requests another frequency.
    pub fn request(&mut self, config: &QuicConfig) {
        (self.every, self.reordering) = (config.ack_every.0 as u32, config.reordering);
    }

    /// Adds a packet. False if it was received before.
    #[inline]
    pub fn on_arrival(&mut self, number: u64, ecn: Ecn) -> bool {
        if number < self.floor || self.received.contains(number) {
            return false;
        }
        self.received.insert(number, number + 1);
        if self.received.list().len() > MAX_RANGES
            && let Some((_, to)) = self.received.first()
        {
            // RFC 9000, section 13.2.3: a receiver that forgets a range must not accept its packets again.
            self.floor = to;
            self.received.forget_first();
        }
        match ecn {
            Ecn::Marked => self.counts.marked += 1,
            Ecn::Ect0 | Ecn::Ect1 => self.counts.capable += 1,
            Ecn::NotCapable => {}
        }
        true
    }

    /// The packet that was just added must be acknowledged: now if `at_once`, or by the rules. One that is
    /// `joined` with the next waits for it.
    #[inline]
    pub fn wait(
        &mut self,
        number: u64,
        (at_once, joined): (bool, bool),
        marked: bool,
        now: Time,
        delay: Span,
    ) {
        self.waiting += 1;
        let before = self.largest;
        if before.is_none_or(|largest| number > largest) {
            (self.largest, self.largest_at) = (Some(number), now);
        }
        // RFC 9000, section 13.2.1: at once if it is late, if one before it is missing, or if it is marked.
        let now_due = at_once || marked || self.is_disordered(number, before) || self.waiting >= self.every;
        if now_due && !joined {
            self.due = now;
        } else if self.due == Time::NEVER {
            self.due = now + delay;
        }
    }

    /// True if the arrival of `number` shows that packets are out of order, by as many as are requested.
    fn is_disordered(&self, number: u64, before: Option<u64>) -> bool {
        match (self.reordering, before) {
            // draft-ietf-quic-ack-frequency: 0 turns off the acknowledgement at once, and 1 is the rule of
            // RFC 9000, section 13.2.1.
            (0, _) | (_, None) => false,
            (1, Some(largest)) => number < largest || number > largest + 1,
            (most, Some(_)) => {
                // The first number that is missing above what was reported.
                let reported = self.reported.map_or(0, |reported| reported + 1);
                let above = self.received.list().iter().rev().take_while(|(from, _)| *from > reported);
                let missing = above.last().map(|(from, _)| from - 1);
                missing.is_some_and(|missing| number >= missing + u64::from(most))
            }
        }
    }

    /// True if a packet waits for its acknowledgement.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Writes the acknowledgement into a packet that leaves. Returns its length.
    #[inline]
    pub fn write(&mut self, ecn: bool, now: Time, segment: &mut Segment) -> u32 {
        self.waiting = 0;
        self.due = Time::NEVER;
        self.reported = self.largest;
        let delay = if self.largest.is_some() { now.since(self.largest_at) } else { Span::ZERO };
        AckFrame::write(self.received.list(), delay, ecn.then_some(self.counts), segment)
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.received.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times in milliseconds at which these packets, one a millisecond, make an acknowledgement due.
    fn due(config: &QuicConfig, numbers: &[u64]) -> Vec<u64> {
        let mut acks = Acks::new();
        acks.request(config);
        let mut due = Vec::new();
        for (number, at) in numbers.iter().zip(0..) {
            let now = Time::ms(at);
            assert!(acks.on_arrival(*number, Ecn::NotCapable));
            acks.wait(*number, (false, false), false, now, config.max_ack_delay);
            if acks.due <= now {
                due.push(at);
                acks.write(false, now, &mut Segment::default());
            }
        }
        due
    }

    #[test]
    fn every_second_packet_and_every_gap_is_acknowledged() {
        let quic = QuicConfig::default();
        assert_eq!(due(&quic, &[0, 1, 2, 3, 4]), [1, 3]);
        assert_eq!(due(&quic, &[0, 1, 2, 4, 3, 5]), [1, 3, 4], "4 leaves a gap, and 3 is late");
        let rare = QuicConfig { ack_every: giveway_qdisc::Packets(4), reordering: 0, ..quic.clone() };
        assert_eq!(due(&rare, &[0, 1, 2, 4, 3, 5]), [3]);
        let patient = QuicConfig { ack_every: giveway_qdisc::Packets(100), reordering: 3, ..quic };
        assert_eq!(due(&patient, &[0, 1, 3, 4, 5, 6]), [4], "2 is three packets late");
    }

    #[test]
    fn old_ranges_are_forgotten_and_count_as_received() {
        let mut acks = Acks::new();
        for number in 0..100 {
            assert!(acks.on_arrival(2 * number, Ecn::Marked));
        }
        assert_eq!(acks.received.list().len(), MAX_RANGES);
        assert!(!acks.on_arrival(1, Ecn::NotCapable), "too old to know");
        assert!(acks.on_arrival(197, Ecn::NotCapable));
        assert!(!acks.on_arrival(197, Ecn::NotCapable), "a duplicate");
        assert_eq!(acks.counts, EcnCounts { marked: 100, capable: 0 });
    }
}

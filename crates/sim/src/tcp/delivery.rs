//! Samples of the delivery rate, for controllers that need them: draft-cheng-iccrg-delivery-rate-estimation.
//!
//! # Principles
//! - Each segment remembers how much had been delivered when it was sent. Its acknowledgement tells how much
//!   was delivered since, and in which time: the rate at which the network delivered.
//! - The time is the longer of that in which the data were sent and that in which they were acknowledged, so
//!   acknowledgements that arrive together do not look like a fast network.
//! - A sample is marked if the application had too little to send when the segment left: it says how fast the
//!   application was, and not the network.
//!
//! # Deviations
//! - Of the segments that one acknowledgement reports, the segment that was sent last gives the sample; the
//!   draft compares the amounts that had been delivered, which are the same for segments of one burst.
//!
//! # Cost
//! - 48 bytes for each outstanding segment, and a few additions when it leaves and arrives.

use std::collections::VecDeque;

use giveway_qdisc::{Span, Time};

use super::scoreboard::{Deliveries, Received};

/// The state of the connection when a segment was sent for the last time.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    /// Bytes delivered.
    delivered: u64,
    /// Time at which they had been delivered.
    delivered_at: Time,
    /// Send time of the newest segment that was delivered.
    first_sent: Time,
    /// Bytes lost.
    lost: u64,
    /// Bytes in the network, this segment included.
    flight: u32,
    app_limited: bool,
}

/// The sample that an acknowledgement gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Bytes reported as received for the first time.
    pub newly_delivered: u64,
    /// Bytes delivered when the newest segment reported here was sent.
    pub prior_delivered: u64,
    /// Bytes in the network when it had been sent.
    pub flight_at_send: u64,
    /// Bytes lost since it was sent.
    pub lost_since_send: u64,
    /// Bytes delivered in `interval`; zero for no rate.
    pub rate_bytes: u64,
    /// The time of the rate.
    pub interval: Span,
    /// The application limited the rate.
    pub app_limited: bool,
}

/// The deliveries of a connection.
#[derive(Debug)]
pub struct Delivery {
    /// One for each outstanding segment.
    packets: VecDeque<Snapshot>,
    /// Bytes delivered.
    delivered: u64,
    /// Time of the last delivery.
    delivered_at: Time,
    /// Send time of the newest segment that was delivered.
    first_sent: Time,
    /// Bytes lost.
    lost: u64,
    /// Segments sent until this many bytes are delivered are limited by the application; zero if none are.
    app_limited: u64,
    /// The newest segment that the current acknowledgement reports, with its last transmission.
    newest: Option<(Time, Snapshot)>,
    /// Bytes that the current acknowledgement reports for the first time.
    newly: u64,
    /// The latest rate: bytes, and the time in which they were delivered.
    latest: (u64, Span),
}

impl Delivery {
    pub fn new() -> Delivery {
        Delivery {
            packets: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            app_limited: 0,
            newest: None,
            newly: 0,
            latest: (0, Span::ZERO),
        }
    }

    /// Bytes delivered since the connection opened.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The latest rate: bytes, and the time in which they were delivered. No time before the first sample.
    pub fn latest(&self) -> (u64, Span) {
        self.latest
    }

    /// True if the segments that leave now are limited by the application.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// A new segment leaves; `pipe` has its bytes and `idle` is true if nothing was in the network before.
    pub fn on_send(&mut self, pipe: u64, idle: bool, now: Time) {
        let snapshot = self.snapshot(pipe, idle, now);
        self.packets.push_back(snapshot);
    }

    /// The segment with the place `index` leaves again.
    pub fn on_retransmission(&mut self, index: usize, pipe: u64, now: Time) {
        let snapshot = self.snapshot(pipe, false, now);
        self.packets[index] = snapshot;
    }

    fn snapshot(&mut self, pipe: u64, idle: bool, now: Time) -> Snapshot {
        if idle {
            // The pipe starts anew: neither interval reaches back to before the pause.
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            flight: u32::try_from(pipe).unwrap_or(u32::MAX),
            app_limited: self.app_limited > 0,
        }
    }

    /// Bytes count as lost, or no longer.
    pub fn on_loss(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// The application has no data to send although the window has space; `pipe` is in the network.
    pub fn set_app_limited(&mut self, pipe: u64) {
        // Until what is in the network now has arrived, rates show the application. Zero would mean no limit.
        self.app_limited = (self.delivered + pipe).max(1);
    }

    /// The sample of the acknowledgement whose segments were just observed. A rate in less than `least`, the
    /// smallest round-trip time, would come from acknowledgements that were compressed.
    pub fn sample(&mut self, least: Span) -> Sample {
        // The pause has left the network.
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newly_delivered = std::mem::take(&mut self.newly);
        let Some((at, packet)) = self.newest.take() else {
            return Sample { newly_delivered, ..Sample::default() };
        };
        // Data cannot be delivered faster than they were sent, and acknowledgements that were compressed on
        // their way arrive faster than the data did. So the longer of both times gives a rate that is never
        // too high.
        let sending = at.since(packet.first_sent);
        let acknowledging = self.delivered_at.since(packet.delivered_at);
        let interval = sending.max(acknowledging);
        // The next sample of the same flight starts where this one ends.
        self.first_sent = at;
        let rate_bytes = if interval >= least { self.delivered - packet.delivered } else { 0 };
        if rate_bytes > 0 {
            self.latest = (rate_bytes, interval);
        }
        Sample {
            newly_delivered,
            prior_delivered: packet.delivered,
            flight_at_send: u64::from(packet.flight),
            lost_since_send: self.lost.saturating_sub(packet.lost),
            rate_bytes,
            interval,
            app_limited: packet.app_limited,
        }
    }

    /// Frees the memory of segments if none is outstanding.
    pub fn rest(&mut self) {
        if self.packets.is_empty() {
            self.packets = VecDeque::new();
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Snapshot>()
    }

    /// Observes the segments of an acknowledgement that arrives at `now`.
    pub fn at(&mut self, now: Time) -> Arriving<'_> {
        Arriving { delivery: self, now }
    }
}

/// Observes the segments of one acknowledgement.
pub struct Arriving<'a> {
    delivery: &'a mut Delivery,
    now: Time,
}

impl Deliveries for Arriving<'_> {
    #[inline]
    fn on_receipt(&mut self, segment: Received) {
        let delivery = &mut *self.delivery;
        delivery.delivered += u64::from(segment.len);
        delivery.newly += u64::from(segment.len);
        delivery.delivered_at = self.now;
        // Of segments with the same time the last one counts.
        if delivery.newest.is_none_or(|(at, _)| segment.at >= at) {
            delivery.newest = Some((segment.at, delivery.packets[segment.index]));
        }
    }

    #[inline]
    fn on_removal(&mut self) {
        self.delivery.packets.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(index: usize, at: Time) -> Received {
        Received { index, end: 0, len: 1000, at, ambiguous: false }
    }

    /// Ten segments leave at once, and arrive a millisecond apart after a round trip of 10 ms: the rate
    /// equals the rate of the acknowledgements, 1,000 bytes in a millisecond, as soon as the round trips are
    /// long enough.
    #[test]
    fn the_slower_of_sending_and_arriving_is_the_rate() {
        let mut delivery = Delivery::new();
        for n in 0..10 {
            delivery.on_send(1000 * (n + 1), n == 0, Time::ZERO);
        }
        let mut rates = Vec::new();
        for n in 0..10 {
            let mut arriving = delivery.at(Time::ms(10 + n));
            arriving.on_receipt(receipt(0, Time::ZERO));
            arriving.on_removal();
            let sample = delivery.sample(Span::ms(10));
            rates.push((sample.rate_bytes, sample.interval));
            delivery.on_send(10_000, false, Time::ms(10 + n));
        }
        assert_eq!(rates[0], (1000, Span::ms(10)), "the first round trip has delivered one segment");
        assert_eq!(rates[9], (10_000, Span::ms(19)));
        let mut arriving = delivery.at(Time::ms(20));
        arriving.on_receipt(receipt(0, Time::ms(10)));
        arriving.on_removal();
        let sample = delivery.sample(Span::ms(10));
        assert_eq!(
            (sample.rate_bytes, sample.interval),
            (10_000, Span::ms(10)),
            "1,000 bytes in a millisecond"
        );
        assert_eq!((sample.prior_delivered, sample.flight_at_send), (1000, 10_000));
    }

    #[test]
    fn a_sender_without_data_marks_its_samples() {
        let mut delivery = Delivery::new();
        delivery.on_send(1000, true, Time::ZERO);
        delivery.set_app_limited(1000);
        delivery.on_send(1000, false, Time::ms(1));
        let mut arriving = delivery.at(Time::ms(10));
        arriving.on_receipt(receipt(0, Time::ZERO));
        arriving.on_removal();
        assert!(!delivery.sample(Span::ZERO).app_limited, "it was sent before");
        let mut arriving = delivery.at(Time::ms(11));
        arriving.on_receipt(receipt(0, Time::ms(1)));
        arriving.on_removal();
        assert!(delivery.sample(Span::ZERO).app_limited);
    }
}

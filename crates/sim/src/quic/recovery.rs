//! Loss detection and congestion control: RFC 9002.
//!
//! # Principles
//! - A packet is lost if a later one is acknowledged and it was sent three packets earlier, or 9/8 of a round
//!   trip ago. Packet numbers never repeat, so that an acknowledgement always says which packet arrived, and
//!   every one measures a round trip.
//! - Without acknowledgements a probe timeout lets two packets out; it reduces no window. Only losses over a
//!   long time do, three probe timeouts: persistent congestion.
//! - With `adapt_reordering`, the acknowledgement of a packet that had been called lost raises the threshold
//!   that was too low, so that the same delay causes no loss again. RFC 9002, section 6.1, permits such a
//!   rule and states none; RACK raises its window of reordering by reports of the same kind (RFC 8985,
//!   section 6.2, step 4). Chosen as in QUICHE of Google, which Chrome has: the number of packets rises to
//!   the one by which the packet was overtaken, the share of the round trip doubles until it suffices, up to
//!   a whole one, and neither falls again.
//! - The window shrinks once for all losses of packets that were sent before it shrank.
//!
//! # Deviations
//! - One space of packet numbers instead of three.
//! - The contract of congestion controls counts sequence numbers. Here these are bytes in the order in which
//!   they were sent: everything before the oldest packet in flight counts as acknowledged.
//! - A controller that reduces its window to one packet gets the minimum window of RFC 9002, section
//!   7.2, two.

use giveway_qdisc::{Rate, Span, Time};

use super::config::QuicConfig;
use super::packet::{AckFrame, EcnCounts};
use super::sent::{Fate, Frame, Sent, SentPacket};
use crate::tcp::controller::{Ack, Controller, Feedback, Loss, Marks, Needs, Phase};
use crate::tcp::{Bursts, Deliveries, Delivery, Pacer, Received, Smoothed};

/// RFC 9002, section 6.1.1: a packet is lost if one that was sent so much later is acknowledged.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002, section 6.1.2: a packet is late after one round trip and 1/2^3 of it.
const TIME_SHIFT: u32 = 3;
/// RFC 9002, section 6.1.2: the smallest time of any timer.
const GRANULARITY: Span = Span::ms(1);
/// RFC 9002, section 7.6.1: persistent congestion lasts for so many probe timeouts.
const PERSISTENT: u64 = 3;

/// The sender's view of the path.
pub(super) struct Recovery {
    pub sent: Sent,
    controller: Box<dyn Controller>,
    pub needs: Needs,
    /// Set if the controller needs feedback.
    delivery: Option<Delivery>,
    pub pacer: Pacer,
    rtt: Smoothed,
    latest: Span,
    least: Span,
    /// Time of the first measurement of a round trip.
    measured_at: Time,
    /// UDP payload of the packets in flight, bytes.
    in_flight: u64,
    largest_acked: Option<u64>,
    /// Bytes of all packets so far.
    position: u64,
    /// Time at which the window shrank last; `None` before the first time.
    reduced_at: Option<Time>,
    phase: Phase,
    /// The time at which the oldest packet is late enough to be lost.
    pub loss_at: Time,
    /// A packet is lost if one that was sent so much later is acknowledged.
    packet_threshold: u64,
    /// A packet is late after one round trip and 1/2^n of it, for this n.
    time_shift: u32,
    /// Probe timeouts in a row.
    pub backoffs: u32,
    /// Departure of the last packet that must be acknowledged.
    pub last_sent: Time,
    /// The window, and not the application, ended the last sending.
    pub cwnd_limited: bool,
    newly_lost: u64,
    newly_marked: u64,
    /// The counts of ECN that the other end has reported.
    counted: EcnCounts,
    /// The path changes ECN fields, or the other end does not report them: RFC 9000, section 13.4.2.
    pub ecn_failed: bool,
    /// The frames of packets that were acknowledged or lost, for the streams.
    pub acked: Vec<Frame>,
    pub lost: Vec<Frame>,
    /// Control frames that are lost.
    pub lost_control: u8,
}

/// The sums of an acknowledgement.
#[derive(Default)]
struct Newly {
    bytes: u64,
    /// Of packets that carried ECT.
    capable: u32,
    /// Departure of the newest of its packets.
    newest: Option<Time>,
    sample: Option<Span>,
}

impl Recovery {
    pub fn new(config: &QuicConfig, seed: u64) -> Recovery {
        let controller = config.congestion.build(config.start(seed));
        let needs = controller.needs();
        Recovery {
            sent: Sent::default(),
            controller,
            needs,
            delivery: needs.feedback.then(Delivery::new),
            pacer: Pacer::new(),
            rtt: Smoothed::new(),
            latest: Span::ZERO,
            least: Span::ZERO,
            measured_at: Time::NEVER,
            in_flight: 0,
            largest_acked: None,
            position: 0,
            reduced_at: None,
            phase: Phase::Open,
            loss_at: Time::NEVER,
            packet_threshold: PACKET_THRESHOLD,
            time_shift: TIME_SHIFT,
            backoffs: 0,
            last_sent: Time::ZERO,
            cwnd_limited: false,
            newly_lost: 0,
            newly_marked: 0,
            counted: EcnCounts::default(),
            ecn_failed: false,
            acked: Vec::new(),
            lost: Vec::new(),
            lost_control: 0,
        }
    }

    // -- state --------------------------------------------------------------------------------------

    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// Congestion window, bytes.
    #[inline]
    pub fn window(&self, config: &QuicConfig) -> u64 {
        // RFC 9002, section 7.2: the least window is two packets.
        self.controller.window().max(2 * config.datagram.0)
    }
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    pub fn smoothed(&self) -> Span {
        self.rtt.mean().unwrap_or_default()
    }

    /// The probe timeout without back-off: RFC 9002, section 6.2.1. `delay` is the longest delay of an
    /// acknowledgement, zero during the handshake.
    pub fn probe_timeout(&self, delay: Span, config: &QuicConfig) -> Span {
        match self.rtt.mean() {
            Some(mean) => mean + (self.rtt.variation() * 4).max(GRANULARITY) + delay,
            // RFC 9002, section 5.3: before the first sample the variation is half the initial round-trip
            // time.
            None => config.initial_rtt * 3,
        }
    }

    /// The time that a full packet takes at the rate of the pacer.
    #[inline]
    pub fn gap(&self, config: &QuicConfig) -> Option<Span> {
        let window = self.window(config);
        crate::tcp::pacing_gap(&*self.controller, window, self.smoothed(), config.datagram.0, config.ratios())
    }

    /// The bursts of the pacer.
    #[inline]
    pub fn bursts(&self, config: &QuicConfig) -> Bursts {
        Bursts::of(Span::ms(1), config.gso.0, config.datagram.0, self.needs.most_burst)
    }

    /// Rate of the pacer, and latest sample of the delivery rate; zero without them.
    pub fn rates(&self, config: &QuicConfig) -> (Rate, Rate) {
        let gap = self.gap(config).filter(|_| config.pacing);
        crate::tcp::pacing_rates(gap, config.datagram.0, self.delivery.as_ref())
    }

    // -- sending ------------------------------------------------------------------------------------

    /// The application starts to send after a pause.
    pub fn resume(&mut self, timeout: Span, now: Time) {
        if self.in_flight == 0 && self.position > 0 && now.since(self.last_sent) > timeout {
            self.controller.on_idle(now);
        }
    }

    /// The packet that was written leaves.
    #[inline]
    pub fn sends(&mut self, number: u64, bytes: u32, control: u8, capable: bool, now: Time) {
        let size = u64::from(bytes);
        if let Some(delivery) = &mut self.delivery {
            let idle = self.in_flight == 0;
            if idle && delivery.is_app_limited() {
                self.controller.on_resume(now);
            }
            delivery.on_send(self.in_flight + size, idle, now);
        }
        self.sent.push(number, now, self.position, bytes as u16, control, capable);
        self.position += size;
        self.in_flight += size;
        self.last_sent = now;
    }

    /// The application has no data to send although the window has space.
    pub fn app_limited(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.set_app_limited(self.in_flight);
        }
    }

    /// The controller keeps the window small by itself.
    pub fn limits_itself(&self) -> bool {
        self.controller.limits_itself()
    }

    // -- acknowledgements ---------------------------------------------------------------------------

    /// Handles an acknowledgement: RFC 9002, appendix A.7. `delay` is the longest delay of an
    /// acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckFrame, delay: Span, now: Time, config: &QuicConfig) -> bool {
        let prior = self.in_flight;
        if config.adapt_reordering {
            self.adapt(ack, now);
        }
        let newly = self.settle(ack, delay, now);
        let Some(newest) = newly.newest else { return false };
        let advances = self.largest_acked.is_none_or(|largest| ack.largest > largest);
        self.largest_acked = self.largest_acked.max(Some(ack.largest));
        if config.ecn && advances {
            self.count_marks(ack, &newly, now, config);
        }
        // RFC 9002, section 7.3.2: marks and losses of one recovery period shrink the window once.
        let marked = self.newly_marked > 0 && !self.needs.own_marks && self.begins_recovery(newest);
        if marked {
            self.reduced_at = Some(now);
            let loss = self.loss(prior, now);
            self.controller.on_mark(&loss);
        }
        self.detect(prior, delay, now, config);
        // RFC 9002, section 7.3.2: a packet that was sent after the window shrank ends the recovery period.
        // Until then the window does not grow.
        let grows = self.begins_recovery(newest);
        if grows && self.phase != Phase::Open {
            self.phase = Phase::Open;
        }
        let (una, next) = (self.una(), self.position);
        let rtt = self.smoothed();
        let cwnd_limited = self.cwnd_limited || prior >= self.controller.window();
        if grows {
            let Newly { bytes, sample, .. } = newly;
            self.controller.on_ack(&Ack { now, bytes, rtt, sample, una, next, flight: prior, cwnd_limited });
        }
        self.feed_back(&newly, prior, cwnd_limited, now);
        let late = Sent::late(now, self.probe_timeout(delay, config));
        let delivery = &mut self.delivery;
        self.sent.forget(late, || {
            if let Some(delivery) = delivery {
                delivery.at(now).on_removal();
            }
        });
        true
    }

    /// Enters the acknowledged packets.
    #[inline]
    fn settle(&mut self, ack: &AckFrame, delay: Span, now: Time) -> Newly {
        let mut newly = Newly::default();
        for (first, last) in ack.ranges() {
            for place in self.sent.open(first, last) {
                if !self.sent.settle(place, Fate::Acked) {
                    continue;
                }
                let packet = *self.sent.at(place);
                self.in_flight -= u64::from(packet.bytes);
                newly.bytes += u64::from(packet.bytes);
                newly.capable += u32::from(packet.capable);
                newly.newest = newly.newest.max(Some(packet.at));
                let sent = &self.sent;
                self.acked.extend(packet.frames().map(|frame| sent.frame(frame)));
                if let Some(delivery) = &mut self.delivery {
                    let (len, at) = (u32::from(packet.bytes), packet.at);
                    delivery.at(now).on_receipt(Received { index: place, end: 0, len, at, ambiguous: false });
                }
                // RFC 9002, section 5.1: only the largest number measures a round trip.
                if packet.number == ack.largest {
                    newly.sample = Some(self.measure(now.since(packet.at), ack.delay.min(delay), now));
                }
            }
        }
        newly
    }

    /// Raises the thresholds by which packets of this acknowledgement were called lost, although they
    /// arrived.
    fn adapt(&mut self, ack: &AckFrame, now: Time) {
        for (first, last) in ack.ranges() {
            while let Some(packet) = self.sent.take_late(first, last) {
                let newest = self.largest_acked.unwrap_or_default();
                let apart = newest.saturating_sub(packet.number) + 1;
                self.packet_threshold = self.packet_threshold.max(apart);
                while self.time_shift > 0 && packet.at + self.patience() < now {
                    self.time_shift -= 1;
                }
            }
        }
    }

    /// The time after which a packet is lost if a later one is acknowledged: RFC 9002, section 6.1.2. The
    /// larger of both times counts, so that neither a slow average nor one quick sample declares packets
    /// lost.
    fn patience(&self) -> Span {
        let round_trip = self.latest.max(self.smoothed());
        (round_trip * ((1 << self.time_shift) + 1) / (1 << self.time_shift)).max(GRANULARITY)
    }

    /// Adds a round trip: RFC 9002, section 5.3. Returns it without the delay of the acknowledgement.
    fn measure(&mut self, latest: Span, delay: Span, now: Time) -> Span {
        if self.measured_at == Time::NEVER {
            (self.measured_at, self.least) = (now, latest);
        }
        self.least = self.least.min(latest);
        self.latest = latest;
        // RFC 9002, section 5.3: the reported delay is subtracted unless the result would be below the
        // smallest round-trip time.
        let adjusted = if latest >= self.least + delay { latest - delay } else { latest };
        self.rtt.add_sample(adjusted);
        adjusted
    }

    /// Enters the counts of ECN, and checks them: RFC 9000, section 13.4.2.1.
    fn count_marks(&mut self, ack: &AckFrame, newly: &Newly, now: Time, config: &QuicConfig) {
        let Some(counts) = ack.ecn else {
            // The acknowledged packets had ECT, but are not counted: the path or the other end clears the
            // field.
            self.ecn_failed |= newly.capable > 0;
            return;
        };
        let marked = counts.marked.wrapping_sub(self.counted.marked);
        let capable = counts.capable.wrapping_sub(self.counted.capable);
        // Each of these packets must be in one of the counts.
        self.ecn_failed |= marked.saturating_add(capable) < newly.capable;
        self.counted = counts;
        // A count of packets: none is larger than a full one.
        self.newly_marked = (u64::from(marked) * config.datagram.0).min(newly.bytes);
        if self.needs.marks {
            let (una, next, rtt) = (self.una(), self.position, self.smoothed());
            let (acked, bytes) = (newly.bytes, self.newly_marked);
            self.controller.on_mark_counts(&Marks { now, acked, marked: bytes, una, next, rtt });
        }
    }

    /// True if a packet that was sent at this time is not of the window that has shrunk already.
    fn begins_recovery(&self, sent: Time) -> bool {
        self.reduced_at.is_none_or(|reduced| sent > reduced)
    }

    fn loss(&self, flight: u64, now: Time) -> Loss {
        Loss { now, flight: flight.min(self.controller.window()), next: self.position }
    }

    /// Everything before this position is acknowledged or lost.
    fn una(&self) -> u64 {
        self.sent.in_flight().next().map_or(self.position, |packet| packet.position)
    }

    /// The loss timer has expired.
    pub fn on_timeout(&mut self, delay: Span, now: Time, config: &QuicConfig) {
        let prior = self.in_flight;
        self.detect(prior, delay, now, config);
        self.feed_back(&Newly::default(), prior, false, now);
    }

    /// Finds lost packets: RFC 9002, section 6.1. `flight` was in the network before.
    fn detect(&mut self, flight: u64, delay: Span, now: Time, config: &QuicConfig) {
        self.loss_at = Time::NEVER;
        let Some(largest) = self.largest_acked else { return };
        let patience = self.patience();
        let (mut newest, mut bytes) = (None, 0);
        let places = self.sent.open(0, largest);
        for place in places.clone() {
            let packet = *self.sent.at(place);
            if packet.state != Fate::InFlight {
                continue;
            }
            let late = packet.at + patience;
            if packet.number + self.packet_threshold > largest && now < late {
                self.loss_at = self.loss_at.min(late);
                continue;
            }
            self.sent.settle(place, Fate::Lost);
            self.in_flight -= u64::from(packet.bytes);
            bytes += u64::from(packet.bytes);
            newest = Some(packet.at);
            self.lost_control |= packet.control;
            let sent = &self.sent;
            self.lost.extend(packet.frames().map(|frame| sent.frame(frame)));
        }
        let Some(newest) = newest else { return };
        self.newly_lost += bytes;
        if let Some(delivery) = &mut self.delivery {
            delivery.on_loss(bytes);
        }
        if self.begins_recovery(newest) {
            self.reduced_at = Some(now);
            self.phase = Phase::Recovery;
            let loss = self.loss(flight, now);
            self.controller.on_loss(&loss);
        }
        // RFC 9002, section 7.6.1: without back-off, so that it is the same however many probes were sent.
        let long = self.probe_timeout(delay, config) * PERSISTENT;
        if self.longest_loss(places.map(|place| self.sent.at(place))) > long {
            self.phase = Phase::Timeout;
            let loss = self.loss(flight, now);
            self.controller.on_timeout(&loss, true);
        }
    }

    /// The longest time in which all packets were lost, of packets that were sent after the first
    /// measurement: RFC 9002, section 7.6.2.
    fn longest_loss<'a>(&self, packets: impl Iterator<Item = &'a SentPacket>) -> Span {
        let (mut longest, mut begin) = (Span::ZERO, None);
        for packet in packets.filter(|packet| packet.at >= self.measured_at) {
            match packet.state {
                Fate::Lost => longest = longest.max(packet.at.since(*begin.get_or_insert(packet.at))),
                Fate::Acked => begin = None,
                Fate::InFlight => {}
            }
        }
        longest
    }

    fn feed_back(&mut self, newly: &Newly, prior_flight: u64, cwnd_limited: bool, now: Time) {
        let newly_marked = std::mem::take(&mut self.newly_marked);
        let newly_lost = std::mem::take(&mut self.newly_lost);
        let (una, rtt) = (self.una(), self.smoothed());
        let Some(delivery) = &mut self.delivery else { return };
        let measured = delivery.sample(self.least);
        self.controller.on_feedback(&Feedback {
            now,
            una,
            next: self.position,
            newly_delivered: measured.newly_delivered,
            newly_marked,
            newly_lost,
            delivered: delivery.delivered(),
            prior_delivered: measured.prior_delivered,
            flight_at_send: measured.flight_at_send,
            lost_since_send: measured.lost_since_send,
            rate_bytes: measured.rate_bytes,
            interval: measured.interval,
            app_limited: measured.app_limited,
            sample: newly.sample,
            rtt,
            flight: self.in_flight,
            prior_flight,
            phase: self.phase,
            cwnd_limited,
        });
    }

    /// Frees memory: nothing is in flight.
    pub fn rest(&mut self) {
        self.sent.rest();
        (self.acked, self.lost) = (Vec::new(), Vec::new());
        if let Some(delivery) = &mut self.delivery {
            delivery.rest();
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        let frames = (self.acked.capacity() + self.lost.capacity()) * size_of::<Frame>();
        let delivery = self.delivery.as_ref().map_or(0, |delivery| delivery.heap_bytes());
        self.sent.heap_bytes() + size_of_val(&*self.controller) + frames + delivery
    }
}

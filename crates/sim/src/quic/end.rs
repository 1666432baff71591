//! One end of a connection.
//!
//! Read in this order: `arrive` (a packet), `on_timer`, and in `end/sending.rs` `send` (the packets that may
//! leave) and `emit` (a packet is written).

mod sending;

use giveway_qdisc::{Causes, Ecn, Meta, Packet, Rate, Span, Time};

use super::acks::Acks;
use super::config::QuicConfig;
use super::control;
use super::handshake::{CLIENT_HELLO, Handshake};
use super::packet::{AckFrame, PacketType};
use super::recovery::Recovery;
use super::sent::{Frame, FrameKind, Sent};
use super::streams::{Streams, Windows};
use crate::segment::{Segment, UDP_HEADER};
use crate::tcp::{Controller, Counts, Identity};

/// Number of packets that a probe timeout lets out: RFC 9002, section 6.2.4.
const PROBES: u8 = 2;

/// One end of a connection.
pub(crate) struct End {
    /// The fields that are the same in every packet.
    template: Segment,
    identity: Identity,
    is_client: bool,
    handshake: Handshake,
    streams: Streams,
    acks: Acks,
    path: Recovery,
    /// The number of the next packet.
    number: u64,
    /// Control frames to send.
    control: u8,
    /// Packets that may leave whatever the window says.
    probes: u8,
    /// Probes sent so far.
    probed: u64,
    /// The probe timeout, and the time of the pacer; never if they are off.
    probe_at: Time,
    wake_at: Time,
    /// Arrival of the last packet.
    received_at: Time,
    closed: bool,
    counts: Counts,
    outcome: Outcome,
}

/// The effects that concern the application, since the caller took them last.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The server has accepted the connection.
    pub accepted: bool,
    /// The connection was given up.
    pub aborted: bool,
    /// Streams that have more data in order.
    pub progress: Vec<u32>,
}

/// The parameters of a new end.
pub(crate) struct Opening<'a> {
    /// The fields that are the same in every packet that it sends.
    pub segment: Segment,
    pub identity: Identity,
    pub config: &'a QuicConfig,
    /// Bytes of a stream that count as arrived when the measurement interval starts and ends, until that
    /// is known.
    pub counted: (u64, u64),
}

impl End {
    /// An end; it is the client if its packets are no replies.
    pub fn new(opening: Opening<'_>) -> End {
        let Opening { segment, identity, config, counted } = opening;
        let is_client = !segment.has(Segment::REPLY);
        let windows = Windows { connection: config.max_data.0, stream: config.max_stream_data.0 };
        End {
            template: Segment { flags: segment.flags | Segment::QUIC, ..segment },
            identity,
            is_client,
            handshake: Handshake::new(is_client, config),
            streams: Streams::new(windows, counted),
            acks: Acks::new(),
            path: Recovery::new(config, identity.flow.0),
            number: 0,
            control: 0,
            probes: 0,
            probed: 0,
            probe_at: Time::NEVER,
            wake_at: Time::NEVER,
            received_at: Time::ZERO,
            closed: false,
            counts: Counts::default(),
            outcome: Outcome::default(),
        }
    }

    // -- calls of the application -------------------------------------------------------------------

    /// The client starts. What it sends leaves with the next [`send`](End::send).
    pub fn open(&mut self, now: Time) {
        self.handshake.send.write(CLIENT_HELLO);
        self.received_at = now;
    }

    /// Adds data of a stream, and its end if it `closes`.
    pub fn write(&mut self, stream: u32, bytes: u64, closes: bool) {
        self.streams.write(stream, bytes, closes);
    }

    /// The application needs the connection no longer.
    pub fn close(&mut self) {
        self.closed = true;
    }

    // -- state --------------------------------------------------------------------------------------

    /// The node of this end and the node of the other.
    pub fn nodes(&self) -> (u16, u16) {
        (self.identity.from, self.identity.to)
    }
    /// The packets that it has sent, whose frames the other end reads.
    pub fn sent(&self) -> &Sent {
        &self.path.sent
    }
    /// Its streams.
    pub fn delivered(&self, stream: u32) -> u64 {
        self.streams.delivered(stream)
    }
    /// Bytes of a stream that arrived within the measurement interval.
    pub fn measured(&self, stream: u32, from: u64, to: u64) -> u64 {
        self.streams.measured(stream, from, to)
    }
    /// The measurement interval starts, or ends.
    pub fn measuring(&mut self, begins: bool) {
        self.streams.measuring(begins);
    }
    /// True if the application has closed and everything is acknowledged.
    pub fn finished(&self) -> bool {
        self.closed && self.streams.is_settled()
    }
    /// Counters of this sender so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// Retransmissions by cause. Data after a probe timeout are lost by the probe's acknowledgement, so that
    /// none has a timeout as its cause.
    pub fn causes(&self) -> Causes {
        Causes { probes: self.probed, ..Causes::default() }
    }
    /// Rate of the pacer, and latest sample of the delivery rate; zero without them.
    pub fn rates(&self, config: &QuicConfig) -> (Rate, Rate) {
        self.path.rates(config)
    }
    pub fn controller(&self) -> &dyn Controller {
        self.path.controller()
    }
    /// Bytes in flight.
    pub fn flight(&self) -> u64 {
        self.path.in_flight()
    }
    /// Data that are acknowledged.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.streams.acked_bytes()
    }
    /// Smoothed round-trip time; zero before the first measurement.
    pub fn smoothed_rtt(&self) -> Span {
        self.path.smoothed()
    }
    /// The earliest time at which [`on_timer`](End::on_timer) must be called.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.acks.due.min(self.path.loss_at).min(self.probe_at).min(self.wake_at)
    }
    /// The effects that concern the application; the caller empties them.
    pub fn outcome(&mut self) -> &mut Outcome {
        &mut self.outcome
    }
    /// Frees memory that an end without packets in the network does not need.
    pub fn rest(&mut self) {
        self.streams.rest();
        self.path.rest();
    }
    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        let progress = self.outcome.progress.capacity() * size_of::<u32>();
        self.streams.heap_bytes() + self.acks.heap_bytes() + self.path.heap_bytes() + progress
    }

    /// The longest delay of an acknowledgement by the other end: none during the handshake.
    #[inline]
    fn delay(&self, config: &QuicConfig) -> Span {
        // RFC 9002, section 6.2.1: Initial and Handshake packets are acknowledged without delay.
        if self.handshake.is_complete { config.max_ack_delay } else { Span::ZERO }
    }

    // -- arriving packets ---------------------------------------------------------------------------

    /// Handles a packet. Its frames are among those that the other end has `sent`.
    #[inline]
    pub fn arrive(
        &mut self,
        (meta, segment, joined): (&Meta, &Segment, bool),
        sent: &Sent,
        now: Time,
        config: &QuicConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.handshake.received(u64::from(meta.bytes.saturating_sub(UDP_HEADER)));
        // RFC 9000, section 12.3: a packet that arrives a second time is discarded.
        if !self.acks.on_arrival(segment.seq, meta.ecn) {
            return self.send(now, config, out);
        }
        self.received_at = now;
        let kind = PacketType::of(segment);
        // RFC 9000, section 8.1: a packet that only the receiver of the server's answer can have encrypted.
        self.handshake.is_validated |= kind >= PacketType::Handshake;
        if let Some(ack) = AckFrame::read(segment) {
            let delay = self.delay(config);
            if self.path.on_ack(&ack, delay, now, config) {
                // RFC 9002, section 6.2.1: a client that the server may not answer yet keeps its back-off.
                if !self.is_client || self.handshake.is_complete {
                    self.path.backoffs = 0;
                }
                self.settle();
            }
        }
        if segment.has(Segment::ELICITING)
            && let Some(packet) = sent.find(segment.seq)
        {
            for number in packet.frames() {
                self.frame(&sent.frame(number), config);
            }
            if packet.control & control::FREQUENCY != 0 {
                self.acks.request(config);
            }
            let at_once =
                // RFC 9000, section 13.2.1: packets of the handshake are acknowledged at once.
                matches!(kind, PacketType::Initial | PacketType::Handshake) || packet.control & control::IMMEDIATE != 0;
            let marked = meta.ecn == Ecn::Marked;
            self.acks.wait(segment.seq, (at_once, joined), marked, now, config.max_ack_delay);
        }
        self.send(now, config, out);
    }

    /// Handles a frame that refers to a stream.
    #[inline]
    fn frame(&mut self, frame: &Frame, config: &QuicConfig) {
        if frame.kind != FrameKind::Crypto {
            if self.streams.on_arrival(frame) && !self.outcome.progress.contains(&frame.stream) {
                self.outcome.progress.push(frame.stream);
            }
            return;
        }
        let progress = self.handshake.on_arrival(frame, config);
        self.outcome.accepted |= progress.accepted;
        if progress.completed {
            self.path.backoffs = 0;
            let usual = QuicConfig::default();
            if (config.ack_every, config.reordering) != (usual.ack_every, usual.reordering) {
                self.control |= control::FREQUENCY;
            }
            if !self.is_client {
                // RFC 9001, section 4.1.2: HANDSHAKE_DONE confirms the handshake to the client.
                self.control |= control::DONE;
            }
        }
    }

    /// Passes the frames of packets that were acknowledged or lost to their streams.
    #[inline]
    fn settle(&mut self) {
        let (mut acked, mut lost) =
            (std::mem::take(&mut self.path.acked), std::mem::take(&mut self.path.lost));
        for frame in acked.drain(..) {
            match frame.kind {
                FrameKind::Crypto => self.handshake.send.on_ack(&frame),
                _ => self.streams.on_ack(&frame),
            }
        }
        for frame in lost.drain(..) {
            match frame.kind {
                FrameKind::Crypto => self.handshake.send.on_loss(&frame),
                _ => self.streams.on_loss(&frame),
            }
        }
        // The buffers are used again.
        (self.path.acked, self.path.lost) = (acked, lost);
        self.control |= std::mem::take(&mut self.path.lost_control) & control::KEPT;
    }

    // -- timers -------------------------------------------------------------------------------------

    /// Handles the timers that have expired by `now`. Calling it early is harmless.
    pub fn on_timer(&mut self, now: Time, config: &QuicConfig, out: &mut Vec<Packet<Segment>>) {
        if now >= self.path.loss_at {
            let delay = self.delay(config);
            self.path.on_timeout(delay, now, config);
            self.settle();
        } else if now >= self.probe_at {
            let silent = now.since(self.received_at);
            // RFC 9000, section 10.1: the connection is closed without a message.
            if !config.idle_timeout.is_zero() && silent >= config.idle_timeout {
                self.outcome.aborted = true;
                return;
            }
            self.path.backoffs += 1;
            self.counts.timeouts += 1;
            // RFC 9002, section 6.2.2.1: with nothing in flight one packet is enough to let a server send
            // that waits for the proof of an address.
            self.probes = if self.path.in_flight() > 0 { PROBES } else { 1 };
        }
        self.send(now, config, out);
    }
}

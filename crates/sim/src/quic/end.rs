//! One end of a connection.
//!
//! Read in this order: `arrive` (a packet), `send` (the packets that may leave), `emit` (a packet is
//! written), `on_timer`.

use giveway_qdisc::{Causes, Ecn, Meta, Packet, Rate, Span, Time};

use super::acks::Acks;
use super::config::QuicConfig;
use super::control;
use super::handshake::{CLIENT_HELLO, Handshake};
use super::packet::{AckFrame, Kind, LEAST_INITIAL, on_wire, stream_frame, varint};
use super::recovery::Recovery;
use super::sent::{Frame, FrameKind, Sent};
use super::streams::{Streams, Windows};
use crate::segment::{Segment, UDP_HEADER};
use crate::tcp::{Controller, Counts, Identity};

/// Number of packets that a probe timeout lets out: RFC 9002, section 6.2.4.
const PROBES: u8 = 2;
/// A frame with fewer bytes does not begin in the rest of a packet.
const LEAST_FRAME: u32 = 32;

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
    /// When the last packet arrived.
    heard_at: Time,
    closed: bool,
    counts: Counts,
    outcome: Outcome,
}

/// What concerns the application since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The server has accepted the connection.
    pub accepted: bool,
    /// The connection was given up.
    pub aborted: bool,
    /// Streams that have more data in order.
    pub progress: Vec<u32>,
}

/// What a new end is given.
pub(crate) struct Opening<'a> {
    /// The fields that are the same in every packet that it sends.
    pub segment: Segment,
    pub identity: Identity,
    pub config: &'a QuicConfig,
    /// Bytes of a stream that count as arrived when the measurement interval begins and ends, until that is
    /// known.
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
            heard_at: Time::ZERO,
            closed: false,
            counts: Counts::default(),
            outcome: Outcome::default(),
        }
    }

    // -- calls of the application -------------------------------------------------------------------

    /// The client begins. What it sends leaves with the next [`send`](End::send).
    pub fn open(&mut self, now: Time) {
        self.handshake.send.write(CLIENT_HELLO);
        self.heard_at = now;
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
    /// The measurement interval begins, or ends.
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
    /// What concerns the application; the caller empties it.
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
        if !self.acks.arrived(segment.seq, meta.ecn) {
            return self.send(now, config, out);
        }
        self.heard_at = now;
        let kind = Kind::of(segment);
        // RFC 9000, section 8.1: a packet that only the receiver of the server's answer can have encrypted.
        self.handshake.is_validated |= kind >= Kind::Handshake;
        if let Some(ack) = AckFrame::read(segment) {
            let delay = self.delay(config);
            if self.path.acknowledged(&ack, delay, now, config) {
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
                matches!(kind, Kind::Initial | Kind::Handshake) || packet.control & control::IMMEDIATE != 0;
            let marked = meta.ecn == Ecn::Marked;
            self.acks.wait(segment.seq, (at_once, joined), marked, now, config.max_ack_delay);
        }
        self.send(now, config, out);
    }

    /// Handles a frame that refers to a stream.
    #[inline]
    fn frame(&mut self, frame: &Frame, config: &QuicConfig) {
        if frame.kind != FrameKind::Crypto {
            if self.streams.arrived(frame) && !self.outcome.progress.contains(&frame.stream) {
                self.outcome.progress.push(frame.stream);
            }
            return;
        }
        let progress = self.handshake.arrived(frame, config);
        self.outcome.accepted |= progress.accepted;
        if progress.completed {
            self.path.backoffs = 0;
            let usual = QuicConfig::default();
            if (config.ack_every, config.reordering) != (usual.ack_every, usual.reordering) {
                self.control |= control::FREQUENCY;
            }
            if !self.is_client {
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
                FrameKind::Crypto => self.handshake.send.acked(&frame),
                _ => self.streams.acked(&frame),
            }
        }
        for frame in lost.drain(..) {
            match frame.kind {
                FrameKind::Crypto => self.handshake.send.lost(&frame),
                _ => self.streams.lost(&frame),
            }
        }
        // The buffers are used again.
        (self.path.acked, self.path.lost) = (acked, lost);
        self.control |= std::mem::take(&mut self.path.lost_control) & control::KEPT;
    }

    // -- sending ------------------------------------------------------------------------------------

    /// True if there is anything to send that must be acknowledged.
    #[inline]
    fn has_frames(&mut self) -> bool {
        self.handshake.send.can_send(u64::MAX)
            || (self.handshake.sends_data && (self.control != 0 || self.streams.has_frames()))
    }

    /// Sends as much as the window and the pacer allow.
    #[inline]
    pub fn send(&mut self, now: Time, config: &QuicConfig, out: &mut Vec<Packet<Segment>>) {
        self.wake_at = Time::NEVER;
        self.path.cwnd_limited = false;
        if self.has_frames() {
            let timeout = self.path.probe_timeout(config.max_ack_delay, config);
            self.path.resume(timeout, now);
        }
        loop {
            let has_frames = self.has_frames();
            if !has_frames && self.probes == 0 {
                break;
            }
            // A server waits for the proof of the client's address rather than send a small packet.
            if self.handshake.allowed() < u64::from(LEAST_INITIAL) / 4 {
                break;
            }
            if self.probes == 0 {
                let window = self.path.window(config);
                let flight = self.path.in_flight();
                if flight > 0 && flight + config.datagram.0 > window {
                    self.path.cwnd_limited = true;
                    break;
                }
                if config.pacing
                    && let Some(gap) = self.path.gap(config)
                    && let Some(until) = self.path.pacer.delays(gap, self.path.bursts(config), now)
                {
                    self.wake_at = until;
                    self.path.cwnd_limited = true;
                    break;
                }
            }
            self.emit(has_frames, now, config, out);
        }
        if self.acks.due <= now {
            self.emit_ack(now, config, out);
        }
        if !self.path.cwnd_limited || self.path.limits_itself() {
            self.path.app_limited();
        }
        self.set_probe(now, config);
    }

    /// Sets the probe timeout: RFC 9002, section 6.2.1.
    #[inline]
    fn set_probe(&mut self, now: Time, config: &QuicConfig) {
        let waits = self.path.in_flight() > 0;
        // Until its handshake is complete a client probes even with nothing in flight, since the server may
        // wait for the proof of its address.
        let unblocks = self.is_client && !self.handshake.is_complete;
        let may_send = self.handshake.allowed() >= u64::from(LEAST_INITIAL) / 4;
        self.probe_at = if self.path.loss_at != Time::NEVER || !(waits || unblocks) || !may_send {
            Time::NEVER
        } else {
            let since = if waits { self.path.last_sent } else { now };
            let timeout = self.path.probe_timeout(self.delay(config), config);
            since + timeout * (1 << self.path.backoffs.min(20))
        };
    }

    /// The header of packets with data, at present.
    fn data_kind(&self) -> Kind {
        match (self.is_client, self.handshake.is_complete) {
            (true, false) => Kind::ZeroRtt,
            _ => Kind::OneRtt,
        }
    }

    /// The header of packets without data and without a message of the handshake.
    fn idle_kind(&self) -> Kind {
        match (self.handshake.is_complete, self.handshake.has_keys()) {
            (true, _) => Kind::OneRtt,
            (false, true) => Kind::Handshake,
            (false, false) => Kind::Initial,
        }
    }

    fn segment(&mut self, kind: Kind) -> Segment {
        let seq = self.number;
        self.number += 1;
        Segment { seq, ace: kind as u8, ..self.template }
    }

    /// Writes a packet that must be acknowledged, and sends it: messages of the handshake, control frames,
    /// data, or as a probe a repetition.
    #[inline]
    fn emit(&mut self, has_frames: bool, now: Time, config: &QuicConfig, out: &mut Vec<Packet<Segment>>) {
        let room = self.handshake.allowed().min(config.datagram.0) as u32;
        let is_message = self.handshake.send.can_send(u64::MAX);
        let kind = match (is_message, self.handshake.send.position()) {
            (true, 0) => Kind::Initial,
            (true, _) => Kind::Handshake,
            (false, _) if has_frames => self.data_kind(),
            (false, _) => self.idle_kind(),
        };
        let mut segment = self.segment(kind);
        segment.flags |= Segment::ELICITING;
        let mut bytes = kind.overhead();
        // A repetition has the length of the first packet already.
        if has_frames && self.acks.has_waiting() {
            bytes += self.acks.write(config.ecn, now, &mut segment);
        }
        if is_message {
            bytes = self.messages(bytes, room);
        }
        let mut control = 0;
        let (mut data, mut again) = (0, false);
        let (offset, unsent) = (self.streams.sent(), self.streams.unsent());
        if self.handshake.sends_data && has_frames {
            let second = if is_message { self.data_kind().overhead() } else { 0 };
            if bytes + second + LEAST_FRAME < room {
                control = std::mem::take(&mut self.control);
                let before = bytes + second + control::bytes(control);
                let after;
                (after, data, again) = self.data(before, room);
                // A second packet in the datagram, with a header of its own.
                let is_used = after > before || control != 0;
                bytes = if is_used { after } else { bytes };
            }
        }
        if self.probes > 0 {
            if !has_frames {
                again = self.repeat(&mut bytes, &mut data);
                control |= if again { 0 } else { control::PING };
            }
            if config.ack_every.0 > 2 && self.handshake.is_complete {
                control |= control::IMMEDIATE;
            }
            bytes += control::bytes(control & (control::PING | control::IMMEDIATE));
            self.probes -= 1;
            self.probed += 1;
        }
        if kind == Kind::Initial {
            bytes = bytes.max(LEAST_INITIAL.min(room));
        }
        segment.len = data as u16;
        segment.sent = Segment::stamp(now);
        self.counts.packets += u64::from(data > 0);
        self.counts.retransmitted += u32::from(again && data > 0);
        let ecn = match (config.ecn && !self.path.ecn_failed, self.path.needs.ect1) {
            (false, _) => Ecn::NotCapable,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ect1,
        };
        self.path.sends(segment.seq, bytes, control, ecn != Ecn::NotCapable, now);
        self.emit_segment(segment, bytes, ecn, (offset, unsent), out);
    }

    /// Adds messages of the handshake to a packet that has `bytes` bytes. Returns its new length.
    fn messages(&mut self, mut bytes: u32, room: u32) -> u32 {
        loop {
            // Type, offset and length.
            let header = 1 + varint(self.handshake.send.position()) + 2;
            let space = room.saturating_sub(bytes + header);
            if space == 0 || !self.path.sent.takes_another() {
                return bytes;
            }
            let Some(frame) = self.handshake.take(u64::from(space)) else { return bytes };
            bytes += header + frame.len;
            self.path.sent.add(frame);
        }
    }

    /// Adds limits and data to a packet that has `bytes` bytes. Returns its new length, the number of data
    /// bytes, and true if some were sent before.
    #[inline]
    fn data(&mut self, mut bytes: u32, room: u32) -> (u32, u32, bool) {
        let (mut data, mut repeats) = (0, false);
        while bytes + LEAST_FRAME < room
            && self.path.sent.takes_another()
            && let Some(limit) = self.streams.take_limit()
        {
            let stream =
                if limit.kind == FrameKind::StreamLimit { varint(u64::from(limit.stream) * 4) } else { 0 };
            bytes += 1 + stream + varint(limit.offset);
            self.path.sent.add(limit);
        }
        while bytes + LEAST_FRAME < room
            && self.path.sent.takes_another()
            && self.streams.has_data()
            && let Some((stream, offset)) = self.streams.turn()
        {
            let header = stream_frame(stream, offset);
            let Some((frame, again)) = self.streams.take(u64::from(room - bytes - header)) else { break };
            bytes += header + frame.len;
            data += frame.len;
            repeats |= again;
            self.path.sent.add(frame);
        }
        (bytes, data, repeats)
    }

    /// Adds the frames of an old packet in flight to a probe. False if there is none.
    fn repeat(&mut self, bytes: &mut u32, data: &mut u32) -> bool {
        let place = usize::from(PROBES - self.probes);
        let first = self.path.sent.in_flight().next().map(|packet| packet.frames());
        let chosen = self.path.sent.in_flight().nth(place).map(|packet| packet.frames()).or(first);
        let Some(frames) = chosen else { return false };
        for number in frames {
            let frame = self.path.sent.frame(number);
            *bytes += stream_frame(frame.stream, frame.offset) + frame.len;
            *data += if frame.kind == FrameKind::Crypto { 0 } else { frame.len };
            self.path.sent.add(frame);
        }
        true
    }

    /// Sends an acknowledgement alone.
    fn emit_ack(&mut self, now: Time, config: &QuicConfig, out: &mut Vec<Packet<Segment>>) {
        let kind = self.idle_kind();
        let mut segment = self.segment(kind);
        let mut bytes = kind.overhead() + self.acks.write(config.ecn, now, &mut segment);
        if kind == Kind::Initial && self.is_client {
            bytes = bytes.max(LEAST_INITIAL);
        }
        let position = (self.streams.sent(), self.streams.unsent());
        self.emit_segment(segment, bytes, Ecn::NotCapable, position, out);
    }

    /// `position`: bytes sent before, and bytes that were never sent.
    #[inline]
    fn emit_segment(
        &mut self,
        segment: Segment,
        payload: u32,
        ecn: Ecn,
        (offset, unsent): (u64, u64),
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.handshake.sent(u64::from(payload));
        let saturated = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let bytes = on_wire(payload);
        let meta = Meta {
            bytes,
            class: self.identity.class,
            ecn,
            short: bytes <= 64 && segment.len == 0,
            flow: self.identity.flow,
            from: self.identity.from,
            to: self.identity.to,
            offset: saturated(offset),
            remaining: saturated(unsent).max(bytes),
            reserved: self.identity.reserved,
            ..Meta::default()
        };
        out.push(Packet { meta, payload: segment });
    }

    // -- timers -------------------------------------------------------------------------------------

    /// Handles the timers that have expired by `now`. Calling it early is harmless.
    pub fn on_timer(&mut self, now: Time, config: &QuicConfig, out: &mut Vec<Packet<Segment>>) {
        if now >= self.path.loss_at {
            let delay = self.delay(config);
            self.path.timed_out(delay, now, config);
            self.settle();
        } else if now >= self.probe_at {
            let silent = now.since(self.heard_at);
            if !config.idle_timeout.is_zero() && silent >= config.idle_timeout {
                self.outcome.aborted = true;
                return;
            }
            self.path.backoffs += 1;
            self.counts.timeouts += 1;
            self.probes = if self.path.in_flight() > 0 { PROBES } else { 1 };
        }
        self.send(now, config, out);
    }
}

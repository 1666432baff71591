//! The packets of an end that leave.

use giveway_qdisc::{Ecn, Header, Meta, Packet, Time};

use super::{End, PROBES};
use crate::quic::config::QuicConfig;
use crate::quic::control;
use crate::quic::packet::{MIN_INITIAL, PacketType, on_wire, stream_frame, varint};
use crate::quic::sent::FrameKind;
use crate::segment::Segment;

/// A frame with fewer bytes does not start in the rest of a packet.
const MIN_FRAME: u32 = 32;
/// A server waits for the proof of the client's address rather than send a smaller packet, bytes.
const MIN_ALLOWED: u64 = 300;

/// Maximum number of times that the probe timeout doubles: a thousand times the first one.
const MAX_BACKOFFS: u32 = 10;

impl End {
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
            // RFC 9000, section 8.1: three times what arrived, until the address is proved.
            if self.handshake.allowed() < MIN_ALLOWED {
                break;
            }
            if self.probes == 0 {
                let window = self.path.window(config);
                let flight = self.path.in_flight();
                if flight > 0 && flight + config.datagram.0 > window {
                    self.path.cwnd_limited = true;
                    break;
                }
                // RFC 9002, section 7.7: the first window may leave in a burst.
                if config.pacing
                    && self.counts.packets >= config.initial_window.0
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
        let may_send = self.handshake.allowed() >= MIN_ALLOWED;
        self.probe_at = if self.path.loss_at != Time::NEVER || !(waits || unblocks) || !may_send {
            Time::NEVER
        } else {
            // RFC 9002, section 6.2.1: a packet that leaves restarts the timer.
            let since = if waits { self.path.last_sent } else { now };
            let timeout = self.path.probe_timeout(self.delay(config), config);
            since + timeout * (1 << self.path.backoffs.min(MAX_BACKOFFS))
        };
    }

    /// The header of packets with data, at present.
    fn data_kind(&self) -> PacketType {
        match (self.is_client, self.handshake.is_complete) {
            (true, false) => PacketType::ZeroRtt,
            _ => PacketType::OneRtt,
        }
    }

    /// The header of packets without data and without a message of the handshake.
    fn idle_kind(&self) -> PacketType {
        match (self.handshake.is_complete, self.handshake.has_keys()) {
            (true, _) => PacketType::OneRtt,
            (false, true) => PacketType::Handshake,
            (false, false) => PacketType::Initial,
        }
    }

    fn segment(&mut self, kind: PacketType) -> Segment {
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
            (true, 0) => PacketType::Initial,
            (true, _) => PacketType::Handshake,
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
            if bytes + second + MIN_FRAME < room {
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
            let sent = control;
            if !has_frames {
                control |= self.repeat(&mut bytes, &mut data);
                again = data > 0;
            }
            if config.ack_every.0 > 2 && self.handshake.is_complete {
                // A receiver that acknowledges rarely would otherwise delay the answer to the probe.
                control |= control::IMMEDIATE;
            }
            bytes += control::bytes(control & !sent);
            self.probes -= 1;
            self.probed += 1;
        }
        if kind == PacketType::Initial {
            // RFC 9000, section 14.1: padding shows that the path carries full datagrams.
            bytes = bytes.max(MIN_INITIAL.min(room));
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
        if self.path.in_flight() == 0 {
            // RFC 9000, section 10.1: the idle timeout begins anew with the first packet after a silence.
            self.received_at = now;
        }
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
        while bytes + MIN_FRAME < room
            && self.path.sent.takes_another()
            && let Some(limit) = self.streams.take_limit()
        {
            let stream =
                if limit.kind == FrameKind::StreamLimit { varint(u64::from(limit.stream) * 4) } else { 0 };
            bytes += 1 + stream + varint(limit.offset);
            self.path.sent.add(limit);
        }
        while bytes + MIN_FRAME < room
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

    /// Adds the frames of an old packet in flight to a probe. Returns the control frames to repeat, or a
    /// request for an acknowledgement if there is nothing to repeat.
    fn repeat(&mut self, bytes: &mut u32, data: &mut u32) -> u8 {
        // The first probe repeats the oldest packet, and the second one the next.
        let place = usize::from(PROBES - self.probes);
        let first = self.path.sent.in_flight().next().copied();
        let Some(old) = self.path.sent.in_flight().nth(place).copied().or(first) else {
            return control::PING;
        };
        for number in old.frames() {
            let frame = self.path.sent.frame(number);
            *bytes += stream_frame(frame.stream, frame.offset) + frame.len;
            *data += if frame.kind == FrameKind::Crypto { 0 } else { frame.len };
            self.path.sent.add(frame);
        }
        let kept = old.control & control::KEPT;
        if kept == 0 && old.frames().is_empty() { control::PING } else { kept }
    }

    /// Sends an acknowledgement alone.
    fn emit_ack(&mut self, now: Time, config: &QuicConfig, out: &mut Vec<Packet<Segment>>) {
        let kind = self.idle_kind();
        let mut segment = self.segment(kind);
        let mut bytes = kind.overhead() + self.acks.write(config.ecn, now, &mut segment);
        if kind == PacketType::Initial && self.is_client {
            bytes = bytes.max(MIN_INITIAL);
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
        self.handshake.on_send(u64::from(payload));
        let saturated = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let bytes = on_wire(payload);
        let meta = Meta {
            bytes,
            class: self.identity.class,
            ecn,
            header: Header::new(self.identity.dscp, bytes <= 64 && segment.len == 0),
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
}

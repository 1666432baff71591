//! One TCP connection, packet by packet: the data units of its two applications, and the path to each of
//! them.
//!
//! The capture point is somewhere on the path, with the client on one side and the server on the other. Times
//! are those at which packets passed the capture point. The reaction of an end to a packet passes it later by
//! the round trip between the capture point and that end, which data and their acknowledgements measure.

use std::collections::VecDeque;

use giveway_capture::Tcp;

use crate::holes::Holes;
use crate::model::{Adu, Epoch, Side, Trigger};
use crate::think::{AT_HOST, DELAYED_ACK, Reaction, RoundTrip};
use crate::timed::{TimedAdu, epochs};

// Bits of the flags of a TCP header.
const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// Smallest excess of a pause over the path delay that starts a new ADU after a segment that was not
/// full, ns.
const QUIET: u64 = 5_000_000;

/// Smallest pause that starts a new ADU after a full segment, ns: the network may cause shorter ones. Tmix
/// uses the same value.
const STALL: u64 = 500_000_000;

/// As [`STALL`], for a sender that is away from the capture point, ns. A segment that was lost before the
/// capture point leaves no trace but a pause of a retransmission timeout, which doubles up to 60 s or more
/// (RFC 6298, sections 2.5 and 5.5).
const TIMEOUT: u64 = 60_000_000_000;

/// Smallest time between data of one side whose acknowledgements are measured, and maximum number of them.
const APART: u64 = 5_000_000;
const MEASURED: usize = 64;

/// Smallest full segment, bytes: every host accepts segments of this size, RFC 9293, section 3.7.1.
const SMALLEST_FULL: u32 = 536;

/// Largest distance of a segment from the others, bytes. One that is farther belongs to no window: it is a
/// stray, or damaged.
const STRAY: u64 = 1 << 30;

/// The state of a connection, from the packets so far.
pub(crate) struct Tracker {
    pub start: u64,
    /// True if its SYN is in the capture.
    pub begun: bool,
    /// True if both directions have ended, or a reset was sent.
    pub ended: bool,
    /// True if a reset answered the SYN.
    pub refused: bool,
    /// True if the SYN was retransmitted, so that it is not known which one was answered.
    syn_retransmitted: bool,
    syn_at: u64,
    /// Time at which the SYN-ACK passed.
    answered: Option<u64>,
    /// Time at which the acknowledgement of the SYN-ACK passed: the connection is established.
    established: Option<u64>,
    client: Half,
    server: Half,
    adus: Vec<TimedAdu>,
    pub packets: u64,
    /// Keeps the times at which data of the server pass.
    keeps_arrivals: bool,
    /// The round trip that the last packet completed.
    pub measured: Option<RoundTrip>,
}

/// One side as a sender.
struct Half {
    /// The sequence number of its first data byte; known from its first packet.
    base: Option<u32>,
    /// Number of data bytes that passed.
    sent: u64,
    /// Number of data bytes that were acknowledged.
    acked: u64,
    /// Number of bytes of the other side that were acknowledged when this side last sent data.
    acked_peer: u64,
    /// Time at which its last new data passed, and the IP length of their packet.
    last_data: u64,
    last_bytes: u32,
    /// Time at which it last sent data again.
    repeated: u64,
    /// Data on their way whose acknowledgement is measured.
    flight: VecDeque<Flight>,
    /// The data whose round trip was just measured.
    measured: Option<Flight>,
    /// Time at which all its data was last acknowledged.
    all_acked: u64,
    /// Its longest segment: data bytes and IP length, which options make differ.
    longest: (u32, u32),
    /// True if its last segment was not a full one.
    ended: bool,
    fin: bool,
    /// The data byte whose round trip is being measured, and the time at which it passed.
    timing: Option<(u64, u64)>,
    /// Round trip from the capture point to the other end.
    path: Path,
    /// Index of its current ADU.
    current: Option<usize>,
    /// The highest acknowledgement of data that is not in the capture. One alone may be a stray; it counts
    /// when another one reaches as far.
    claimed: Option<u64>,
    /// Its data below `sent` that did not pass.
    holes: Holes,
}

/// Data on their way: their end, the time at which they passed, and the IP length of their packet.
struct Flight {
    end: u64,
    sent: u64,
    length: u32,
}

#[derive(Clone, Copy, Default)]
struct Path {
    least: Option<u64>,
    recent: Option<u64>,
}

impl Tracker {
    /// A connection that starts with a packet at `now`, and keeps the times at which data of its server pass
    /// or not.
    pub fn new(now: u64, keeps_arrivals: bool) -> Tracker {
        Tracker {
            start: now,
            begun: false,
            ended: false,
            refused: false,
            syn_retransmitted: false,
            syn_at: now,
            answered: None,
            established: None,
            client: Half::new(),
            server: Half::new(),
            adus: Vec::new(),
            packets: 0,
            keeps_arrivals,
            measured: None,
        }
    }

    /// True if a SYN opens another connection between the same ports. A retransmitted SYN has the same
    /// number; another number is another attempt, whether the last connection was closed or not.
    pub fn is_over(&self, from: Side, tcp: &Tcp) -> bool {
        let opens = tcp.flags & (SYN | ACK) == SYN;
        let me = if from == Side::Client { &self.client } else { &self.server };
        let same = me.base == Some(tcp.seq.wrapping_add(1));
        // Both sides may open at once, RFC 9293, section 3.5: a first number of the other side is not another
        // attempt.
        let crosses = from == Side::Server && self.begun && self.established.is_none() && !self.ended;
        self.packets > 0 && opens && !same && !crosses
    }

    /// Handles a packet with `len` bytes of data and an IP length of `bytes`.
    pub fn packet(&mut self, from: Side, tcp: &Tcp, len: u32, bytes: u32, now: u64) {
        self.packets += 1;
        self.measured = None;
        if tcp.flags & RST > 0 {
            self.refused |= self.begun && self.server.base.is_none() && from == Side::Server;
            self.ended = true;
            return;
        }
        let is_syn = tcp.flags & SYN > 0;
        if from == Side::Server && self.begun && self.server.base.is_none() && !is_syn {
            let foreign = tcp.flags & ACK > 0 && self.client.base != Some(tcp.ack);
            if foreign && self.client.sent == 0 {
                return; // an answer of an earlier connection: RFC 5961, section 4
            }
        }
        self.handshake(from, tcp, now);
        let first = tcp.seq.wrapping_add(u32::from(is_syn));
        let (me, peer) = self.halves(from);
        if is_syn && me.sent == 0 {
            me.base = Some(first);
        }
        me.base.get_or_insert(first);
        if tcp.flags & ACK > 0 {
            let missed = peer.acknowledged(tcp.ack, len > 0, now);
            if let Some(Flight { end, sent, length }) = peer.measured.take() {
                let took = now.saturating_sub(sent);
                self.measured = Some(RoundTrip { side: from.other(), sent, took, length, end });
            }
            if missed > 0 {
                self.wrote(from.other(), missed, 0, now);
            }
        }
        if len > 0 {
            self.data(from, first, (len, bytes), now);
        }
        if tcp.flags & FIN > 0 {
            self.halves(from).0.fin = true;
        }
        self.ended |= self.client.fin && self.server.fin;
    }

    fn handshake(&mut self, from: Side, tcp: &Tcp, now: u64) {
        match (from, tcp.flags & (SYN | ACK)) {
            (Side::Client, SYN) => {
                self.syn_retransmitted |= self.begun;
                self.begun = true;
                self.syn_at = now;
            }
            (Side::Server, flags) if flags == SYN | ACK && self.begun => {
                if self.answered.is_none() && !self.syn_retransmitted {
                    let took = now.saturating_sub(self.syn_at);
                    self.client.path.add_handshake(took);
                    self.measured = Some(RoundTrip::of_handshake(Side::Client, self.syn_at, took));
                }
                if self.established.is_none() {
                    self.syn_retransmitted |= self.answered.is_some();
                    // Some systems retransmit a SYN that was refused.
                    (self.refused, self.ended) = (false, false);
                    self.answered = Some(now);
                }
            }
            (Side::Client, ACK) if self.established.is_none() => {
                if let Some(answered) = self.answered {
                    if !self.syn_retransmitted {
                        let took = now.saturating_sub(answered);
                        self.server.path.add_handshake(took);
                        self.measured = Some(RoundTrip::of_handshake(Side::Server, answered, took));
                    }
                    self.established = Some(now);
                }
            }
            _ => {}
        }
    }

    fn data(&mut self, from: Side, seq: u32, (len, bytes): (u32, u32), now: u64) {
        let (me, _) = self.halves(from);
        let Some(end) = me.position(seq.wrapping_add(len)) else { return };
        let begin = end.saturating_sub(u64::from(len));
        me.holes.fill(begin, end);
        if end <= me.sent {
            me.timing = None; // a retransmission: the next acknowledgement is ambiguous
            me.repeated = now;
            me.flight.clear();
            return;
        }
        me.holes.open(me.sent, begin);
        let news = end - me.sent;
        self.wrote(from, news, bytes, now);
        let (me, peer) = self.halves(from);
        let acked_peer = peer.acked;
        me.acked_peer = acked_peer;
        me.longest = (me.longest.0.max(len), me.longest.1.max(bytes));
        let (most, most_bytes) = (me.longest.0.max(peer.longest.0), me.longest.1.max(peer.longest.1));
        me.ended = len < SMALLEST_FULL || (len < most && bytes < most_bytes);
        (me.last_data, me.last_bytes) = (now, bytes);
        let apart = me.flight.back().is_none_or(|last| now.saturating_sub(last.sent) >= APART);
        if apart && me.flight.len() < MEASURED {
            me.flight.push_back(Flight { end, sent: now, length: bytes });
        }
        if me.timing.is_none() {
            me.timing = Some((end, now));
        }
        me.sent = end;
    }

    /// Adds new bytes of one side to its current ADU, or to a new one. The packet has this IP length.
    fn wrote(&mut self, from: Side, bytes: u64, length: u32, now: u64) {
        let begins = self.begins(from, now);
        let next = self.adus.len();
        let (me, _) = self.halves(from);
        match (begins, me.current) {
            (None, Some(current)) => self.adus[current].extend(bytes, now),
            (begins, _) => {
                let (trigger, think_time, reaction) = begins.unwrap_or((Trigger::Peer(0), 0, None));
                me.current = Some(next);
                let mut timed = TimedAdu::new(Adu::new(from, bytes, trigger, think_time), now);
                timed.reaction = reaction.map(|reaction| Reaction { first: length, ..reaction });
                let keeps = self.keeps_arrivals && from == Side::Server;
                self.adus.push(if keeps { timed.with_arrivals() } else { timed });
            }
        }
    }

    /// The trigger and the think time of a new ADU that data passing at `now` start; `None` if they continue
    /// the current one.
    ///
    /// A sender with unacknowledged data continues its ADU. One that has no data in flight and ended with
    /// less than a full segment had nothing more to send: if it has received data since, it responds; if not,
    /// it paused, provided that the path does not explain the gap. After a full segment a new ADU needs a
    /// long gap, or that the other side has no data in flight, either.
    fn begins(&self, from: Side, now: u64) -> Option<(Trigger, u64, Option<Reaction>)> {
        let (me, peer) = match from {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        };
        // The data of the other end measure the path between the capture point and this end.
        let path = peer.path.now();
        let after = |event: u64| now.saturating_sub(event).saturating_sub(path);
        // The think time of a response to all data of the other side. That of a response to a part is not
        // known.
        let reaction = (peer.acked == peer.sent).then_some(Reaction {
            event: peer.last_data,
            acked: (peer.all_acked < now).then_some(peer.all_acked),
            carries_ack: peer.all_acked == now,
            repeated: peer.repeated >= peer.last_data,
            asked: peer.last_bytes,
            first: 0,
        });
        let response = |bytes: u64| (Trigger::Peer(bytes), 0, reaction);
        if me.current.is_none() {
            let ready = match from {
                Side::Client => self.answered,
                Side::Server => self.established,
            };
            return Some(match (peer.acked, ready) {
                (0, Some(ready)) => (Trigger::Peer(0), after(ready), Some(Reaction::to_handshake(ready))),
                // Open before the capture: it begins with its first packet.
                (0, None) if !self.begun => (Trigger::Peer(0), after(self.start), None),
                (0, None) => (Trigger::Peer(0), 0, None),
                (acked, _) => response(acked),
            });
        }
        if me.acked < me.sent {
            return None;
        }
        let ended = me.ended;
        let gap = after(me.all_acked.max(me.last_data));
        // Neither side has data in flight, so they take turns. If both sent at the same time, one of them
        // would always have data in flight.
        let took_turns = peer.acked == peer.sent;
        if peer.acked > me.acked_peer && (ended || took_turns || gap > STALL) {
            return Some(response(peer.acked));
        }
        let at_host = peer.path.least.is_some_and(|least| least < AT_HOST);
        let quiet = match (ended, at_host) {
            (true, _) => path / 4 + QUIET,
            (false, true) => STALL,
            (false, false) => TIMEOUT,
        };
        // The delay of a delayed acknowledgement is not a pause of the sender.
        let acked_at = me.last_data.saturating_add(me.path.now()).min(me.all_acked.max(me.last_data));
        (gap > quiet).then(|| (Trigger::Own, after(acked_at), None))
    }

    fn halves(&mut self, from: Side) -> (&mut Half, &mut Half) {
        match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        }
    }

    /// Number of data bytes of both sides that the capture does not hold, although data behind them or an
    /// acknowledgement show that they were sent.
    pub fn missed(&self) -> u64 {
        self.client.holes.bytes() + self.server.holes.bytes()
    }

    /// True if no data passed.
    pub fn has_no_data(&self) -> bool {
        self.adus.is_empty()
    }

    /// Smallest round trips from the capture point to the client and to the server.
    pub fn paths(&self) -> (Option<u64>, Option<u64>) {
        (self.server.path.least, self.client.path.least)
    }

    /// The ADUs, and the epochs that they form.
    pub fn close(self) -> (Vec<TimedAdu>, Vec<Epoch>) {
        let mut epochs = epochs(&self.adus, self.start);
        if let Some(first) = epochs.first_mut() {
            first.whole = self.begun;
        }
        if let Some(last) = epochs.last_mut().filter(|_| !self.ended && self.is_busy()) {
            last.whole = false;
        }
        (self.adus, epochs)
    }

    /// True if any data is unacknowledged.
    fn is_busy(&self) -> bool {
        self.client.acked < self.client.sent || self.server.acked < self.server.sent
    }
}

impl Half {
    fn new() -> Half {
        Half {
            base: None,
            sent: 0,
            acked: 0,
            acked_peer: 0,
            last_data: 0,
            last_bytes: 0,
            repeated: 0,
            flight: VecDeque::new(),
            measured: None,
            all_acked: 0,
            longest: (0, 0),
            ended: false,
            fin: false,
            timing: None,
            path: Path::default(),
            current: None,
            claimed: None,
            holes: Holes::default(),
        }
    }

    /// A sequence number as a count of data bytes since the beginning; `None` if it is far from all others.
    fn position(&self, seq: u32) -> Option<u64> {
        let here = self.base?.wrapping_add(self.sent as u32);
        let distance = i64::from(seq.wrapping_sub(here) as i32);
        let position = self.sent.checked_add_signed(distance).unwrap_or(0);
        (distance.unsigned_abs() < STRAY).then_some(position)
    }

    /// Handles an acknowledgement of everything below `ack`. Returns the number of acknowledged bytes that
    /// are not in the capture.
    fn acknowledged(&mut self, ack: u32, with_data: bool, now: u64) -> u64 {
        if self.base.is_none() {
            // Open before the capture began, and the first packet is from the other side.
            self.base = Some(ack);
            return 0;
        }
        let Some(position) = self.position(ack) else { return 0 };
        // A FIN takes a sequence number, too: one that was captured, or else a single number above all data.
        let excess = position.saturating_sub(self.sent);
        let mut missed = if self.fin || excess == 1 { excess.saturating_sub(1) } else { excess };
        if missed > 0 && self.claimed.is_none_or(|claimed| position < claimed) {
            self.claimed = Some(position);
            missed = 0;
        }
        let position = position.min(self.sent + missed);
        if position > self.acked {
            self.acked = position;
            let mut sent = None;
            while self.flight.front().is_some_and(|first| first.end <= position) {
                sent = self.flight.pop_front();
            }
            // A response has the think time in its round trip.
            self.measured = sent.filter(|_| !with_data);
            if let Some((end, sent)) = self.timing
                && position >= end
            {
                let time = now.saturating_sub(sent);
                if with_data {
                    self.path.add_response(time)
                } else {
                    self.path.acknowledged(time)
                }
                self.timing = None;
            }
            if position >= self.sent {
                self.all_acked = now;
            }
        }
        if missed > 0 {
            self.holes.open(self.sent, position);
            self.sent = position;
        }
        missed
    }
}

impl Path {
    /// The current estimate, ns: the last measurement, otherwise the fastest response, otherwise 0.
    fn now(&self) -> u64 {
        self.recent.or(self.least).unwrap_or(0)
    }

    /// Adds a measurement by a handshake, which is not delayed.
    fn add_handshake(&mut self, time: u64) {
        self.recent = Some(time);
        self.add_response(time);
    }

    /// Adds a measurement by a pure acknowledgement, which may have been delayed.
    fn acknowledged(&mut self, time: u64) {
        self.add_response(time);
        self.recent = Some(self.least.unwrap_or(time).max(time.saturating_sub(DELAYED_ACK)));
    }

    /// Adds a measurement by a response, which may include think time, so that it is only an upper bound.
    fn add_response(&mut self, time: u64) {
        self.least = Some(self.least.map_or(time, |least| least.min(time)));
    }
}

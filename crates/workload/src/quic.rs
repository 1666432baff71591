//! One QUIC connection, packet by packet: the data units of its two applications, as far as lengths, times
//! and directions tell.
//!
//! Everything but the first byte of a packet is encrypted. So this is a guess:
//!
//! - A connection starts with a packet of the client with a long header (RFC 9000, section 17.2).
//! - A datagram of at most [`ACK`] bytes only acknowledges. A larger one with a short header has data: its
//!   length without [`OVERHEAD`]. What was retransmitted counts as data, because it looks like new data.
//! - A server answers: its packets before the first data of the client have connection IDs and settings.
//! - A sender that was silent for longer than the path explains starts a new data unit: a response if the
//!   other side has sent data since, and otherwise data after a pause. After a packet that was not full, a
//!   fourth of a round trip is long enough; after a full one a whole round trip, for which a small window may
//!   stop it.
//! - Streams cannot be distinguished.

use crate::model::{Adu, Epoch, Side, Trigger};
use crate::timed::{TimedAdu, epochs};

/// Longest UDP payload of a packet that only acknowledges, bytes.
const ACK: u32 = 64;
/// Longest UDP payload with the last message of a client's handshake, bytes, unless data follow it.
const LAST_MESSAGE: u32 = 256;
/// Bytes of a packet with data that are not data: header 11, authentication 16, the frame 6.
const OVERHEAD: u32 = 33;
/// Smallest excess of a pause over the path delay that starts a new data unit, ns: as for TCP.
const QUIET: u64 = 5_000_000;
/// Largest time between the first packets of a client that count as one message, ns.
const TOGETHER: u64 = 5_000_000;
/// A connection that is silent for so long before the capture ends counts as over, ns.
const SILENT: u64 = 5_000_000_000;

/// True for the first byte of the first packet of a connection: a long header, and the bit of QUIC.
pub(crate) fn is_long(first: u8) -> bool {
    first & 0xc0 == 0xc0
}

/// True for the first byte of a packet of the handshake. Its second bit may be cleared (RFC 9287).
fn is_message(first: u8) -> bool {
    first & 0x80 != 0
}

/// True if a datagram of the client with a long header has data: 0-RTT, or data behind the last message of
/// the handshake, which is short.
fn has_data(first: u8, payload: u32) -> bool {
    match first & 0x30 {
        0x10 => true,
        0x20 => payload > LAST_MESSAGE,
        _ => false,
    }
}

/// The state of a connection, from the packets so far.
pub(crate) struct Tracker {
    pub start: u64,
    /// Time of the client's last packet before the server's first, if they count as one message.
    asked: Option<u64>,
    /// Time of the server's first packet, and of the client's first after it.
    answered: Option<u64>,
    confirmed: Option<u64>,
    client: Half,
    server: Half,
    last: u64,
    adus: Vec<TimedAdu>,
}

/// One side as a sender.
#[derive(Default)]
struct Half {
    /// Data bytes so far.
    sent: u64,
    /// Time of its last data.
    last: u64,
    /// The longest payload.
    longest: u32,
    /// Its last packet with data was not a full one.
    ended: bool,
    /// Index of its current data unit.
    current: Option<usize>,
}

impl Tracker {
    /// A connection whose first packet passes at `now`.
    pub fn new(now: u64) -> Tracker {
        Tracker {
            start: now,
            asked: Some(now),
            answered: None,
            confirmed: None,
            client: Half::default(),
            server: Half::default(),
            last: now,
            adus: Vec::new(),
        }
    }

    /// Handles a datagram with `payload` bytes, of which the first was captured or not.
    pub fn packet(&mut self, from: Side, payload: u32, first: Option<u8>, now: u64) {
        self.last = self.last.max(now);
        match (from, self.answered) {
            (Side::Client, None) => {
                self.asked = self.asked.filter(|_| now.saturating_sub(self.start) <= TOGETHER).map(|_| now);
            }
            (Side::Client, Some(_)) => {
                self.confirmed.get_or_insert(now);
            }
            (Side::Server, _) => {
                self.answered.get_or_insert(now);
            }
        }
        let is_message = first
            .is_some_and(|first| is_message(first) && !(from == Side::Client && has_data(first, payload)));
        // Connection IDs and settings of a server come before the data of the client, which it waits for.
        let has_request = from == Side::Client || self.client.sent > 0;
        if !is_message && payload > ACK && has_request {
            self.data(from, payload, now);
        }
    }

    fn data(&mut self, from: Side, payload: u32, now: u64) {
        let bytes = u64::from(payload - OVERHEAD);
        let begins = self.begins(from, now);
        let next = self.adus.len();
        let me = self.half(from);
        me.longest = me.longest.max(payload);
        me.ended = payload < me.longest;
        me.sent = me.sent.saturating_add(bytes);
        me.last = now;
        match (begins, me.current) {
            (None, Some(current)) => self.adus[current].extend(bytes, now),
            (trigger, _) => {
                let (trigger, think_time) = trigger.unwrap_or((Trigger::Peer(0), 0));
                me.current = Some(next);
                self.adus.push(TimedAdu::new(Adu::new(from, bytes, trigger, think_time), now));
            }
        }
    }

    /// The trigger and the think time of a new data unit; `None` if the data continue the current one.
    fn begins(&self, from: Side, now: u64) -> Option<(Trigger, u64)> {
        let (me, peer) = match from {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        };
        let (to_client, to_server) = self.paths();
        // The round trip between the capture point and this end, and between both ends.
        let path = if from == Side::Client { to_client } else { to_server };
        let whole = to_client.saturating_add(to_server);
        let after = |event: u64, path: u64| now.saturating_sub(event).saturating_sub(path);
        if me.current.is_none() {
            return Some(match (peer.sent, from, self.answered) {
                (0, Side::Client, Some(answered)) => (Trigger::Peer(0), after(answered, path)),
                (0, ..) => (Trigger::Peer(0), 0),
                (sent, ..) => (Trigger::Peer(sent), after(peer.last, path)),
            });
        }
        let quiet = if me.ended { path / 4 } else { whole };
        if after(me.last, quiet) <= QUIET {
            return None;
        }
        // A response passes a round trip later than what it responds to.
        match peer.last > me.last && now.saturating_sub(peer.last) >= path {
            true => Some((Trigger::Peer(peer.sent), after(peer.last, path))),
            false => Some((Trigger::Own, after(me.last, whole))),
        }
    }

    fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Round trips from the capture point to the client and to the server; zero if they are not known.
    fn paths(&self) -> (u64, u64) {
        let Some(answered) = self.answered else { return (0, 0) };
        let client = self.confirmed.map_or(0, |confirmed| confirmed.saturating_sub(answered));
        (client, self.asked.map_or(0, |asked| answered.saturating_sub(asked)))
    }

    /// Round trips of the handshake from the capture point to the client and to the server, if it has both.
    pub fn handshake(&self) -> (Option<u64>, Option<u64>) {
        let measured = self.asked.is_some() && self.answered.is_some() && self.confirmed.is_some();
        let (client, server) = self.paths();
        (measured.then_some(client), measured.then_some(server))
    }

    /// True if the server has answered.
    pub fn is_answered(&self) -> bool {
        self.answered.is_some()
    }

    /// True if nothing more is expected at the end of the capture.
    pub fn is_over(&self, end: u64) -> bool {
        end.saturating_sub(self.last) >= SILENT
    }

    /// The data units, and the exchanges that they form.
    pub fn close(self, is_over: bool) -> (Vec<TimedAdu>, Vec<Epoch>) {
        let mut epochs = epochs(&self.adus, self.start);
        if let Some(last) = epochs.last_mut().filter(|_| !is_over) {
            last.whole = false;
        }
        (self.adus, epochs)
    }
}

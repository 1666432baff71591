//! One TCP connection, packet by packet: what its two applications wrote, and the path to each of them.
//!
//! The capture point is somewhere on the path, with the client on one side and the server on the other. Times are those
//! at which packets passed it. What an end does in answer to a packet passes later by the round trip between the
//! capture point and that end; data and their acknowledgements measure it.

use capture::Tcp;

use crate::model::{Cue, Exchange, Side, Write};

/// FIN, SYN, RST, ACK of the header's flags.
const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A pause after less than a full segment counts when it is this much longer than the path explains, ns.
const QUIET: u64 = 5_000_000;

/// A pause after a full segment counts when it is this long, ns: shorter ones may be the network's. Tmix takes the same.
const STALL: u64 = 500_000_000;

/// A pause this long within one side's data ends an exchange, ns.
const APART: u64 = 1_000_000_000;

/// How long an acknowledgement is delayed at most, as most systems do it, ns.
const DELAYED_ACK: u64 = 40_000_000;

/// A host that answers in less than this is where the capture was taken, ns.
const AT_HOST: u64 = 1_000_000;

/// Full segments have at least so many bytes: the least that every host takes, RFC 9293 section 3.7.1.
const SMALLEST_FULL: u32 = 536;

/// A segment further from the others than this belongs to no window: a stray, or damage.
const STRAY: u64 = 1 << 30;

/// A connection as far as it was seen.
pub(crate) struct Tracker {
    pub start: u64,
    /// Whether its SYN was seen.
    pub begun: bool,
    /// Both directions ended, or one of them with a reset.
    pub ended: bool,
    /// A reset answered the SYN.
    pub refused: bool,
    /// The SYN was repeated: which of them was answered is not known.
    syn_again: bool,
    syn_at: u64,
    /// When the SYN's answer passed, and the answer to that.
    answered: Option<u64>,
    stands: Option<u64>,
    client: Half,
    server: Half,
    writes: Vec<Passed>,
    /// Bytes that the capture missed and that acknowledgements tell of.
    pub missed: u64,
    pub packets: u64,
}

/// One side as a sender.
struct Half {
    /// The sequence number of its first data byte; known from its first packet.
    base: Option<u32>,
    /// Data bytes that passed, and how many of them were acknowledged.
    sent: u64,
    acked: u64,
    /// What it had acknowledged of the other side when it last sent data.
    acked_peer: u64,
    /// When its last new data passed, and when all that it had sent was acknowledged.
    last_data: u64,
    all_acked: u64,
    /// Its longest segment: data bytes and IP length, which options make differ.
    longest: (u32, u32),
    /// Whether its last segment was not a full one.
    ended: bool,
    fin: bool,
    /// The byte whose acknowledgement is awaited, and when it passed.
    timing: Option<(u64, u64)>,
    /// The path from the capture point to the other end and back: smallest and last measured.
    beyond: Path,
    /// Which of the writes is its current one.
    current: Option<usize>,
    /// How far an acknowledgement went beyond what was seen. One alone may be a stray; the next that goes as far, or
    /// data, are believed.
    claimed: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Path {
    least: Option<u64>,
    recent: Option<u64>,
}

/// A write and when it passed.
struct Passed {
    write: Write,
    first: u64,
    last: u64,
}

impl Tracker {
    /// A connection that begins with this packet. The client sent it, unless it answers a SYN.
    pub fn new(now: u64) -> Tracker {
        Tracker {
            start: now,
            begun: false,
            ended: false,
            refused: false,
            syn_again: false,
            syn_at: now,
            answered: None,
            stands: None,
            client: Half::new(),
            server: Half::new(),
            writes: Vec::new(),
            missed: 0,
            packets: 0,
        }
    }

    /// Whether a SYN opens another connection between the same ports. Who repeats one repeats its number; another
    /// number is another attempt, whether the last one was closed or not.
    pub fn is_over(&self, from: Side, tcp: &Tcp) -> bool {
        let opens = tcp.flags & (SYN | ACK) == SYN;
        let me = if from == Side::Client { &self.client } else { &self.server };
        let same = me.base == Some(tcp.seq.wrapping_add(1));
        // Both may open at once, RFC 9293 section 3.5: the other side's first number is news, not another attempt.
        let crosses = from == Side::Server && self.begun && self.stands.is_none() && !self.ended;
        self.packets > 0 && opens && !same && !crosses
    }

    /// A packet passes, with `len` bytes of data.
    pub fn packet(&mut self, from: Side, tcp: &Tcp, len: u32, bytes: u32, now: u64) {
        self.packets += 1;
        if tcp.flags & RST > 0 {
            self.refused |= self.begun && self.server.base.is_none() && from == Side::Server;
            self.ended = true;
            return;
        }
        let is_syn = tcp.flags & SYN > 0;
        if from == Side::Server && self.begun && self.server.base.is_none() && !is_syn {
            let foreign = tcp.flags & ACK > 0 && self.client.base != Some(tcp.ack);
            if foreign && self.client.sent == 0 {
                return; // it speaks of an earlier connection: RFC 5961 section 4
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
            if missed > 0 {
                self.missed += missed;
                self.wrote(from.other(), missed, now);
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
                self.syn_again |= self.begun;
                self.begun = true;
                self.syn_at = now;
            }
            (Side::Server, flags) if flags == SYN | ACK && self.begun => {
                if self.answered.is_none() && !self.syn_again {
                    self.client.beyond.measured(now.saturating_sub(self.syn_at));
                }
                if self.stands.is_none() {
                    self.syn_again |= self.answered.is_some();
                    // Some systems repeat a SYN that was refused.
                    (self.refused, self.ended) = (false, false);
                    self.answered = Some(now);
                }
            }
            (Side::Client, ACK) if self.stands.is_none() => {
                if let Some(answered) = self.answered {
                    if !self.syn_again {
                        self.server.beyond.measured(now.saturating_sub(answered));
                    }
                    self.stands = Some(now);
                }
            }
            _ => {}
        }
    }

    fn data(&mut self, from: Side, seq: u32, (len, bytes): (u32, u32), now: u64) {
        let (me, _) = self.halves(from);
        let Some(end) = me.place(seq.wrapping_add(len)) else { return };
        if end <= me.sent {
            me.timing = None; // sent again: whose acknowledgement comes next is not known
            return;
        }
        let news = end - me.sent;
        self.wrote(from, news, now);
        let (me, peer) = self.halves(from);
        let acked_peer = peer.acked;
        me.acked_peer = acked_peer;
        me.longest = (me.longest.0.max(len), me.longest.1.max(bytes));
        let (most, most_bytes) = (me.longest.0.max(peer.longest.0), me.longest.1.max(peer.longest.1));
        me.ended = len < SMALLEST_FULL || (len < most && bytes < most_bytes);
        me.last_data = now;
        if me.timing.is_none() {
            me.timing = Some((end, now));
        }
        me.sent = end;
    }

    /// New bytes of one side: more of its current write, or a new one.
    fn wrote(&mut self, from: Side, bytes: u64, now: u64) {
        let begins = self.begins(from, now);
        let next = self.writes.len();
        let (me, _) = self.halves(from);
        match (begins, me.current) {
            (None, Some(current)) => {
                let passed = &mut self.writes[current];
                passed.write.bytes += bytes;
                passed.last = passed.last.max(now);
            }
            (cue, _) => {
                let (cue, pause) = cue.unwrap_or((Cue::Peer(0), 0));
                me.current = Some(next);
                let write = Write { side: from, bytes, cue, pause };
                self.writes.push(Passed { write, first: now, last: now });
            }
        }
    }

    /// Whether data that pass now are a new write, and then what it waited for and for how long it thought.
    ///
    /// A sender with something unacknowledged goes on with what it has. One that has nothing on its way and ended with
    /// less than a full segment had nothing more to send: if it heard from the other side since, it answers; if not, it
    /// paused, given that the path does not explain the gap. After a full segment only a long gap tells, or that the
    /// other side has nothing on its way either.
    fn begins(&self, from: Side, now: u64) -> Option<(Cue, u64)> {
        let (me, peer) = match from {
            Side::Client => (&self.client, &self.server),
            Side::Server => (&self.server, &self.client),
        };
        // The path between the capture point and this end was measured by what the other one sent.
        let path = peer.beyond.now();
        let after = |event: u64| now.saturating_sub(event).saturating_sub(path);
        // Who thinks for longer than it may delay an acknowledgement acknowledges first. An answer that brings the
        // acknowledgement was thought about for no longer; what it took beyond that is a queue on the path, which is
        // not there where the capture point is the host itself.
        let at_host = peer.beyond.least.is_some_and(|least| least < AT_HOST);
        let brings = peer.all_acked == now && peer.acked == peer.sent;
        let most = if brings && !at_host { DELAYED_ACK } else { u64::MAX };
        // How long an answer to all that the other side said was thought about; to a part of it, nobody knows.
        let thought = if peer.acked == peer.sent { after(peer.last_data).min(most) } else { 0 };
        if me.current.is_none() {
            let stands = match from {
                Side::Client => self.answered,
                Side::Server => self.stands,
            };
            return Some(match (peer.acked, stands) {
                (0, Some(stands)) => (Cue::Peer(0), after(stands)),
                // Open before: it is begun when its first packet was seen.
                (0, None) if !self.begun => (Cue::Peer(0), after(self.start)),
                (0, None) => (Cue::Peer(0), 0),
                (heard, _) => (Cue::Peer(heard), thought),
            });
        }
        if me.acked < me.sent {
            return None;
        }
        let ended = me.ended;
        let gap = after(me.all_acked.max(me.last_data));
        // Data both ways that were waited for: nothing is on its way. Of two that send at once, one always has something.
        let took_turns = peer.acked == peer.sent;
        if peer.acked > me.acked_peer && (ended || took_turns || gap > STALL) {
            return Some((Cue::Peer(peer.acked), thought));
        }
        let quiet = if ended { path / 4 + QUIET } else { STALL };
        // An acknowledgement may have been delayed; that is not the sender's pause.
        let heard = me.last_data.saturating_add(me.beyond.now()).min(me.all_acked.max(me.last_data));
        (gap > quiet).then(|| (Cue::Own, after(heard)))
    }

    fn halves(&mut self, from: Side) -> (&mut Half, &mut Half) {
        match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        }
    }

    /// Smallest round trips between the capture point and each end: client, server.
    pub fn paths(&self) -> (Option<u64>, Option<u64>) {
        (self.server.beyond.least, self.client.beyond.least)
    }

    /// Its writes, and the exchanges that they form.
    pub fn close(self) -> (Vec<Write>, Vec<Exchange>) {
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut since = self.start;
        let mut until = self.start;
        for (at, passed) in self.writes.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| self.writes[before].write.side);
            let asks_again = passed.write.side == Side::Client && before == Some(Side::Server);
            let after_pause = passed.write.cue == Cue::Own && passed.write.pause > APART;
            match exchanges.last_mut().filter(|_| !asks_again && !after_pause) {
                Some(exchange) => exchange.writes += 1,
                None => {
                    if at > 0 {
                        since = passed.first;
                        until = passed.first;
                    }
                    let whole = self.begun || at > 0;
                    exchanges.push(Exchange { writes: 1, took: 0, page: None, whole });
                }
            }
            until = until.max(passed.last);
            exchanges.last_mut().expect("there is one now").took = until - since;
        }
        if let Some(last) = exchanges.last_mut().filter(|_| !self.ended && self.is_busy()) {
            last.whole = false;
        }
        (self.writes.into_iter().map(|passed| passed.write).collect(), exchanges)
    }

    /// Whether data are on their way that nobody acknowledged.
    fn is_busy(&self) -> bool {
        self.client.acked < self.client.sent || self.server.acked < self.server.sent
    }

    /// When its first and last writes passed.
    pub fn first_times(&self) -> impl Iterator<Item = u64> + '_ {
        self.writes.iter().map(|passed| passed.first)
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
            all_acked: 0,
            longest: (0, 0),
            ended: false,
            fin: false,
            timing: None,
            beyond: Path::default(),
            current: None,
            claimed: None,
        }
    }

    /// A sequence number as a count of data bytes since the beginning. `None` where it is far from all others.
    fn place(&self, seq: u32) -> Option<u64> {
        let here = self.base?.wrapping_add(self.sent as u32);
        let distance = i64::from(seq.wrapping_sub(here) as i32);
        let place = self.sent.checked_add_signed(distance).unwrap_or(0);
        (distance.unsigned_abs() < STRAY).then_some(place)
    }

    /// The other side has received everything below `ack`. Returns how many bytes of that the capture never saw.
    fn acknowledged(&mut self, ack: u32, with_data: bool, now: u64) -> u64 {
        if self.base.is_none() {
            // Open before the capture began, and the other side is heard first.
            self.base = Some(ack);
            return 0;
        }
        let Some(place) = self.place(ack) else { return 0 };
        // A FIN takes a number, too: one that was seen, or else a single number beyond all data.
        let beyond = place.saturating_sub(self.sent);
        let mut missed = if self.fin || beyond == 1 { beyond.saturating_sub(1) } else { beyond };
        if missed > 0 && self.claimed.is_none_or(|claimed| place < claimed) {
            self.claimed = Some(place);
            missed = 0;
        }
        let place = place.min(self.sent + missed);
        if place > self.acked {
            self.acked = place;
            if let Some((end, sent)) = self.timing
                && place >= end
            {
                let time = now.saturating_sub(sent);
                if with_data {
                    self.beyond.answered(time)
                } else {
                    self.beyond.acknowledged(time)
                }
                self.timing = None;
            }
            if place >= self.sent {
                self.all_acked = now;
            }
        }
        if missed > 0 {
            self.sent = place;
        }
        missed
    }
}

impl Path {
    /// How long it is now, as far as is known: as last measured, or as the fastest answer took.
    fn now(&self) -> u64 {
        self.recent.or(self.least).unwrap_or(0)
    }

    /// By a handshake, which nobody delays.
    fn measured(&mut self, time: u64) {
        self.recent = Some(time);
        self.answered(time);
    }

    /// By an acknowledgement alone, which may have waited for a second segment.
    fn acknowledged(&mut self, time: u64) {
        self.answered(time);
        self.recent = Some(self.least.unwrap_or(time).max(time.saturating_sub(DELAYED_ACK)));
    }

    /// By an answer, which the application may have thought about: it tells only what the path is not longer than.
    fn answered(&mut self, time: u64) {
        self.least = Some(self.least.map_or(time, |least| least.min(time)));
    }
}

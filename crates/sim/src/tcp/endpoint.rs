//! One end of a connection: handshake, sending, recovery, timers, closing.
//!
//! The order of reading: `segment` (what an arriving segment does), `acknowledged` and `recovery` (what its
//! acknowledgement means), `send` (what may leave), `timer` (what happens when nothing comes).

use qdisc::{Ecn, FlowKey, Meta, Packet, Rate, Span, Time};

use super::TcpConfig;
use super::controller::{Ack, Controller, Start};
use super::receiver::{Arrival, Receiver};
use super::rtt::RttEstimator;
use super::scoreboard::{Acked, Retransmission, Scoreboard};
use crate::segment::{SYN_BYTES, Segment, TCP_HEADER, sack_option};

/// Duplicate acknowledgements that mean a loss: RFC 5681 section 3.2.
const DUPLICATES: u32 = 3;

/// One end of a connection.
pub struct Endpoint {
    state: State,
    recovery: Recovery,
    /// Fields of every segment that it sends.
    template: Segment,
    /// What every packet of it carries.
    identity: Identity,
    controller: Box<dyn Controller>,
    board: Scoreboard,
    receiver: Receiver,
    rtt: RttEstimator,
    /// The sequence number after the last byte that the application gave.
    end: u64,
    /// The application has no more.
    closing: bool,
    fin_sent: bool,
    duplicates: u32,
    /// Bytes by which duplicate acknowledgements inflate the window (NewReno only).
    inflation: u64,
    /// Where the current recovery ends, and below which no new one begins.
    recovery_point: u64,
    /// Timeouts in a row.
    backoffs: u32,
    /// The first lost segment goes out whatever the window says: RFC 6675 section 5, step (4.3); RFC 6582 section
    /// 3.2, steps 2 and 3.
    urgent: bool,
    /// The window, not the application, stopped the last sending.
    cwnd_limited: bool,
    /// ECN: told the other end until it answers (receiver); answer to give (sender); reduced up to here.
    echo: bool,
    reduced: bool,
    reduced_until: u64,
    last_sent: Time,
    retransmit_at: Time,
    acknowledge_at: Time,
    /// When the pacer lets the next segment go; in the past when it does not hold anything back.
    pace_until: Time,
    paced: bool,
    counts: Counts,
}

/// What every packet of an end carries in its [`Meta`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// Which flow.
    pub flow: FlowKey,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Traffic class.
    pub class: u16,
    /// The rate that is reserved for it.
    pub reserved: Rate,
}

/// What it did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Data segments sent, retransmissions included.
    pub packets: u64,
    /// Data segments sent again.
    pub retransmitted: u64,
    /// Timeouts.
    pub timeouts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a connection.
    Listening,
    /// Sent its SYN `u8` times.
    Connecting(u8),
    /// Answered a SYN `u8` times.
    Accepting(u8),
    Open,
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// Fast recovery, up to `recovery_point`.
    Fast,
    /// After a timeout, up to `recovery_point`: slow start over what was sent.
    Timeout,
}

/// What a segment or a timer brought about, for the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The connection is open now.
    pub connected: bool,
    /// More data arrived in order.
    pub received: bool,
    /// The other end closed, and all of its data is here.
    pub peer_closed: bool,
    /// It is given up.
    pub aborted: bool,
}

impl Endpoint {
    /// An end that waits to be connected to, or to be told to [`open`](Endpoint::open).
    pub fn new(template: Segment, identity: Identity, config: &TcpConfig) -> Endpoint {
        Endpoint {
            state: State::Listening,
            recovery: Recovery::None,
            template,
            identity,
            controller: config.congestion.build(Start::new(config)),
            board: Scoreboard::new(1),
            receiver: Receiver::new(1),
            rtt: RttEstimator::new(config),
            end: 1,
            closing: false,
            fin_sent: false,
            duplicates: 0,
            inflation: 0,
            recovery_point: 0,
            backoffs: 0,
            urgent: false,
            cwnd_limited: false,
            echo: false,
            reduced: false,
            reduced_until: 1,
            last_sent: Time::ZERO,
            retransmit_at: Time::NEVER,
            acknowledge_at: Time::NEVER,
            pace_until: Time::ZERO,
            paced: false,
            counts: Counts::default(),
        }
    }

    // -- what the application does ------------------------------------------------------------------

    /// Connects.
    pub fn open(&mut self, now: Time, out: &mut Vec<Packet<Segment>>) {
        self.state = State::Connecting(1);
        self.last_sent = now;
        self.retransmit_at = now + self.rtt.timeout();
        self.emit_syn(0, out);
    }

    /// Has `bytes` more to send.
    pub fn write(&mut self, bytes: u64) {
        self.end = self.end.saturating_add(bytes);
    }

    /// Has no more to send.
    pub fn close(&mut self) {
        self.closing = true;
    }

    // -- what it is like ----------------------------------------------------------------------------

    /// Its node and the other end's.
    pub fn nodes(&self) -> (u16, u16) {
        (self.identity.from, self.identity.to)
    }
    /// Data bytes that arrived in order.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }
    /// Data bytes that arrived, in order or not, each counted once.
    pub fn arrived(&self) -> u64 {
        self.receiver.arrived_bytes()
    }
    /// Data bytes that the other end acknowledged.
    pub fn acknowledged_bytes(&self) -> u64 {
        (self.board.una() - 1).min(self.end - 1)
    }
    /// Whether both directions are closed as far as this end knows.
    pub fn finished(&self) -> bool {
        self.fin_sent && self.board.outstanding() == 0 && self.receiver.finished()
    }
    /// What it did so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// When it wants to be woken.
    #[inline]
    pub fn deadline(&self) -> Time {
        let pace = if self.paced { self.pace_until } else { Time::NEVER };
        self.retransmit_at.min(self.acknowledge_at).min(pace)
    }
    /// The congestion controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// Bytes on their way.
    pub fn flight(&self) -> u64 {
        self.board.outstanding()
    }
    /// Smoothed round trip.
    pub fn smoothed_rtt(&self) -> Span {
        self.rtt.smoothed()
    }
    /// Bytes of memory beyond the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.board.heap_bytes() + size_of_val(&*self.controller)
    }

    // -- what arrives -------------------------------------------------------------------------------

    /// A segment arrived; `marked` if the network marked it.
    pub fn segment(
        &mut self,
        segment: &Segment,
        marked: bool,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if self.state != State::Open && !self.handshake(segment, now, config, &mut outcome, out) {
            return outcome;
        }
        if segment.has(Segment::SYN) {
            // Our acknowledgement of the handshake was lost.
            self.emit_ack(config, out);
            return outcome;
        }
        if segment.has(Segment::ACK) {
            self.acknowledged(segment, now, config);
        }
        let acknowledge = self.data(segment, marked, now, config, &mut outcome);
        let before = out.len();
        self.send(now, config, out);
        if out.len() > before {
            // Data carry the acknowledgement.
            self.acknowledge_at = Time::NEVER;
        } else if acknowledge {
            self.acknowledge_at = Time::NEVER;
            self.emit_ack(config, out);
        }
        outcome
    }

    /// Advances the handshake; false when the segment is dealt with.
    fn handshake(
        &mut self,
        segment: &Segment,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
        out: &mut Vec<Packet<Segment>>,
    ) -> bool {
        match self.state {
            State::Listening | State::Accepting(_) if segment.has(Segment::SYN) => {
                let tries = if let State::Accepting(tries) = self.state { tries + 1 } else { 1 };
                self.state = State::Accepting(tries);
                self.last_sent = now;
                self.retransmit_at = now + self.rtt.timeout();
                self.emit_syn(Segment::ACK, out);
                false
            }
            State::Accepting(tries) => {
                self.opened(tries, now, config);
                outcome.connected = true;
                true
            }
            State::Connecting(tries) if segment.has(Segment::SYN | Segment::ACK) => {
                self.opened(tries, now, config);
                outcome.connected = true;
                // The third packet: with data, if the application has some already.
                let before = out.len();
                self.send(now, config, out);
                if out.len() == before {
                    self.emit_ack(config, out);
                }
                false
            }
            State::Listening | State::Connecting(_) | State::GivenUp => false,
            State::Open => true,
        }
    }

    fn opened(&mut self, tries: u8, now: Time, config: &TcpConfig) {
        self.state = State::Open;
        self.backoffs = 0;
        self.retransmit_at = Time::NEVER;
        if tries == 1 {
            self.rtt.measured(now.since(self.last_sent), config);
        } else {
            self.rtt.after_slow_handshake(config);
            // RFC 5681 section 3.1: a lost SYN leaves one segment to begin with.
            let start = Start { initial_window: config.mss.0, ..Start::new(config) };
            self.controller = config.congestion.build(start);
        }
    }

    // -- what was acknowledged ----------------------------------------------------------------------

    fn acknowledged(&mut self, segment: &Segment, now: Time, config: &TcpConfig) {
        if segment.ack > self.board.next() || segment.ack < self.board.una() {
            return;
        }
        let advance = segment.ack - self.board.una();
        let advances = advance > 0;
        let flight = self.board.outstanding();
        let mut acked = if advances { self.board.ack(segment.ack) } else { Acked::default() };
        let mut selective = 0;
        if config.sack {
            for (from, to) in segment.blocks() {
                let news = self.board.sack(from, to);
                selective += news.len;
                acked.measured = acked.measured.max(news.measured);
            }
        }
        if let Some(sent) = acked.measured {
            self.rtt.measured(now.since(sent), config);
        }
        if advances {
            self.backoffs = 0;
            self.retransmit_at =
                if self.board.outstanding() > 0 { now + self.rtt.timeout() } else { Time::NEVER };
        }
        let congested = config.ecn && segment.has(Segment::ECE);
        if congested {
            self.congestion_echoed(segment.ack, flight, now);
        }
        let duplicate = !advances
            && self.board.outstanding() > 0
            && segment.seq_len() == 0
            && if config.sack { selective > 0 } else { true };
        if self.recovery(segment.ack, advances, duplicate, flight, now, config) && !congested {
            self.grow(advance, flight, acked.measured.map(|sent| now.since(sent)), now);
        }
    }

    /// The other end echoes a mark: once per window, RFC 3168 section 6.1.2.
    fn congestion_echoed(&mut self, ack: u64, flight: u64, now: Time) {
        if ack > self.reduced_until && self.recovery != Recovery::Fast {
            self.controller.marked(flight.min(self.controller.window()), now);
            self.reduced_until = self.board.next();
            self.reduced = true;
        }
    }

    /// Fast retransmit and recovery: RFC 6675 section 5 with SACK, RFC 6582 section 3.2 without. True when the
    /// acknowledgement lets the window grow.
    fn recovery(
        &mut self,
        ack: u64,
        advances: bool,
        duplicate: bool,
        flight: u64,
        now: Time,
        config: &TcpConfig,
    ) -> bool {
        if self.recovery != Recovery::None && ack >= self.recovery_point {
            let fast = self.recovery == Recovery::Fast;
            self.recovery = Recovery::None;
            self.inflation = 0;
            self.duplicates = 0;
            if fast {
                // The acknowledgement that ends a recovery leaves the window at the threshold.
                return false;
            }
        }
        match self.recovery {
            Recovery::None => {
                self.duplicates = match (advances, duplicate) {
                    (true, _) => 0,
                    (false, true) => self.duplicates + 1,
                    (false, false) => self.duplicates,
                };
                if duplicate {
                    // Up to `recovery_point` duplicates stem from what the last recovery sent twice: RFC 6582 section 3.2, step 1.
                    let first_lost = config.sack && self.board.find_losses(config.mss.0);
                    if first_lost || (self.duplicates >= DUPLICATES && ack > self.recovery_point) {
                        self.begin_fast_recovery(flight, now, config);
                    }
                }
                advances
            }
            Recovery::Fast if config.sack => {
                self.board.find_losses(config.mss.0);
                false
            }
            Recovery::Fast if advances => {
                // A partial acknowledgement: the next hole is lost too. Deflate by what left the network.
                self.board.lose_first();
                self.urgent = true;
                let left = flight - self.board.outstanding();
                self.inflation = self.inflation.saturating_sub(left);
                if left >= config.mss.0 {
                    self.inflation += config.mss.0;
                }
                false
            }
            Recovery::Fast => {
                self.inflation += if duplicate { config.mss.0 } else { 0 };
                false
            }
            Recovery::Timeout => {
                if config.sack {
                    self.board.find_losses(config.mss.0);
                }
                advances
            }
        }
    }

    fn begin_fast_recovery(&mut self, flight: u64, now: Time, config: &TcpConfig) {
        self.recovery = Recovery::Fast;
        self.recovery_point = self.board.next();
        self.board.begin_recovery();
        self.board.lose_first();
        self.urgent = true;
        // A window that was marked has been reduced for already: RFC 3168 section 6.1.2.
        if self.board.una() >= self.reduced_until {
            self.controller.lost(flight.min(self.controller.window()), now);
            self.reduced = config.ecn;
        }
        self.reduced_until = self.board.next();
        if !config.sack {
            self.inflation = u64::from(DUPLICATES) * config.mss.0;
        }
    }

    fn grow(&mut self, bytes: u64, flight: u64, sample: Option<Span>, now: Time) {
        let cwnd_limited = self.cwnd_limited || flight >= self.controller.window();
        let (una, next) = (self.board.una(), self.board.next());
        let rtt = self.rtt.smoothed();
        self.controller.acked(&Ack { now, bytes, rtt, sample, una, next, flight, cwnd_limited });
    }

    // -- what was received --------------------------------------------------------------------------

    /// Takes the data of a segment; true when it must be acknowledged now.
    fn data(
        &mut self,
        segment: &Segment,
        marked: bool,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
    ) -> bool {
        if config.ecn {
            if segment.has(Segment::CWR) {
                self.echo = false;
            }
            self.echo |= marked;
        }
        let len = segment.seq_len();
        if len == 0 {
            return false;
        }
        let before = self.receiver.delivered();
        let arrival = self.receiver.arrived(segment.seq, len, segment.has(Segment::FIN));
        outcome.received = self.receiver.delivered() > before;
        outcome.peer_closed = self.receiver.finished() && arrival != Arrival::Duplicate;
        let at_once = match arrival {
            Arrival::InOrder => {
                !config.delayed_ack || self.receiver.pending() >= 2 || segment.has(Segment::FIN)
            }
            Arrival::OutOfOrder | Arrival::Duplicate => true,
        };
        if !at_once && self.acknowledge_at == Time::NEVER {
            self.acknowledge_at = now + config.delayed_ack_timer;
        }
        at_once
    }

    // -- what leaves --------------------------------------------------------------------------------

    /// Sends what the windows allow: first what is lost, then what is new, then what is doubtful.
    pub fn send(&mut self, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        if self.state != State::Open {
            return;
        }
        self.paced = false;
        self.cwnd_limited = false;
        if self.board.outstanding() == 0 && self.has_news() && now.since(self.last_sent) > self.rtt.timeout()
        {
            self.controller.idled(now);
        }
        let window = self.controller.window() + self.inflation + self.limited_transmit(config);
        loop {
            let lost = self.board.next_lost();
            let len = match lost {
                Some(lost) => u64::from(lost.len),
                None => self.end.saturating_sub(self.board.next()).min(config.mss.0),
            };
            // Something must always be on its way, or nothing would ever come back.
            let urgent = std::mem::take(&mut self.urgent) && lost.is_some();
            if self.board.pipe() + len > window && self.board.pipe() > 0 && !urgent {
                self.cwnd_limited = len > 0;
                return;
            }
            if !urgent && self.pacer_holds(now, config) {
                // What the pacer holds back the window allows: growth goes on.
                self.cwnd_limited = len > 0;
                return;
            }
            match lost {
                Some(lost) => self.emit_retransmission(lost, now, config, out),
                None if self.may_send_new(len, config) => self.emit_new(len, now, config, out),
                None if self.recovery == Recovery::Fast && config.sack => {
                    let Some(rescue) = self.board.next_rescue() else { return };
                    self.emit_retransmission(rescue, now, config, out);
                }
                None => return,
            }
        }
    }

    fn has_news(&self) -> bool {
        self.end > self.board.next() || (self.closing && !self.fin_sent)
    }

    /// New data, or the FIN alone; within the receiver's window.
    fn may_send_new(&self, len: u64, config: &TcpConfig) -> bool {
        if !config.limited_transmit && self.recovery == Recovery::None && self.duplicates > 0 {
            return false;
        }
        let fits = self.board.outstanding() + len <= config.receive_window.0;
        (len > 0 && fits) || (len == 0 && self.closing && !self.fin_sent)
    }

    /// RFC 3042: two segments more than the window while duplicates come in. With SACK the pipe shrinks by itself.
    fn limited_transmit(&self, config: &TcpConfig) -> u64 {
        if self.recovery != Recovery::None || config.sack || !config.limited_transmit {
            return 0;
        }
        u64::from(self.duplicates.min(2)) * config.mss.0
    }

    fn pacer_holds(&mut self, now: Time, config: &TcpConfig) -> bool {
        let rtt = self.rtt.smoothed();
        if !config.pacing || rtt.is_zero() {
            return false;
        }
        if now < self.pace_until {
            self.paced = true;
            return true;
        }
        // A quarter faster than the window, twice in slow start, so that the pacer does not hold growth back.
        let window = self.controller.window().max(1);
        let (num, den) = if window < self.controller.threshold() { (1, 2) } else { (4, 5) };
        let gap = rtt.scale(config.mss.0 * num, window * den);
        self.pace_until = self.pace_until.max(now - gap) + gap;
        false
    }

    fn emit_new(&mut self, len: u64, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        let seq = self.board.next();
        let last = self.closing && seq + len == self.end;
        let mut segment = Segment { seq, len: len as u16, ..self.template };
        if last {
            segment.flags |= Segment::FIN;
            self.fin_sent = true;
        }
        if self.reduced && len > 0 {
            segment.flags |= Segment::CWR;
            self.reduced = false;
        }
        self.board.push(segment.seq_len() as u32, now);
        self.counts.packets += u64::from(len > 0);
        self.sent(segment, if config.ecn { Ecn::Ect0 } else { Ecn::NotCapable }, now, config, out);
    }

    fn emit_retransmission(
        &mut self,
        lost: Retransmission,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.board.retransmitted(lost, now);
        let end = lost.seq + u64::from(lost.len);
        let fin = self.fin_sent && end > self.end;
        let mut segment = Segment { seq: lost.seq, len: (lost.len - u32::from(fin)) as u16, ..self.template };
        if fin {
            segment.flags |= Segment::FIN;
        }
        self.counts.packets += u64::from(segment.len > 0);
        self.counts.retransmitted += u64::from(segment.len > 0);
        // RFC 3168 section 6.1.5: retransmissions are not ECN-capable.
        self.sent(segment, Ecn::NotCapable, now, config, out);
    }

    fn sent(
        &mut self,
        mut segment: Segment,
        ecn: Ecn,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        // RFC 6691: options come out of the segment; a full one has no space for them.
        let space = config.mss.0.saturating_sub(u64::from(segment.len));
        self.receiver.acknowledge(&mut segment, config.sack && space >= u64::from(sack_option(3)));
        segment.sent = Segment::stamp(now);
        self.last_sent = now;
        if self.retransmit_at == Time::NEVER {
            self.retransmit_at = now + self.rtt.timeout();
        }
        self.emit(segment, TCP_HEADER + sack_option(segment.sacks) + u32::from(segment.len), ecn, out);
    }

    fn emit_ack(&mut self, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        let mut segment = Segment { seq: self.board.next(), ..self.template };
        self.receiver.acknowledge(&mut segment, config.sack);
        self.emit(segment, TCP_HEADER + sack_option(segment.sacks), Ecn::NotCapable, out);
    }

    fn emit_syn(&mut self, flags: u8, out: &mut Vec<Packet<Segment>>) {
        let mut segment = Segment { ack: u64::from(flags & Segment::ACK != 0), ..self.template };
        segment.flags |= Segment::SYN | flags;
        self.emit(segment, SYN_BYTES, Ecn::NotCapable, out);
    }

    fn emit(&mut self, mut segment: Segment, bytes: u32, ecn: Ecn, out: &mut Vec<Packet<Segment>>) {
        if self.echo {
            segment.flags |= Segment::ECE;
        }
        let meta = Meta {
            bytes,
            class: self.identity.class,
            ecn,
            short: bytes <= 64 && segment.len == 0,
            flow: self.identity.flow,
            from: self.identity.from,
            to: self.identity.to,
            offset: stays(segment.seq.saturating_sub(1)),
            remaining: stays(self.end.saturating_sub(segment.seq)).max(bytes),
            reserved: self.identity.reserved,
            ..Meta::default()
        };
        out.push(Packet { meta, payload: segment });
    }

    // -- what happens when nothing comes --------------------------------------------------------------

    /// It is [`deadline`](Endpoint::deadline), or later.
    pub fn on_timer(&mut self, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) -> Outcome {
        let mut outcome = Outcome::default();
        if now >= self.acknowledge_at {
            self.acknowledge_at = Time::NEVER;
            self.emit_ack(config, out);
        }
        if now >= self.retransmit_at {
            self.retransmit_at = Time::NEVER;
            self.timed_out(now, config, &mut outcome, out);
        }
        if self.paced && now >= self.pace_until {
            self.send(now, config, out);
        }
        outcome
    }

    /// RFC 6298 sections 5.4 to 5.7; RFC 5681 section 3.1.
    fn timed_out(
        &mut self,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.backoffs += 1;
        let most = if self.state == State::Open { config.give_up } else { config.give_up_handshake };
        if most > 0 && self.backoffs >= most {
            self.state = State::GivenUp;
            self.acknowledge_at = Time::NEVER;
            self.paced = false;
            outcome.aborted = true;
            return;
        }
        self.rtt.back_off(config);
        match self.state {
            State::Connecting(tries) => {
                self.state = State::Connecting(tries.saturating_add(1));
                self.retransmit_at = now + self.rtt.timeout();
                self.emit_syn(0, out);
            }
            State::Accepting(tries) => {
                self.state = State::Accepting(tries.saturating_add(1));
                self.retransmit_at = now + self.rtt.timeout();
                self.emit_syn(Segment::ACK, out);
            }
            State::Open => {
                self.counts.timeouts += 1;
                // With SACK a hole that stays open lets the outstanding data grow far beyond the window; they are not on
                // their way, and half of them must not become the threshold.
                let flight = self.board.outstanding().min(self.controller.window());
                self.controller.timed_out(flight, self.backoffs == 1, now);
                self.reduced = config.ecn;
                self.reduced_until = self.board.next();
                self.board.lose_all();
                self.recovery = Recovery::Timeout;
                self.recovery_point = self.board.next();
                self.duplicates = 0;
                self.inflation = 0;
                self.pace_until = now;
                self.send(now, config, out);
            }
            State::Listening | State::GivenUp => {}
        }
    }
}

/// What fits of a number of bytes: see [`Meta::offset`].
fn stays(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

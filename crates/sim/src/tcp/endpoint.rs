//! One end of a connection: handshake, sending, loss recovery, timers, closing.
//!
//! Read in this order: `segment` (an arriving segment), `acknowledged` and `recovery` (its acknowledgement),
//! `send` (the segments that may leave), `on_timer` (retransmission and delayed acknowledgements).

use giveway_qdisc::{Ecn, FlowKey, Meta, Packet, Rate, Span, Time};

use super::TcpConfig;
use super::controller::{Ack, Controller, Start};
use super::receiver::{Arrival, Receiver};
use super::rtt::RttEstimator;
use super::scoreboard::{Acked, Retransmission, Scoreboard};
use crate::segment::{SYN_BYTES, Segment, TCP_HEADER, sack_option};

/// The number of duplicate acknowledgements that indicates a loss: RFC 5681, section 3.2.
const DUPLICATES: u32 = 3;

/// One end of a connection.
pub struct Endpoint {
    state: State,
    recovery: Recovery,
    /// Fields that are the same in every segment that this end sends.
    template: Segment,
    /// Packet fields that are the same in every packet that this end sends.
    identity: Identity,
    controller: Box<dyn Controller>,
    board: Scoreboard,
    receiver: Receiver,
    rtt: RttEstimator,
    /// The sequence number after the last byte that the application has written.
    end: u64,
    /// The application has closed this direction.
    closing: bool,
    fin_sent: bool,
    /// Duplicate acknowledgements in a row.
    duplicates: u32,
    /// Bytes by which duplicate acknowledgements inflate the window (NewReno only).
    inflation: u64,
    /// The recovery point: the recovery ends when it is acknowledged, and no new one begins below it.
    recovery_point: u64,
    /// The back-off count: timeouts in a row.
    backoffs: u32,
    /// The first lost segment leaves even if the window is full.
    urgent: bool,
    /// The window, and not the application, ended the last call of `send`.
    cwnd_limited: bool,
    /// ECN receiver: set ECE on every segment until the peer confirms with CWR.
    echo: bool,
    /// ECN sender: set CWR on the next new segment.
    reduced: bool,
    /// ECN sender: the window has been reduced for everything sent below this sequence number.
    reduced_until: u64,
    /// Time at which the last data segment or SYN was sent.
    last_sent: Time,
    /// Expiry of the retransmission timer; never if it is off.
    retransmit_at: Time,
    /// Time at which a delayed acknowledgement is due; never if none is pending.
    acknowledge_at: Time,
    /// Earliest time of the next segment by the pacer; in the past when the pacer does not delay.
    pace_until: Time,
    /// True if the pacer delays a segment that the window allows.
    paced: bool,
    counts: Counts,
}

/// The fields of [`Meta`] that are the same in every packet of an end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// Key of the flow from this end to the other.
    pub flow: FlowKey,
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Traffic class.
    pub class: u16,
    /// Reserved rate of the flow; zero for none.
    pub reserved: Rate,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Data segments sent, retransmissions included.
    pub packets: u64,
    /// Data segments retransmitted.
    pub retransmitted: u64,
    /// Expirations of the retransmission timer on an open connection.
    pub timeouts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a SYN, or for [`Endpoint::open`].
    Listening,
    /// Has sent a SYN, this many times.
    Connecting(u8),
    /// Has answered a SYN, this many times.
    Accepting(u8),
    Open,
    /// Too many timeouts in a row.
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// Fast recovery until `recovery_point` is acknowledged.
    Fast,
    /// Recovery from a timeout until `recovery_point` is acknowledged: slow start over what was sent.
    Timeout,
}

/// The effects of a segment or of a timer that concern the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The connection has opened.
    pub connected: bool,
    /// More data is available in order.
    pub received: bool,
    /// The peer has closed, and all of its data has arrived.
    pub peer_closed: bool,
    /// The connection was given up.
    pub aborted: bool,
}

impl Outcome {
    /// True if there is no effect, or none but data in order.
    #[inline]
    pub fn at_most_received(self) -> bool {
        !(self.connected | self.peer_closed | self.aborted)
    }
}

impl Endpoint {
    /// An end in the listening state. [`open`](Endpoint::open) makes it the client.
    pub fn new(template: Segment, identity: Identity, config: &TcpConfig) -> Endpoint {
        Endpoint {
            state: State::Listening,
            recovery: Recovery::None,
            template,
            identity,
            controller: config.congestion.build(config.start()),
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

    // -- calls of the application -------------------------------------------------------------------

    /// Sends a SYN: active open.
    pub fn open(&mut self, now: Time, out: &mut Vec<Packet<Segment>>) {
        self.state = State::Connecting(1);
        self.last_sent = now;
        self.retransmit_at = now + self.rtt.timeout();
        self.emit_syn(0, out);
    }

    /// Adds `bytes` of application data. They leave with the next [`send`](Endpoint::send).
    pub fn write(&mut self, bytes: u64) {
        self.end = self.end.saturating_add(bytes);
    }

    /// Closes this direction: a FIN follows the data.
    pub fn close(&mut self) {
        self.closing = true;
    }

    // -- state --------------------------------------------------------------------------------------

    /// The node of this end and the node of the other.
    pub fn nodes(&self) -> (u16, u16) {
        (self.identity.from, self.identity.to)
    }
    /// Data bytes received in order.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }
    /// Data bytes received, in order or not, each counted once.
    pub fn arrived(&self) -> u64 {
        self.receiver.arrived_bytes()
    }
    /// Data bytes that the peer has acknowledged cumulatively.
    pub fn acknowledged_bytes(&self) -> u64 {
        // The SYN takes sequence number 0, and the FIN one after the data: neither is data.
        (self.board.una() - 1).min(self.end - 1)
    }
    /// True if this end has sent all its data and its FIN, has them acknowledged, and has received those of
    /// the peer.
    pub fn finished(&self) -> bool {
        self.fin_sent && self.board.outstanding() == 0 && self.receiver.finished()
    }
    /// Counters of this sender so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// The earliest time at which [`on_timer`](Endpoint::on_timer) must be called; never if no timer is set.
    #[inline]
    pub fn deadline(&self) -> Time {
        let pace = if self.paced { self.pace_until } else { Time::NEVER };
        self.retransmit_at.min(self.acknowledge_at).min(pace)
    }
    /// The congestion controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// FlightSize: sequence numbers sent and not acknowledged cumulatively.
    pub fn flight(&self) -> u64 {
        self.board.outstanding()
    }
    /// Smoothed round-trip time; zero before the first measurement.
    pub fn smoothed_rtt(&self) -> Span {
        self.rtt.smoothed()
    }
    /// Heap memory of this end, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.board.heap_bytes() + size_of_val(&*self.controller)
    }

    // -- arriving segments --------------------------------------------------------------------------

    /// Handles an arriving segment; `marked` if the network set Congestion Experienced. Segments to send go
    /// to `out`.
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
            // A SYN on an open connection: our acknowledgement of the handshake was lost. Repeat it.
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
            // The data segments carry the acknowledgement.
            self.acknowledge_at = Time::NEVER;
        } else if acknowledge {
            self.acknowledge_at = Time::NEVER;
            self.emit_ack(config, out);
        }
        outcome
    }

    /// Advances the handshake of RFC 9293, section 3.5. False when nothing is left to do with the segment.
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
                // A repeated SYN: our answer was lost. It counts as a try, because its acknowledgement gives
                // no round-trip sample.
                let tries = if let State::Accepting(tries) = self.state { tries + 1 } else { 1 };
                self.state = State::Accepting(tries);
                self.last_sent = now;
                self.retransmit_at = now + self.rtt.timeout();
                self.emit_syn(Segment::ACK, out);
                false
            }
            // Any segment of the client but a SYN shows that it has our SYN: its acknowledgement may be lost
            // while data arrive.
            State::Accepting(tries) => {
                self.opened(tries, now, config);
                outcome.connected = true;
                true
            }
            State::Connecting(tries) if segment.has(Segment::SYN | Segment::ACK) => {
                self.opened(tries, now, config);
                outcome.connected = true;
                // The third segment of the handshake carries data if the application has written some.
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
        // RFC 6298, section 3 (Karn): a SYN that was retransmitted gives no round-trip sample.
        if tries == 1 {
            self.rtt.measured(now.since(self.last_sent), config);
        } else {
            self.rtt.after_slow_handshake(config);
            // RFC 5681, section 3.1: after a lost SYN or SYN-ACK the initial window is at most one segment.
            let start = Start { initial_window: config.mss.0, ..config.start() };
            self.controller = config.congestion.build(start);
        }
    }

    // -- acknowledgements ---------------------------------------------------------------------------

    #[inline]
    fn acknowledged(&mut self, segment: &Segment, now: Time, config: &TcpConfig) {
        // RFC 9293, section 3.10.7.4: an acknowledgement of data that was never sent, or one older than the
        // last, is ignored.
        if segment.ack > self.board.next() || segment.ack < self.board.una() {
            return;
        }
        let advance = segment.ack - self.board.una();
        let advances = advance > 0;
        // FlightSize before this acknowledgement, from which the controller reduces its window.
        let flight = self.board.outstanding();
        let mut acked = if advances { self.board.ack(segment.ack) } else { Acked::default() };
        // Sequence numbers that this segment reports by SACK for the first time.
        let mut selective = 0;
        if config.sack {
            for (from, to) in segment.blocks() {
                let new = self.board.sack(from, to);
                selective += new.len;
                acked.measured = acked.measured.max(new.measured);
            }
        }
        if let Some(sent) = acked.measured {
            self.rtt.measured(now.since(sent), config);
        }
        if advances {
            self.backoffs = 0;
            // RFC 6298, section 5, rules (5.2) and (5.3): new data acknowledged restarts the timer, and the
            // last acknowledgement turns it off.
            self.retransmit_at =
                if self.board.outstanding() > 0 { now + self.rtt.timeout() } else { Time::NEVER };
        }
        let congested = config.ecn && segment.has(Segment::ECE);
        if congested {
            self.congestion_echoed(segment.ack, flight, now);
        }
        // RFC 5681, section 2: a duplicate acknowledgement acknowledges nothing new, carries no data, SYN or
        // FIN, and comes while data is outstanding. RFC 6675, section 2: with SACK it must report something
        // new.
        let duplicate = !advances
            && self.board.outstanding() > 0
            && segment.seq_len() == 0
            && if config.sack { selective > 0 } else { true };
        if self.recovery(segment.ack, advances, duplicate, flight, now, config) && !congested {
            self.grow(advance, flight, acked.measured.map(|sent| now.since(sent)), now);
        }
    }

    /// The peer echoes a mark. RFC 3168, section 6.1.2: the sender reacts at most once per window of data.
    fn congestion_echoed(&mut self, ack: u64, flight: u64, now: Time) {
        if ack > self.reduced_until && self.recovery != Recovery::Fast {
            self.controller.marked(flight.min(self.controller.window()), now);
            self.reduced_until = self.board.next();
            self.reduced = true;
        }
    }

    /// Fast retransmit and fast recovery: RFC 6675, section 5 with SACK, RFC 6582, section 3.2 without. True
    /// when the acknowledgement lets the window grow.
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
                // RFC 6582, section 3.2, step 3, full acknowledgement: the window stays at the threshold.
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
                    // RFC 6675, section 5, steps (1) and (2): three duplicates, or IsLost of the first
                    // segment by SACK. RFC 6582, section 3.2, step 2: duplicates up to the recovery point
                    // come from segments that the last recovery retransmitted needlessly, and start no new
                    // one.
                    let first_lost = config.sack && self.board.find_losses(config.mss.0);
                    if first_lost || (self.duplicates >= DUPLICATES && ack > self.recovery_point) {
                        self.begin_fast_recovery(flight, now, config);
                    }
                }
                advances
            }
            Recovery::Fast if config.sack => {
                // RFC 6675, section 5, step (B): each acknowledgement up to the recovery point updates
                // scoreboard and pipe.
                self.board.find_losses(config.mss.0);
                false
            }
            Recovery::Fast if advances => {
                // RFC 6582, section 3.2, step 3, partial acknowledgement: the next hole is lost, too, and is
                // retransmitted at once. The window deflates by the amount acknowledged and gets one segment
                // back.
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
                // RFC 5681, section 3.2, step 4: each duplicate means that a segment has left the network.
                self.inflation += if duplicate { config.mss.0 } else { 0 };
                false
            }
            Recovery::Timeout => {
                // RFC 6675, section 5.1: no fast recovery until the recovery point, but SACK still finds
                // losses.
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
        // RFC 6675, section 5, step (4.3); RFC 5681, section 3.2, step 3: the first lost segment is
        // retransmitted regardless of the window.
        self.urgent = true;
        // RFC 3168, section 6.1.2: no second reduction for a window of data that has been marked already.
        if self.board.una() >= self.reduced_until {
            self.controller.lost(flight.min(self.controller.window()), now);
            self.reduced = config.ecn;
        }
        self.reduced_until = self.board.next();
        if !config.sack {
            // RFC 5681, section 3.2, step 3: each duplicate so far is a segment that has left the network.
            self.inflation = u64::from(DUPLICATES) * config.mss.0;
        }
    }

    #[inline]
    fn grow(&mut self, bytes: u64, flight: u64, sample: Option<Span>, now: Time) {
        // The flight before this acknowledgement counts, too: the last `send` may have ended for want of data
        // and still have filled the window.
        let cwnd_limited = self.cwnd_limited || flight >= self.controller.window();
        let (una, next) = (self.board.una(), self.board.next());
        let rtt = self.rtt.smoothed();
        self.controller.acked(&Ack { now, bytes, rtt, sample, una, next, flight, cwnd_limited });
    }

    // -- received data ------------------------------------------------------------------------------

    /// Passes the data of a segment to the receiver. True when it must be acknowledged now.
    #[inline]
    fn data(
        &mut self,
        segment: &Segment,
        marked: bool,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
    ) -> bool {
        if config.ecn {
            // RFC 3168, section 6.1.3: the echo lasts until CWR. A mark on the segment with CWR itself starts
            // a new one, so the order of these two matters.
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
        // RFC 5681, section 4.2: at least every second segment is acknowledged at once, and so is one that
        // arrives out of order or fills a gap.
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

    // -- sending ------------------------------------------------------------------------------------

    /// Sends as much as the windows allow, in the order of RFC 6675, section 4, NextSeg: lost segments, new
    /// data, then segments that are not known to be lost.
    pub fn send(&mut self, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        if self.state != State::Open {
            return;
        }
        self.paced = false;
        self.cwnd_limited = false;
        // The usual case of a receiver. A pacer counts even a call that sends nothing.
        if !self.has_unsent() && self.recovery == Recovery::None && self.board.has_no_lost() && !config.pacing
        {
            self.urgent = false;
            return;
        }
        // RFC 5681, section 4.1: after an idle time of more than one timeout the sender restarts from at most
        // the initial window.
        if self.board.outstanding() == 0
            && self.has_unsent()
            && now.since(self.last_sent) > self.rtt.timeout()
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
            // With nothing in the network the segment leaves even if it exceeds the window. A window below
            // one segment would otherwise stop the connection: without data in flight no acknowledgement
            // arrives that could enlarge it. `urgent` is cleared even if no segment is lost, so that at most
            // one segment exceeds the window.
            let urgent = std::mem::take(&mut self.urgent) && lost.is_some();
            if self.board.pipe() + len > window && self.board.pipe() > 0 && !urgent {
                self.cwnd_limited = len > 0;
                return;
            }
            if !urgent && self.pacer_delays(now, config) {
                // The window, not the application, sets the rate of the pacer, so the window may grow.
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

    #[inline]
    fn has_unsent(&self) -> bool {
        self.end > self.board.next() || (self.closing && !self.fin_sent)
    }

    /// True if new data of `len` bytes, or the FIN alone, may be sent: the receive window has space, and
    /// limited transmit is on or not needed.
    #[inline]
    fn may_send_new(&self, len: u64, config: &TcpConfig) -> bool {
        if !config.limited_transmit && self.recovery == Recovery::None && self.duplicates > 0 {
            return false;
        }
        let fits = self.board.outstanding() + len <= config.receive_window.0;
        (len > 0 && fits) || (len == 0 && self.closing && !self.fin_sent)
    }

    /// Bytes by which the first two duplicate acknowledgements extend the window: RFC 3042, section 2. Zero
    /// with SACK, where each duplicate reduces the pipe.
    #[inline]
    fn limited_transmit(&self, config: &TcpConfig) -> u64 {
        if self.recovery != Recovery::None || config.sack || !config.limited_transmit {
            return 0;
        }
        u64::from(self.duplicates.min(2)) * config.mss.0
    }

    /// True if the pacer delays the next segment. If not, the segment takes its place in the schedule.
    #[inline]
    fn pacer_delays(&mut self, now: Time, config: &TcpConfig) -> bool {
        let rtt = self.rtt.smoothed();
        if !config.pacing || rtt.is_zero() {
            return false;
        }
        if now < self.pace_until {
            self.paced = true;
            return true;
        }
        // The rate is 5/4 of window per round trip, and twice the window in slow start, so that pacing does
        // not limit growth.
        let window = self.controller.window().max(1);
        let (num, den) = if window < self.controller.threshold() { (1, 2) } else { (4, 5) };
        let gap = rtt.scale(config.mss.0 * num, window * den);
        // A pacer that was idle gains at most one segment of credit.
        self.pace_until = self.pace_until.max(now - gap) + gap;
        false
    }

    #[inline]
    fn emit_new(&mut self, len: u64, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        let seq = self.board.next();
        let last = self.closing && seq + len == self.end;
        let mut segment = Segment { seq, len: len as u16, ..self.template };
        if last {
            segment.flags |= Segment::FIN;
            self.fin_sent = true;
        }
        // RFC 3168, section 6.1.2: CWR goes on the first new data segment after a reduction.
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
        // RFC 3168, section 6.1.5: a retransmission must not be ECN-capable.
        self.sent(segment, Ecn::NotCapable, now, config, out);
    }

    /// Sends a segment with data or a FIN, and starts the retransmission timer if it is off.
    #[inline]
    fn sent(
        &mut self,
        mut segment: Segment,
        ecn: Ecn,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        // RFC 9293, section 3.7.1: options count against the segment size, so a full segment has no space for
        // SACK.
        let space = config.mss.0.saturating_sub(u64::from(segment.len));
        self.receiver.acknowledge(&mut segment, config.sack && space >= u64::from(sack_option(3)));
        segment.sent = Segment::stamp(now);
        self.last_sent = now;
        // RFC 6298, section 5, rule (5.1): a segment with data starts the timer if it is not running.
        if self.retransmit_at == Time::NEVER {
            self.retransmit_at = now + self.rtt.timeout();
        }
        self.emit(segment, TCP_HEADER + sack_option(segment.sacks) + u32::from(segment.len), ecn, out);
    }

    #[inline]
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

    #[inline]
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
            offset: saturated(segment.seq.saturating_sub(1)),
            remaining: saturated(self.end.saturating_sub(segment.seq)).max(bytes),
            reserved: self.identity.reserved,
            ..Meta::default()
        };
        out.push(Packet { meta, payload: segment });
    }

    // -- timers -------------------------------------------------------------------------------------

    /// Handles the timers that have expired by `now`. Calling it early is harmless.
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

    /// The retransmission timer has expired: RFC 6298, section 5, rules (5.4) to (5.7).
    fn timed_out(
        &mut self,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.backoffs += 1;
        // RFC 9293, section 3.8.3: too many timeouts in a row close the connection.
        let most = if self.state == State::Open { config.give_up } else { config.give_up_handshake };
        if most > 0 && self.backoffs >= most {
            self.state = State::GivenUp;
            self.acknowledge_at = Time::NEVER;
            self.paced = false;
            outcome.aborted = true;
            return;
        }
        // RFC 6298, section 5, rule (5.5): the timeout doubles.
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
                // With SACK a hole that stays open lets the outstanding data grow far above the window.
                // Most of it has arrived, so half of it must not become the threshold.
                let flight = self.board.outstanding().min(self.controller.window());
                // RFC 5681, section 3.1, equation (4): the threshold is set at the first timeout of a segment
                // only.
                self.controller.timed_out(flight, self.backoffs == 1, now);
                self.reduced = config.ecn;
                self.reduced_until = self.board.next();
                // RFC 6675, section 5.1: everything that is not SACKed counts as lost, up to the recovery
                // point.
                self.board.lose_all();
                self.recovery = Recovery::Timeout;
                self.recovery_point = self.board.next();
                self.duplicates = 0;
                self.inflation = 0;
                // The schedule of the lost window must not delay the first retransmission.
                self.pace_until = now;
                self.send(now, config, out);
            }
            State::Listening | State::GivenUp => {}
        }
    }
}

/// A number of bytes for [`Meta::offset`] and [`Meta::remaining`]. Numbers that do not fit become the
/// largest.
fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

//! One end of a connection: handshake, received data, timers, closing.
//!
//! Its sending half is a [`Sender`]. An end that never sends data has none: the receiver of a one-way
//! transfer gets it with its FIN, so that a connection takes little memory until then.
//!
//! Read in this order: `on_segment` (an arriving segment), `send`, `on_timer` (retransmission and delayed
//! acknowledgements).

use giveway_qdisc::{Causes, Packet, Rate, Span, Time};

use super::TcpConfig;
use super::controller::{Controller, Start};
use super::ecn_mode::EcnMode;
use super::negotiation;
use super::outlet::{Identity, Outlet};
use super::receiver::Arrival;
use super::sender::{Counts, Sender};
use crate::segment::Segment;

/// One end of a connection.
pub struct Endpoint {
    state: State,
    /// A SYN was lost, or its answer: the sender starts with one segment.
    slow_handshake: bool,
    outlet: Outlet,
    /// Set once the application has written or closed.
    sender: Option<Box<Sender>>,
    /// Time at which a delayed acknowledgement is due; never if none is pending.
    acknowledge_at: Time,
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

/// The circumstances of an arriving segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arriving {
    /// True if the network set Congestion Experienced.
    pub marked: bool,
    /// True if the segment still has ECT(1).
    pub ect1: bool,
    /// True if the host handles it as one with a later segment.
    pub joined: bool,
}

impl Endpoint {
    /// An end in the listening state. [`open`](Endpoint::open) makes it the client. `segment` contains the
    /// fields that are the same in every segment that it sends.
    pub fn new(segment: &Segment, identity: Identity, config: &TcpConfig) -> Endpoint {
        Endpoint {
            state: State::Listening,
            slow_handshake: false,
            outlet: Outlet::new(segment, identity, config),
            sender: None,
            acknowledge_at: Time::NEVER,
        }
    }

    // -- calls of the application -------------------------------------------------------------------

    /// Sends a SYN: active open.
    pub fn open(&mut self, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        self.state = State::Connecting(1);
        self.outlet.last_sent = now;
        self.emit_syn(0, negotiation::offer(config, 1), now, out);
    }

    /// Adds `bytes` of application data. They leave with the next [`send`](Endpoint::send).
    pub fn write(&mut self, bytes: u64, config: &TcpConfig) {
        self.sender(config).write(bytes);
    }

    /// Closes this direction: a FIN follows the data.
    pub fn close(&mut self, config: &TcpConfig) {
        self.sender(config).close();
    }

    // -- state --------------------------------------------------------------------------------------

    /// The node of this end and the node of the other.
    pub fn nodes(&self) -> (u16, u16) {
        (self.outlet.identity.from, self.outlet.identity.to)
    }
    /// Data bytes received in order.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.outlet.receiver.delivered()
    }
    /// Data bytes received, in order or not, each counted once.
    pub fn arrived(&self) -> u64 {
        self.outlet.receiver.arrived_bytes()
    }
    /// Data bytes that the peer has acknowledged cumulatively.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.acknowledged_bytes())
    }
    /// True if this end has sent all its data and its FIN, has them acknowledged, and has received
    /// the peer's.
    #[inline]
    pub fn finished(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.finished()) && self.outlet.receiver.finished()
    }
    /// Counters of this sender so far.
    pub fn counts(&self) -> Counts {
        self.sender.as_ref().map_or(Counts::default(), |sender| sender.counts())
    }
    /// Retransmissions of this sender by cause.
    pub fn causes(&self) -> Causes {
        self.sender.as_ref().map_or(Causes::default(), |sender| sender.causes())
    }
    /// Rate of the pacer, and latest sample of the delivery rate; zero without them.
    pub fn rates(&self, config: &TcpConfig) -> (Rate, Rate) {
        let rtt = self.outlet.rtt.smoothed();
        self.sender.as_ref().map_or_else(Default::default, |sender| sender.rates(rtt, config))
    }
    /// The earliest time at which [`on_timer`](Endpoint::on_timer) must be called; never if no timer is set.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.outlet.retransmit_at.min(self.acknowledge_at).min(self.outlet.wake_at)
    }
    /// The congestion controller; `None` before the application has written.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.sender.as_ref().map(|sender| sender.controller())
    }
    /// FlightSize: sequence numbers sent and not acknowledged cumulatively.
    pub fn flight(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.flight())
    }
    /// Smoothed round-trip time; zero before the first measurement.
    pub fn smoothed_rtt(&self) -> Span {
        self.outlet.rtt.smoothed()
    }
    /// Heap memory of this end, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.outlet.receiver.heap_bytes() + self.sender.as_ref().map_or(0, |sender| sender.bytes())
    }

    /// Frees memory that an end without segments in the network does not need.
    pub fn rest(&mut self) {
        self.outlet.receiver.rest();
        if let Some(sender) = &mut self.sender {
            sender.rest();
        }
    }

    /// The sending half, which exists from now on.
    fn sender(&mut self, config: &TcpConfig) -> &mut Sender {
        let start = self.start(config);
        self.sender.get_or_insert_with(|| Box::new(Sender::new(start, config)))
    }

    /// The parameters of the congestion controller.
    fn start(&self, config: &TcpConfig) -> Start {
        let seed = self.outlet.identity.flow.0;
        match self.slow_handshake {
            // RFC 5681, section 3.1: after a lost SYN or SYN-ACK the initial window is at most one segment.
            true => Start { initial_window: config.mss.0, ..config.start(seed) },
            false => config.start(seed),
        }
    }

    // -- arriving segments --------------------------------------------------------------------------

    /// Handles an arriving segment. Segments to send go to `out`.
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        arriving: Arriving,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let opens = self.state != State::Open;
        if opens && !self.handshake(segment, arriving, now, config, &mut outcome, out) {
            return outcome;
        }
        let counted;
        let mut segment = segment;
        if opens
            && self.outlet.mode == EcnMode::Accurate
            && is_first(segment)
            && let Some(ace) = negotiation::confirmed(segment.ace)
        {
            counted = Segment { ace, ..*segment };
            segment = &counted;
        }
        if segment.has(Segment::SYN) {
            // A SYN on an open connection: our acknowledgement of the handshake was lost. Repeat it.
            self.emit_ack(config, out);
            return outcome;
        }
        // Without a sender there is nothing that an acknowledgement could acknowledge.
        if segment.has(Segment::ACK)
            && let Some(sender) = &mut self.sender
        {
            sender.on_ack(segment, &mut self.outlet, now, config);
        }
        let acknowledge = self.data(segment, arriving, now, config, &mut outcome, out);
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
        arriving: Arriving,
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
                self.outlet.last_sent = now;
                if tries == 1 {
                    // A repeated SYN may offer less, but the first one decides.
                    self.outlet.mode = negotiation::accepted(segment.ace, config);
                }
                let answer = negotiation::answer(self.outlet.mode, arriving.marked, tries);
                self.emit_syn(Segment::ACK, answer, now, out);
                false
            }
            // Any segment of the client but a SYN shows that it has our SYN: its acknowledgement may be lost
            // while data arrive.
            State::Accepting(tries) => {
                let accurate = self.outlet.mode == EcnMode::Accurate;
                if accurate && is_first(segment) && negotiation::confirmed(segment.ace).is_none() {
                    self.outlet.mode = EcnMode::Off;
                }
                self.on_open(tries, now, config);
                outcome.connected = true;
                true
            }
            State::Connecting(tries) if segment.has(Segment::SYN | Segment::ACK) => {
                self.outlet.mode = negotiation::agreed(negotiation::offer(config, tries), segment.ace);
                if self.outlet.mode == EcnMode::Accurate {
                    self.outlet.confirmation = Some(negotiation::code(arriving.marked));
                }
                self.on_open(tries, now, config);
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

    fn on_open(&mut self, tries: u8, now: Time, config: &TcpConfig) {
        self.state = State::Open;
        self.outlet.backoffs = 0;
        self.outlet.retransmit_at = Time::NEVER;
        // RFC 6298, section 3 (Karn): a SYN that was retransmitted gives no round-trip sample.
        if tries == 1 {
            self.outlet.rtt.add_sample(now.since(self.outlet.last_sent), config);
        } else {
            self.outlet.rtt.after_slow_handshake(config);
            self.slow_handshake = true;
            let start = self.start(config);
            if let Some(sender) = &mut self.sender {
                sender.restart(start, config);
            }
        }
    }

    // -- received data ------------------------------------------------------------------------------

    /// Passes the data of a segment to the receiver. True when it must be acknowledged now.
    #[inline]
    fn data(
        &mut self,
        segment: &Segment,
        arriving: Arriving,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
        out: &mut Vec<Packet<Segment>>,
    ) -> bool {
        let mut at_once = false;
        if self.outlet.mode != EcnMode::Off {
            at_once = self.marks(segment, arriving, config, out);
        }
        let len = segment.seq_len();
        if len == 0 {
            return false;
        }
        let before = self.outlet.receiver.delivered();
        let arrival = self.outlet.receiver.on_arrival(segment.seq, len, segment.has(Segment::FIN));
        outcome.received = self.outlet.receiver.delivered() > before;
        outcome.peer_closed = self.outlet.receiver.finished() && arrival != Arrival::Duplicate;
        if arrival == Arrival::Duplicate
            && let Some(reports) = &mut self.outlet.reports
        {
            reports.on_duplicate(segment.seq, segment.seq + len, config);
        }
        // RFC 5681, section 4.2: at least every second segment is acknowledged at once, and so is one that
        // arrives out of order or fills a gap.
        at_once |= match arrival {
            // The last of the segments that count as one is acknowledged for all of them.
            Arrival::InOrder if arriving.joined && !segment.has(Segment::FIN) => return false,
            Arrival::InOrder => {
                !config.delayed_ack || self.outlet.receiver.pending() >= 2 || segment.has(Segment::FIN)
            }
            Arrival::OutOfOrder | Arrival::Duplicate => true,
        };
        let (delivered, rtt) = (self.outlet.receiver.delivered(), self.outlet.rtt.smoothed());
        if let Some(reports) = &mut self.outlet.reports {
            at_once |= reports.is_urgent(delivered, rtt, now, config);
        }
        // RFC 9293, section 3.8.6.3: an acknowledgement may be delayed by at most half a second. The timer
        // starts with the first segment that waits.
        if !at_once && self.acknowledge_at == Time::NEVER {
            self.acknowledge_at = now + config.delayed_ack_timer;
        }
        at_once
    }

    /// Handles the ECN fields of a segment. True if it must be acknowledged at once.
    fn marks(
        &mut self,
        segment: &Segment,
        arriving: Arriving,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) -> bool {
        let Arriving { marked, ect1, .. } = arriving;
        match &mut self.outlet.reports {
            Some(reports) if self.outlet.mode == EcnMode::Accurate => {
                reports.count(u32::from(segment.len), marked, ect1);
                false
            }
            Some(reports) if config.echoes_precisely() => {
                // RFC 8257, section 3.2: segments that arrived before the change are acknowledged with the
                // old echo.
                let changed = segment.len > 0 && reports.marking != marked;
                if changed {
                    reports.marking = marked;
                    if self.outlet.receiver.pending() > 0 {
                        self.acknowledge_at = Time::NEVER;
                        self.emit_ack(config, out);
                    }
                    self.outlet.echo = marked;
                }
                changed
            }
            _ => {
                // RFC 3168, section 6.1.3: the echo lasts until CWR. A mark on the segment with CWR itself
                // starts a new one, so the order of these two matters.
                if segment.has(Segment::CWR) {
                    self.outlet.echo = false;
                }
                self.outlet.echo |= marked;
                false
            }
        }
    }

    // -- sending ------------------------------------------------------------------------------------

    /// Sends as much as the windows allow.
    #[inline]
    pub fn send(&mut self, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        if self.state != State::Open {
            return;
        }
        // A pacer counts even a call that sends nothing.
        if self.sender.is_none() && config.pacing {
            self.sender(config);
        }
        if let Some(sender) = &mut self.sender {
            sender.send(&mut self.outlet, now, config, out);
        }
    }

    #[inline]
    fn emit_ack(&mut self, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        let position = self.position();
        self.outlet.emit_ack(position, config, out);
    }

    /// Sends a SYN and starts the retransmission timer.
    fn emit_syn(&mut self, flags: u16, ecn: u8, now: Time, out: &mut Vec<Packet<Segment>>) {
        self.outlet.retransmit_at = now + self.outlet.rtt.timeout();
        let (_, end) = self.position();
        self.outlet.emit_syn(flags, ecn, end, out);
    }

    /// The first sequence number that was never sent, and the one after the last byte that the application
    /// has written.
    #[inline]
    fn position(&self) -> (u64, u64) {
        self.sender.as_ref().map_or((1, 1), |sender| sender.position())
    }

    // -- timers -------------------------------------------------------------------------------------

    /// Handles the timers that have expired by `now`. Calling it early is harmless.
    pub fn on_timer(&mut self, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) -> Outcome {
        let mut outcome = Outcome::default();
        if now >= self.acknowledge_at {
            self.acknowledge_at = Time::NEVER;
            self.emit_ack(config, out);
        }
        if now >= self.outlet.retransmit_at {
            self.outlet.retransmit_at = Time::NEVER;
            self.on_timeout(now, config, &mut outcome, out);
        }
        if now >= self.outlet.wake_at
            && let Some(sender) = &mut self.sender
        {
            sender.on_timer(&mut self.outlet, now, config, out);
            self.send(now, config, out);
        }
        outcome
    }

    /// The retransmission timer has expired: RFC 6298, section 5, rules (5.4) to (5.7).
    fn on_timeout(
        &mut self,
        now: Time,
        config: &TcpConfig,
        outcome: &mut Outcome,
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.outlet.backoffs += 1;
        // RFC 9293, section 3.8.3: too many timeouts in a row close the connection.
        let most = if self.state == State::Open { config.give_up } else { config.give_up_handshake };
        if most > 0 && self.outlet.backoffs >= most {
            self.state = State::GivenUp;
            self.acknowledge_at = Time::NEVER;
            self.outlet.wake_at = Time::NEVER;
            outcome.aborted = true;
            return;
        }
        // RFC 6298, section 5, rule (5.5): the timeout doubles.
        self.outlet.rtt.back_off(config);
        match self.state {
            State::Connecting(tries) => {
                let tries = tries.saturating_add(1);
                self.state = State::Connecting(tries);
                self.emit_syn(0, negotiation::offer(config, tries), now, out);
            }
            State::Accepting(tries) => {
                let tries = tries.saturating_add(1);
                self.state = State::Accepting(tries);
                let answer = negotiation::answer(self.outlet.mode, false, tries);
                self.emit_syn(Segment::ACK, answer, now, out);
            }
            State::Open => {
                let first = self.outlet.backoffs == 1;
                self.sender(config).on_timeout(first, now, config);
                self.send(now, config, out);
            }
            State::Listening | State::GivenUp => {}
        }
    }
}

/// True for a segment that can be the first of a client after the handshake, which has a code in its counter.
fn is_first(segment: &Segment) -> bool {
    segment.seq <= 1
}

//! The sending half of an endpoint: which segments leave, loss recovery, and the window.
//!
//! Read in this order: `on_ack` and `recovery` (an acknowledgement), `send` (the segments that may
//! leave), `on_timeout`. Recovery by time is in `sender/by_time.rs`. What only some controllers and that
//! recovery need is in [`Extra`], which most senders do not have.

mod by_time;
mod extra;
mod taken;
mod windows;

use giveway_qdisc::{Causes, Ecn, Packet, Rate, Span, Time};

use self::extra::Extra;
use self::taken::take;
use super::TcpConfig;
use super::controller::{Ack, Controller, Loss, Marks, Start};
use super::ecn_mode::EcnMode;
use super::outlet::Outlet;
use super::pacer;
use super::scoreboard::{Retransmission, Scoreboard};
use crate::segment::Segment;

/// The number of duplicate acknowledgements that indicates a loss: RFC 5681, section 3.2.
const DUPLICATES: u8 = 3;

/// The sending half of an endpoint.
pub struct Sender {
    controller: Box<dyn Controller>,
    board: Scoreboard,
    /// The sequence number after the last byte that the application has written.
    end: u64,
    recovery: Recovery,
    /// The application has closed this direction.
    closing: bool,
    fin_sent: bool,
    /// The first lost segment leaves even if the window is full.
    urgent: bool,
    /// The window, and not the application, ended the last call of `send`.
    cwnd_limited: bool,
    /// ECN sender: set CWR on the next new segment.
    reduced: bool,
    /// Duplicate acknowledgements in a row, up to 255.
    duplicates: u8,
    /// Bytes by which duplicate acknowledgements inflate the window (NewReno only): at most a receive window.
    inflation: u32,
    /// The recovery point: the recovery ends when it is acknowledged, and no new one starts below it.
    recovery_point: u64,
    /// ECN sender: the window has been reduced for everything sent below this sequence number.
    reduced_until: u64,
    /// Segments leave one after the other at the rate of the pacer.
    paces: bool,
    /// The counters of [`Counts`], which take less space apart.
    packets: u64,
    retransmitted: u32,
    after_timeout: u32,
    timeouts: u32,
    /// Set if the controller or the recovery needs it.
    extra: Option<Box<Extra>>,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Data segments sent, retransmissions included.
    pub packets: u64,
    /// Data segments retransmitted.
    pub retransmitted: u32,
    /// Those among them during the recovery from a timeout.
    pub after_timeout: u32,
    /// Expirations of the retransmission timer on an open connection.
    pub timeouts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// Fast recovery until `recovery_point` is acknowledged.
    Fast,
    /// Recovery from a timeout until `recovery_point` is acknowledged: slow start over what was sent.
    Timeout,
}

impl Sender {
    /// A sender without data, sent or to send.
    pub fn new(start: Start, config: &TcpConfig) -> Sender {
        let controller = config.congestion.build(start);
        let needs = controller.needs();
        Sender {
            controller,
            paces: config.pacing || needs.pacing,
            extra: Extra::new(needs, config),
            board: Scoreboard::new(1),
            end: 1,
            recovery: Recovery::None,
            closing: false,
            fin_sent: false,
            urgent: false,
            cwnd_limited: false,
            reduced: false,
            duplicates: 0,
            inflation: 0,
            recovery_point: 0,
            reduced_until: 1,
            packets: 0,
            retransmitted: 0,
            after_timeout: 0,
            timeouts: 0,
        }
    }

    /// Adds `bytes` of application data.
    pub fn write(&mut self, bytes: u64) {
        self.end = self.end.saturating_add(bytes);
    }
    /// Closes this direction: a FIN follows the data.
    pub fn close(&mut self) {
        self.closing = true;
    }
    /// Starts again with another window, before anything is sent.
    pub fn restart(&mut self, start: Start, config: &TcpConfig) {
        self.controller = config.congestion.build(start);
    }
    /// Frees the memory of segments if none is outstanding.
    pub fn rest(&mut self) {
        self.board.rest();
        if let Some(extra) = &mut self.extra {
            extra.rest();
        }
    }

    /// Data bytes that the peer has acknowledged cumulatively.
    pub fn acknowledged_bytes(&self) -> u64 {
        // The SYN takes sequence number 0, and the FIN one after the data: neither is data.
        (self.board.una() - 1).min(self.end - 1)
    }
    /// True if all data and the FIN are sent and acknowledged.
    #[inline]
    pub fn finished(&self) -> bool {
        self.fin_sent && self.board.outstanding() == 0
    }
    /// Retransmissions by cause, as far as this sender distinguishes them.
    pub fn causes(&self) -> Causes {
        let (probes, needless) = self.extra.as_ref().map_or((0, 0), |extra| (extra.probes, extra.needless));
        Causes { after_timeout: self.after_timeout.into(), probes, needless }
    }
    /// Counters so far.
    pub fn counts(&self) -> Counts {
        let Sender { packets, retransmitted, after_timeout, timeouts, .. } = *self;
        Counts { packets, retransmitted, after_timeout, timeouts }
    }
    /// The first sequence number that was never sent, and the one after the last byte that the application
    /// has written.
    #[inline]
    pub fn position(&self) -> (u64, u64) {
        (self.board.next(), self.end)
    }
    /// True if segments leave at the rate of a pacer.
    #[inline]
    pub fn paces(&self) -> bool {
        self.paces
    }
    /// The congestion controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// FlightSize: sequence numbers sent and not acknowledged cumulatively.
    pub fn flight(&self) -> u64 {
        self.board.outstanding()
    }
    /// Memory, bytes.
    pub fn bytes(&self) -> usize {
        let extra = self.extra.as_ref().map_or(0, |extra| extra.bytes());
        size_of::<Sender>() + self.board.heap_bytes() + size_of_val(&*self.controller) + extra
    }
    /// The congestion window, or what a reduction under way leaves of it, bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        match &self.extra {
            None => self.controller.window(),
            Some(extra) => extra.window(&*self.controller),
        }
    }

    // -- acknowledgements ---------------------------------------------------------------------------

    /// Handles the acknowledgement of an arriving segment.
    #[inline]
    pub fn on_ack(&mut self, segment: &Segment, outlet: &mut Outlet, now: Time, config: &TcpConfig) {
        // RFC 9293, section 3.10.7.4: an acknowledgement of data that was never sent, or one older than the
        // last, is ignored.
        if segment.ack > self.board.next() || segment.ack < self.board.una() {
            return;
        }
        let advance = segment.ack - self.board.una();
        let advances = advance > 0;
        // FlightSize before this acknowledgement, from which the controller reduces its window.
        let flight = self.board.outstanding();
        let taken = match &mut self.extra {
            None => take(&mut self.board, segment, config.sack, &mut ()),
            Some(extra) => extra.take(&mut self.board, segment, config.sack, self.recovery_point, now),
        };
        let sample = taken.measured.map(|sent| now.since(sent));
        if let Some(rtt) = sample {
            outlet.rtt.add_sample(rtt, config);
        }
        if advances {
            outlet.backoffs = 0;
            // RFC 6298, section 5, rules (5.2) and (5.3): new data acknowledged restarts the timer, and the
            // last acknowledgement turns it off.
            outlet.retransmit_at =
                if self.board.outstanding() > 0 { now + outlet.rtt.timeout() } else { Time::NEVER };
        }
        let mode = outlet.mode;
        let congested = mode != EcnMode::Off
            && self.is_congested(segment, advance, mode, outlet.rtt.smoothed(), now, config);
        if congested {
            self.congestion_echoed(segment.ack, flight, now, config);
        }
        // RFC 5681, section 2: a duplicate acknowledgement acknowledges nothing new, carries no data, SYN or
        // FIN, and comes while data is outstanding. RFC 6675, section 2: with SACK it must report something
        // new.
        let duplicate = !advances
            && self.board.outstanding() > 0
            && segment.seq_len() == 0
            && if config.sack { taken.selective > 0 } else { true };
        let grows = if config.rack {
            self.recovery_by_time(segment, advances, &taken, flight, outlet, now, config)
        } else {
            self.recovery(segment.ack, advances, duplicate, flight, now, config)
        };
        if self.extra.is_some() {
            self.observe_windows(outlet.rtt.smoothed(), now, config);
        }
        if grows && !congested && self.is_validated() {
            self.grow(advance, flight, sample, outlet.rtt.smoothed(), now);
        }
        if self.extra.is_some() {
            self.feed_back(flight, sample, outlet.rtt.smoothed(), now);
        }
    }

    /// The peer echoes a mark. RFC 3168, section 6.1.2: the sender reacts at most once per window of data.
    fn congestion_echoed(&mut self, ack: u64, flight: u64, now: Time, config: &TcpConfig) {
        if ack > self.reduced_until && self.recovery != Recovery::Fast {
            let window = self.controller.window();
            let loss = Loss { now, flight: flight.min(window), next: self.board.next() };
            self.controller.on_mark(&loss);
            self.reduced_until = self.board.next();
            self.reduced = true;
            if config.prr
                && let Some(extra) = &mut self.extra
            {
                extra.begin_reduction(&self.board, window, &*self.controller);
            }
        }
    }

    /// True if an acknowledgement reports a mark.
    #[inline]
    fn is_congested(
        &mut self,
        segment: &Segment,
        acked: u64,
        mode: EcnMode,
        rtt: Span,
        now: Time,
        config: &TcpConfig,
    ) -> bool {
        let Some(extra) = &mut self.extra else { return segment.has(Segment::ECE) };
        let marked = extra.count_marks(segment, acked, mode, config.mss.0);
        // A control that needs counts of marks, without them, answers as a classic one does.
        if extra.needs.marks && (mode == EcnMode::Accurate || config.echoes_precisely()) {
            let (una, next) = (self.board.una(), self.board.next());
            self.controller.on_mark_counts(&Marks { now, acked, marked, una, next, rtt });
            if extra.needs.own_marks {
                return false;
            }
        }
        marked > 0 || (mode == EcnMode::Classic && segment.has(Segment::ECE))
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
                    (false, true) => self.duplicates.saturating_add(1),
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
                self.inflation = self.inflation.saturating_sub(left as u32);
                if left >= config.mss.0 {
                    self.inflation += config.mss.0 as u32;
                }
                false
            }
            Recovery::Fast => {
                // RFC 5681, section 3.2, step 4: each duplicate means that a segment has left the network.
                self.inflation += if duplicate { config.mss.0 as u32 } else { 0 };
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
        // RFC 6675, section 5, step (4.1): RecoveryPoint = HighData.
        self.recovery_point = self.board.next();
        self.board.begin_recovery();
        self.board.lose_first();
        // RFC 6675, section 5, step (4.3); RFC 5681, section 3.2, step 3: the first lost segment is
        // retransmitted regardless of the window.
        self.urgent = true;
        // RFC 3168, section 6.1.2: no second reduction for a window of data that has been marked already.
        if self.board.una() >= self.reduced_until {
            let flight = self.used_by(flight);
            self.controller.on_loss(&Loss { now, flight, next: self.board.next() });
            self.reduced = true;
        }
        self.reduced_until = self.board.next();
        if !config.sack {
            // RFC 5681, section 3.2, step 3: each duplicate so far is a segment that has left the network.
            self.inflation = u32::from(DUPLICATES) * config.mss.0 as u32;
        }
    }

    #[inline]
    fn grow(&mut self, bytes: u64, flight: u64, sample: Option<Span>, rtt: Span, now: Time) {
        // The flight before this acknowledgement counts, too: the last `send` may have ended for want of data
        // and still have filled the window.
        let cwnd_limited = self.cwnd_limited || flight >= self.controller.window();
        let (una, next) = (self.board.una(), self.board.next());
        self.controller.on_ack(&Ack { now, bytes, rtt, sample, una, next, flight, cwnd_limited });
    }

    // -- sending ------------------------------------------------------------------------------------

    /// Sends as much as the windows allow, in the order of RFC 6675, section 4, NextSeg: lost segments, new
    /// data, then segments that are not known to be lost.
    #[inline]
    pub fn send(
        &mut self,
        outlet: &mut Outlet,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        outlet.wake_at = Time::NEVER;
        self.cwnd_limited = false;
        // The usual case of a receiver. A pacer counts even a call that sends nothing.
        if !self.has_unsent() && self.recovery == Recovery::None && self.board.has_no_lost() && !self.paces {
            self.urgent = false;
        } else {
            self.send_segments(outlet, now, config, out);
        }
        if self.extra.is_some() {
            self.sent_all(outlet, now, config);
            self.validate(outlet, now, config);
        }
    }

    fn send_segments(
        &mut self,
        outlet: &mut Outlet,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        // RFC 5681, section 4.1: after an idle time of more than one timeout the sender restarts from at most
        // the initial window.
        if self.board.outstanding() == 0
            && self.has_unsent()
            && now.since(outlet.last_sent) > outlet.rtt.timeout()
        {
            self.on_idle(outlet, now, config);
        }
        let window = self.window() + u64::from(self.inflation) + self.limited_transmit(config);
        if config.gso.0 > 0 && !self.paces && self.gathers(window, config) {
            // The window, not the application, limits the sender.
            self.cwnd_limited = true;
            self.urgent = false;
            return;
        }
        loop {
            let lost = if self.sends_new_first() { None } else { self.board.next_lost() };
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
            if !urgent && self.pacer_delays(outlet, now, config) {
                // The window, not the application, sets the rate of the pacer, so the window may grow.
                self.cwnd_limited = len > 0;
                return;
            }
            match lost {
                Some(lost) => self.emit_retransmission(lost, outlet, now, config, out),
                None if self.may_send_new(len, config) => self.emit_new(len, outlet, now, config, out),
                None if self.recovery == Recovery::Fast && config.sack && !config.rack => {
                    let Some(rescue) = self.board.next_rescue() else { return };
                    self.emit_retransmission(rescue, outlet, now, config, out);
                }
                None => return,
            }
        }
    }

    /// True if the sender waits until it may send more data back to back: [`TcpConfig::gso`]. It waits only
    /// while acknowledgements will come that let it send more. A share of the window that one burst may take
    /// is in Linux `tcp_tso_win_divisor`, with the default 3 (ip-sysctl).
    fn gathers(&self, window: u64, config: &TcpConfig) -> bool {
        const WINDOW_DIVISOR: u64 = 3;
        let (pipe, left) = (self.board.pipe(), self.end.saturating_sub(self.board.next()));
        let sends_new_data = self.recovery == Recovery::None && self.board.has_no_lost() && left > 0;
        let receivable = self.receivable(config);
        let share = window.min(receivable) / WINDOW_DIVISOR;
        let burst = config.gso.0.min(share).max(config.mss.0).min(left);
        let fits = pipe + burst <= window && self.board.outstanding() + burst <= receivable;
        sends_new_data && pipe > 0 && !fits
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
        let fits = self.board.outstanding() + len <= self.receivable(config);
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
    fn pacer_delays(&mut self, outlet: &mut Outlet, now: Time, config: &TcpConfig) -> bool {
        if !self.paces {
            return false;
        }
        let (window, rtt) = (self.window(), outlet.rtt.smoothed());
        let gap = pacer::gap(&*self.controller, window, rtt, config.mss.0, config.ratios());
        let (Some(gap), Some(extra)) = (gap, &mut self.extra) else { return false };
        match extra.pacer.delays(gap, config.bursts(extra.needs.most_burst), now) {
            Some(until) => {
                outlet.wake_at = until;
                true
            }
            None => false,
        }
    }

    /// Rate of the pacer, and latest sample of the delivery rate; zero without them. `rtt` is the smoothed
    /// round-trip time.
    pub fn rates(&self, rtt: Span, config: &TcpConfig) -> (Rate, Rate) {
        let gap = pacer::gap(&*self.controller, self.window(), rtt, config.mss.0, config.ratios());
        let delivery = self.extra.as_ref().and_then(|extra| extra.delivery.as_ref());
        pacer::rates(gap.filter(|_| self.paces), config.mss.0, delivery)
    }

    #[inline]
    fn emit_new(
        &mut self,
        len: u64,
        outlet: &mut Outlet,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        let seq = self.board.next();
        let last = self.closing && seq + len == self.end;
        let mut segment = outlet.segment(seq);
        segment.len = len as u16;
        if last {
            segment.flags |= Segment::FIN;
            self.fin_sent = true;
        }
        // RFC 3168, section 6.1.2: CWR goes on the first new data segment after a reduction. RFC 9768,
        // section 3.1.5: with accurate ECN the flag has another use.
        if self.reduced && len > 0 {
            if outlet.mode == EcnMode::Classic {
                segment.flags |= Segment::CWR;
            }
            self.reduced = false;
        }
        if let Some(extra) = &mut self.extra {
            extra.sends(&self.board, &mut *self.controller, segment.seq_len(), now);
        }
        self.board.push(segment.seq_len() as u32, now);
        self.packets += u64::from(len > 0);
        let ecn = match (outlet.mode, &self.extra) {
            (EcnMode::Off, _) => Ecn::NotCapable,
            // RFC 9331, section 4.1: ECT(1) only with accurate feedback.
            (EcnMode::Accurate, Some(extra)) if extra.needs.ect1 => Ecn::Ect1,
            (EcnMode::Classic | EcnMode::Accurate, _) => Ecn::Ect0,
        };
        outlet.sent(segment, ecn, self.end, now, config, out);
    }

    fn emit_retransmission(
        &mut self,
        lost: Retransmission,
        outlet: &mut Outlet,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        self.board.on_retransmission(lost, now);
        let end = lost.seq + u64::from(lost.len);
        if let Some(extra) = &mut self.extra {
            extra.sends_again(&self.board, lost, now);
        }
        let fin = self.fin_sent && end > self.end;
        let mut segment = outlet.segment(lost.seq);
        segment.len = (lost.len - u32::from(fin)) as u16;
        if fin {
            segment.flags |= Segment::FIN;
        }
        self.packets += u64::from(segment.len > 0);
        self.retransmitted += u32::from(segment.len > 0);
        self.after_timeout += u32::from(segment.len > 0 && self.recovery == Recovery::Timeout);
        // Linux restarts the timer when the first segment leaves again, so that its second loss has the whole
        // timeout to be noticed. RFC 6298 does not.
        if config.rack && lost.seq == self.board.una() {
            outlet.retransmit_at = Time::NEVER;
        }
        // RFC 3168, section 6.1.5: a retransmission must not be ECN-capable.
        outlet.sent(segment, Ecn::NotCapable, self.end, now, config, out);
    }

    /// The retransmission timer has expired on an open connection: RFC 6298, section 5, rules (5.4) and
    /// (5.6). `first` is false if it expired before for the same data. The caller then calls
    /// [`send`](Sender::send).
    pub fn on_timeout(&mut self, first: bool, now: Time, config: &TcpConfig) {
        self.timeouts += 1;
        if config.rack {
            return self.on_timeout_by_time(first, now, config);
        }
        // With SACK a hole that stays open lets the outstanding data grow far above the window.
        // Most of it has arrived, so half of it must not become the threshold.
        let flight = self.board.outstanding().min(self.controller.window());
        // RFC 5681, section 3.1, equation (4): the threshold is set at the first timeout of a segment
        // only.
        self.controller.on_timeout(&Loss { now, flight, next: self.board.next() }, first);
        self.reduced = true;
        self.reduced_until = self.board.next();
        // RFC 6675, section 5.1: everything that is not SACKed counts as lost, up to the recovery
        // point.
        self.board.lose_all();
        self.recovery = Recovery::Timeout;
        self.recovery_point = self.board.next();
        self.duplicates = 0;
        self.inflation = 0;
        // The schedule of the lost window must not delay the first retransmission.
        if let Some(extra) = &mut self.extra {
            extra.pacer.restart(now);
        }
    }
}

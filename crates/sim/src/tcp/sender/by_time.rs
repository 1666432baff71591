//! Recovery of a sender by time, as a current Linux has it: RACK-TLP (RFC 8985) finds losses, proportional
//! rate reduction (RFC 9937) sets the window, D-SACK (RFC 2883) and F-RTO (RFC 5682) take back what was
//! spurious.
//!
//! # Deviations
//! - A recovery is taken back if D-SACK reports all its retransmissions as needless. Linux does so already
//!   when the timestamp of an acknowledgement shows that it answers an original; timestamps are not echoed
//!   here.

use giveway_qdisc::{Packet, Span, Time};

use super::extra::{Frto, Undo};
use super::taken::AckEffect;
use super::{Recovery, Sender};
use crate::segment::Segment;
use crate::tcp::TcpConfig;
use crate::tcp::controller::{Loss, Phase};
use crate::tcp::outlet::Outlet;

impl Sender {
    /// Updates the recovery after an acknowledgement: RFC 8985, section 6.2. True when it lets the window
    /// grow.
    #[expect(clippy::too_many_arguments, reason = "as `recovery`, with the segment and its effects")]
    pub(super) fn recovery_by_time(
        &mut self,
        segment: &Segment,
        advances: bool,
        taken: &AckEffect,
        flight: u64,
        outlet: &mut Outlet,
        now: Time,
        config: &TcpConfig,
    ) -> bool {
        let Some(extra) = self.extra.as_deref_mut() else { return advances };
        let (una, next) = (self.board.una(), self.board.next());
        let dsack = segment.has(Segment::DSACK);
        let Some(rack) = &mut extra.rack else { return advances };
        if let Some(sent) = taken.measured {
            rack.add_sample(now.since(sent));
        }
        if dsack {
            rack.on_dsack(una, next);
            extra.needless += 1;
            // RFC 2883, section 4: the first block is the segment that arrived twice. What was acknowledged
            // before the reduction was not retransmitted in it.
            let repeated = segment.blocks().next().map_or(0, |(_, end)| end);
            if let Some(undo) = &mut extra.undo
                && repeated > undo.una
            {
                undo.retransmitted = undo.retransmitted.saturating_sub(1);
            }
        }
        // RFC 8985, section 7.4.2: a duplicate without new SACK blocks is the answer to the second copy of
        // the probe.
        let pure = !advances && taken.selective == 0 && segment.seq_len() == 0;
        let repaired = rack.on_probe_ack(segment.ack, dsack, pure);
        if advances {
            // RFC 8985, section 7.2: each advance of the acknowledgement schedules the probe again.
            extra.rearm = true;
        }
        self.end_recovery(segment.ack);
        self.take_back(now);
        self.check_timeout(segment.ack, advances, taken.selective, now);
        let lost = self.detect_losses(outlet.rtt.smoothed(), now, config);
        if self.recovery == Recovery::None {
            if self.board.next_lost().is_some() {
                self.begin_recovery_by_time(flight, now, config);
            } else if repaired {
                // RFC 8985, section 7.4.2: the probe has repaired the loss; the window shrinks all the same.
                self.shrink(flight, now, config);
            }
        }
        // RFC 9937 calls an acknowledgement safe if it advances without a further loss.
        self.reduce(advances && lost == 0, config);
        let reducing = self.extra.as_ref().is_some_and(|own| own.prr.is_some());
        advances && self.recovery != Recovery::Fast && !reducing
    }

    /// Ends a recovery, and a reduction, whose data are acknowledged.
    fn end_recovery(&mut self, ack: u64) {
        let Some(extra) = self.extra.as_deref_mut() else { return };
        if self.recovery != Recovery::None && ack >= self.recovery_point {
            self.recovery = Recovery::None;
            (extra.prr, extra.frto) = (None, None);
            if let Some(rack) = &mut extra.rack {
                rack.on_recovery_end();
            }
        }
        if self.recovery == Recovery::None && extra.prr.is_some() && ack >= self.reduced_until {
            extra.prr = None;
        }
        if self.recovery == Recovery::None && ack >= self.recovery_point && extra.prr.is_none() {
            // The retransmissions of a recovery that is over may still be reported as needless, within a
            // round trip.
            if extra.undo.is_some_and(|undo| !undo.any) {
                extra.undo = None;
            }
        }
    }

    /// Takes the last reduction back if all its retransmissions were needless: RFC 2883, section 5.
    fn take_back(&mut self, now: Time) {
        let undo = self.extra.as_ref().and_then(|extra| extra.undo);
        if undo.is_some_and(|undo| undo.any && undo.retransmitted == 0) {
            self.on_spurious(now);
        }
    }

    /// The last timeout or recovery was spurious: its reduction is taken back, and the segments that count as
    /// lost do not after all.
    fn on_spurious(&mut self, now: Time) {
        let Some(extra) = self.extra.as_deref_mut() else { return };
        if let Some(undo) = extra.undo.take() {
            self.reduced_until = undo.reduced_until;
            self.controller.on_undo(undo.window, undo.threshold, now);
            extra.prr = None;
        }
        self.board.find_all();
        if let Some(rack) = &mut extra.rack {
            rack.on_spurious();
        }
        self.recovery = Recovery::None;
    }

    /// F-RTO with SACK: RFC 5682, section 3.1.
    fn check_timeout(&mut self, ack: u64, advances: bool, selective: u64, now: Time) {
        let Some(extra) = self.extra.as_deref_mut() else { return };
        let Some(frto) = extra.frto else { return };
        if extra.originals > 0 && ack < self.recovery_point {
            // RFC 5682, section 3.1, step 3b: a segment that was sent once, and before the timeout, has
            // arrived. So the timeout was spurious. New data that was sent since says nothing.
            extra.frto = None;
            self.on_spurious(now);
            return;
        }
        match frto {
            // RFC 5682, section 3.1, step 2b: new data leaves.
            Frto::Waiting if advances => extra.frto = Some(Frto::Probing),
            // RFC 5682, section 3.1, step 3a: the loss was real.
            Frto::Probing if selective > 0 || !advances => extra.frto = None,
            _ => {}
        }
    }

    /// Looks for losses. Returns the bytes that newly count as lost.
    fn detect_losses(&mut self, srtt: Span, now: Time, config: &TcpConfig) -> u64 {
        let recovering = self.recovery != Recovery::None;
        let Some(extra) = self.extra.as_deref_mut() else { return 0 };
        let Some(rack) = &mut extra.rack else { return 0 };
        let window = rack.window(&self.board, config.mss.0, srtt, recovering);
        let lost = rack.detect(&mut self.board, window, now);
        if lost > 0 {
            extra.on_loss(lost);
        }
        lost
    }

    /// Starts fast recovery.
    fn begin_recovery_by_time(&mut self, flight: u64, now: Time, config: &TcpConfig) {
        self.recovery = Recovery::Fast;
        self.recovery_point = self.board.next();
        self.shrink(flight, now, config);
        // Without a reduction in steps the first retransmission leaves at once.
        self.urgent = !config.prr;
    }

    /// Shrinks the window for a loss, unless a mark or a loss did so for this window of data: RFC 3168,
    /// section 6.1.2.
    fn shrink(&mut self, flight: u64, now: Time, config: &TcpConfig) {
        let window = self.controller.window();
        let counts = self.board.una() >= self.reduced_until;
        let flight = if counts { self.used_by(flight) } else { flight };
        let Some(extra) = self.extra.as_deref_mut() else { return };
        if counts {
            extra.undo =
                config.dsack.then(|| Undo::new(&*self.controller, self.reduced_until, self.board.una()));
            self.controller.on_loss(&Loss { now, flight, next: self.board.next() });
            self.reduced = true;
        }
        self.reduced_until = self.board.next();
        // A reduction continues to the target that was set before this loss.
        if config.prr && extra.prr.is_none() {
            extra.begin_reduction(&self.board, window, &*self.controller);
        }
    }

    /// Updates the window of a reduction that is under way.
    fn reduce(&mut self, safe: bool, config: &TcpConfig) {
        let pipe = self.board.pipe();
        if let Some(extra) = self.extra.as_deref_mut()
            && let Some(prr) = &mut extra.prr
        {
            prr.on_ack(extra.newly_delivered, pipe, safe, config.mss.0);
        }
    }

    /// Passes what the acknowledgement tells to a controller that needs it.
    pub(super) fn feed_back(&mut self, flight: u64, sample: Option<Span>, rtt: Span, now: Time) {
        let phase = self.phase();
        let cwnd_limited = self.cwnd_limited || flight >= self.controller.window();
        let Some(extra) = self.extra.as_deref_mut() else { return };
        if let Some(feedback) = extra.feedback(&self.board, (sample, rtt), phase, cwnd_limited, now) {
            self.controller.on_feedback(&feedback);
            if self.controller.limits_itself()
                && let Some(delivery) = &mut extra.delivery
            {
                delivery.set_app_limited(feedback.flight);
            }
        }
    }

    /// The phase of loss recovery.
    pub(super) fn phase(&self) -> Phase {
        match self.recovery {
            Recovery::None => Phase::Open,
            Recovery::Fast => Phase::Recovery,
            Recovery::Timeout => Phase::Timeout,
        }
    }

    /// True if new data leaves before a retransmission: F-RTO.
    #[inline]
    pub(super) fn sends_new_first(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.frto == Some(Frto::Probing))
            && self.end > self.board.next()
    }

    /// Called after the segments that may leave have left: sets the timers of the recovery, and notes when
    /// the application has no data to send.
    pub(super) fn sent_all(&mut self, outlet: &mut Outlet, now: Time, config: &TcpConfig) {
        let quiet = self.recovery == Recovery::None && !self.board.has_sacked();
        let (outstanding, pipe) = (self.board.outstanding(), self.board.pipe());
        let starved = self.end <= self.board.next() && pipe < self.window();
        let Some(extra) = self.extra.as_deref_mut() else { return };
        // draft-cheng-iccrg-delivery-rate-estimation: the application limits a sender that has no data to
        // send, a window with space, and no lost segment to repeat.
        if starved
            && self.board.has_no_lost()
            && let Some(delivery) = &mut extra.delivery
        {
            delivery.set_app_limited(pipe);
        }
        let rearm = std::mem::take(&mut extra.rearm);
        let Some(rack) = &mut extra.rack else { return };
        // RFC 8985, section 7.2: a probe is for a quiet connection. In recovery, and above SACKed segments,
        // losses are found otherwise. RFC 8985, section 7.3: only one probe is in the network.
        if outstanding == 0 || !quiet || rack.probe.is_some() {
            rack.probe_at = Time::NEVER;
        } else if rearm && config.tail_probe {
            let alone = outstanding <= config.mss.0;
            rack.schedule_probe(outlet.rtt.smoothed(), alone, outlet.retransmit_at, now);
        }
        if outstanding == 0 {
            rack.reorder_at = Time::NEVER;
        }
        outlet.wake_at = outlet.wake_at.min(rack.probe_at).min(rack.reorder_at);
    }

    /// A timer of the pacer or of the recovery has expired. The caller then calls [`send`](Sender::send).
    pub fn on_timer(
        &mut self,
        outlet: &mut Outlet,
        now: Time,
        config: &TcpConfig,
        out: &mut Vec<Packet<Segment>>,
    ) {
        let Some(rack) = self.extra.as_deref_mut().and_then(|extra| extra.rack.as_mut()) else { return };
        let (reorder_at, probe_at) = (rack.reorder_at, rack.probe_at);
        if now >= reorder_at {
            rack.reorder_at = Time::NEVER;
            let flight = self.board.outstanding();
            self.detect_losses(outlet.rtt.smoothed(), now, config);
            if self.recovery == Recovery::None && self.board.next_lost().is_some() {
                self.begin_recovery_by_time(flight, now, config);
            }
        } else if now >= probe_at {
            rack.probe_at = Time::NEVER;
            self.probe(outlet, now, config, out);
        }
    }

    /// Sends a probe of the tail: RFC 8985, section 7.3. New data may exceed the window by one segment.
    fn probe(&mut self, outlet: &mut Outlet, now: Time, config: &TcpConfig, out: &mut Vec<Packet<Segment>>) {
        let len = self.end.saturating_sub(self.board.next()).min(config.mss.0);
        let repeats = if len > 0 && self.may_send_new(len, config) {
            self.emit_new(len, outlet, now, config, out);
            false
        } else if let Some(last) = self.board.last() {
            self.emit_retransmission(last, outlet, now, config, out);
            true
        } else {
            return;
        };
        let next = self.board.next();
        if let Some(extra) = self.extra.as_deref_mut() {
            extra.probes += 1;
            if let Some(rack) = &mut extra.rack {
                rack.probe = Some((next, repeats));
            }
        }
        // RFC 8985, section 7.3: after a probe the timeout begins anew.
        outlet.retransmit_at = now + outlet.rtt.timeout();
    }

    /// The retransmission timer has expired: RFC 8985, section 6.3.
    pub(super) fn on_timeout_by_time(&mut self, first: bool, now: Time, config: &TcpConfig) {
        let window = self.controller.window();
        let Some(extra) = self.extra.as_deref_mut() else { return };
        // RFC 5682, section 3.1, step 1: F-RTO does not begin during a recovery. Data that was sent before it
        // may arrive after the timeout although the retransmissions are lost.
        if first && self.recovery == Recovery::None {
            extra.undo = (config.frto || config.dsack)
                .then(|| Undo::new(&*self.controller, self.reduced_until, self.board.una()));
            extra.frto = config.frto.then_some(Frto::Waiting);
        } else {
            extra.frto = None;
        }
        let flight = self.board.outstanding().min(window);
        self.controller.on_timeout(&Loss { now, flight, next: self.board.next() }, first);
        extra.prr = None;
        let lost = match &mut extra.rack {
            Some(rack) => {
                // A smoothed round-trip time of zero makes the reordering window zero, as in Linux. RFC 8985,
                // section 6.3 adds the window here, too.
                let patience = rack.window(&self.board, config.mss.0, Span::ZERO, true);
                rack.on_timeout(&mut self.board, patience, now)
            }
            None => 0,
        };
        extra.on_loss(lost);
        self.reduced = true;
        self.reduced_until = self.board.next();
        self.recovery = Recovery::Timeout;
        self.recovery_point = self.board.next();
        // RFC 6298, section 5, rule (5.4): the first segment leaves now. What RACK does not count as lost yet
        // may exceed the window of one segment, and no other segment would start the timer again.
        self.urgent = true;
        // The schedule of the lost window must not delay the first retransmission.
        extra.pacer.restart_burst(now);
    }
}

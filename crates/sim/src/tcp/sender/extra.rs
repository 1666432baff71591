//! The part of a sender that only some controllers and the recovery by time need: delivery rates, counts of
//! marks, RACK, a reduction under way, and what can be taken back.

use giveway_qdisc::{Span, Time};

use super::taken::{AckEffect, take};
use crate::segment::Segment;
use crate::tcp::TcpConfig;
use crate::tcp::controller::{Controller, Feedback, Needs, Phase};
use crate::tcp::delivery::Delivery;
use crate::tcp::ecn_mode::EcnMode;
use crate::tcp::marks::Marks;
use crate::tcp::pacer::Pacer;
use crate::tcp::prr::Prr;
use crate::tcp::rack::Rack;
use crate::tcp::right_sizing::RightSizing;
use crate::tcp::scoreboard::{Deliveries, Received, Retransmission, Scoreboard};
use crate::tcp::validation::{Validation, WindowValidation};

/// State that most senders do not have.
#[derive(Debug)]
pub(super) struct Extra {
    pub needs: Needs,
    pub pacer: Pacer,
    /// Probes of a tail that may be lost, whether they repeat data or not.
    pub probes: u64,
    /// Retransmissions that the receiver reports as needless (D-SACK).
    pub needless: u64,
    /// Set if the controller needs feedback.
    pub delivery: Option<Delivery>,
    /// Set with [`TcpConfig::rack`].
    pub rack: Option<Rack>,
    /// The reduction of the window that is under way.
    pub prr: Option<Prr>,
    /// Bytes that the current acknowledgement reports for the first time.
    pub newly_delivered: u64,
    /// Bytes of these that were sent once, and before the recovery started.
    pub originals: u64,
    /// Bytes that count as lost since the last feedback.
    pub newly_lost: u64,
    /// Bytes of the current acknowledgement that carried a mark.
    newly_marked: u64,
    /// The pipe before the current acknowledgement.
    prior_flight: u64,
    /// Counters of accurate ECN.
    marks: Marks,
    /// The values before the last reduction, as long as it may be taken back.
    pub undo: Option<Undo>,
    /// F-RTO is under way: the timeout may have been spurious.
    pub frto: Option<Frto>,
    /// Set with [`TcpConfig::receive_window_initial`].
    pub right_sizing: Option<RightSizing>,
    /// Set with a [`TcpConfig::window_validation`] other than the first.
    pub validation: Option<Validation>,
    /// The timer of the probe is to be set after the next segments have left.
    pub rearm: bool,
}

/// The values before a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// Window, bytes.
    pub window: u64,
    /// Slow-start threshold, bytes.
    pub threshold: u64,
    /// Losses and marks reduce the window from this sequence number on.
    pub reduced_until: u64,
    /// The first sequence number that was not acknowledged. What is below it was not retransmitted since.
    pub una: u64,
    /// Retransmissions that are not reported as needless yet.
    pub retransmitted: u32,
    /// Something was retransmitted.
    pub any: bool,
}

impl Undo {
    /// The values of a sender that is about to reduce its window.
    pub fn new(controller: &dyn Controller, reduced_until: u64, una: u64) -> Undo {
        Undo {
            window: controller.window(),
            threshold: controller.threshold(),
            reduced_until,
            una,
            retransmitted: 0,
            any: false,
        }
    }
}

/// The state of F-RTO: RFC 5682, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    /// The first segment was retransmitted, and nothing has been acknowledged since.
    Waiting,
    /// An acknowledgement has advanced: new data leaves before anything else is retransmitted.
    Probing,
}

impl Extra {
    /// `None` if nothing of it is needed.
    pub fn new(needs: Needs, config: &TcpConfig) -> Option<Box<Extra>> {
        let windows =
            config.receive_window_initial.is_some() || config.window_validation != WindowValidation::Rfc5681;
        if !config.rack && !config.accecn && !config.pacing && !windows && needs == Needs::default() {
            return None;
        }
        Some(Box::new(Extra {
            needs,
            pacer: Pacer::new(),
            probes: 0,
            needless: 0,
            delivery: needs.feedback.then(Delivery::new),
            rack: config.rack.then(Rack::new),
            prr: None,
            newly_delivered: 0,
            originals: 0,
            newly_lost: 0,
            newly_marked: 0,
            prior_flight: 0,
            marks: Marks::new(),
            undo: None,
            frto: None,
            right_sizing: RightSizing::of(config),
            validation: Validation::new(config.window_validation),
            rearm: false,
        }))
    }

    /// Memory, bytes.
    pub fn bytes(&self) -> usize {
        let delivery = self.delivery.as_ref().map_or(0, |delivery| delivery.heap_bytes());
        let rack = self.rack.as_ref().map_or(0, |rack| rack.heap_bytes());
        size_of::<Extra>() + delivery + rack
    }

    /// Frees the memory of segments if none is outstanding.
    pub fn rest(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.rest();
        }
    }

    /// The window of the controller, or of the reduction under way.
    #[inline]
    pub fn window(&self, controller: &dyn Controller) -> u64 {
        match &self.prr {
            Some(prr) => prr.window(),
            None => controller.window(),
        }
    }

    /// Starts a reduction to the window of the controller, which was `window` before. A controller that sets
    /// its window in recovery has none.
    pub fn begin_reduction(&mut self, board: &Scoreboard, window: u64, controller: &dyn Controller) {
        if !self.needs.own_recovery {
            // RFC 9937, section 6.1: what was SACKed before is not delivered during the recovery.
            let flight = board.outstanding() - board.sacked() + self.newly_delivered;
            // The window starts from what is in the network, so that the reduction lets nothing out at once.
            let first = window.min(board.pipe().max(controller.window()));
            self.prr = Some(Prr::begin(flight, controller.window(), first));
        }
    }

    /// Enters an acknowledgement into the scoreboard and observes it. `recovery_point` is the first sequence
    /// number that was not sent when the recovery started.
    pub fn take(
        &mut self,
        board: &mut Scoreboard,
        segment: &Segment,
        sack: bool,
        recovery_point: u64,
        now: Time,
    ) -> AckEffect {
        self.prior_flight = board.pipe();
        let mut sums = Sums { recovery_point, all: 0, originals: 0 };
        let delivery = self.delivery.as_mut().map(|delivery| delivery.at(now));
        let rack = self.rack.as_mut().map(|rack| rack.at(now));
        let mut observers = ((&mut sums, delivery), rack);
        let taken = take(board, segment, sack, &mut observers);
        (self.newly_delivered, self.originals) = (sums.all, sums.originals);
        taken
    }

    /// The bytes that an acknowledgement reports as marked. `advance` is what it acknowledges cumulatively.
    pub fn count_marks(&mut self, segment: &Segment, advance: u64, mode: EcnMode, mss: u64) -> u64 {
        let marked = match (mode == EcnMode::Accurate, segment.has(Segment::ECE)) {
            (true, _) => self.marks.arrived(segment, self.newly_delivered, mss),
            // RFC 8257, section 3.3: an acknowledgement with ECE reports that all its bytes were marked.
            (false, true) => advance,
            (false, false) => 0,
        };
        self.newly_marked = marked;
        marked
    }

    /// A new segment of `len` sequence numbers leaves, which is not in the scoreboard yet.
    #[inline]
    pub fn sends(&mut self, board: &Scoreboard, controller: &mut dyn Controller, len: u64, now: Time) {
        if let Some(prr) = &mut self.prr {
            prr.on_send(len);
        }
        if let Some(delivery) = &mut self.delivery {
            // A rate must not count the time in which nothing was in the network.
            let idle = board.outstanding() == 0;
            if idle && delivery.is_app_limited() {
                controller.on_resume(now);
            }
            delivery.on_send(board.pipe() + len, idle, now);
        }
        self.rearm = true;
    }

    /// A segment has left again.
    pub fn sends_again(&mut self, board: &Scoreboard, lost: Retransmission, now: Time) {
        let end = lost.seq + u64::from(lost.len);
        if let Some(prr) = &mut self.prr {
            prr.on_send(u64::from(lost.len));
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.on_retransmission(board.index_of(lost.seq), board.pipe(), now);
        }
        if let Some(rack) = &mut self.rack {
            rack.on_retransmission(end, now);
        }
        if let Some(undo) = &mut self.undo {
            undo.retransmitted += 1;
            undo.any = true;
        }
    }

    /// Bytes count as lost.
    pub fn on_loss(&mut self, bytes: u64) {
        self.newly_lost += bytes;
        if let Some(delivery) = &mut self.delivery {
            delivery.on_loss(bytes);
        }
    }

    /// The report of the current acknowledgement for a controller; `None` if it needs none.
    pub fn feedback(
        &mut self,
        board: &Scoreboard,
        (sample, rtt): (Option<Span>, Span),
        phase: Phase,
        cwnd_limited: bool,
        now: Time,
    ) -> Option<Feedback> {
        let delivery = self.delivery.as_mut()?;
        let least = self.rack.as_ref().map_or(Span::ZERO, |rack| rack.least());
        let measured = delivery.sample(least);
        Some(Feedback {
            now,
            una: board.una(),
            next: board.next(),
            newly_delivered: measured.newly_delivered,
            newly_marked: std::mem::take(&mut self.newly_marked),
            newly_lost: std::mem::take(&mut self.newly_lost),
            delivered: delivery.delivered(),
            prior_delivered: measured.prior_delivered,
            flight_at_send: measured.flight_at_send,
            lost_since_send: measured.lost_since_send,
            rate_bytes: measured.rate_bytes,
            interval: measured.interval,
            app_limited: measured.app_limited,
            sample,
            rtt,
            flight: board.pipe(),
            prior_flight: self.prior_flight,
            phase,
            cwnd_limited,
        })
    }
}

/// Sums over the segments of an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Sums {
    recovery_point: u64,
    all: u64,
    originals: u64,
}

impl Deliveries for &mut Sums {
    #[inline]
    fn on_receipt(&mut self, segment: Received) {
        self.all += u64::from(segment.len);
        // F-RTO looks for segments that were sent once, and before the timeout: RFC 5682, section 3.1, step
        // 3b.
        let original = !segment.ambiguous && segment.end <= self.recovery_point;
        self.originals += if original { u64::from(segment.len) } else { 0 };
    }
}

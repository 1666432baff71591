//! The counters of a direction, and the snapshot of them that other threads read.

use giveway_qdisc::{Backlog, DropReason, FiveTuple, FlowKey, Meta, PortId, Probe, Span, Time};
use giveway_watch::{Delays, Drops, Losses, Status, TopFlow, TopFlows};

use crate::headers::Frame;

/// Number of flows that are counted at a time to find the largest ones.
const CANDIDATES: usize = 256;
/// Number of flows in [`Status::top`].
const REPORTED: usize = 10;

/// The counters of a direction. Fields of the same name in [`Status`] have the same meaning.
pub struct Statistics {
    /// Sojourn times.
    pub sojourn: Delays,
    /// Lateness: delays between due and actual transmission.
    pub lateness: Delays,
    /// Packets that the discipline dropped, by reason.
    pub dropped: Drops,
    /// Frames that were lost outside the discipline.
    pub losses: Losses,
    /// Number of stalls.
    pub stalls: u64,
    /// Transmission time that stalls lost, in total.
    pub stalled: Span,
    /// Longest stall.
    pub longest_stall: Span,
    /// Checksums that were completed.
    pub checksums: u64,
    /// Number of changes of the configuration.
    pub changes: u64,
    /// Number of times that an interface went down.
    pub downs: u64,
    /// Receive calls that returned frames.
    pub receives: u64,
    /// Send calls.
    pub sends: u64,
    /// Packets sent in the current second.
    sent: Backlog,
    last_second: Backlog,
    flows: TopFlows<Option<FiveTuple>>,
    top: Vec<TopFlow>,
    /// End of the current second.
    second_ends: Time,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics {
            sojourn: Delays::new(),
            lateness: Delays::new(),
            dropped: Drops::default(),
            losses: Losses::default(),
            stalls: 0,
            stalled: Span::ZERO,
            longest_stall: Span::ZERO,
            checksums: 0,
            changes: 0,
            downs: 0,
            receives: 0,
            sends: 0,
            sent: Backlog::ZERO,
            last_second: Backlog::ZERO,
            flows: TopFlows::new(CANDIDATES),
            top: Vec::new(),
            second_ends: Time::s(1),
        }
    }
}

impl Statistics {
    /// Counts the arrival of a packet.
    #[inline]
    pub fn record_arrival(&mut self, flow: FlowKey, tuple: Option<FiveTuple>, bytes: u32) {
        self.flows.add(flow, tuple, bytes);
    }

    /// Counts a packet that the discipline dropped.
    #[inline]
    pub fn record_drop(&mut self, why: DropReason, bytes: u32) {
        self.dropped.add(why, bytes);
    }

    /// Counts a packet that left the discipline after this sojourn time.
    #[inline]
    pub fn record_departure(&mut self, sojourn: Span, bytes: u32) {
        self.sojourn.add(sojourn);
        self.sent.add(bytes);
    }

    /// Records the lateness of a sent frame.
    #[inline]
    pub fn record_lateness(&mut self, late: Span) {
        self.lateness.add(late);
    }

    /// Closes the current second if it is over at `now`.
    pub fn roll(&mut self, now: Time) {
        if now < self.second_ends {
            return;
        }
        self.second_ends = now + Span::s(1);
        self.sojourn.turn();
        self.lateness.turn();
        self.last_second = std::mem::take(&mut self.sent);
        let top = self.flows.top(REPORTED).into_iter();
        self.top = top.map(|(flow, tuple, arrived)| TopFlow { flow, tuple, arrived }).collect();
        self.flows.clear();
    }

    /// Restarts the clock at zero.
    pub fn rebase(&mut self) {
        self.second_ends = Time::s(1);
    }

    /// Copies the counters into a snapshot.
    pub fn copy_to(&self, status: &mut Status) {
        status.sojourn = [self.sojourn.all(), self.sojourn.last()];
        status.lateness = [self.lateness.all(), self.lateness.last()];
        status.dropped = self.dropped;
        status.losses = self.losses;
        status.stalls = self.stalls;
        status.stalled = self.stalled;
        status.longest_stall = self.longest_stall;
        status.checksums = self.checksums;
        status.changes = self.changes;
        status.downs = self.downs;
        status.receives = self.receives;
        status.sends = self.sends;
        status.last_second = self.last_second;
        status.top.clone_from(&self.top);
    }
}

impl Probe<Frame> for Statistics {
    #[inline]
    fn on_transmission(&mut self, _: PortId, meta: &Meta, _: &Frame, now: Time) {
        self.record_departure(now.since(meta.arrived), meta.bytes);
    }

    fn on_drop(&mut self, _: PortId, meta: &Meta, _: &Frame, why: DropReason, _: Time) {
        // Losses of the link emulation are counted apart from the drops of the discipline.
        if why != DropReason::Wire {
            self.record_drop(why, meta.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_reported_when_it_is_over() {
        let mut statistics = Statistics::default();
        for ms in 1..=100 {
            statistics.record_departure(Span::ms(ms), 100);
            statistics.record_arrival(FlowKey(ms % 20), None, 100);
        }
        let mut status = Status::default();
        statistics.roll(Time::ms(999));
        statistics.copy_to(&mut status);
        assert_eq!((status.sojourn[0].count, status.sojourn[1].count, status.top.len()), (100, 0, 0));
        statistics.roll(Time::s(1));
        statistics.copy_to(&mut status);
        assert_eq!((status.sojourn[1].count, status.sojourn[1].max), (100, Span::ms(100)));
        assert_eq!(status.last_second, Backlog { packets: 100, bytes: 10_000 });
        assert_eq!((status.top.len(), status.top[0].arrived.packets), (REPORTED, 5));
        statistics.roll(Time::s(2));
        statistics.copy_to(&mut status);
        assert_eq!((status.sojourn[0].count, status.sojourn[1].count), (100, 0));
    }
}

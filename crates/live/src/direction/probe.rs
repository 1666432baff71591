//! The probe of a direction's port.

use giveway_qdisc::{Backlog, DropReason, Meta, Packet, PortId, Probe, Time};

use crate::headers::Frame;
use crate::statistics::Statistics;

/// Counts, keeps dropped frames until their buffers are released, and forwards each event to the user's probe.
pub(crate) struct PortProbe {
    pub(crate) statistics: Statistics,
    /// Dropped frames whose buffers are not released yet.
    pub(crate) dropped: Vec<(Frame, DropReason)>,
    pub(crate) user: Option<Box<dyn Probe<Frame> + Send>>,
}

impl Probe<Frame> for PortProbe {
    #[inline]
    fn arrived(&mut self, at: PortId, meta: &Meta, now: Time) {
        if let Some(probe) = &mut self.user {
            probe.arrived(at, meta, now);
        }
    }

    #[inline]
    fn sent(&mut self, at: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.statistics.record_departure(now.since(meta.arrived), meta.bytes);
        if let Some(probe) = &mut self.user {
            probe.sent(at, meta, frame, now);
        }
    }

    fn dropped(&mut self, at: PortId, pkt: Packet<Frame>, why: DropReason, now: Time) {
        self.dropped.push((pkt.payload, why));
        // Losses of the link emulation are counted apart from the drops of the discipline.
        if why != DropReason::Wire {
            self.statistics.record_drop(why, pkt.meta.bytes);
        }
        if let Some(probe) = &mut self.user {
            probe.dropped(at, pkt, why, now);
        }
    }

    fn marked(&mut self, at: PortId, meta: &Meta, now: Time) {
        if let Some(probe) = &mut self.user {
            probe.marked(at, meta, now);
        }
    }

    fn sample(&mut self, at: PortId, backlog: Backlog, gauges: &[(&'static str, f64)], now: Time) {
        if let Some(probe) = &mut self.user {
            probe.sample(at, backlog, gauges, now);
        }
    }
}

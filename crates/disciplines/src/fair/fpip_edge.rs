//! FPIP's edge router alone: writes the rate of long flows on their packets, and leaves the packets of short
//! flows alone.
//!
//! # Principles
//! - A flow is short until it has sent more than `threshold` bytes. Its packets are marked as such, and no
//!   router drops them early.
//! - The rate of a long flow is measured packet by packet and written on each packet, so core routers need no
//!   state of the flow.
//! - Labels from outside are not trusted, since a sender could write a low one: every packet gets a new
//!   label. With `trust` only packets without a label get one.
//! - The queue itself is a plain FIFO: only its limit causes drops. `fpip` and `csfq` label as well as act;
//!   this is for access links in front of them. With `threshold 0` it measures every flow, as CSFQ's edge
//!   does.
//!
//! # Deviations
//! - The points that the paper leaves open are documented in the blocks `edge` (when a flow is long, when it
//!   ends) and `averaging` (packets of one instant).
//! - The number of flows is bounded; at the bound, the flows that have been silent longest are removed.
//!
//! # Cost
//! - A table look-up per packet, and an exponential for packets of long flows. 64 bytes per flow of the last
//!   five seconds, in a table that is half full.
//!
//! # References
//! - H. Zhang, J. Jiang, W. Dou, "A Fair Bandwidth Allocation Mechanism with Preference to Short Flows",
//!   Journal of Software 18(3), 2007: section 2.2.1, equation (1); section 4.1 for the threshold.
//! - I. Stoica, S. Shenker, H. Zhang, "Core-Stateless Fair Queueing", SIGCOMM 1998: section 3.2.

use giveway_qdisc::blocks::{Averaging, Buffer, Edge, Memory, SameInstant};
use giveway_qdisc::{
    Backlog, Bytes, Cx, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, Span,
    check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `fpip_edge`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity, in packets or in bytes.
    pub limit: Limit,
    /// Amount that a flow sends before it is long (bitThresh): bytes, or packets of the link's MTU.
    pub threshold: Limit,
    /// The time that rates are averaged over (K_r).
    pub window: Span,
    /// The contribution of packets of one instant to a rate.
    pub same_instant: SameInstant,
    /// Keep existing labels of packets.
    pub trust: bool,
    /// Time between visits of the table that forget flows. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit forgets a flow; it then starts again as a short flow.
    pub idle: Span,
    /// Largest number of flows in the table.
    pub flows: u32,
}

/// Visits, silence and size of the tables of routers.
pub(crate) const MEMORY: Memory = Memory { sweep: Span::s(1), idle: Span::s(5), flows: 1 << 17 };

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(1000),
            threshold: Limit::Bytes(10_000),
            window: Span::ms(100),
            same_instant: SameInstant::Limit,
            trust: false,
            sweep: MEMORY.sweep,
            idle: MEMORY.idle,
            flows: MEMORY.flows as u32,
        }
    }
}

/// A threshold in bytes.
pub(crate) fn threshold(threshold: Limit, mtu: Bytes) -> u32 {
    let bytes = match threshold {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets.saturating_mul(mtu.0),
    };
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "labels packets of long flows with their rate, as an edge router of FPIP or CSFQ";
    type Qdisc<P: 'static> = FpipEdge<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<FpipEdge<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        let averaging = Averaging::new("window", self.window, self.same_instant)?;
        Ok(FpipEdge {
            threshold: threshold(self.threshold, context.mtu),
            trust: self.trust,
            edge: Edge::new(averaging, memory),
            queue: Buffer::new(self.limit),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), threshold: Limit::Bytes(0), trust: true, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), sweep: Span::ms(20), idle: Span::ms(30), ..plain.clone() },
            Config { same_instant: SameInstant::Accumulate, threshold: Limit::Packets(3), flows: 3, ..plain },
        ]
    }
}

/// The table and the queue.
pub struct FpipEdge<P> {
    /// Bytes.
    threshold: u32,
    trust: bool,
    edge: Edge,
    queue: Buffer<P>,
}

impl<P> Qdisc<P> for FpipEdge<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !(self.trust && pkt.meta.label.is_set()) {
            pkt.meta.label = self.edge.label(pkt.meta.flow, pkt.bytes(), self.threshold, cx.now());
        }
        self.queue.push(pkt, cx);
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        self.queue.pop().map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.edge.clear();
    }

    fn flow_table(&self) -> FlowTable {
        self.edge.table()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use giveway_qdisc::{FlowKey, Label, Outbox, Rate, Streams, Time};

    /// Labels with which packets of one flow leave. Each packet has a time in milliseconds, a length in bytes
    /// and the label with which it arrives.
    fn labels(spec: &str, packets: &[(u64, u32, Label)]) -> Vec<Label> {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let mut edge = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
        let mut out = Outbox::default();
        let mut through = |(ms, bytes, label): &(u64, u32, Label)| {
            let mut pkt = Packet::new(FlowKey(1), *bytes, 0);
            pkt.meta.label = *label;
            let mut cx = Cx::new(Time::ms(*ms), &mut out);
            edge.enqueue(pkt, &mut cx);
            edge.dequeue(&mut cx).packet().unwrap().meta.label
        };
        packets.iter().map(&mut through).collect()
    }

    const FIVE: [(u64, u32, Label); 5] = [
        (0, 1000, Label::NONE),
        (10, 1000, Label::NONE),
        (20, 1000, Label::NONE),
        (30, 1000, Label::NONE),
        (40, 1000, Label::NONE),
    ];

    #[test]
    fn labels_packets_beyond_the_threshold() {
        let rate = |bits| Label::of(Rate::bit(bits));
        let fpip = [Label::SHORT, Label::SHORT, Label::SHORT, rate(76_130), rate(145_015)];
        assert_eq!(labels("fpip_edge threshold 3000b", &FIVE), fpip);
        // Three packets of 1,500 bytes, section 4.1.
        let mut sizes = labels("fpip_edge threshold 3p", &FIVE).into_iter();
        assert_eq!(sizes.by_ref().take(4).collect::<Vec<_>>(), [Label::SHORT; 4]);
        assert!(sizes.next().unwrap().rate().as_bit() > 0);
        // With a threshold of 0 it is CSFQ's edge.
        assert_eq!(labels("fpip_edge threshold 0b", &FIVE)[..2], [rate(80_000), rate(148_517)]);
    }

    #[test]
    fn labels_from_outside_are_kept_only_with_trust() {
        let forged = [(0, 1000, Label::of(Rate::bit(1)))];
        assert_eq!(labels("fpip_edge threshold 0b", &forged), [Label::of(Rate::bit(80_000))]);
        assert_eq!(labels("fpip_edge threshold 0b trust", &forged), [Label::of(Rate::bit(1))]);
        assert_eq!(labels("fpip_edge threshold 0b trust", &FIVE[..1]), [Label::of(Rate::bit(80_000))]);
    }
}

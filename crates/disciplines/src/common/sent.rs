//! Common part of Run2C and PIAS: a buffer with levels, in which the level of a packet follows from the bytes
//! that its flow has sent. The packet carries this number, or a table counts it.

use giveway_qdisc::blocks::{Level, Levels, Memory, RecentFlows};
use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Limit, Meta, Next, Packet, Properties, Span, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source of the number of bytes that a flow has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Each packet carries its offset in the flow, which the sender provides.
    Carried,
    /// A table counts the bytes of each flow that arrive at this queue, dropped ones included.
    Table,
}

impl Source {
    /// Properties of a discipline with this source and this limit.
    pub(crate) fn properties(self, limit: Limit) -> Properties {
        // A packet that carries a lower offset than earlier ones of its flow may overtake them.
        Properties { keeps_flow_order: self == Source::Table, ..Properties::plain(limit) }
    }

    /// Warning about a table of `flows` flows that is never swept.
    pub(crate) fn unswept(self, sweep: Span, flows: u32) -> Option<String> {
        (self == Source::Table && sweep.is_zero())
            .then(|| format!("sweep 0s: flows are forgotten only once there are more than {flows}"))
    }
}

/// `K` levels by the bytes that flows have sent.
pub(crate) struct SentLevels<P, const K: usize> {
    limit: Limit,
    sent: Sent,
    pub(crate) queue: Levels<P, K>,
}

impl<P, const K: usize> SentLevels<P, K> {
    pub(crate) fn new(limit: Limit, source: Source, memory: Memory) -> SentLevels<P, K> {
        SentLevels {
            limit,
            sent: Sent::new(source, memory),
            queue: Levels::with_capacity(limit.initial_capacity()),
        }
    }

    /// Enqueues a packet. `level` selects its level by the bytes that its flow has sent, this packet
    /// included.
    #[inline]
    pub(crate) fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>, level: impl FnOnce(u64) -> Level) {
        let SentLevels { limit, sent, queue } = self;
        sent.sweep(cx.now());
        if !limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let level = sent.count_in(&pkt.meta, cx.now(), level);
        queue.push_within(*limit, level, pkt, cx, |level, victim| sent.count_out(level, victim.meta.flow));
    }

    /// Dequeues the first packet of the highest level that is not empty.
    #[inline]
    pub(crate) fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.sent.sweep(cx.now());
        let Some((level, pkt)) = self.queue.pop() else { return Next::Empty };
        self.sent.count_out(level, pkt.meta.flow);
        Next::Packet(pkt)
    }

    /// Drops the backlog and removes all flows.
    pub(crate) fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.sent.clear();
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    pub(crate) fn table(&self) -> FlowTable {
        self.sent.table()
    }

    /// Flows with packets below the first level, and the number of these packets.
    #[cfg(test)]
    pub(crate) fn below(&self) -> std::collections::BTreeMap<FlowKey, u32> {
        let Sent::Table(flows) = &self.sent else { return std::collections::BTreeMap::new() };
        flows.iter().filter(|(_, flow)| flow.below > 0).map(|(key, flow)| (key, flow.below)).collect()
    }
}

/// Number of bytes that each flow has sent.
enum Sent {
    Carried,
    Table(RecentFlows<Flow>),
}

/// A flow that has sent recently.
#[derive(Debug)]
struct Flow {
    /// Bytes that have arrived, saturating.
    bytes: u32,
    /// Number of its queued packets below the first level. A flow with such packets is not forgotten, because
    /// its next packet would overtake them.
    below: u32,
}

impl Sent {
    fn new(source: Source, memory: Memory) -> Sent {
        match source {
            Source::Carried => Sent::Carried,
            Source::Table => Sent::Table(RecentFlows::new(memory, |flow| flow.below > 0)),
        }
    }

    /// Removes flows that have been silent for long. Each call of the discipline does this first.
    #[inline]
    fn sweep(&mut self, now: Time) {
        if let Sent::Table(flows) = self {
            flows.sweep(now);
        }
    }

    /// Counts an arriving packet and returns its level. `level` selects it by the bytes that the flow has
    /// sent, this packet included.
    #[inline]
    fn count_in(&mut self, meta: &Meta, now: Time, level: impl FnOnce(u64) -> Level) -> Level {
        let flow = match self {
            Sent::Carried => return level(meta.offset.saturating_add(meta.bytes).into()),
            Sent::Table(flows) => flows.record(meta.flow, now, || Flow { bytes: 0, below: 0 }),
        };
        flow.bytes = flow.bytes.saturating_add(meta.bytes);
        let chosen = level(flow.bytes.into());
        flow.below += u32::from(chosen > Level::HIGH);
        chosen
    }

    /// Records that a packet of this level has left or was dropped.
    #[inline]
    fn count_out(&mut self, level: Level, flow: FlowKey) {
        if let Sent::Table(flows) = self
            && level > Level::HIGH
        {
            flows
                .get_mut(flow)
                .expect("a flow with a packet below the first level is not forgotten")
                .below -= 1;
        }
    }

    fn table(&self) -> FlowTable {
        match self {
            Sent::Carried => FlowTable::NONE,
            Sent::Table(flows) => flows.table(),
        }
    }

    fn clear(&mut self) {
        if let Sent::Table(flows) = self {
            flows.clear();
        }
    }
}

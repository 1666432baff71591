//! Bytes that a flow has sent before a packet, which determine its level in Run2C and PIAS. The packet
//! carries them, or a table counts them.

use giveway_qdisc::blocks::{Level, Memory, RecentFlows};
use giveway_qdisc::{FlowKey, FlowTable, Meta, Time};
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

/// Number of bytes that each flow has sent.
pub(crate) enum Sent {
    Carried,
    Table(RecentFlows<Flow>),
}

/// A flow that has sent recently.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Bytes that have arrived, saturating.
    bytes: u32,
    /// Number of its queued packets below the first level. A flow with such packets is not forgotten, because
    /// its next packet would overtake them.
    below: u32,
}

impl Sent {
    pub(crate) fn new(source: Source, memory: Memory) -> Sent {
        match source {
            Source::Carried => Sent::Carried,
            Source::Table => Sent::Table(RecentFlows::new(memory, |flow| flow.below > 0)),
        }
    }

    /// Removes flows that have been silent for long. Each call of the discipline does this first.
    #[inline]
    pub(crate) fn sweep(&mut self, now: Time) {
        if let Sent::Table(flows) = self {
            flows.sweep(now);
        }
    }

    /// Counts an arriving packet and returns its level. `level` selects it by the bytes that the flow has
    /// sent, this packet included.
    #[inline]
    pub(crate) fn count_in(&mut self, meta: &Meta, now: Time, level: impl FnOnce(u64) -> Level) -> Level {
        let flow = match self {
            Sent::Carried => return level(meta.offset.saturating_add(meta.bytes).into()),
            Sent::Table(flows) => flows.seen(meta.flow, now, || Flow { bytes: 0, below: 0 }),
        };
        flow.bytes = flow.bytes.saturating_add(meta.bytes);
        let chosen = level(flow.bytes.into());
        flow.below += u32::from(chosen > Level::HIGH);
        chosen
    }

    /// Records that a packet of this level has left or was dropped.
    #[inline]
    pub(crate) fn count_out(&mut self, level: Level, flow: FlowKey) {
        if let Sent::Table(flows) = self
            && level > Level::HIGH
        {
            flows
                .get_mut(flow)
                .expect("a flow with a packet below the first level is not forgotten")
                .below -= 1;
        }
    }

    pub(crate) fn table(&self) -> FlowTable {
        match self {
            Sent::Carried => FlowTable::NONE,
            Sent::Table(flows) => flows.table(),
        }
    }

    pub(crate) fn clear(&mut self) {
        if let Sent::Table(flows) = self {
            flows.clear();
        }
    }

    /// Flows with packets below the first level, and the number of these packets.
    #[cfg(test)]
    pub(crate) fn below(&self) -> std::collections::BTreeMap<FlowKey, u32> {
        let Sent::Table(flows) = self else { return std::collections::BTreeMap::new() };
        flows.iter().filter(|(_, flow)| flow.below > 0).map(|(key, flow)| (key, flow.below)).collect()
    }
}

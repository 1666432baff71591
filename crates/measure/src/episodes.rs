//! Episodes: the times at which flows become backlogged at a port.

use std::collections::BTreeMap;

use giveway_qdisc::{FlowKey, Meta, PortId};

use crate::counts::carries_data;
use crate::rows::EpisodeRow;

/// The episodes of the flows of one port, as defined by [`EpisodeRow`].
#[derive(Clone, Default)]
pub(crate) struct Episodes(BTreeMap<FlowKey, Flow>);

#[derive(Clone, Default)]
struct Flow {
    /// Queued packets of the flow.
    queued: u64,
    packets: u64,
    bytes: u64,
    data_packets: u64,
    episodes: u64,
}

impl Episodes {
    pub(crate) fn on_arrival(&mut self, meta: &Meta) {
        let flow = self.0.entry(meta.flow).or_default();
        flow.episodes += u64::from(flow.queued == 0);
        flow.queued += 1;
        flow.packets += 1;
        flow.bytes += u64::from(meta.bytes);
        flow.data_packets += u64::from(carries_data(meta));
    }

    /// Counts a packet that left the queue, sent or dropped.
    pub(crate) fn on_leave(&mut self, meta: &Meta) {
        let flow = self.0.get_mut(&meta.flow).expect("a port sends and drops only packets that arrived");
        flow.queued -= 1;
    }

    /// A row for each flow, in the order of the keys.
    pub(crate) fn rows(&self, port: PortId) -> impl Iterator<Item = EpisodeRow> + '_ {
        self.0.iter().map(move |(flow, seen)| {
            let Flow { packets, bytes, data_packets, episodes, .. } = *seen;
            EpisodeRow { port, flow: *flow, packets, bytes, data_packets, episodes }
        })
    }
}

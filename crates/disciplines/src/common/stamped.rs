//! Queued packets with fixed stamps, for the schedulers that send the packet with the lowest one.

use giveway_qdisc::blocks::{FlowHeap, Ticks};

use super::guaranteed::{Item, Numbered, Pick};

/// The stamp of each queued packet, and the flows by the stamp of their oldest packet.
///
/// A flow's stamps increase, so its oldest packet has its lowest one.
#[derive(Debug)]
pub(crate) struct Stamped {
    stamps: Numbered<Ticks>,
    heads: FlowHeap<Ticks>,
}

impl Default for Stamped {
    fn default() -> Stamped {
        Stamped { stamps: Numbered::default(), heads: FlowHeap::with_capacity(64) }
    }
}

impl Stamped {
    /// Bytes per flow.
    pub(crate) const FLOW_BYTES: usize = FlowHeap::<Ticks>::bytes_per_flow();

    /// Adds a packet. `first` says that its flow has no other packet.
    #[inline]
    pub(crate) fn add(&mut self, item: Item, stamp: Ticks, first: bool) {
        *self.stamps.at(item.packet) = stamp;
        if first {
            self.heads.set(item.flow, stamp);
        }
    }

    /// The packet with the lowest stamp. Ties go to the flow with the lower number.
    #[inline]
    pub(crate) fn next(&self) -> Option<Pick> {
        self.heads.first().map(|(_, flow)| Pick::oldest(flow))
    }

    /// Updates a flow whose oldest packet has left. `head` is its oldest packet now.
    #[inline]
    pub(crate) fn on_departure(&mut self, flow: u32, head: Option<Item>) {
        match head {
            Some(head) => self.heads.set(flow, *self.stamps.at(head.packet)),
            None => self.on_empty(flow),
        }
    }

    /// Removes a flow without packets.
    #[inline]
    pub(crate) fn on_empty(&mut self, flow: u32) {
        self.heads.remove(flow);
    }

    /// The stamp of a queued packet minus its cost.
    #[inline]
    pub(crate) fn start(&mut self, item: Item) -> Ticks {
        self.stamps.at(item.packet).saturating_sub(item.cost)
    }

    pub(crate) fn clear(&mut self) {
        self.stamps.clear();
        self.heads.clear();
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.stamps.bytes() + self.heads.bytes()
    }
}

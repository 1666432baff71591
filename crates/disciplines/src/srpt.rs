//! Shortest remaining processing time: the flow that has the least left to send goes first. Its senders tell.
//!
//! # Principles
//! - To serve first what ends soonest is the best that any queue can do for the mean time that flows take. It takes an
//!   oracle: senders write into their packets how much their flow has still to send. LAS, EFD and Run2C guess what is
//!   known here, so this is what they are measured against.
//! - Not packets compete but flows. Within a flow the remainder falls from packet to packet, so the packet with the least
//!   is the flow's last: sending it first would turn every flow round. The best flow is chosen, and its earliest
//!   packet sent.
//! - The flow that has the most left gives way when the queue is full, by its last packet.
//! - Only what is queued is remembered.
//! - What says nothing of its remainder comes last, and takes turns.
//!
//! # Deviations
//! - What a flow has left is what its last queued packet says. The paper takes the least that any of its packets says, which
//!   is the same unless packets are sent again. On the wire, remainders of flows with more than 4 GiB left and of flows
//!   without an end are all the same number; these take turns, too.
//! - Of flows that have equally much left, the one that has had it for longest goes on until it is through; of those
//!   that say nothing, each sends one packet in turn.
//! - pFabric's senders start at the rate of the link and hardly react to loss. Here senders are whatever the scenario says.
//!
//! # Cost
//! - A table look-up per packet in and one when a flow empties, and O(log flows): each packet that comes moves its flow.
//! - 96 bytes per flow that has packets.
//!
//! # References
//! - L. Schrage, "A Proof of the Optimality of the Shortest Remaining Processing Time Discipline", Operations Research 16(3),
//!   1968.
//! - M. Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013: section 4.1 for the switch, and
//!   for why the earliest packet of the best flow.

use qdisc::blocks::{FlowMap, Ranked};
use qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, List, Meta, Nature, Next, Packet, Place,
    Qdisc, Site,
};
use qdisc::{Slots, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `srpt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much all flows hold together, in packets or in bytes.
    pub limit: Limit,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(300) }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "shortest remaining processing time: the flow with the least left to send, as its sender says";
    type Qdisc<P: 'static> = Srpt<P>;

    fn build<P: 'static>(&self, site: &Site) -> Result<Srpt<P>, Invalid> {
        check_limit("limit", self.limit, site.mtu)?;
        let room = self.limit.most_packets(64).min(1 << 12);
        Ok(Srpt {
            limit: self.limit,
            by_key: FlowMap::with_capacity(room),
            flows: Ranked::with_capacity(room),
            packets: Slots::with_capacity(room),
            held: Backlog::ZERO,
        })
    }

    fn nature(&self, _: &Site) -> Nature {
        Nature::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        vec![Config { limit: Limit::Packets(5) }, Config { limit: Limit::Bytes(6000) }]
    }
}

/// The flows that have packets.
pub struct Srpt<P> {
    limit: Limit,
    /// Where each of them is.
    by_key: FlowMap<Place>,
    /// By what they have left.
    flows: Ranked<Flow>,
    packets: Slots<Packet<P>>,
    held: Backlog,
}

/// A flow that has packets.
#[derive(Debug)]
struct Flow {
    key: FlowKey,
    queue: List,
}

/// The rank of a flow that says nothing: behind all that do.
const UNKNOWN: u64 = u32::MAX as u64 + 1;
/// From this rank on, flows of the same rank take turns.
const IN_TURNS: u64 = u32::MAX as u64;

/// What a packet says that its flow has left, in bytes.
#[inline]
fn rank(meta: &Meta) -> u64 {
    if meta.remaining == 0 { UNKNOWN } else { u64::from(meta.remaining) }
}

impl<P> Qdisc<P> for Srpt<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let flow = self.append(pkt);
        if !self.limit.allows(self.held) {
            self.push_out(flow, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some((rank, place)) = self.flows.best() else { return Next::Empty };
        let flow = self.flows.get_mut(place).expect("the best flow is in the queue");
        let pkt = self.packets.pop_front(&mut flow.queue).expect("a flow in the queue holds a packet");
        self.held.sub(pkt.bytes());
        if flow.queue.is_empty() {
            self.forget(place);
        } else if rank >= IN_TURNS {
            self.flows.rerank(place, rank);
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, mut flow)) = self.flows.pop() {
            while let Some(pkt) = self.packets.pop_front(&mut flow.queue) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
        self.by_key.clear();
        self.held = Backlog::ZERO;
    }

    fn flow_table(&self) -> FlowTable {
        let table = self.by_key.table();
        FlowTable {
            entry_bytes: table.entry_bytes + Ranked::<Flow>::bytes_per_item() as u32,
            bytes: table.bytes + self.flows.bytes(),
            ..table
        }
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let left = |end: Option<(u64, Place)>| end.map_or(0.0, |(rank, _)| rank as f64);
        visit("least_left_bytes", left(self.flows.best()));
        visit("most_left_bytes", left(self.flows.worst()));
    }
}

impl<P> Srpt<P> {
    /// Puts a packet at the end of its flow, which then has left what the packet says.
    #[inline]
    fn append(&mut self, pkt: Packet<P>) -> Place {
        let Srpt { by_key, flows, packets, .. } = self;
        let (key, rank) = (pkt.meta.flow, rank(&pkt.meta));
        let place = *by_key.entry(key, || flows.push(rank, Flow { key, queue: List::default() }));
        if flows.rank(place) != rank {
            flows.rerank(place, rank);
        }
        self.held.add(pkt.bytes());
        let flow = flows.get_mut(place).expect("a flow with a packet queued has an entry");
        packets.push_back(&mut flow.queue, pkt);
        place
    }

    /// A flow without packets is forgotten.
    #[inline]
    fn forget(&mut self, place: Place) {
        let (_, flow) = self.flows.remove(place);
        self.by_key.remove(flow.key);
    }

    /// Gives up the last packet of the flow that has the most left, until the rest fits. `arrival` is the flow of the packet
    /// that just came.
    fn push_out(&mut self, arrival: Place, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.held) {
            let (old, place) = self.flows.worst().expect("what exceeds the limit is queued");
            let flow = self.flows.get_mut(place).expect("the worst flow is in the queue");
            let victim = self.packets.pop_back(&mut flow.queue).expect("a flow in the queue holds a packet");
            self.held.sub(victim.bytes());
            match self.packets.back(&flow.queue).map(|last| rank(&last.meta)) {
                Some(new) if new != old => self.flows.rerank(place, new),
                Some(_) => {}
                None => self.forget(place),
            }
            // The arrival is the last of its flow, and without it everything fits.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }
}

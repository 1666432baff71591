//! Worst-case fair weighted fair queueing, WF²Q+: among the packets that a fluid link would have started by
//! now, the next packet is the one that it would finish first.
//!
//! # Principles
//! - `wfq` may send many packets of a heavy flow before a fluid link would have started the second. Then the
//!   flow gets no service for as long. Here a packet may leave only once it has started in the fluid, S ≤ V.
//!   So no flow is more than one packet ahead of the fluid or behind it.
//! - Only the oldest packet of a flow has stamps: S = F of the packet before it, or max(V, F) if the flow had
//!   no packet queued; F = S + L/ρ.
//! - Virtual time needs no simulated fluid. It follows real time, and is never behind the earliest start in
//!   the queue: V ← max(V + elapsed, min S). So at least one packet is always eligible, and the link is never
//!   idle with packets queued.
//! - The latency of a flow is L/ρ + L_max/r, as with `wfq`.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Deviations
//! - Virtual time is in seconds, and rates are as reserved. The paper divides by their sum. If less than the
//!   link is reserved, virtual time runs faster than necessary, which the bound allows.
//! - V advances to the earliest start when a packet leaves, not at the next search.
//!
//! # Cost
//! - One table look-up for each arriving packet, and O(log n) for n flows with packets in the queue: a heap
//!   of the eligible flows by finish, and a heap of the others by start.
//! - 180 bytes per flow with a reservation, in addition to the table; none per packet.
//!
//! # References
//! - J. Bennett, H. Zhang, "Hierarchical Packet Fair Queueing Algorithms", SIGCOMM 1996 and IEEE/ACM ToN
//!   5(5), 1997: WF²Q+, equations (27) to (29). From secondary sources.

use giveway_qdisc::blocks::{FlowHeap, Ticks};
use giveway_qdisc::{Guarantee, Invalid, Limit, LinkContext, Properties, Time};

use crate::common::clock::Clock;
use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule};
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `wf2q`.
    pub struct Config {
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "WF2Q+: reserved flows as a fluid link would finish them, none before it would start";
    const NEEDS: Needs = Needs::Reservations;
    type Qdisc<P: 'static> = Guaranteed<P, Wf2q>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, Wf2q>, Invalid> {
        Guaranteed::new(&self.common(), Wf2q::default(), context)
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit).with(Guarantee::Reserved)
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Limit::Packets(5), ..Config::default() },
            Config { limit: Limit::Bytes(6000), flows: 2 },
        ]
    }
}

/// The backlogged flows, and virtual time.
#[derive(Debug)]
pub struct Wf2q {
    clock: Clock,
    flows: Numbered<Stamps>,
    /// Flows that have started, by finish.
    eligible: FlowHeap<Ticks>,
    /// Flows that have not started, by start.
    waiting: FlowHeap<Ticks>,
}

/// Stamps of the oldest packet of a flow, or of its last departed packet if none is queued.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    start: Ticks,
    finish: Ticks,
}

impl Default for Wf2q {
    fn default() -> Wf2q {
        Wf2q {
            clock: Clock::default(),
            flows: Numbered::default(),
            eligible: FlowHeap::with_capacity(64),
            waiting: FlowHeap::with_capacity(64),
        }
    }
}

impl Wf2q {
    /// Sets the stamps of a packet that becomes the oldest of its flow and starts at `start`.
    #[inline]
    fn head(&mut self, item: Item, start: Ticks) {
        let finish = start + item.cost;
        *self.flows.at(item.flow) = Stamps { start, finish };
        if start <= self.clock.virtual_time() {
            self.eligible.set(item.flow, finish);
        } else {
            self.waiting.set(item.flow, start);
        }
    }

    /// Flows that have started are eligible. If there is none, virtual time becomes the earliest start.
    #[inline]
    fn settle(&mut self) {
        while let Some((start, flow)) = self.waiting.first() {
            if start > self.clock.virtual_time() {
                if !self.eligible.is_empty() {
                    return;
                }
                self.clock.shift_to(start);
            }
            self.waiting.remove(flow);
            self.eligible.set(flow, self.flows.at(flow).finish);
        }
    }
}

impl Schedule for Wf2q {
    const FLOW_BYTES: usize = size_of::<Stamps>() + 2 * FlowHeap::<Ticks>::bytes_per_flow();

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, now: Time) {
        self.clock.pass(now);
        if first {
            let start = self.clock.virtual_time().max(self.flows.at(item.flow).finish);
            self.head(item, start);
        }
        self.settle();
    }

    #[inline]
    fn next(&mut self, now: Time) -> Option<Pick> {
        self.clock.pass(now);
        self.settle();
        self.eligible.first().map(|(_, flow)| Pick::oldest(flow))
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.eligible.remove(flow);
        if let Some(head) = head {
            let start = self.flows.at(flow).finish;
            self.head(head, start);
        }
        self.settle();
    }

    fn on_revoke(&mut self, item: Item, emptied: bool) {
        if emptied {
            self.eligible.remove(item.flow);
            self.waiting.remove(item.flow);
            let stamps = self.flows.at(item.flow);
            stamps.finish = stamps.start;
            self.settle();
        }
    }

    fn passed(&self, flow: u32, now: Time) -> bool {
        let virtual_time = self.clock.at(now);
        self.flows.get(flow).is_none_or(|stamps| stamps.finish <= virtual_time)
    }

    fn forget(&mut self, flow: u32) {
        *self.flows.at(flow) = Stamps::default();
    }

    fn clear(&mut self) {
        self.clock.restart();
        self.flows.clear();
        self.eligible.clear();
        self.waiting.clear();
    }

    fn bytes(&self) -> u64 {
        self.flows.bytes() + self.eligible.bytes() + self.waiting.bytes()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_s", self.clock.virtual_time().as_s());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{Model, follows, operations, reserved_trace};
    use crate::testing::trace::MIXED;
    use proptest::prelude::*;

    #[test]
    fn no_packet_leaves_before_the_fluid_starts_it() {
        assert_eq!(
            reserved_trace("wf2q", MIXED),
            "A1[0-1] B1[1-2] C1[2-4] A2[4-5] A3[5-6] B2[6-7] A4[7-8] D1[8-9] B3[9-10] C2[10-11] |"
        );
    }

    /// The definition: the packets of each flow, the start of the oldest one, and virtual time.
    #[derive(Default)]
    struct Lists {
        queues: [Vec<(u32, Ticks)>; 5],
        starts: [Ticks; 5],
        virtual_time: Ticks,
        then: Time,
    }

    impl Lists {
        fn waiting(&self) -> impl Iterator<Item = usize> {
            (0..5).filter(|flow| !self.queues[*flow].is_empty())
        }
        fn settle(&mut self, now: Time) {
            self.virtual_time += Ticks::of(now.since(self.then));
            self.then = now;
            let earliest = self.waiting().map(|flow| self.starts[flow]).min();
            self.virtual_time = self.virtual_time.max(earliest.unwrap_or_default());
        }
    }

    impl Model for Lists {
        fn arrives(&mut self, flow: usize, serial: u32, cost: Ticks, now: Time) {
            self.settle(now);
            if self.queues[flow].is_empty() {
                self.starts[flow] = self.starts[flow].max(self.virtual_time);
            }
            self.queues[flow].push((serial, cost));
            self.settle(now);
        }
        fn leaves(&mut self, now: Time) -> Option<u32> {
            self.settle(now);
            let eligible = self.waiting().filter(|flow| self.starts[*flow] <= self.virtual_time);
            let flow = eligible.min_by_key(|flow| (self.starts[*flow] + self.queues[*flow][0].1, *flow))?;
            let (serial, cost) = self.queues[flow].remove(0);
            self.starts[flow] += cost;
            self.settle(now);
            Some(serial)
        }
    }

    proptest! {
        #[test]
        fn equals_its_definition(ops in operations()) {
            follows("wf2q", &mut Lists::default(), &ops)?;
        }
    }
}

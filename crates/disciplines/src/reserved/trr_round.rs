//! Timestamp round robin, read literally: in each round every flow with packets gets one stamp, and then the
//! output array is sent from its first slot to its last.
//!
//! # Principles
//! - A round starts when the array is empty. The oldest packet of each queued flow then gets a stamp, T = T
//!   of the flow's last packet + L/ρ. A new flow, and a flow that was empty since its last departure, starts
//!   from the shift clock: T = SC + L/ρ. A flow that arrives during a round joins the next.
//! - The shift clock is the lowest stamp of the round before. It never decreases.
//! - The slot of a packet is its stamp in whole units, modulo P. The array is sent from slot 0 to slot P - 1.
//!   Packets in one slot are chained and leave together.
//! - This reproduces figure 2 of the paper stamp by stamp, under one assumption: flow 2's stamp of 12 is
//!   correct if its queue had been empty just before. The figure does not show that; otherwise the stamp
//!   would be 15.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Consequences
//! - Every flow with packets sends one per round. With packets of one size the shares are equal, whatever is
//!   reserved. The stamps decide only the order within a round, so no bound that depends on a flow's rate can
//!   hold.
//! - A flow that pauses for a moment starts again at the shift clock, and may get more than its rate: flow 2
//!   in the figure has two stamps that are 3 apart, at L/ρ of 6.
//!
//! # Deviations
//! - One round per scan. The paper does not give the number.
//! - Find-first-set finds the next slot in use, instead of an examination of each.
//! - Packets keep their lengths. The paper cuts them to one size by the MTU of the interface.
//! - If the last packet of a flow is dropped after it got its stamp, the flow starts again at the shift
//!   clock.
//!
//! # Cost
//! - One table look-up for each arriving packet. A round costs one stamp per flow, which is one per packet;
//!   the first departure of a round pays for all.
//! - 140 bytes per flow with a reservation, in addition to the table, and 8 per slot.
//!
//! # References
//! - Y.-T. Chen, J.-R. Chen, "The Design and Implementation of Timestamp Round-Robin Scheduling in the Linux
//!   Kernel" (in Chinese), National Taiwan University of Science and Technology, about 2000: sections 2.1 and
//!   2.2, figure 2.

use giveway_qdisc::blocks::{Chains, Ticks};
use giveway_qdisc::{Invalid, Limit, LinkContext, Properties, Span, Time};

use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule, array};
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `trr_round`.
    pub struct Config {
        /// Number of slots of the output array: P, a prime number that the paper does not specify.
        pub slots: u32 = 1009,
        /// Unit of a stamp: the time of one slot.
        pub unit: Span = Span::ms(1),
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "timestamp round robin read literally: a stamp per flow and round; shares are equal, not as reserved";
    const NEEDS: Needs = Needs::Reservations;
    type Qdisc<P: 'static> = Guaranteed<P, Rounds>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, Rounds>, Invalid> {
        let Config { slots, unit, .. } = *self;
        let (slots, unit) = array(slots, "unit", unit)?;
        Guaranteed::new(&self.common(), Rounds::new(slots, unit), context)
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Limit::Packets(5), slots: 7, ..Config::default() },
            Config { limit: Limit::Bytes(6000), flows: 2, slots: 1, unit: Span::us(100) },
        ]
    }
}

/// The output array and the stamps.
#[derive(Debug)]
pub struct Rounds {
    unit: Ticks,
    /// Flows of this round.
    array: Chains,
    /// Flows of the next round, in the order in which they became backlogged.
    waiting: Vec<u32>,
    flows: Numbered<Flow>,
    /// SC.
    shift_clock: Ticks,
    /// The lowest stamp of this round.
    lowest: Option<Ticks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// The last stamp of the flow.
    stamp: Ticks,
    /// L/ρ of its oldest packet.
    cost: Ticks,
    /// True if the queue of the flow was empty since that stamp.
    fresh: bool,
    /// True if the flow has packets queued.
    queued: bool,
    /// True if the flow belongs to the next round.
    listed: bool,
}

impl Rounds {
    fn new(slots: usize, unit: Ticks) -> Rounds {
        Rounds {
            unit,
            array: Chains::new(slots),
            waiting: Vec::with_capacity(64),
            flows: Numbered::default(),
            shift_clock: Ticks::ZERO,
            lowest: None,
        }
    }

    #[inline]
    fn wait(&mut self, item: Item, fresh: bool) {
        let flow = self.flows.at(item.flow);
        (flow.cost, flow.fresh, flow.queued) = (item.cost, fresh, true);
        if !std::mem::replace(&mut flow.listed, true) {
            self.waiting.push(item.flow);
        }
    }

    /// Stamps the oldest packet of each flow of the next round.
    fn begin(&mut self) {
        self.shift_clock = self.shift_clock.max(self.lowest.take().unwrap_or_default());
        let slots = u64::from(self.array.slots());
        for number in self.waiting.drain(..) {
            let flow = self.flows.at(number);
            flow.listed = false;
            // The last packet of the flow may have been pushed out.
            if flow.queued {
                let start = if flow.fresh { self.shift_clock } else { flow.stamp };
                flow.stamp = start + flow.cost;
                self.lowest = Some(self.lowest.map_or(flow.stamp, |lowest| lowest.min(flow.stamp)));
                self.array.push((flow.stamp.slot(self.unit) % slots) as u32, number);
            }
        }
    }
}

impl Schedule for Rounds {
    const FLOW_BYTES: usize = size_of::<Flow>() + 16;

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, _: Time) {
        if first {
            self.wait(item, true);
        }
    }

    #[inline]
    fn next(&mut self, _: Time) -> Option<Pick> {
        if self.array.is_empty() {
            self.begin();
        }
        // Packets never join the array during a scan, so the first slot in use is the next one.
        let slot = self.array.next_from(0)?;
        self.array.front(slot).map(Pick::oldest)
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.array.remove(flow);
        match head {
            Some(head) => self.wait(head, false),
            None => self.flows.at(flow).queued = false,
        }
    }

    fn on_revoke(&mut self, item: Item, emptied: bool) {
        if emptied {
            self.array.remove(item.flow);
            self.flows.at(item.flow).queued = false;
        }
    }

    /// Its next packet starts from the shift clock in any case.
    fn passed(&self, _: u32, _: Time) -> bool {
        true
    }

    fn forget(&mut self, _: u32) {}

    fn clear(&mut self) {
        self.array.clear();
        self.waiting.clear();
        self.flows.clear();
        (self.shift_clock, self.lowest) = (Ticks::ZERO, None);
    }

    fn bytes(&self) -> u64 {
        self.array.bytes() + self.flows.bytes() + (self.waiting.capacity() * size_of::<u32>()) as u64
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("shift_clock_s", self.shift_clock.as_s());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::reserve;
    use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Rate, Streams};

    /// Figure 2(b): packets of 300 bytes, rates 100, 50, 75 and 75; the flows with a packet in each round,
    /// and the stamps.
    #[test]
    fn figure_2_stamp_by_stamp() {
        let context = LinkContext::new(Rate::bit(300 * 8000), Streams::new(1));
        let mut trr = Config { slots: 101, ..Config::default() }.build::<u64>(&context).unwrap();
        let mut out = Outbox::default();
        let mut cx = Cx::new(Time::ZERO, &mut out);
        // Arrivals before each round. Flow 2 has one packet in round 2, and two more arrive after its
        // departure. Flow 3's second packet arrives with its first. Flow 4's packets of rounds 5 to 7 arrive
        // together.
        let arrivals: [&[(u64, u32)]; 7] =
            [&[(1, 7), (4, 1)], &[(2, 1), (3, 2)], &[(2, 2)], &[], &[(4, 3)], &[(3, 1)], &[]];
        let mut rounds = Vec::new();
        for comes in arrivals {
            for (flow, packets) in comes {
                for _ in 0..*packets {
                    let mut pkt = Packet::new(FlowKey(*flow), 300, 0);
                    pkt.meta.class = *flow as u16 - 1;
                    reserve(&mut pkt.meta, &[100, 50, 75, 75]);
                    trr.enqueue(pkt, &mut cx);
                }
            }
            let mut round = Vec::new();
            loop {
                let flow = trr.dequeue(&mut cx).packet().expect("flow 1 always has one").meta.flow;
                let number = trr.number(flow).unwrap();
                let stamp = trr.schedule.flows.at(number).stamp.slot(Ticks::of(Span::ms(1)));
                round.push((flow.0, stamp));
                if trr.schedule.array.is_empty() {
                    break;
                }
            }
            let clock = trr.schedule.shift_clock.slot(Ticks::of(Span::ms(1)));
            rounds.push((clock, round));
        }
        let expected = [
            (0, vec![(1, 3), (4, 4)]),
            (3, vec![(1, 6), (3, 7), (2, 9)]),
            (6, vec![(1, 9), (3, 11), (2, 12)]),
            (9, vec![(1, 12), (2, 18)]),
            (12, vec![(1, 15), (4, 16)]),
            (15, vec![(1, 18), (3, 19), (4, 20)]),
            (18, vec![(1, 21), (4, 24)]),
        ];
        assert_eq!(rounds, expected);
        assert!(trr.dequeue(&mut cx).packet().is_none());
    }

    /// Without the moment in which its queue is empty, flow 2 would have the stamps 9, 15 and 21.
    #[test]
    fn a_pause_lowers_the_stamps() {
        let context = LinkContext::new(Rate::bit(300 * 8000), Streams::new(1));
        let mut trr = Config { slots: 101, ..Config::default() }.build::<u64>(&context).unwrap();
        let mut out = Outbox::default();
        let mut cx = Cx::new(Time::ZERO, &mut out);
        let mut arrive = |trr: &mut Guaranteed<u64, Rounds>, flow: u16| {
            let mut pkt = Packet::new(FlowKey(u64::from(flow)), 300, 0);
            pkt.meta.class = flow;
            reserve(&mut pkt.meta, &[100, 50]);
            trr.enqueue(pkt, &mut cx);
        };
        (0..4).for_each(|_| arrive(&mut trr, 0));
        let mut other = Outbox::default();
        let mut served = Cx::new(Time::ZERO, &mut other);
        assert!(trr.dequeue(&mut served).packet().is_some());
        (0..3).for_each(|_| arrive(&mut trr, 1));
        let mut stamps = Vec::new();
        while let Some(pkt) = trr.dequeue(&mut served).packet() {
            if pkt.meta.flow == FlowKey(1) {
                let number = trr.number(FlowKey(1)).unwrap();
                stamps.push(trr.schedule.flows.at(number).stamp.slot(Ticks::of(Span::ms(1))));
            }
        }
        assert_eq!(stamps, [9, 15, 21]);
    }

    /// Each flow sends one packet per round, for any reserved rates.
    #[test]
    fn shares_are_equal() {
        let got = crate::testing::reserved::first_departures("trr_round slots 101 limit 1600p", 120);
        assert_eq!(got, [30, 30, 30, 30]);
    }
}

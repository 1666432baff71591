//! Virtual-time round robin: finish times are sorted into classes, and the first class with a packet is
//! served.
//!
//! # Principles
//! - A packet gets its stamp on arrival: F = max(F of its flow, v) + L/ρ. Its class is F in whole intervals
//!   of T. A flow waits in the class of its oldest packet.
//! - Find-first-set finds the first class with a flow. Within a class flows leave in the order in which they
//!   joined it.
//! - Virtual time v is the beginning of the class in service. There is no simulated fluid, and real time is
//!   not used.
//! - Wider classes are fewer, and let packets leave further from the order of their finish times.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Its bound
//! The TRR paper's table prints a latency of T + L_max/r + L/ρ, with T = L_max/(ρ_min·C) for C classes. With
//! the rule for v above that does not hold. As in self-clocked fair queueing, v comes from the packet in
//! service, so N flows that arrive at once may all get stamps before a flow that arrives a moment later. A
//! search finds violations at once. The latency of self-clocked fair queueing plus T does hold: L/ρ + (N -
//! 1)·L_max/r + T. The abstract does not say whether the authors estimate v differently. The process
//! scheduler of the same name (Nieh, Vaill, Zhong 2001) is another algorithm.
//!
//! # Deviations
//! - This is a reconstruction from the abstract of the paper and from its row in the TRR paper's table.
//! - The default `width` follows from the rate for which it was built. It cannot follow a link that varies.
//! - When the link becomes idle, v stays. The last F of a flow may be up to T ahead of it.
//! - Within a class flows leave in the order in which their oldest packets became the oldest, not by arrival
//!   of packets.
//!
//! # Cost
//! - One table look-up for each arriving packet. Filing and search take a few steps for any number of flows,
//!   and a 128-bit division per packet.
//! - 105 bytes per flow with a reservation and 16 per packet, in addition to the table, and 8 per class; the
//!   number of classes is a power of two.
//!
//! # References
//! - K.-H. Cho, H. Yoon, "Design and Analysis of a Fair Scheduling Algorithm for QoS Guarantees in High-Speed
//!   Packet-Switched Networks", ICC 1998; Computer Communications 22(12), 1999: the abstract. Y.-T. Chen,
//!   J.-R. Chen, TRR, about 2000: appendix, table 1.

use giveway_qdisc::blocks::{Calendar, Ticks};
use giveway_qdisc::{Guarantee, Invalid, Limit, LinkContext, Properties, Span, Time};

use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule, array};
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `vtrr`.
    pub struct Config {
        /// Number of classes in the array: C. Flows of later classes are in a heap.
        pub slots: u32 = 4096,
        /// Width of a class in virtual time: T. By default the transmission time of the largest packet.
        pub width: Option<Span> = None,
    }
}

impl Config {
    fn width(&self, context: &LinkContext) -> Span {
        self.width.unwrap_or_else(|| context.rate.time_for(context.mtu.0))
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "virtual-time round robin: reserved flows by classes of finish times";
    const NEEDS: Needs = Needs::Reservations;
    type Qdisc<P: 'static> = Guaranteed<P, Classes>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, Classes>, Invalid> {
        let (slots, width) = array(self.slots, "width", self.width(context))?;
        Guaranteed::new(&self.common(), Classes::new(slots, width), context)
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        Properties::plain(self.limit).with(Guarantee::ReservedInClasses(self.width(context)))
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Limit::Packets(5), slots: 7, ..Config::default() },
            Config { limit: Limit::Bytes(6000), flows: 2, slots: 64, width: Some(Span::us(100)) },
        ]
    }
}

/// Classes of finish times, and virtual time.
#[derive(Debug)]
pub struct Classes {
    width: Ticks,
    /// Virtual time v.
    virtual_time: Ticks,
    /// F of the last packet of each flow.
    finish: Numbered<Ticks>,
    /// F of each queued packet.
    stamps: Numbered<Ticks>,
    /// Backlogged flows, by the class of their oldest packet.
    due: Calendar,
}

impl Classes {
    fn new(slots: usize, width: Ticks) -> Classes {
        Classes {
            width,
            virtual_time: Ticks::ZERO,
            finish: Numbered::default(),
            stamps: Numbered::default(),
            due: Calendar::new(slots),
        }
    }
}

impl Schedule for Classes {
    const FLOW_BYTES: usize = size_of::<Ticks>() + 12;

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, _: Time) {
        let finish = self.finish.at(item.flow);
        *finish = self.virtual_time.max(*finish) + item.cost;
        *self.stamps.at(item.packet) = *finish;
        if first {
            self.due.file(item.flow, finish.slot(self.width));
        }
    }

    #[inline]
    fn next(&mut self, _: Time) -> Option<Pick> {
        let (class, flow) = self.due.first()?;
        self.virtual_time = Ticks::edge(class, self.width);
        Some(Pick::oldest(flow))
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.due.remove(flow);
        if let Some(head) = head {
            let finish = *self.stamps.at(head.packet);
            self.due.file(flow, finish.slot(self.width));
        }
        self.due.advance(self.virtual_time.slot(self.width));
    }

    /// The next packet of the flow starts at the start of the dropped packet.
    fn on_revoke(&mut self, item: Item, emptied: bool) {
        *self.finish.at(item.flow) = self.stamps.at(item.packet).saturating_sub(item.cost);
        if emptied {
            self.due.remove(item.flow);
        }
    }

    fn passed(&self, flow: u32, _: Time) -> bool {
        self.finish.get(flow).is_none_or(|finish| *finish <= self.virtual_time)
            // Without queued flows virtual time stops, so no flow would ever be forgotten.
            || self.due.is_empty()
    }

    fn forget(&mut self, flow: u32) {
        *self.finish.at(flow) = Ticks::ZERO;
    }

    fn clear(&mut self) {
        self.virtual_time = Ticks::ZERO;
        self.finish.clear();
        self.stamps.clear();
        self.due.clear();
    }

    fn bytes(&self) -> u64 {
        self.finish.bytes() + self.stamps.bytes() + self.due.bytes()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_s", self.virtual_time.as_s());
        visit("beyond_window", self.due.overflowed() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{reserve, reserved_trace, trace_w};
    use crate::testing::trace::MIXED;
    use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Rate, Streams};
    use proptest::prelude::*;

    /// With narrow classes the order equals self-clocked fair queueing, including D1 with F 15. Of equal F
    /// the packet that became the oldest of its flow first leaves first: B1 before A2 (5), C1 before B2
    /// before A4 (10), C2 at 4 before D1 at 4.5 before B3 at 6 (15).
    #[test]
    fn narrow_classes_sort() {
        assert_eq!(
            reserved_trace("vtrr width 1us slots 100000", MIXED),
            "A1[0-1] B1[1-2] A2[2-3] A3[3-4] C1[4-6] B2[6-7] A4[7-8] C2[8-9] D1[9-10] B3[10-11] |"
        );
        // F of A is 3 6 9 12, of D1 4. v is 3 when B and C arrive, so their F are 9 and 15, 7 and 11.
        assert_eq!(trace_w("vtrr width 1us slots 100000"), "A1 D1 A2 C1 B1 A3 C2 A4 B2");
    }

    /// A class as wide as all stamps is a queue in which flows join with each new head: a round robin.
    #[test]
    fn wide_classes_are_a_round_robin() {
        assert_eq!(
            reserved_trace("vtrr width 1s", MIXED),
            "A1[0-1] B1[1-2] C1[2-4] A2[4-5] B2[5-6] C2[6-7] A3[7-8] D1[8-9] B3[9-10] A4[10-11] |"
        );
    }

    proptest! {
        /// The departures match the definition, a list that is sorted by class and then by the time of
        /// filing, for any size of the window.
        #[test]
        fn equals_its_definition(
            ops in prop::collection::vec((any::<bool>(), 0..5u16, 1..10u32), 1..200),
            slots in prop_oneof![Just(1u32), Just(7), Just(1009)],
            width in prop_oneof![Just(500u64), Just(5000)],
        ) {
            let rates = [100, 6, 60, 5, 50];
            let context = LinkContext::new(Rate::kbit(2400), Streams::new(1));
            let config = Config { slots, width: Some(Span::us(width)), ..Config::default() };
            let mut vtrr = config.build::<u64>(&context).unwrap();
            let delta = Ticks::of(Span::us(width));
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ZERO, &mut out);
            let mut queues = vec![Vec::<(u32, Ticks)>::new(); 5];
            let mut finish = [Ticks::ZERO; 5];
            let mut filed: Vec<(u64, u32, usize)> = Vec::new();
            let mut virtual_time = Ticks::ZERO;
            for (serial, (arrives, flow, hundreds)) in (0u32..).zip(ops) {
                if arrives {
                    let (bytes, of) = (100 * hundreds, usize::from(flow));
                    let mut pkt = Packet::new(FlowKey(u64::from(flow)), bytes, u64::from(serial));
                    pkt.meta.class = flow;
                    reserve(&mut pkt.meta, &rates);
                    finish[of] = virtual_time.max(finish[of]) + Ticks::to_send(bytes, pkt.meta.reserved);
                    if queues[of].is_empty() {
                        filed.push((finish[of].slot(delta), serial, of));
                    }
                    queues[of].push((serial, finish[of]));
                    vtrr.enqueue(pkt, &mut cx);
                } else {
                    filed.sort_unstable();
                    let expected = (!filed.is_empty()).then(|| {
                        let (class, _, of) = filed.remove(0);
                        virtual_time = Ticks::edge(class, delta);
                        let (gone, _) = queues[of].remove(0);
                        if let Some((_, finish)) = queues[of].first() {
                            filed.push((finish.slot(delta), serial, of));
                        }
                        gone
                    });
                    prop_assert_eq!(vtrr.dequeue(&mut cx).packet().map(|pkt| pkt.payload), expected.map(u64::from));
                }
            }
        }
    }
}

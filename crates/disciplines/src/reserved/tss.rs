//! Time-shift scheduling: Virtual Clock with a clock that is shifted forward. Stamps stay close to the clock,
//! so a flow has no disadvantage after it used idle capacity.
//!
//! # Principles
//! - Only the oldest packet of a flow has stamps: S = T of the packet before it, or max(c, T) if the flow had
//!   no packet queued; T = S + L/ρ. The packet with the lowest T leaves next. Ties go to the flow with the
//!   lower number.
//! - The clock c follows real time, and is shifted forward when all flows in the queue would start later: c ←
//!   max(c + elapsed, min S). So a new flow starts where the others are, not ahead of them as with `vc`.
//! - The term of real time is necessary. With the shift alone, as in equation (3-1) of the TRR paper, the
//!   clock stops while slow flows wait, new flows get stamps in the past, and the bound on delay breaks.
//! - The latency of a flow is L/ρ + L_max/r. T of a queued flow is at most twice the largest L/ρ ahead of the
//!   clock.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Deviations
//! - This is a reconstruction from the abstract of the paper and from its description in the TRR paper, which
//!   names two methods: to move all stamps back, or to move the clock forward. This is the second.
//!
//! # Cost
//! - One table look-up for each arriving packet, and O(log n) for n flows with packets in the queue: a heap
//!   by T, and a heap by S of the flows that start later.
//! - 165 bytes per flow with a reservation, in addition to the table; none per packet.
//!
//! # References
//! - J. Cobb, M. Gouda, A. El-Nahas, "Time-Shift Scheduling: Fair Scheduling of Flows in High-Speed
//!   Networks", ICNP 1996; IEEE/ACM ToN 6(3), 1998: the abstract. Y.-T. Chen, J.-R. Chen, TRR, about 2000:
//!   section 2.1, equation (3-1).

use giveway_qdisc::blocks::{FlowHeap, Ticks};
use giveway_qdisc::{Guarantee, Invalid, Limit, LinkContext, Properties, Time};

use crate::common::clock::Clock;
use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule};
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `tss`.
    pub struct Config {
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "time-shift scheduling: Virtual Clock without a penalty for the use of idle capacity";
    const NEEDS: Needs = Needs::Reservations;
    type Qdisc<P: 'static> = Guaranteed<P, TimeShift>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, TimeShift>, Invalid> {
        Guaranteed::new(&self.common(), TimeShift::default(), context)
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

/// The backlogged flows, and the shifted clock.
#[derive(Debug)]
pub struct TimeShift {
    clock: Clock,
    /// T of the oldest packet of each flow, or of its last departed packet if none is queued.
    stamps: Numbered<Ticks>,
    /// Backlogged flows, by T.
    due: FlowHeap<Ticks>,
    /// Backlogged flows that start later than the clock, by S.
    later: FlowHeap<Ticks>,
}

impl Default for TimeShift {
    fn default() -> TimeShift {
        TimeShift {
            clock: Clock::default(),
            stamps: Numbered::default(),
            due: FlowHeap::with_capacity(64),
            later: FlowHeap::with_capacity(64),
        }
    }
}

impl TimeShift {
    /// Sets the stamps of a packet that becomes the oldest of its flow and starts at `start`.
    #[inline]
    fn head(&mut self, item: Item, start: Ticks) {
        let stamp = start + item.cost;
        *self.stamps.at(item.flow) = stamp;
        self.due.set(item.flow, stamp);
        if start > self.clock.virtual_time() {
            self.later.set(item.flow, start);
        }
    }

    /// Shifts the clock to the first start if all queued flows start later.
    #[inline]
    fn shift(&mut self) {
        while let Some((start, flow)) = self.later.first() {
            if start > self.clock.virtual_time() {
                if self.later.len() < self.due.len() {
                    return;
                }
                self.clock.shift_to(start);
            }
            self.later.remove(flow);
        }
    }

    #[inline]
    fn leave(&mut self, flow: u32) {
        self.due.remove(flow);
        self.later.remove(flow);
    }
}

impl Schedule for TimeShift {
    const FLOW_BYTES: usize = size_of::<Ticks>() + 2 * FlowHeap::<Ticks>::bytes_per_flow();

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, now: Time) {
        self.clock.pass(now);
        if first {
            let start = self.clock.virtual_time().max(*self.stamps.at(item.flow));
            self.head(item, start);
        }
        self.shift();
    }

    #[inline]
    fn next(&mut self, now: Time) -> Option<Pick> {
        self.clock.pass(now);
        self.shift();
        self.due.first().map(|(_, flow)| Pick::oldest(flow))
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.leave(flow);
        if let Some(head) = head {
            let start = *self.stamps.at(flow);
            self.head(head, start);
        }
        self.shift();
    }

    fn on_revoke(&mut self, item: Item, emptied: bool) {
        if emptied {
            self.leave(item.flow);
            let stamp = self.stamps.at(item.flow);
            *stamp = stamp.saturating_sub(item.cost);
            self.shift();
        }
    }

    fn passed(&self, flow: u32, now: Time) -> bool {
        let clock = self.clock.at(now);
        self.stamps.get(flow).is_none_or(|stamp| *stamp <= clock)
    }

    fn forget(&mut self, flow: u32) {
        *self.stamps.at(flow) = Ticks::ZERO;
    }

    fn clear(&mut self) {
        self.clock.restart();
        self.stamps.clear();
        self.due.clear();
        self.later.clear();
    }

    fn bytes(&self) -> u64 {
        self.stamps.bytes() + self.due.bytes() + self.later.bytes()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("shift_s", self.clock.shift().as_s());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{reserve, reserved_trace, reserved_trace_with, trace_w, trace_x};
    use crate::testing::trace::MIXED;
    use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Rate, Span, Streams};
    use proptest::prelude::*;

    #[test]
    fn the_lowest_stamp_leaves_first() {
        assert_eq!(
            reserved_trace("tss", MIXED),
            "A1[0-1] A2[1-2] B1[2-3] A3[3-4] A4[4-5] D1[5-6] B2[6-7] C1[7-9] B3[9-10] C2[10-11] |"
        );
        assert_eq!(trace_w("tss"), "A1 D1 C1 A2 B1 A3 C2 A4 B2");
        assert_eq!(trace_x("tss"), "A1 A2 A3 A4 C1 B1 D1");
    }

    /// A uses the whole link until B arrives; then both are served alternately. With `vc` B would use the
    /// whole link for as long as A did.
    #[test]
    fn a_flow_that_used_idle_capacity_is_not_punished() {
        let arrivals =
            "0 A1 100, A2 100, A3 100, A4 100, A5 100, A6 100, A7 100, A8 100; 5.5 B1 100, B2 100, B3 100";
        assert_eq!(
            reserved_trace_with("tss", 100, &[40, 40], arrivals),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] A5[4-5] A6[5-6] A7[6-7] B1[7-8] A8[8-9] B2[9-10] B3[10-11] |"
        );
    }

    proptest! {
        /// The departures equal those by the definition with lists, and T is never more than twice the
        /// largest L/ρ ahead of the clock.
        #[test]
        fn equals_its_definition(ops in prop::collection::vec((0..3u64, 0..5u16, 1..10u32), 1..200)) {
            let rates = [100, 6, 60, 5, 50];
            let context = LinkContext::new(Rate::kbit(2400), Streams::new(1));
            let mut tss = Config::default().build::<u64>(&context).unwrap();
            let mut out = Outbox::default();
            // Per flow: its queued packets, the last T, and S of its oldest packet.
            let mut queues = vec![Vec::<(u32, Ticks)>::new(); 5];
            let (mut last, mut start) = ([Ticks::ZERO; 5], [Ticks::ZERO; 5]);
            let (mut clock, mut then, mut now, mut largest) = (Ticks::ZERO, Time::ZERO, Time::ZERO, Ticks::ZERO);
            let min_start = |queues: &[Vec<_>], start: &[Ticks; 5]| {
                (0..5).filter(|flow| !queues[*flow].is_empty()).map(|flow| start[flow]).min()
            };
            for (serial, (ms, flow, hundreds)) in (0..).zip(ops) {
                now += Span::ms(ms);
                clock += Ticks::of(now.since(then));
                then = now;
                clock = clock.max(min_start(&queues, &start).unwrap_or_default());
                if serial % 3 < 2 {
                    let bytes = 100 * hundreds;
                    let mut pkt = Packet::new(FlowKey(u64::from(flow)), bytes, u64::from(serial));
                    pkt.meta.class = flow;
                    reserve(&mut pkt.meta, &rates);
                    let cost = Ticks::to_send(bytes, pkt.meta.reserved);
                    largest = largest.max(cost);
                    let of = usize::from(flow);
                    if queues[of].is_empty() {
                        start[of] = clock.max(last[of]);
                    }
                    queues[of].push((serial, cost));
                    tss.enqueue(pkt, &mut Cx::new(now, &mut out));
                } else {
                    let waiting = (0..5).filter(|flow| !queues[*flow].is_empty());
                    // Of equal T the flow that became known first leaves first.
                    let stamp = |of: &usize| (start[*of] + queues[*of][0].1, tss.number(FlowKey(*of as u64)));
                    let expected = waiting.min_by_key(stamp).map(|of| {
                        let (serial, cost) = queues[of].remove(0);
                        start[of] += cost;
                        last[of] = start[of];
                        serial
                    });
                    prop_assert_eq!(tss.dequeue(&mut Cx::new(now, &mut out)).packet().map(|pkt| pkt.payload), expected.map(u64::from));
                }
                clock = clock.max(min_start(&queues, &start).unwrap_or_default());
                prop_assert_eq!(tss.schedule.clock.virtual_time(), clock);
                for of in (0..5).filter(|flow| !queues[*flow].is_empty()) {
                    prop_assert!(start[of] + queues[of][0].1 <= clock + largest + largest);
                }
            }
        }
    }
}

//! Virtual Clock: each flow with a reservation has a clock that advances with its packets at its reserved
//! rate, and the packet with the earliest clock leaves next.
//!
//! # Principles
//! - A packet gets its stamp on arrival: T = max(now, T of its flow) + L/ρ. The clock of a flow that sends at
//!   its rate follows real time. The clock of a faster flow runs ahead, and its packets come after the
//!   others' packets.
//! - The packet with the lowest stamp leaves next. Ties go to the flow with the lower number.
//! - If the reservations fit the link, a packet leaves by T + L_max/r, whatever other flows do. So the
//!   latency of a flow is L/ρ + L_max/r, as with weighted fair queueing.
//! - It is not fair. A flow that used idle capacity has a clock in the future. It gets no service until real
//!   time has caught up, once other flows send again. No bound limits that time.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Deviations
//! - Lixia Zhang's paper has two clocks per flow. One of them measures whether the flow keeps to its rate, so
//!   that the network can react. Only the clock that schedules is implemented here.
//! - A flow is forgotten only when its clock is behind real time. It would restart there in any case.
//!
//! # Cost
//! - One table look-up for each arriving packet, and O(log n) for n flows with packets in the queue.
//! - 130 bytes per flow with a reservation and 16 per packet, in addition to the table.
//!
//! # References
//! - L. Zhang, "Virtual Clock: A New Traffic Control Algorithm for Packet-Switched Networks", ACM
//!   Transactions on Computer Systems 9(2), 1991. The bound: G. Xie, S. Lam, "Delay Guarantee of Virtual
//!   Clock Server", IEEE/ACM ToN 3(6), 1995; D. Stiliadis, A. Varma, "Latency-Rate Servers", IEEE/ACM ToN
//!   6(5), 1998. Both from secondary sources.

use giveway_qdisc::blocks::Ticks;
use giveway_qdisc::{Guarantee, Invalid, Limit, LinkContext, Properties, Time};

use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule};
use crate::common::stamped::Stamped;
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `vc`.
    pub struct Config {
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "Virtual Clock: packets by stamps, which advance at the reserved rate of their flow";
    const NEEDS: Needs = Needs::Reservations;
    type Qdisc<P: 'static> = Guaranteed<P, VirtualClock>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, VirtualClock>, Invalid> {
        Guaranteed::new(&self.common(), VirtualClock::default(), context)
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

/// Stamps of flows and packets, and the next flow.
#[derive(Debug, Default)]
pub struct VirtualClock {
    /// Stamp of the last packet of each flow.
    clocks: Numbered<Ticks>,
    /// Queued packets by their stamps.
    queued: Stamped,
}

impl Schedule for VirtualClock {
    const FLOW_BYTES: usize = size_of::<Ticks>() + Stamped::FLOW_BYTES;

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, now: Time) {
        let clock = self.clocks.at(item.flow);
        *clock = Ticks::at(now).max(*clock) + item.cost;
        self.queued.add(item, *clock, first);
    }

    #[inline]
    fn next(&mut self, _: Time) -> Option<Pick> {
        self.queued.next()
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.queued.on_departure(flow, head);
    }

    /// The next packet of the flow starts at the start of the dropped packet.
    fn on_revoke(&mut self, item: Item, emptied: bool) {
        *self.clocks.at(item.flow) = self.queued.start(item);
        if emptied {
            self.queued.on_empty(item.flow);
        }
    }

    fn passed(&self, flow: u32, now: Time) -> bool {
        self.clocks.get(flow).is_none_or(|clock| *clock <= Ticks::at(now))
    }

    fn forget(&mut self, flow: u32) {
        *self.clocks.at(flow) = Ticks::ZERO;
    }

    fn clear(&mut self) {
        self.clocks.clear();
        self.queued.clear();
    }

    fn bytes(&self) -> u64 {
        self.clocks.bytes() + self.queued.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{Model, follows, operations, reserved_trace, reserved_trace_with};
    use crate::testing::trace::MIXED;
    use proptest::prelude::*;

    #[test]
    fn the_earliest_clock_leaves_first() {
        assert_eq!(
            reserved_trace("vc", MIXED),
            "A1[0-1] A2[1-2] B1[2-3] A3[3-4] A4[4-5] D1[5-6] B2[6-7] C1[7-9] B3[9-10] C2[10-11] |"
        );
    }

    /// A uses the whole link for some packets, so its clock is at 25. When B arrives, A gets no service until
    /// B's clock has reached it.
    #[test]
    fn a_flow_that_used_idle_capacity_is_punished() {
        let arrivals = "0 A1 100, A2 100, A3 100, A4 100, A5 100, A6 100, A7 100; 5.5 B1 100, B2 100, B3 100";
        assert_eq!(
            reserved_trace_with("vc", 100, &[40, 40], arrivals),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] A5[4-5] A6[5-6] B1[6-7] B2[7-8] B3[8-9] A7[9-10] |"
        );
    }

    /// The definition: a list of all packets with their stamps.
    #[derive(Default)]
    struct List {
        clocks: [Ticks; 5],
        queued: Vec<(Ticks, usize, u32)>,
    }

    impl Model for List {
        fn arrives(&mut self, flow: usize, serial: u32, cost: Ticks, now: Time) {
            self.clocks[flow] = self.clocks[flow].max(Ticks::at(now)) + cost;
            self.queued.push((self.clocks[flow], flow, serial));
        }
        fn leaves(&mut self, _: Time) -> Option<u32> {
            let first = self.queued.iter().copied().min()?;
            self.queued.retain(|each| *each != first);
            Some(first.2)
        }
    }

    proptest! {
        #[test]
        fn equals_its_definition(ops in operations()) {
            follows("vc", &mut List::default(), &ops)?;
        }
    }
}

//! Weighted fair queueing, packet by packet: the next packet is the one that would finish first if the link
//! were a fluid that serves all flows at once, each at its rate.
//!
//! # Principles
//! - The fluid model (GPS) divides the link among the flows that have data in it, in proportion to their
//!   reserved rates. So each flow gets its rate and its part of the capacity that others leave. Virtual time
//!   is the service of a flow with a rate of one. It advances at r/Σρ over the flows in the fluid, and never
//!   slower than real time.
//! - A packet gets its stamps on arrival: S = max(F of its flow, V), F = S + L/ρ. The packet with the lowest
//!   F leaves next. Ties go to the flow with the lower number.
//! - Virtual time is exact. Between two arrivals, flows may finish in the fluid, and each of them changes its
//!   slope. These steps are replayed one by one, from a heap of the flows by F. A flow is in it once for all
//!   its packets.
//! - A packet leaves at most L_max/r later than in the fluid. It may leave much earlier: compare `wf2q`.
//! - Packets without a reservation share the rest of the link, fairly by bytes.
//!
//! # Deviations
//! - Divisions are rounded down to 2⁻²⁰ ps, once per step of virtual time.
//! - While no flow has data, virtual time stops. It is not reset, and its numbers are large enough.
//! - The fluid has the whole link. While a best-effort packet is on the wire, the fluid is ahead by up to
//!   that packet.
//! - ns-2 has an approximation under this name, for equal shares and at most 32 flows. This is not that
//!   algorithm.
//!
//! # Cost
//! - One table look-up for each arriving packet, and O(log n) for n flows with packets in the queue. One
//!   arrival may remove many flows from the fluid, but each was added by an arrival. The O(n) per arrival of
//!   1999 is for a sorted list.
//! - 180 bytes per flow with a reservation and 16 per packet, in addition to the table.
//!
//! # References
//! - A. Demers, S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM 1989.
//!   A. Parekh, R. Gallager, "A Generalized Processor Sharing Approach to Flow Control", IEEE/ACM ToN 1(3),
//!   1993: theorem 1 for the bound. The TRR paper cites RFC 970 for it, which has neither weights nor stamps.

use giveway_qdisc::blocks::{FlowHeap, Ticks};
use giveway_qdisc::{Guarantee, Invalid, Limit, LinkContext, Properties, Rate, Time};

use crate::common::guaranteed::{Guaranteed, Item, Numbered, Pick, Schedule};
use crate::common::stamped::Stamped;
use crate::{Discipline, Needs};

reserved_config! {
    /// Parameters of `wfq`.
    pub struct Config {
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "weighted fair queueing: reserved flows as a fluid link would finish them, exactly";
    const NEEDS: Needs = Needs::Reservations;
    type Qdisc<P: 'static> = Guaranteed<P, Gps>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Guaranteed<P, Gps>, Invalid> {
        Guaranteed::new(&self.common(), Gps::new(context.rate), context)
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

/// The fluid, and the packets in its order.
#[derive(Debug)]
pub struct Gps {
    link: Rate,
    /// Virtual time at the real time `as_of`.
    virtual_time: Ticks,
    as_of: Time,
    /// Flows that the fluid serves, by the stamp of their last packet, at which the fluid finishes them.
    served: FlowHeap<Ticks>,
    /// The sum of their rates.
    rates: u64,
    /// State of each flow.
    flows: Numbered<Fluid>,
    /// Queued packets by F.
    queued: Stamped,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fluid {
    /// F of the last packet.
    finish: Ticks,
    /// Rate of the flow in the sum of rates.
    rate: u64,
}

impl Gps {
    fn new(link: Rate) -> Gps {
        Gps {
            link,
            virtual_time: Ticks::ZERO,
            as_of: Time::ZERO,
            served: FlowHeap::with_capacity(64),
            rates: 0,
            flows: Numbered::default(),
            queued: Stamped::default(),
        }
    }

    /// Advances the fluid to the present time.
    #[inline]
    fn advance(&mut self, now: Time) {
        let mut left = Ticks::of(now.since(self.as_of));
        self.as_of = now;
        while let Some((finish, flow)) = self.served.first() {
            let reach = self.virtual_time + left.scale(self.link.as_bit(), self.rates);
            if reach < finish {
                self.virtual_time = reach;
                return;
            }
            // The time of this step is rounded down, and so is the progress of the next one in the rest.
            let step = finish.saturating_sub(self.virtual_time).scale(self.rates, self.link.as_bit());
            left = left.saturating_sub(step);
            self.virtual_time = self.virtual_time.max(finish);
            self.end(flow);
        }
    }

    /// Removes a flow from the fluid.
    #[inline]
    fn end(&mut self, flow: u32) {
        if self.served.remove(flow) {
            self.rates -= std::mem::take(&mut self.flows.at(flow).rate);
        }
    }
}

impl Schedule for Gps {
    const FLOW_BYTES: usize = size_of::<Fluid>() + FlowHeap::<Ticks>::bytes_per_flow() + Stamped::FLOW_BYTES;

    #[inline]
    fn on_arrival(&mut self, item: Item, first: bool, now: Time) {
        self.advance(now);
        let flow = self.flows.at(item.flow);
        flow.finish = flow.finish.max(self.virtual_time) + item.cost;
        self.rates = self.rates - flow.rate + item.rate.as_bit();
        flow.rate = item.rate.as_bit();
        self.served.set(item.flow, flow.finish);
        self.queued.add(item, flow.finish, first);
    }

    #[inline]
    fn next(&mut self, _: Time) -> Option<Pick> {
        self.queued.next()
    }

    #[inline]
    fn on_departure(&mut self, flow: u32, _: u32, head: Option<Item>, _: Time) {
        self.queued.on_departure(flow, head);
    }

    /// Removes a dropped packet as if the fluid had never had it.
    fn on_revoke(&mut self, item: Item, emptied: bool) {
        let start = self.queued.start(item);
        self.flows.at(item.flow).finish = start;
        if start <= self.virtual_time {
            self.end(item.flow);
        } else if self.served.key(item.flow).is_some() {
            self.served.set(item.flow, start);
        }
        if emptied {
            self.queued.on_empty(item.flow);
        }
    }

    /// Virtual time advances at least as fast as real time while the fluid serves any flow, and it serves
    /// this flow until virtual time has passed its stamp.
    fn passed(&self, flow: u32, now: Time) -> bool {
        let ahead =
            self.flows.get(flow).map_or(Ticks::ZERO, |flow| flow.finish.saturating_sub(self.virtual_time));
        ahead <= Ticks::of(now.since(self.as_of))
    }

    fn forget(&mut self, flow: u32) {
        self.end(flow);
        *self.flows.at(flow) = Fluid::default();
    }

    fn clear(&mut self) {
        self.served.clear();
        self.flows.clear();
        self.queued.clear();
        self.rates = 0;
        self.virtual_time = Ticks::ZERO;
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        // Each step of the fluid is rounded, so none is made without need.
        if rate != self.link {
            self.advance(now);
            self.link = rate;
        }
    }

    fn bytes(&self) -> u64 {
        self.served.bytes() + self.flows.bytes() + self.queued.bytes()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_s", self.virtual_time.as_s());
        visit("fluid_flows", self.served.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reserved::{reserve, reserved_trace};
    use crate::testing::trace::MIXED;
    use giveway_qdisc::{Cx, FlowKey, Next, Outbox, Packet, Qdisc, Streams};
    use proptest::prelude::*;

    #[test]
    fn the_order_of_the_fluid() {
        assert_eq!(
            reserved_trace("wfq", MIXED),
            "A1[0-1] A2[1-2] B1[2-3] A3[3-4] A4[4-5] B2[5-6] C1[6-8] D1[8-9] B3[9-10] C2[10-11] |"
        );
    }

    /// The stamp of that trace that depends on the slope of virtual time: 85/8 ms.
    #[test]
    fn virtual_time_runs_faster_when_the_fluid_serves_fewer() {
        let context = LinkContext::new(Rate::kbit(800), Streams::new(1));
        let mut wfq = Config::default().build::<u64>(&context).unwrap();
        let mut out = Outbox::default();
        let mut arrive = |us, flow, bytes| {
            let mut pkt = Packet::new(FlowKey(u64::from(flow)), bytes, 0);
            pkt.meta.class = flow;
            reserve(&mut pkt.meta, &[40, 20, 20, 20]);
            wfq.enqueue(pkt, &mut Cx::new(Time::us(us), &mut out));
            let number = wfq.number(FlowKey(u64::from(flow))).unwrap();
            wfq.schedule.flows.at(number).finish.raw() as f64
                / Ticks::of(giveway_qdisc::Span::us(1)).raw() as f64
        };
        let all = [(0, 100), (0, 100), (0, 100), (1, 100), (1, 100), (2, 200), (2, 100)];
        let stamps = all.map(|(flow, bytes)| arrive(0, flow, bytes));
        assert_eq!(stamps, [2500.0, 5000.0, 7500.0, 5000.0, 10_000.0, 10_000.0, 15_000.0]);
        assert_eq!(arrive(1500, 0, 100), 10_000.0);
        assert_eq!(arrive(4500, 3, 100), 10_625.0);
        assert_eq!(arrive(5000, 1, 100), 15_000.0);
    }

    /// A fraction, for a fluid without rounding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Exact(i128, i128);

    impl Exact {
        fn new(up: i128, down: i128) -> Option<Exact> {
            let (mut a, mut b) = (up.abs(), down);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            let a = a.max(1);
            Some(Exact(up / a, down / a))
        }
        fn plus(self, other: Exact) -> Option<Exact> {
            let up = self.0.checked_mul(other.1)?.checked_add(other.0.checked_mul(self.1)?)?;
            Exact::new(up, self.1.checked_mul(other.1)?)
        }
        fn times(self, up: i128, down: i128) -> Option<Exact> {
            Exact::new(self.0.checked_mul(up)?, self.1.checked_mul(down)?)
        }
        fn minus(self, other: Exact) -> Option<Exact> {
            self.plus(Exact(-other.0, other.1))
        }
        fn at_most(self, other: Exact) -> Option<bool> {
            Some(self.0.checked_mul(other.1)? <= other.0.checked_mul(self.1)?)
        }
    }

    /// The virtual finish of every packet under GPS, computed with fractions, in ms, for a link with a rate
    /// in bytes per ms. `None` if the numbers become too large.
    fn fluid(link: i128, rates: &[i128], packets: &[(i128, usize, i128)]) -> Option<Vec<Exact>> {
        let mut virtual_time = Exact(0, 1);
        let mut finish = vec![Exact(0, 1); rates.len()];
        let mut then = Exact(0, 1);
        let mut stamps = Vec::new();
        for (ms, flow, bytes) in packets {
            let mut left = Exact(*ms, 1).minus(then)?;
            then = Exact(*ms, 1);
            loop {
                let mut served = Vec::new();
                for (each, finish) in finish.iter().enumerate() {
                    if !finish.at_most(virtual_time)? {
                        served.push(each);
                    }
                }
                let sum: i128 = served.iter().map(|each| rates[*each]).sum();
                let Some(mut first) = served.first().copied() else { break };
                for each in served {
                    if finish[each].at_most(finish[first])? {
                        first = each;
                    }
                }
                let needs = finish[first].minus(virtual_time)?.times(sum, link)?;
                if needs.at_most(left)? {
                    virtual_time = finish[first];
                    left = left.minus(needs)?;
                } else {
                    virtual_time = virtual_time.plus(left.times(link, sum)?)?;
                    break;
                }
            }
            let start = if finish[*flow].at_most(virtual_time)? { virtual_time } else { finish[*flow] };
            finish[*flow] = start.plus(Exact::new(*bytes, rates[*flow])?)?;
            stamps.push(finish[*flow]);
        }
        Some(stamps)
    }

    proptest! {
        /// Every stamp equals the fluid's stamp in fractions, within the rounding error, which is less than a
        /// thousandth of a nanosecond.
        #[test]
        fn stamps_are_those_of_the_fluid(
            gaps in prop::collection::vec((0..12u64, 0..4u16, 1..9u32), 1..60),
        ) {
            let rates = [40, 20, 10, 30];
            let mut now = 0;
            let packets: Vec<(u64, u16, u32)> = gaps
                .into_iter()
                .map(|(gap, flow, hundreds)| {
                    now += gap;
                    (now, flow, 100 * hundreds)
                })
                .collect();
            let exact: Vec<(i128, usize, i128)> =
                packets.iter().map(|(ms, flow, bytes)| (i128::from(*ms), usize::from(*flow), i128::from(*bytes))).collect();
            let Some(expected) = fluid(100, &rates.map(i128::from), &exact) else {
                return Err(TestCaseError::reject("the fractions become too large"));
            };
            let context = LinkContext::new(Rate::kbit(800), Streams::new(1));
            let mut wfq = Config::default().build::<u64>(&context).unwrap();
            let mut out = Outbox::default();
            let mut wire = Time::ZERO;
            for ((ms, flow, bytes), Exact(up, down)) in packets.into_iter().zip(expected) {
                // Departures in the meantime do not change the fluid.
                while wire <= Time::ms(ms) {
                    match wfq.dequeue(&mut Cx::new(wire, &mut out)) {
                        Next::Packet(pkt) => wire += context.rate.time_for(u64::from(pkt.bytes())),
                        _ => break,
                    }
                }
                wire = wire.max(Time::ms(ms));
                let mut pkt = Packet::new(FlowKey(u64::from(flow)), bytes, 0);
                pkt.meta.class = flow;
                reserve(&mut pkt.meta, &rates);
                wfq.enqueue(pkt, &mut Cx::new(Time::ms(ms), &mut out));
                let number = wfq.number(FlowKey(u64::from(flow))).unwrap();
                let got = wfq.schedule.flows.at(number).finish.raw() as f64;
                let ms_of = Ticks::of(giveway_qdisc::Span::ms(1)).raw() as f64;
                prop_assert!((got / ms_of - up as f64 / down as f64).abs() < 1e-6, "{} ms, not {}/{}", got / ms_of, up, down);
            }
        }
    }
}

//! Least Attained Service: the flow that has been served least is served first, as long as the table has its
//! entry.
//!
//! # Principles
//! - The size of a flow is unknown, but the service that it has had is known. If most flows are short and
//!   most bytes are in long flows, a flow with little service will probably end soon.
//! - A packet's rank is the number of bytes that its flow sent before it. The lowest rank leaves next; of
//!   equal ranks the earliest arrival. So a new flow starts at rank 0, before all others.
//! - Only attained *service* counts. The bytes of a dropped packet are subtracted again.
//! - With a full buffer the highest rank is dropped: the arrival is queued first, then the last packet is
//!   dropped.
//! - Ranks of a flow rise from packet to packet, so its packets stay in order.
//! - The memory is the weakness. Every newer flow locks out a flow that has sent much, until both have sent
//!   the same number of bytes, even if the old flow sends little now. For that reason LARS forgets gradually.
//!
//! # Deviations
//! - Ranks are fixed on arrival. A choice of the least served flow at each departure is equivalent: when a
//!   packet becomes the first of its flow, the flow has been served exactly the bytes before this packet.
//!   Ties between flows are resolved by the order of arrival in both cases. A test compares both.
//! - The rank of a packet does not include the packet itself, so a new flow is first for any packet size.
//!   With `include_self` it does, as in some public implementations.
//! - Entries are removed as in the EFD paper (every 5 s, after 30 s of silence), but never while a packet of
//!   the flow is queued, because the next one would overtake it. The number of entries is bounded: at the
//!   bound, the quarter that has been silent longest is removed. The papers have no bound.
//! - Only the abstract of the paper was available; other choices are as documented here.
//!
//! # Cost
//! - Two table look-ups per packet. O(1) for a packet that arrives behind all others, otherwise O(log n) for
//!   n such packets queued.
//! - 64 bytes per flow of the last half minute, in a table that is half full; 8 to 24 more per packet than a
//!   fifo.
//!
//! # References
//! - I. Rai, G. Urvoy-Keller, M. Vernon, E. Biersack, "Performance Analysis of LAS-based Scheduling
//!   Disciplines in a Packet Switched Network", SIGMETRICS 2004.
//! - J. Chen, M. Heusse, G. Urvoy-Keller, "EFD: An Efficient Low-Overhead Scheduler", NETWORKING 2011:
//!   section 5.1 for the times of the table, section 5.3 for the lock-out.

use giveway_qdisc::blocks::Memory;
use giveway_qdisc::check_limit;
use giveway_qdisc::{
    Backlog, Cx, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, Span,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::served::{Served, small_table};

/// Parameters of `las`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity, in packets or in bytes.
    pub limit: Limit,
    /// Count a packet toward its own rank.
    pub include_self: bool,
    /// Time between visits of the table that forget flows. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit forgets a flow.
    pub idle: Span,
    /// Largest number of flows in the table, unless more flows have packets queued.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        let memory = Memory::default();
        Config {
            limit: Limit::Packets(300),
            include_self: false,
            sweep: memory.sweep,
            idle: memory.idle,
            flows: memory.flows as u32,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "least attained service: the flow that has sent least goes first";
    type Qdisc<P: 'static> = Las<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Las<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        Ok(Las { include_self: self.include_self, served: Served::new(self.limit, memory) })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), include_self: true, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), sweep: Span::ms(20), idle: Span::ms(30), ..plain.clone() },
            Config { limit: Limit::Packets(20), sweep: Span::ZERO, flows: 3, ..plain },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.sweep.is_zero() && self.idle < self.sweep {
            warnings.push(format!(
                "idle {} is shorter than sweep {}: the visits of the table decide how long a flow is remembered",
                self.idle, self.sweep
            ));
        }
        warnings.extend(small_table(self.flows, self.limit));
        warnings
    }
}

/// The queue and the table.
pub struct Las<P> {
    include_self: bool,
    served: Served<P>,
}

impl<P> Qdisc<P> for Las<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let (include_self, length) = (self.include_self, u64::from(pkt.bytes()));
        let serve = |before| {
            let attained = before + length;
            (if include_self { attained } else { before }, attained)
        };
        // The bytes of a dropped packet are not service.
        self.served.enqueue(pkt, cx, serve, |attained, _, bytes| attained - u64::from(bytes));
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.served.dequeue(cx)
    }

    fn backlog(&self) -> Backlog {
        self.served.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.served.reset(cx);
    }

    fn flow_table(&self) -> FlowTable {
        self.served.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let (best, worst) = self.served.queue.ranks().unwrap_or_default();
        visit("best_rank_bytes", best as f64);
        visit("worst_rank_bytes", worst as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{events, fifo_events, one_flow};
    use crate::testing::trace::{T1, T2, trace};
    use giveway_qdisc::{DropReason, FlowKey, Outbox, Rate, Streams, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_least_served_flow_leaves_first() {
        // Ranks on arrival: A2 1000, A3 2000, A4 3000, B1 0, B2 500, A5 4000 (dropped; A4 is dropped later,
        // so A6 has 3000), C1 0, B3 1000 (after A2, which arrived first).
        assert_eq!(
            trace("las limit 4p", 1000, T1),
            "A1[0-1] B1[1-1.5] C1[1.5-2.5] B2[2.5-3] A2[3-4] B3[4-4.5] A3[4.5-5.5] A6[5.5-6.5] | A5@1.3 A4@1.4"
        );
        assert_eq!(
            trace("las limit 4p", 1000, T2),
            "A1[0-1] A2[1-2] B1[4-5] C1[5-5.5] B2[5.5-6] B3[6-7] A3[7-8] | A4@4.45"
        );
    }

    #[test]
    fn a_packet_may_count_toward_its_own_rank() {
        // Both flows are new; the shorter packet is first when its length counts.
        let arrivals = "0 A1 100; 0.1 B1 1500; 0.2 C1 500";
        assert_eq!(trace("las", 100, arrivals), "A1[0-1] B1[1-16] C1[16-21] |");
        assert_eq!(trace("las include_self", 100, arrivals), "A1[0-1] C1[1-6] B1[6-21] |");
    }

    /// The lock-out that LARS and EFD avoid: A has sent four packets more than B, so only B is served until
    /// both have sent the same.
    #[test]
    fn a_flow_that_has_sent_much_is_locked_out() {
        assert_eq!(
            trace(
                "las",
                1000,
                "0 A1 1000; 1 A2 1000; 2 A3 1000; 3 A4 1000; 4 B1 1000; 4.1 A5 1000; 4.5 B2 1000; 5.5 B3 1000; \
                 6.5 B4 1000; 7.5 B5 1000"
            ),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-5] B2[5-6] B3[6-7] B4[7-8] A5[8-9] B5[9-10] |"
        );
    }

    #[test]
    fn pushes_out_bytes_until_the_rest_fits() {
        assert_eq!(
            trace(
                "las limit 2000b",
                1000,
                "0 A1 1000; 0.1 A2 500; 0.2 A3 600; 0.3 A4 700; 0.4 B1 1200; 0.5 C1 2100"
            ),
            "A1[0-1] B1[1-2.2] A2[2.2-2.7] | A4@0.4 A3@0.4 C1@0.5"
        );
    }

    #[test]
    fn mistakes_are_reported() {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let warnings = |text: &str| text.parse::<Spec>().unwrap().warnings(&context).join("; ");
        assert_eq!(warnings("las"), "");
        assert!(warnings("las idle 1s").contains("idle 1s is shorter than sweep 5s"));
        assert!(warnings("las flows 200").contains("200 flows are fewer than limit 300p"));
        let none = "las flows 0".parse::<Spec>().unwrap().build_numbered(&context).err().unwrap();
        assert_eq!(none.to_string(), "flows: 0 is not between 1 and 4194304: write for example 65536");
    }

    /// The other reading of the paper, as a reference with lists: the flow is chosen at departure, by the
    /// bytes that it has sent until then. Ranks are computed from the departures since the entry was created
    /// and from the queue, never stored.
    #[derive(Default)]
    struct Reference {
        include_self: bool,
        sweep: u64,
        idle: u64,
        /// Arrival, flow and length of each queued packet.
        queue: Vec<(u64, u64, u64)>,
        /// Bytes that each flow has sent, and the time of its last packet.
        sent: BTreeMap<u64, (u64, u64)>,
        visit: Option<u64>,
    }

    impl Reference {
        fn rank(&self, position: usize) -> (u64, u64) {
            let (arrival, flow, bytes) = self.queue[position];
            let ahead: u64 =
                self.queue[..position].iter().filter(|each| each.1 == flow).map(|each| each.2).sum();
            let own = if self.include_self { bytes } else { 0 };
            (self.sent[&flow].0 + ahead + own, arrival)
        }
        fn visit(&mut self, now: u64) {
            if self.sweep == 0 {
                return;
            }
            let mut visit = *self.visit.get_or_insert(now + self.sweep);
            while visit <= now {
                let (queue, idle) = (&self.queue, self.idle);
                self.sent.retain(|flow, (_, seen)| {
                    *seen + idle > visit || queue.iter().any(|each| each.1 == *flow)
                });
                visit += self.sweep;
            }
            self.visit = Some(visit);
        }
        /// Enqueues a packet. Returns the packet that is dropped.
        fn enqueue(&mut self, arrival: u64, flow: u64, bytes: u64, limit: usize, now: u64) -> Option<u64> {
            self.visit(now);
            self.sent.entry(flow).or_insert((0, now)).1 = now;
            self.queue.push((arrival, flow, bytes));
            if self.queue.len() <= limit {
                return None;
            }
            let worst = (0..self.queue.len()).max_by_key(|position| self.rank(*position)).unwrap();
            Some(self.queue.remove(worst).0)
        }
        fn dequeue(&mut self, now: u64) -> Option<u64> {
            self.visit(now);
            let heads: BTreeMap<u64, usize> =
                self.queue.iter().map(|each| each.1).zip(0..).collect::<Vec<_>>().into_iter().rev().collect();
            let least = heads.into_values().min_by_key(|position| self.rank(*position))?;
            let (arrival, flow, bytes) = self.queue.remove(least);
            self.sent.get_mut(&flow).unwrap().0 += bytes;
            Some(arrival)
        }
        fn attained(&self) -> BTreeMap<u64, u64> {
            let queued =
                |flow| self.queue.iter().filter(|each| each.1 == flow).map(|each| each.2).sum::<u64>();
            self.sent.iter().map(|(flow, (sent, _))| (*flow, sent + queued(*flow))).collect()
        }
    }

    proptest! {
        /// Ranks on arrival give the same departures and drops as a choice of the least served flow at
        /// departure, and the counters are exact.
        #[test]
        fn equals_the_reference(
            ops in prop::collection::vec((0..10u8, 0..6u64, 40..1500u32, 0..30u64), 1..400),
            limit in 1..20u64,
            include_self: bool,
            sweep in 0..50u64,
        ) {
            let config = Config {
                limit: Limit::Packets(limit),
                include_self,
                sweep: Span::ms(sweep),
                idle: Span::ms(70),
                ..Config::default()
            };
            let mut las = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
            let mut reference = Reference { include_self, sweep, idle: 70, ..Reference::default() };
            let mut out = Outbox::default();
            let mut ms = 1;
            for (serial, (kind, flow, bytes, wait)) in (0u64..).zip(ops) {
                let mut cx = Cx::new(Time::ms(ms), &mut out);
                match kind {
                    0..5 => {
                        las.enqueue(Packet::new(FlowKey(flow), bytes, serial), &mut cx);
                        let dropped = reference.enqueue(serial, flow, u64::from(bytes), limit as usize, ms);
                        let why = dropped.map(|it| if it == serial { DropReason::Overlimit } else { DropReason::Pushout });
                        prop_assert_eq!(out.dropped.drain(..).map(|(pkt, why)| (pkt.payload, why)).next(), dropped.zip(why));
                    }
                    5..9 => {
                        prop_assert_eq!(las.dequeue(&mut cx).packet().map(|pkt| pkt.payload), reference.dequeue(ms));
                    }
                    _ => ms += wait,
                }
                let attained: BTreeMap<u64, u64> = las.served.flows.iter().map(|(key, flow)| (key.0, flow.attained)).collect();
                prop_assert_eq!(attained, reference.attained());
                prop_assert_eq!(las.served.queue.ranks().is_some(), las.served.queue.backlog().packets > 0);
            }
        }

        /// Equal backlogged flows are served in turns, within one packet.
        #[test]
        fn equal_flows_take_turns(flows in 2..8u64, each in 2..20u64, bytes in 40..1500u32) {
            let mut las = Config::default().build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
            let mut out = Outbox::default();
            let mut cx = Cx::new(Time::ms(1), &mut out);
            for flow in 0..flows {
                (0..each).for_each(|_| las.enqueue(Packet::new(FlowKey(flow), bytes, flow), &mut cx));
            }
            let mut sent = vec![0u64; flows as usize];
            while let Some(pkt) = las.dequeue(&mut cx).packet() {
                sent[pkt.payload as usize] += 1;
                prop_assert!(sent.iter().max().unwrap() - sent.iter().min().unwrap() <= 1, "{:?}", sent);
            }
            prop_assert_eq!(sent, vec![each; flows as usize]);
        }

        /// With a single flow it behaves as `fifo`.
        #[test]
        fn one_flow_makes_it_a_fifo(ops in one_flow(), limit in 1..20u64) {
            let limit = Limit::Packets(limit);
            let las = Spec::las(Config { limit, ..Config::default() });
            prop_assert_eq!(events(&las, &ops), fifo_events(limit, &ops));
        }
    }

    /// For any number of flows the table has at most `flows` entries, or as many as are queued.
    #[test]
    fn the_table_is_bounded() {
        let config = Config { limit: Limit::Packets(50), flows: 100, ..Config::default() };
        let mut las = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
        let mut out = Outbox::default();
        for flow in 0..10_000 {
            let mut cx = Cx::new(Time::us(flow), &mut out);
            las.enqueue(Packet::new(FlowKey(flow), 100, ()), &mut cx);
            if flow % 2 == 0 {
                assert!(las.dequeue(&mut cx).packet().is_some());
            }
        }
        assert!(las.flow_table().most <= 100 && las.flow_table().flows >= 50, "{:?}", las.flow_table());
    }
}

//! FQ-PIE: a queue per flow, served in turns by bytes, new flows first, and PIE in each of them.
//!
//! # Principles
//! - The queues and their turns come from `fq_codel`: a hash assigns each flow to a queue, turns are counted
//!   in bytes, and a flow whose queue was empty has one turn before the older flows.
//! - PIE runs separately in each queue, with its own probability and burst allowance. Packets are dropped at
//!   arrival, at random, by the probability of their queue.
//! - An arriving packet is refused when all queues together are full, whatever its flow. `fq_codel` makes
//!   room by dropping from the longest queue instead, so here a flood can take the buffer of others.
//!
//! # Deviations
//! - There is no timer: the updates of a queue that are due are made when the queue is called next, with the
//!   delays that a timer would have seen. All queues have one grid of updates, from the first call on.
//! - `memory_limit` counts the bytes of packets; the kernel counts the true size of its buffers.
//! - `quantum` counts IP lengths. The default is the MTU and an Ethernet header of 14 bytes, as in `tc`.
//! - tc needs `ecn` before `ecn_prob`; the order has no effect here.
//! - PIE itself is the same as in `pie`, with its burst allowance of 150 ms and derandomised drops, and
//!   differs from the kernel's as `pie` says.
//!
//! # Cost
//! - O(1) per packet, and some ten floating-point operations per `tupdate` and queue in use.
//! - 128 bytes per bucket: 131 KB with 1,024 buckets.
//!
//! # References
//! - Ramakrishnan et al. 2019: "FQ-PIE Queue Discipline in the Linux Kernel: Design, Implementation and
//!   Challenges", LCN Symposium. tc-fq_pie(8) for names, defaults and the turns.
//! - RFC 8033 (PIE); RFC 8290, sections 4.1 and 4.2, for the turns.

use giveway_qdisc::blocks::NewAndOld;
use giveway_qdisc::blocks::pie::{self, Controller, Law};
use giveway_qdisc::hash::bucket;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, List, Next, Packet,
    Packets, Properties, Qdisc, Rng, Share, Slots, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::warnings::{low_quantum, low_target, no_alpha};
use crate::{Discipline, InLinux};

/// Parameters of `fq_pie`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of all queues together, in packets.
    pub limit: Packets,
    /// Number of queues that flows are hashed into.
    pub flows: u32,
    /// Target of the delay of a queue.
    pub target: Span,
    /// Interval between updates of the probabilities.
    pub tupdate: Span,
    /// Gain of the delay's distance from the target, in sixteenths per second.
    pub alpha: u32,
    /// Gain of the delay's change between two updates, in sixteenths per second.
    pub beta: u32,
    /// Bytes that a queue sends per turn; by default the MTU and an Ethernet header.
    pub quantum: Option<Bytes>,
    /// Capacity of all queues together, in bytes.
    pub memory_limit: Bytes,
    /// Probability from which on packets are dropped even if their sender supports ECN. A whole number is in
    /// percent, as in tc.
    #[schemars(extend("x-bare" = "%"))]
    pub ecn_prob: Share,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Scale the probability with the length of the packet, so that large packets are likelier to be dropped.
    pub bytemode: bool,
    /// Delay is estimated from the departure rate and the queue's length instead of time stamps.
    #[schemars(extend("x-opposite" = "no_dq_rate_estimator"))]
    pub dq_rate_estimator: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(10_240),
            flows: 1024,
            target: Span::ms(15),
            tupdate: Span::ms(15),
            alpha: 2,
            beta: 20,
            quantum: None,
            memory_limit: Bytes(32 << 20),
            ecn_prob: Share::new(0.1).expect("10 % is a share"),
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
        }
    }
}

/// Ethernet's header, which `tc` counts into the default quantum.
const HEADER: u64 = 14;
/// Bounds of the quantum. With a smaller one a packet needs so many turns that a call of `dequeue` takes
/// long.
const QUANTA: std::ops::RangeInclusive<u64> = 256..=1 << 20;
/// The largest number of queues.
const MAX_FLOWS: u32 = 65_536;

impl Config {
    fn law(&self, context: &LinkContext) -> Result<Law, Invalid> {
        let law = Law {
            alpha: pie::gain("alpha", self.alpha)?,
            beta: pie::gain("beta", self.beta)?,
            target: self.target,
            tupdate: self.tupdate,
            max_burst: Law::MAX_BURST,
            mark_below: self.ecn.then_some(self.ecn_prob),
            bytemode: self.bytemode,
            by_rate: self.dq_rate_estimator,
            derandomise: true,
            mtu: context.mtu.0,
        };
        law.checked()
    }

    fn quantum(&self, context: &LinkContext) -> Bytes {
        self.quantum.unwrap_or(Bytes(context.mtu.0 + HEADER))
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "a queue per flow in turns, new flows first, PIE in each";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = FqPie<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<FqPie<P>, Invalid> {
        check_limit("limit", Limit::Packets(self.limit.0), context.mtu)?;
        check_limit("memory_limit", Limit::Bytes(self.memory_limit.0), context.mtu)?;
        let quantum = self.quantum(context).0;
        if !QUANTA.contains(&quantum) {
            let (least, most) = QUANTA.into_inner();
            let message = format!("{quantum} bytes are not between {least} and {most}; 1514 is usual");
            return Err(Invalid::new("quantum", message));
        }
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            return Err(Invalid::new("flows", format!("{} is not between 1 and {MAX_FLOWS}", self.flows)));
        }
        let law = self.law(context)?;
        let flow = Flow {
            controller: Controller::new(&law),
            queue: List::default(),
            bytes: 0,
            deficit: 0,
            listed: false,
        };
        Ok(FqPie {
            limit: self.limit.0,
            memory_limit: self.memory_limit.0,
            quantum: quantum as i32,
            law,
            perturbation: context.streams.within("hash").rng().word(),
            rng: context.streams.rng(),
            origin: None,
            flows: vec![flow; self.flows as usize],
            turns: NewAndOld::with_capacity(self.flows as usize),
            packets: Slots::with_capacity((self.limit.0 as usize).saturating_add(1)),
            backlog: Backlog::ZERO,
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux::named("fq_pie"))
    }

    fn filled(&self, context: &LinkContext) -> Config {
        Config { quantum: Some(self.quantum(context)), ..self.clone() }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.limit.0)).marking(self.ecn)
    }

    fn variants() -> Vec<Config> {
        let quick = Config {
            target: Span::us(100),
            tupdate: Span::us(100),
            alpha: 32,
            beta: 32,
            ..Config::default()
        };
        vec![
            Config { limit: Packets(5), ..Config::default() },
            Config { flows: 4, quantum: Some(Bytes(300)), ..quick.clone() },
            Config { memory_limit: Bytes(6000), ecn: true, bytemode: true, flows: 1, ..quick.clone() },
            Config { dq_rate_estimator: true, ..quick },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let warnings = [
            low_target(self.target, "PIE never drops from so short a queue", context),
            low_quantum(self.quantum(context), context),
            no_alpha(self.alpha == 0),
        ];
        warnings.into_iter().flatten().collect()
    }
}

/// The discipline `fq_pie`: a queue with a controller for each bucket, and their turns.
pub struct FqPie<P> {
    limit: u64,
    memory_limit: u64,
    /// Bytes per turn.
    quantum: i32,
    law: Law,
    rng: Rng,
    /// Key of the hash, so that collisions differ from one instance to the next.
    perturbation: u64,
    /// Time of the first call, from which updates are counted.
    origin: Option<Time>,
    flows: Vec<Flow>,
    turns: NewAndOld,
    packets: Slots<Packet<P>>,
    backlog: Backlog,
}

/// One bucket, in two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Flow {
    controller: Controller,
    queue: List,
    /// Bytes queued.
    bytes: u64,
    /// Byte credits: bytes that it may still send in this turn.
    deficit: i32,
    /// True if the bucket has its turns.
    listed: bool,
}

const _: () = assert!(size_of::<Flow>() <= 128);

impl<P> Qdisc<P> for FqPie<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let bucket = self.bucket(pkt.meta.flow);
        let origin = *self.origin.get_or_insert(cx.now());
        let full = self.is_full(pkt.bytes());
        let FqPie { flows, law, rng, .. } = self;
        let flow = &mut flows[bucket];
        flow.controller.catch_up(law, origin, flow.bytes, cx.now());
        if full {
            flow.controller.on_overflow();
            return cx.drop(pkt, DropReason::Overlimit);
        }
        if flow.controller.wants_drop(law, pkt.bytes(), flow.bytes, || rng.uniform())
            && !(flow.controller.may_mark(law) && cx.mark(&mut pkt))
        {
            return cx.drop(pkt, DropReason::Early);
        }
        self.backlog.add(pkt.bytes());
        flow.bytes += u64::from(pkt.bytes());
        self.packets.push_back(&mut flow.queue, pkt);
        // RFC 8290, section 4.1: a queue that is in neither list joins the end of the new queues, with a
        // quantum of credits.
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.turns.join(bucket);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let origin = *self.origin.get_or_insert(cx.now());
        while let Some((bucket, is_new)) = self.turns.turn() {
            let flow = &mut self.flows[bucket];
            // RFC 8290, section 4.2: a queue with negative credits gets one more quantum and moves to the end
            // of the old queues.
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.turns.end_turn(is_new);
                continue;
            }
            flow.controller.catch_up(&self.law, origin, flow.bytes, cx.now());
            let Some(pkt) = self.packets.pop_front(&mut flow.queue) else {
                flow.listed = !self.turns.found_empty(is_new);
                continue;
            };
            self.backlog.sub(pkt.bytes());
            flow.bytes -= u64::from(pkt.bytes());
            flow.deficit -= pkt.bytes() as i32;
            let queued = (!flow.queue.is_empty()).then_some(flow.bytes);
            flow.controller.on_departure(&self.law, (pkt.bytes(), pkt.meta.arrived), queued, cx.now());
            return Next::Packet(pkt);
        }
        Next::Empty
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for flow in &mut self.flows {
            while let Some(pkt) = self.packets.pop_front(&mut flow.queue) {
                cx.drop(pkt, DropReason::Reset);
            }
            (flow.controller, flow.bytes, flow.listed) = (Controller::new(&self.law), 0, false);
        }
        self.turns.clear();
        self.origin = None;
        self.backlog = Backlog::ZERO;
    }

    /// The queues in use count as flows. The memory includes all queues, which always exist.
    fn flow_table(&self) -> FlowTable {
        self.turns.flow_table(self.flows.len(), size_of::<Flow>())
    }

    /// The probability is the largest of all queues, as of their last updates.
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("new_flows", self.turns.new_ones().len() as f64);
        visit("old_flows", self.turns.old_ones().len() as f64);
        let listed = self.turns.new_ones().iter().chain(self.turns.old_ones());
        let probabilities = listed.map(|bucket| self.flows[*bucket as usize].controller.probability());
        visit("drop_probability", probabilities.fold(0.0, f64::max));
    }
}

impl<P> FqPie<P> {
    fn bucket(&self, flow: FlowKey) -> usize {
        // RFC 8290, section 4.1: a hash of the flow with a random key of the instance selects the queue.
        bucket(flow.0, self.perturbation, self.flows.len())
    }

    /// True if a packet of this length does not fit.
    #[inline]
    fn is_full(&self, bytes: u32) -> bool {
        self.backlog.packets >= self.limit || self.backlog.bytes + u64::from(bytes) > self.memory_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::{any_flows, build_error, context, events, in_one_flow};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{Ecn, Outbox, Rate, Streams};
    use proptest::prelude::*;

    /// The turns of `fq_codel`, while neither drops: the same order of departures.
    #[test]
    fn turns_are_those_of_fq_codel() {
        for quantum in [500, 1000, 1514] {
            let of = |name: &str| trace(&format!("{name} quantum {quantum}"), 1000, T1);
            assert_eq!(of("fq_pie"), of("fq_codel"));
        }
    }

    #[test]
    fn new_flows_go_before_old_ones() {
        assert_eq!(
            trace("fq_pie quantum 1000", 1000, "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 B1 500; 0.4 C1 500"),
            "A1[0-1] B1[1-1.5] C1[1.5-2] A2[2-3] A3[3-4] |"
        );
    }

    /// The arriving packet is refused, even if another flow fills the buffer.
    #[test]
    fn a_full_buffer_refuses_arrivals() {
        assert_eq!(
            trace("fq_pie limit 4p quantum 1000", 1000, T1),
            "A1[0-1] B1[1-1.5] B2[1.5-2] A2[2-3] B3[3-3.5] A3[3.5-4.5] A4[4.5-5.5] A6[5.5-6.5] | A5@1.3 C1@1.4"
        );
        assert_eq!(
            trace("fq_pie memory_limit 2500b", 1000, "0 A1 1000; 0.1 A2 1000, A3 1000, B1 600, B2 500"),
            "A1[0-1] A2[1-2] B2[2-2.5] A3[2.5-3.5] | B1@0.1"
        );
    }

    /// Two unresponsive flows on a link of 8 Mbit/s: A at twice the rate of the link, B at an eighth of it.
    /// The drops are A's, and B has no delay.
    #[test]
    fn only_a_flow_with_a_standing_queue_gets_drops() {
        let mut q: FqPie<u64> = Config::default().build(&context()).unwrap();
        let mut out = Outbox::default();
        let mut longest = Span::ZERO;
        for ms in 0..4000u64 {
            let now = Time::ms(ms);
            for (flow, bytes, packets) in [(1, 1000, 2), (2, 125, 1)] {
                for _ in 0..packets {
                    let mut pkt = Packet::new(FlowKey(flow), bytes, flow);
                    pkt.meta.arrived = now;
                    q.enqueue(pkt, &mut Cx::new(now, &mut out));
                }
            }
            let mut left = 1000i64;
            while left > 0 {
                let Some(pkt) = q.dequeue(&mut Cx::new(now, &mut out)).packet() else { break };
                left -= i64::from(pkt.bytes());
                if pkt.payload == 2 {
                    longest = longest.max(now.since(pkt.meta.arrived));
                }
            }
        }
        assert!(longest <= Span::ms(3), "{longest}");
        assert!(out.dropped.len() > 500);
        assert!(out.dropped.iter().all(|(pkt, why)| pkt.payload == 1 && *why == DropReason::Early));
    }

    #[test]
    fn capable_packets_are_marked_while_the_probability_is_low() {
        let marks = |config: Config| {
            let mut q: FqPie<u64> = config.build(&context()).unwrap();
            let mut out = Outbox::default();
            for ms in 0..600u64 {
                for _ in 0..2 {
                    let mut pkt = Packet::new(FlowKey(1), 1000, ms);
                    (pkt.meta.arrived, pkt.meta.ecn) = (Time::ms(ms), Ecn::Ect0);
                    q.enqueue(pkt, &mut Cx::new(Time::ms(ms), &mut out));
                }
                let _ = q.dequeue(&mut Cx::new(Time::ms(ms), &mut out));
            }
            (!out.marked.is_empty(), !out.dropped.is_empty())
        };
        let ecn = Config { ecn: true, ..Config::default() };
        assert_eq!(marks(Config { ecn_prob: Share::new(1.0).unwrap(), ..ecn.clone() }), (true, false));
        assert_eq!(marks(Config { ecn_prob: Share::new(0.0).unwrap(), ..ecn }), (false, true));
        assert_eq!(marks(Config::default()), (false, true));
    }

    #[test]
    fn usual_mistakes_cause_errors_and_warnings() {
        let warnings = |spec: &str, rate| {
            spec.parse::<crate::Spec>().unwrap().warnings(&LinkContext::new(rate, Streams::new(1)))
        };
        assert!(warnings("fq_pie", Rate::mbit(10)).is_empty());
        assert!(warnings("fq_pie", Rate::mbit(1))[0].starts_with("target: 15ms is less than two packets"));
        assert!(warnings("fq_pie quantum 300", Rate::mbit(10))[0].starts_with("quantum: 300b is less than"));
        for (spec, parameter) in [
            ("fq_pie tupdate 0ms", "tupdate"),
            ("fq_pie beta 33", "beta"),
            ("fq_pie limit 0", "limit"),
            ("fq_pie quantum 100", "quantum"),
            ("fq_pie flows 0", "flows"),
            ("fq_pie memory_limit 100", "memory_limit"),
        ] {
            assert_eq!(build_error(spec).parameter, parameter);
        }
    }

    proptest! {
        /// With one flow it is `pie`, packet by packet.
        #[test]
        fn with_one_flow_it_is_pie(ops in any_flows(), limit in 1..60u64, gain in 0..=32u32, bytemode in any::<bool>()) {
            let ops = in_one_flow(&ops);
            let switch = if bytemode { "bytemode" } else { "nobytemode" };
            let pie = format!("limit {limit} target 100us tupdate 200us alpha {gain} beta 32 {switch}");
            let of = |text: String| events(&text.parse().unwrap(), &ops);
            prop_assert_eq!(of(format!("fq_pie {pie}")), of(format!("pie {pie}")));
        }
    }
}

//! X-Protect: long flows are detected by chance, so that few short flows enter the table.
//!
//! # Principles
//! - Two queues in one buffer, and a flow is low after more than `threshold` bytes, as in `run2c`; but only
//!   detected flows are in the table. Each packet of another flow is detected with `probability`, and its
//!   flow then enters the table.
//! - Most flows are short and most packets belong to long ones. With a probability of 1% it detects 18% of
//!   the flows of 20 packets, 63% of the flows of 100 packets, and all of 1,000: 1 - (1 - p)^n.
//! - The bytes before the detection are unknown, so the count starts there.
//! - The table is visited every `sweep` and forgets flows that were silent for `idle`; it holds at most
//!   `flows`, and at that number removes those that have been silent longest.
//! - When the buffer is full, the packet that would leave last is dropped (`drop pushout`), or the arrival
//!   (`drop tail`).
//!
//! Two related disciplines are settings of it:
//!
//! - **Sift** acts on the first detection: `xprotect threshold 0b`. From the detected packet on, its flow is
//!   low. Its variation that tests again: with `retest 1` a flow must be detected once more before it counts.
//! - **Threshold sampling with knock-out** (Divakaran and others) counts from the sample on and calls a flow
//!   large when it exceeds a threshold; a full buffer drops a packet of a large flow for one of a small flow.
//!   That is the default. `drop tail` is the same without knock-out.
//!
//! # Deviations
//! - Cross-Protect used such a table for admission control, in addition to fair queueing. The EFD paper made
//!   a discipline of it, which is implemented here.
//! - The full texts on Sift and on threshold sampling were not available: their descriptions follow the
//!   abstracts and the EFD paper, and the rule of `retest` is a choice made here.
//! - A flow with a low packet queued is never forgotten, even if it was silent for `idle`: its order depends
//!   on it.
//! - The table counts all arrivals, dropped packets included. The counters have 32 bits and stay at their
//!   largest value: a threshold of 4 GiB or more is never exceeded.
//!
//! # Cost
//! - A look-up per arrival, one per departure of a low packet, and a draw per packet of an unknown flow; 64
//!   bytes per known flow in a table that is half full.
//!
//! # References
//! - J. Chen, M. Heusse, G. Urvoy-Keller, "EFD: An Efficient Low-Overhead Scheduler", NETWORKING 2011:
//!   section 2 for the family, section 5.1 for X-Protect, its sweep and its threshold of 30 KB.
//! - A. Kortebi, S. Oueslati, J. Roberts, "Cross-protect: implicit service differentiation and admission
//!   control", HPSR 2004.
//! - K. Psounis, A. Ghosh, B. Prabhakar, G. Wang, "SIFT: A simple algorithm for tracking elephant flows, and
//!   taking advantage of power laws", Allerton Conference 2005.
//! - D. M. Divakaran, G. Carofiglio, E. Altman, P. Vicat-Blanc Primet, "A Flow Scheduler Architecture",
//!   NETWORKING 2010.

use giveway_qdisc::blocks::{Level, Memory, RecentFlows, TwoLevel};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, LinkContext, Next, Packet,
    Properties, Qdisc, Rng, Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `xprotect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of both queues together, in packets or in bytes.
    pub limit: Limit,
    /// Probability that a packet of an unknown flow is detected.
    pub probability: Share,
    /// Number of bytes of a flow that have high priority after its detection.
    pub threshold: Bytes,
    /// Number of further detections before a flow counts as known.
    pub retest: u32,
    /// The packet that is dropped when the buffer is full.
    pub drop: Victim,
    /// Time between visits of the table. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit forgets a flow.
    pub idle: Span,
    /// Largest number of flows in the table.
    pub flows: u32,
}

/// The packet that a full buffer drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// The newest low packet, or the arriving one if no packet is low.
    Pushout,
    /// The arriving packet.
    Tail,
}

impl Default for Config {
    fn default() -> Config {
        let Memory { sweep, idle, flows } = Memory::default();
        Config {
            limit: Limit::Packets(300),
            probability: share(0.01),
            threshold: Bytes(30_000),
            retest: 0,
            drop: Victim::Pushout,
            sweep,
            idle,
            flows: flows as u32,
        }
    }
}

fn share(share: f64) -> Share {
    Share::new(share).expect("the constant is between 0 and 1")
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "run2c for flows that are detected at random; also Sift and threshold sampling, as settings";
    type Qdisc<P: 'static> = XProtect<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<XProtect<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        let capacity = self.limit.initial_capacity();
        Ok(XProtect {
            limit: self.limit,
            victim: self.drop,
            probability: self.probability.get(),
            threshold: self.threshold.0,
            retest: self.retest,
            draws: Draws::Stream(context.streams.rng()),
            flows: RecentFlows::new(memory, |flow| flow.low > 0),
            queue: TwoLevel::with_capacity(capacity),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config { probability: share(0.3), threshold: Bytes(3000), ..Config::default() };
        let quick = Config { sweep: Span::ms(20), idle: Span::ms(50), ..plain.clone() };
        vec![
            Config { limit: Limit::Packets(5), ..plain.clone() },
            Config { threshold: Bytes(0), retest: 1, ..plain },
            Config { limit: Limit::Bytes(6000), drop: Victim::Tail, ..quick.clone() },
            Config {
                limit: Limit::Bytes(6000),
                probability: share(1.0),
                threshold: Bytes(0),
                flows: 3,
                ..quick
            },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.probability.get() == 0.0 {
            warnings.push("probability 0: no flow is ever detected, and xprotect is a fifo".to_owned());
        }
        if self.threshold.0 >= u64::from(u32::MAX) {
            let threshold = self.threshold;
            warnings.push(format!(
                "threshold {threshold} is never exceeded: no packet gets low priority, and xprotect is a fifo"
            ));
        }
        if self.sweep.is_zero() {
            warnings
                .push(format!("sweep 0s: flows are forgotten only once there are more than {}", self.flows));
        }
        warnings
    }
}

/// The queues and the table.
pub struct XProtect<P> {
    limit: Limit,
    victim: Victim,
    probability: f64,
    threshold: u64,
    retest: u32,
    draws: Draws,
    /// Flows that were detected.
    flows: RecentFlows<Flow>,
    queue: TwoLevel<P>,
}

/// A flow that was detected.
#[derive(Debug)]
struct Flow {
    /// Further detections before the flow counts as known.
    tests: u32,
    /// Bytes that arrived since its detection, saturating.
    bytes: u32,
    /// Number of its queued low packets. A flow with such packets is not forgotten, because its next packet
    /// would overtake them.
    low: u32,
}

/// Source of the uniform draws in [0, 1).
enum Draws {
    Stream(Rng),
    #[cfg(test)]
    Scripted(std::vec::IntoIter<f64>),
}

impl<P> Qdisc<P> for XProtect<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.flows.sweep(cx.now());
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let level = self.count_in(&pkt, cx.now());
        let XProtect { limit, victim, flows, queue, .. } = self;
        if *victim == Victim::Tail && !limit.admits(queue.backlog(), pkt.bytes()) {
            count_out(flows, level, pkt.meta.flow);
            return cx.drop(pkt, DropReason::Overlimit);
        }
        queue.push_within(*limit, level, pkt, cx, |from, gone| count_out(flows, from, gone.meta.flow));
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.flows.sweep(cx.now());
        let Some((level, pkt)) = self.queue.pop() else { return Next::Empty };
        count_out(&mut self.flows, level, pkt.meta.flow);
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.flows.clear();
    }

    fn flow_table(&self) -> FlowTable {
        self.flows.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("high_packets", self.queue.packets(Level::HIGH) as f64);
        visit("low_packets", self.queue.packets(Level::LOW) as f64);
    }
}

impl<P> XProtect<P> {
    /// Draws for an unknown flow, counts for a known one, and returns the level of the packet.
    #[inline]
    fn count_in(&mut self, pkt: &Packet<P>, now: Time) -> Level {
        let XProtect { flows, draws, probability, retest, .. } = self;
        let mut detected = || draws.uniform() < *probability;
        let flow = match flows.seen_if_known(pkt.meta.flow, now) {
            Some(flow) => {
                if flow.tests > 0 && detected() {
                    flow.tests -= 1;
                }
                flow
            }
            None if detected() => {
                flows.record(pkt.meta.flow, now, || Flow { tests: *retest, bytes: 0, low: 0 })
            }
            None => return Level::HIGH,
        };
        if flow.tests > 0 {
            return Level::HIGH;
        }
        flow.bytes = flow.bytes.saturating_add(pkt.bytes());
        if u64::from(flow.bytes) <= self.threshold {
            return Level::HIGH;
        }
        flow.low += 1;
        Level::LOW
    }
}

/// Records that a packet of this level has left or was dropped.
#[inline]
fn count_out(flows: &mut RecentFlows<Flow>, level: Level, flow: FlowKey) {
    if level == Level::LOW {
        flows.get_mut(flow).expect("a flow with a low packet is not forgotten").low -= 1;
    }
}

impl Draws {
    #[inline]
    fn uniform(&mut self) -> f64 {
        match self {
            Draws::Stream(rng) => rng.uniform(),
            #[cfg(test)]
            Draws::Scripted(draws) => draws.next().expect("the test has enough draws"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::levels::{equals_reference, ops};
    use crate::testing::trace::{T1, trace, trace_on};
    use giveway_qdisc::{Outbox, Rate, Streams};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The discipline with the given draws, or with the draws of stream 1.
    fn built<P: 'static>(config: &Config, draws: Option<Vec<f64>>) -> XProtect<P> {
        let mut built = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
        if let Some(draws) = draws {
            built.draws = Draws::Scripted(draws.into_iter());
        }
        built
    }

    fn scripted(text: &str, draws: &[f64], arrivals: &str) -> String {
        let Ok(Spec::xprotect(config)) = text.parse() else { panic!("{text}") };
        trace_on(Box::new(built(&config, Some(draws.to_vec()))), 1000, arrivals, |_| {})
    }

    /// A1 is not detected and A2 is, so A4 is the first low packet. B and C are not detected before B3, which
    /// is high with its first bytes and pushes A6 out.
    #[test]
    fn a_flow_is_counted_from_the_detected_packet_on() {
        assert_eq!(
            scripted(
                "xprotect limit 4p threshold 2000b probability 50%",
                &[0.7, 0.3, 0.9, 0.6, 0.6, 0.2],
                T1
            ),
            "A1[0-1] A2[1-2] A3[2-3] B1[3-3.5] B2[3.5-4] C1[4-5] B3[5-5.5] | A5@1.3 A4@1.4 A6@2.7"
        );
        // Without push-out a full buffer refuses arriving packets, but draws for them.
        assert_eq!(
            scripted(
                "xprotect limit 4p threshold 2000b probability 50% drop tail",
                &[0.7, 0.3, 0.9, 0.6, 0.6, 0.2],
                T1
            ),
            "A1[0-1] A2[1-2] A3[2-3] B1[3-3.5] B2[3.5-4] A4[4-5] A6[5-6] | A5@1.3 C1@1.4 B3@2.7"
        );
    }

    /// Sift: A2 is detected and low at once, and so are all later packets of A. With `retest 1` one detection
    /// is not enough: A3 is not detected, and A4 is detected again and is the first low packet.
    #[test]
    fn sift_acts_on_the_first_detection() {
        let arrivals =
            "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 A5 1000; 0.5 B1 1000; 0.6 B2 1000";
        assert_eq!(
            scripted("xprotect threshold 0b probability 50%", &[0.7, 0.3, 0.6, 0.6], arrivals),
            "A1[0-1] B1[1-2] B2[2-3] A2[3-4] A3[4-5] A4[5-6] A5[6-7] |"
        );
        assert_eq!(
            scripted(
                "xprotect threshold 0b probability 50% retest 1",
                &[0.7, 0.3, 0.6, 0.4, 0.9, 0.9],
                arrivals
            ),
            "A1[0-1] A2[1-2] A3[2-3] B1[3-4] B2[4-5] A4[5-6] A5[6-7] |"
        );
    }

    #[test]
    fn without_detections_it_is_a_fifo() {
        assert_eq!(trace("xprotect limit 4p probability 0", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    /// A flow of n packets is detected with probability 1 - (1 - p)^n.
    #[test]
    fn long_flows_are_detected_more_often() {
        const FLOWS: u64 = 20_000;
        for n in [1, 20, 69, 100] {
            let mut xprotect = built::<()>(&Config { flows: 1 << 20, ..Config::default() }, None);
            let mut out = Outbox::default();
            for flow in 0..FLOWS {
                for _ in 0..n {
                    let mut cx = Cx::new(Time::ZERO, &mut out);
                    xprotect.enqueue(Packet::new(FlowKey(flow), 1500, ()), &mut cx);
                    assert!(xprotect.dequeue(&mut cx).packet().is_some());
                }
            }
            let detected = xprotect.flow_table().flows as f64 / FLOWS as f64;
            let expected = 1.0 - libm::pow(0.99, f64::from(n));
            // Four standard deviations of the share.
            let tolerance = 4.0 * (expected * (1.0 - expected) / FLOWS as f64).sqrt();
            assert!(
                (detected - expected).abs() < tolerance,
                "{detected} of the flows of {n} packets, not {expected}"
            );
        }
    }

    #[test]
    fn usual_mistakes_cause_warnings() {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let warn = |text: &str| text.parse::<Spec>().unwrap().warnings(&context);
        assert_eq!(
            warn("xprotect probability 0 sweep 0s"),
            [
                "probability 0: no flow is ever detected, and xprotect is a fifo",
                "sweep 0s: flows are forgotten only once there are more than 65536"
            ]
        );
        assert_eq!(
            warn("xprotect threshold 5gb"),
            ["threshold 5gb is never exceeded: no packet gets low priority, and xprotect is a fifo"]
        );
        assert!(warn("xprotect").is_empty());
    }

    proptest! {
        /// The discipline and the simple reference have the same departures, drops and draws.
        #[test]
        fn equals_the_reference(ops in ops(), limit in 1..20u64, threshold in 0..10_000u64, percent in 0..=100u32, retest in 0..3u32) {
            let probability = f64::from(percent) / 100.0;
            let config = Config {
                limit: Limit::Packets(limit),
                threshold: Bytes(threshold),
                probability: share(probability),
                retest,
                ..Config::default()
            };
            let mut coin = Streams::new(1).rng();
            // Number of detections of each flow, and the bytes that it sent since the last one that was
            // needed.
            let mut detected: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
            equals_reference(&mut built(&config, None), limit, &ops, |flow, bytes, _| {
                let (times, since) = detected.entry(flow).or_default();
                if *times <= retest && coin.uniform() < probability {
                    *times += 1;
                }
                if *times > retest {
                    *since += u64::from(bytes);
                }
                usize::from(*since > threshold)
            })?;
        }

        /// Bytes before the detection never count: after it exactly the first `threshold / length` packets
        /// are high.
        #[test]
        fn bytes_before_the_detection_never_count(before in 0..60usize, bytes in 40..1500u32, threshold in 0..40_000u64) {
            let mut draws = vec![0.99; before];
            draws.push(0.0);
            let config = Config { threshold: Bytes(threshold), limit: Limit::Packets(2000), ..Config::default() };
            let mut xprotect = built(&config, Some(draws));
            let mut out = Outbox::default();
            for _ in 0..1200 {
                xprotect.enqueue(Packet::new(FlowKey(1), bytes, ()), &mut Cx::new(Time::ZERO, &mut out));
            }
            let high = before + (threshold / u64::from(bytes)) as usize;
            prop_assert_eq!(xprotect.queue.packets(Level::HIGH), high);
            prop_assert_eq!(xprotect.queue.packets(Level::LOW), 1200 - high);
        }
    }
}

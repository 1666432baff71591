//! Run2C: the first bytes of every flow go ahead, by the bytes that the flow has sent since it started.
//!
//! # Principles
//! - Two queues in one buffer, as in `efd`: a high one, and a low one that is served when the high one is
//!   empty. A packet is high while its flow has sent no more than `threshold`, this packet included: 20
//!   packets of 1,500 bytes.
//! - Unlike `efd` it never forgets an active flow: a long flow stays low, however slowly it sends. So a long
//!   call is low too.
//! - `source carried`: the packet carries its offset in the flow. The original puts that into TCP's sequence
//!   numbers; here the backend provides it. The queue then needs no state and has exact offsets.
//! - `source table`: the queue counts the bytes of each flow, so it works on traffic without offsets. The
//!   table is visited every `sweep` and forgets flows that were silent for `idle`; it holds at most `flows`,
//!   and at that number removes those that have been silent longest.
//! - When the buffer is full, the packet that would leave last is dropped: the newest low packet, or the
//!   arrival itself if none is low.
//!
//! # Deviations
//! - The EFD paper compares with Run2C, but specifies neither its drop policy nor its behaviour without
//!   marked packets. The drop policy comes from `efd`, and `source table` is the table of LAS, so that only
//!   the choice of the level differs.
//! - The table counts all arrivals, dropped packets included: the size is the load that the flow sent, as
//!   with offsets.
//! - A retransmission carries its original offset in the flow, so one of early bytes is high again and may
//!   overtake queued packets of its flow. In the table it counts like any packet, and order is kept.
//! - A flow with a low packet queued is never forgotten, even if it was silent for `idle`: its order depends
//!   on it.
//! - Counters have 32 bits and stay at their largest value: a threshold of 4 GiB or more is never exceeded.
//!
//! # Cost
//! - Carried: two queue operations per packet, and no state. Table: a look-up per arrival, and one per
//!   departure of a low packet; 64 bytes per flow in a table that is half full.
//!
//! # References
//! - K. Avrachenkov, U. Ayesta, P. Brown, E. Nyberg, "Differentiation between short and long TCP flows:
//!   Predictability of the response time", INFOCOM 2004, for Run2C.
//! - J. Chen, M. Heusse, G. Urvoy-Keller, "EFD: An Efficient Low-Overhead Scheduler", NETWORKING 2011:
//!   section 2 for its description, section 5.1 for the sweep, section 5.2 for it with a threshold of 30 KB
//!   next to EFD.

use giveway_qdisc::blocks::{Level, Memory};
use giveway_qdisc::{
    Backlog, Bytes, Cx, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, Span,
    check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::sent::{SentLevels, Source};

/// Parameters of `run2c`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of both queues together, in packets or in bytes.
    pub limit: Limit,
    /// Number of bytes of a flow that have high priority.
    pub threshold: Bytes,
    /// Source of the number of bytes that a flow has sent.
    pub source: Source,
    /// Time between visits of the table. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit forgets a flow.
    pub idle: Span,
    /// Largest number of flows in the table.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        let Memory { sweep, idle, flows } = Memory::default();
        Config {
            limit: Limit::Packets(300),
            threshold: Bytes(30_000),
            source: Source::Carried,
            sweep,
            idle,
            flows: flows as u32,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "the first bytes of every flow go first, counted from the beginning of the flow";
    type Qdisc<P: 'static> = Run2c<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Run2c<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        Ok(Run2c { threshold: self.threshold.0, levels: SentLevels::new(self.limit, self.source, memory) })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        self.source.properties(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        let table = Config { source: Source::Table, threshold: Bytes(3000), ..plain.clone() };
        let quick = Config { sweep: Span::ms(20), idle: Span::ms(50), ..table.clone() };
        vec![
            Config { limit: Limit::Packets(5), threshold: Bytes(100_000), ..plain.clone() },
            Config { limit: Limit::Bytes(6000), threshold: Bytes(0), ..plain },
            table,
            Config { limit: Limit::Bytes(6000), ..quick.clone() },
            Config { limit: Limit::Packets(20), threshold: Bytes(0), flows: 3, ..quick },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.threshold.0 >= u64::from(u32::MAX) {
            let threshold = self.threshold;
            warnings.push(format!(
                "threshold {threshold} is never exceeded: no packet gets low priority, and run2c is a fifo"
            ));
        }
        warnings.extend(self.source.unswept(self.sweep, self.flows));
        warnings
    }
}

/// The queues, and the table if there is one.
pub struct Run2c<P> {
    threshold: u64,
    levels: SentLevels<P, 2>,
}

impl<P> Qdisc<P> for Run2c<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let threshold = self.threshold;
        self.levels.enqueue(pkt, cx, |bytes| if bytes > threshold { Level::LOW } else { Level::HIGH });
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.levels.dequeue(cx)
    }

    fn backlog(&self) -> Backlog {
        self.levels.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.levels.reset(cx);
    }

    fn flow_table(&self) -> FlowTable {
        self.levels.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("high_packets", self.levels.queue.packets(Level::HIGH) as f64);
        visit("low_packets", self.levels.queue.packets(Level::LOW) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::levels::{equals_reference, ops};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{FlowKey, Outbox, Rate, Streams, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn built(config: &Config) -> Run2c<u64> {
        config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap()
    }

    /// The first 2,000 bytes of A are high, and all later ones are low: also A6, which arrives when no packet
    /// of A is queued. B3 is high; `efd` drops it.
    #[test]
    fn the_first_two_thousand_bytes_are_high_and_never_again() {
        let expected =
            "A1[0-1] A2[1-2] B1[2-2.5] B2[2.5-3] C1[3-4] B3[4-4.5] A3[4.5-5.5] A6[5.5-6.5] | A5@1.3 A4@1.4";
        assert_eq!(trace("run2c limit 4p threshold 2000b", 1000, T1), expected);
        assert_eq!(trace("run2c limit 4p threshold 2000b source table", 1000, T1), expected);
    }

    #[test]
    fn pushes_out_bytes_until_the_rest_fits() {
        assert_eq!(
            trace(
                "run2c limit 2000b threshold 1000b",
                1000,
                "0 A1 1000; 0.1 A2 500; 0.2 A3 600; 0.3 A4 700; 0.4 B1 1000; 0.5 C1 2100"
            ),
            "A1[0-1] B1[1-2] A2[2-2.5] | A4@0.4 A3@0.4 C1@0.5"
        );
    }

    /// The table forgets A at the sweep at 40 s, more than 30 s after its last packet. Until then A stays
    /// low.
    #[test]
    fn the_table_forgets_silent_flows() {
        let again = |at: &str| {
            let arrivals = format!("0 A1 2000; 8000 A2 1000; {at} C1 1000; {at}.1 A3 1000; {at}.2 B1 1000");
            let order = trace("run2c threshold 2000b source table", 1000, &arrivals);
            let [.., third, last, _] = order.split(' ').collect::<Vec<_>>()[..] else { panic!("{order}") };
            (third[..2].to_owned(), last[..2].to_owned())
        };
        assert_eq!(again("39999"), ("B1".into(), "A3".into()), "A is low");
        assert_eq!(again("40000"), ("A3".into(), "B1".into()), "A is new");
    }

    /// The packet carries its offset, so a retransmission of early bytes has high priority.
    #[test]
    fn a_retransmission_has_the_offset_of_its_bytes() {
        let mut run2c = built(&Config { threshold: Bytes(3000), ..Config::default() });
        let mut out = Outbox::default();
        for (serial, offset) in [(1, 0), (2, 1500), (3, 3000), (4, 1500)] {
            let mut pkt = Packet::new(FlowKey(1), 1500, serial);
            pkt.meta.offset = offset;
            run2c.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
        }
        let order: Vec<u64> = run2c.levels.queue.iter().map(|pkt| pkt.payload).collect();
        assert_eq!(order, [1, 2, 4, 3]);
    }

    #[test]
    fn invalid_parameters_are_refused_and_unusual_ones_reported() {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let refuse =
            |text: &str| text.parse::<Spec>().unwrap().build_numbered(&context).err().unwrap().to_string();
        assert_eq!(
            refuse("run2c source table flows 0"),
            "flows: 0 is not between 1 and 4194304: write for example 65536"
        );
        let warn = |text: &str| text.parse::<Spec>().unwrap().warnings(&context);
        assert_eq!(
            warn("run2c threshold 5gb"),
            ["threshold 5gb is never exceeded: no packet gets low priority, and run2c is a fifo"]
        );
        assert_eq!(
            warn("run2c source table sweep 0s"),
            ["sweep 0s: flows are forgotten only once there are more than 65536"]
        );
        assert!(warn("run2c").is_empty() && warn("run2c sweep 0s").is_empty());
    }

    proptest! {
        /// The discipline and the simple reference have the same departures and drops, for both sources.
        #[test]
        fn equals_the_reference(ops in ops(), limit in 1..20u64, threshold in 0..20_000u64, table in any::<bool>()) {
            let source = if table { Source::Table } else { Source::Carried };
            let mut run2c = built(&Config { limit: Limit::Packets(limit), threshold: Bytes(threshold), source, ..Config::default() });
            let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
            equals_reference(&mut run2c, limit, &ops, |flow, bytes, offset| {
                let before = sent.entry(flow).or_default();
                assert_eq!(*before, u64::from(offset), "what is carried is what is counted");
                *before += u64::from(bytes);
                usize::from(*before > threshold)
            })?;
        }

        /// Of n packets of one length, exactly the first `threshold / length` are high, however long the flow
        /// pauses.
        #[test]
        fn exactly_the_threshold_goes_ahead(
            n in 1..60u64,
            bytes in 40..1500u32,
            threshold in 0..40_000u64,
            leaves in any::<bool>(),
            table in any::<bool>(),
        ) {
            let source = if table { Source::Table } else { Source::Carried };
            let mut run2c = built(&Config { threshold: Bytes(threshold), source, ..Config::default() });
            let mut out = Outbox::default();
            let mut high = 0;
            for serial in 0..n {
                let mut pkt = Packet::new(FlowKey(1), bytes, serial);
                pkt.meta.offset = serial as u32 * bytes;
                let mut cx = Cx::new(Time::ms(serial), &mut out);
                let before = run2c.levels.queue.packets(Level::HIGH);
                run2c.enqueue(pkt, &mut cx);
                high += run2c.levels.queue.packets(Level::HIGH) - before;
                if leaves {
                    prop_assert!(run2c.dequeue(&mut cx).packet().is_some());
                }
            }
            prop_assert_eq!(high as u64, n.min(threshold / u64::from(bytes)));
        }

        /// After every call: a flow with low packets queued has an entry that counts them, however small the
        /// table and however long the flow is silent; so later packets of the flow cannot overtake them.
        #[test]
        fn a_flow_that_waits_low_is_not_forgotten(
            steps in prop::collection::vec((prop::option::of(0..8u64), 0..200u64), 1..200),
            flows in 1..4u32,
        ) {
            let config = Config { source: Source::Table, threshold: Bytes(1000), sweep: Span::ms(100), idle: Span::ms(300), flows, ..Config::default() };
            let mut run2c = built(&config);
            let mut out = Outbox::default();
            let mut now = Time::ZERO;
            let mut left: BTreeMap<FlowKey, u64> = BTreeMap::new();
            for (serial, (arrives, later)) in (1..).zip(steps) {
                now += Span::ms(later);
                let mut cx = Cx::new(now, &mut out);
                match arrives {
                    Some(flow) => run2c.enqueue(Packet::new(FlowKey(flow), 600, serial), &mut cx),
                    None => {
                        if let Some(pkt) = run2c.dequeue(&mut cx).packet() {
                            let last = left.insert(pkt.meta.flow, pkt.payload);
                            prop_assert!(last < Some(pkt.payload), "packet {} after {last:?}", pkt.payload);
                        }
                    }
                }
                let mut low: BTreeMap<FlowKey, u32> = BTreeMap::new();
                let waiting = run2c.levels.queue.iter().skip(run2c.levels.queue.packets(Level::HIGH));
                waiting.for_each(|pkt| *low.entry(pkt.meta.flow).or_default() += 1);
                prop_assert_eq!(run2c.levels.below(), low);
            }
        }
    }
}

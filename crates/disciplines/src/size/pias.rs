//! PIAS: the strict priority of a flow falls with the bytes that it has sent, so that short flows finish at a
//! high priority without knowledge of their size.
//!
//! # Principles
//! - Many levels instead of the two of `run2c`: a packet is one level lower for each of `thresholds` that its
//!   flow has exceeded, this packet included. A level is served when all above it are empty.
//! - The size of a flow need not be known in advance. More levels approximate better an order by bytes sent.
//! - `source carried`: the packet carries its offset in the flow; in the original the sending host writes the
//!   priority into the packet. `source table`: the queue counts the bytes of each flow, in the table of
//!   `run2c`.
//! - When the buffer is full, the packet that would leave last is dropped: the newest of the lowest level in
//!   use.
//!
//! # Deviations
//! - The authors choose thresholds from the distribution of flow sizes, for eight levels of a data centre.
//!   The defaults here are 30 kB, as in `run2c` and `efd`, and two more, each ten times the one before. Three
//!   thresholds make four levels.
//! - The authors let switches mark packets (ECN) at a common queue length, because all senders are DCTCP.
//!   Packets are not marked here, and drops from lower levels keep room for the upper levels.
//! - The authors' hosts count a flow as new again after several timeouts of TCP. Here it is new after `idle`
//!   of silence, by table, and never when its offset is carried.
//! - The deviations of `run2c` on dropped packets, retransmissions, flows that are not forgotten and 4 GiB
//!   apply here too.
//!
//! # Cost
//! - Carried: two queue operations per packet and a check of each level above its own. Table: a look-up per
//!   arrival, and one per departure of a packet below the first level; 64 bytes per flow in a table that is
//!   half full.
//!
//! # References
//! - W. Bai, L. Chen, K. Chen, D. Han, C. Tian, H. Wang, "Information-Agnostic Flow Scheduling for Commodity
//!   Data Centers", NSDI 2015. The authors' kernel module and its description: github.com/baiwei0427/PIAS.

use giveway_qdisc::blocks::{Level, Memory};
use giveway_qdisc::{
    Backlog, Bytes, Cx, FlowTable, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, Span,
    check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::sent::{SentLevels, Source};

/// Parameters of `pias`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of all levels together, in packets or in bytes.
    pub limit: Limit,
    /// Bytes that a flow sends before it sinks to level 1, 2, 3 and so on. At most 7, each more than the
    /// one before.
    pub thresholds: Vec<Bytes>,
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
            thresholds: vec![Bytes(30_000), Bytes(300_000), Bytes(3_000_000)],
            source: Source::Carried,
            sweep,
            idle,
            flows: flows as u32,
        }
    }
}

/// Largest number of levels: the priorities of a switch.
const MAX: usize = 8;

/// The backlog of each level, as gauges.
const GAUGES: [&str; MAX] = [
    "level0_packets",
    "level1_packets",
    "level2_packets",
    "level3_packets",
    "level4_packets",
    "level5_packets",
    "level6_packets",
    "level7_packets",
];

impl Discipline for Config {
    const SUMMARY: &'static str = "the priority of a flow falls with the bytes that it has sent";
    type Qdisc<P: 'static> = Pias<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Pias<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        if self.thresholds.len() >= MAX {
            let message =
                format!("{} thresholds are more than {}: leave some out", self.thresholds.len(), MAX - 1);
            return Err(Invalid::new("thresholds", message));
        }
        let pairs = self.thresholds.iter().zip(self.thresholds.iter().skip(1));
        if let Some((upper, lower)) = pairs.into_iter().find(|(upper, lower)| upper >= lower) {
            let message = format!("{lower} is not more than {upper} before it: write them in rising order");
            return Err(Invalid::new("thresholds", message));
        }
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        Ok(Pias {
            thresholds: self.thresholds.iter().map(|bytes| bytes.0).collect(),
            levels: SentLevels::new(self.limit, self.source, memory),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        self.source.properties(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        let thresholds = [0, 2000, 4000, 6000, 8000, 12_000, 20_000].map(Bytes).to_vec();
        let table = Config { source: Source::Table, thresholds, ..plain.clone() };
        vec![
            Config { limit: Limit::Packets(5), thresholds: Vec::new(), ..plain },
            Config {
                limit: Limit::Bytes(6000),
                sweep: Span::ms(20),
                idle: Span::ms(50),
                flows: 3,
                ..table.clone()
            },
            table,
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.thresholds.is_empty() {
            warnings.push("without thresholds there is one level, and pias is a fifo".to_owned());
        }
        if let Some(last) = self.thresholds.last()
            && last.0 >= u64::from(u32::MAX)
        {
            warnings
                .push(format!("threshold {last} is never exceeded: no packet reaches the level below it"));
        }
        warnings.extend(self.source.unswept(self.sweep, self.flows));
        warnings
    }
}

/// The levels, and the table if there is one.
pub struct Pias<P> {
    /// Thresholds in bytes, rising.
    thresholds: Vec<u64>,
    levels: SentLevels<P, MAX>,
}

impl<P> Qdisc<P> for Pias<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let thresholds = &self.thresholds;
        let exceeded = |bytes| Level::below(thresholds.iter().take_while(|most| bytes > **most).count());
        self.levels.enqueue(pkt, cx, exceeded);
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

    /// The backlog of each level.
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        for (at, name) in GAUGES.iter().enumerate().take(self.thresholds.len() + 1) {
            visit(name, self.levels.queue.packets(Level::below(at)) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::levels::{equals_reference, ops};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{Rate, Streams};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Thresholds of 1,000 and 3,000 bytes. A1 is on the wire when A2 (2,000 bytes in all) and A3 (3,000)
    /// arrive: level 1. A4 and all later packets of A have level 2. B1 and B2 make 1,000 bytes: level 0. B3
    /// makes 1,500: level 1. C1 has level 0. At 1.3 A5 and at 1.4 A4 would leave last. At 2.6 A6 arrives
    /// behind A2 and A3, and B3 leaves before it.
    #[test]
    fn flows_sink_with_every_threshold() {
        let sunk =
            "A1[0-1] B1[1-1.5] B2[1.5-2] C1[2-3] A2[3-4] A3[4-5] B3[5-5.5] A6[5.5-6.5] | A5@1.3 A4@1.4";
        for source in ["carried", "table"] {
            let pias = format!("pias limit 4p thresholds [1kb 3kb] source {source}");
            assert_eq!(trace(&pias, 1000, T1), sunk);
        }
    }

    #[test]
    fn thresholds_must_increase() {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let refuse =
            |text: &str| text.parse::<Spec>().unwrap().build_numbered(&context).err().unwrap().to_string();
        assert_eq!(
            refuse("pias thresholds [30kb 30kb]"),
            "thresholds: 30kb is not more than 30kb before it: write them in rising order"
        );
        assert_eq!(
            refuse("pias thresholds [1b 2b 3b 4b 5b 6b 7b 8b]"),
            "thresholds: 8 thresholds are more than 7: leave some out"
        );
        let warn = |text: &str| text.parse::<Spec>().unwrap().warnings(&context);
        assert_eq!(warn("pias thresholds []"), ["without thresholds there is one level, and pias is a fifo"]);
        assert_eq!(
            warn("pias thresholds [1kb 5gb]"),
            ["threshold 5gb is never exceeded: no packet reaches the level below it"]
        );
    }

    proptest! {
        /// The discipline and the simple reference have the same departures and drops, for both sources.
        #[test]
        fn equals_the_reference(
            ops in ops(),
            limit in 1..20u64,
            thresholds in prop::collection::btree_set(0..40_000u64, 0..7),
            table in any::<bool>(),
        ) {
            let config = Config {
                limit: Limit::Packets(limit),
                thresholds: thresholds.iter().copied().map(Bytes).collect(),
                source: if table { Source::Table } else { Source::Carried },
                ..Config::default()
            };
            let mut pias = config.build(&LinkContext::new(Rate::mbit(10), Streams::new(1))).unwrap();
            let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
            equals_reference(&mut pias, limit, &ops, |flow, bytes, _| {
                let sent = sent.entry(flow).or_default();
                *sent += u64::from(bytes);
                thresholds.iter().filter(|most| *sent > **most).count()
            })?;
        }
    }
}

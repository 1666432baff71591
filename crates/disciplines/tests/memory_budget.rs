//! How many flows fit into so much memory, a packet of 64 bytes each: table 2 of the TRR paper (Chen and
//! Chen, about 2000), which has 445 for TRR, 450 for DRR, 396 for WFQ and 412 for TSS in 128 KiB, counted
//! here in 128 KiB, 1 MiB and 16 MiB.
//!
//! Counted is what the system's allocator was asked for, not what structures say that they take, and the 64
//! bytes of each packet's data, which in a host lie in a pool. A discipline is built for a limit of n packets
//! and n flows, and gets them; the most for which all of it is within the budget is what the table has. What
//! does not depend on n is counted separately, as `at first`: arrays of slots above all, which the paper's
//! sizes do not have either.
//!
//! What a flow takes, with its packet:
//! - the 64 bytes of data;
//! - the packet in the discipline's store: what disciplines know of it (`Meta`), a host's handle of 24 bytes
//!   as in the live host, and two links. The paper's is the kernel's `sk_buff` of 148 bytes;
//! - its entry in the table of flows, of which at most half is in use, so two at least and four at most:
//!   sizes are powers of two;
//! - its record: queue, rate, where it stands in the order of lengths, and what the schedule keeps for it: a
//!   stamp (TRR, TSS), a place in a calendar or heap, virtual times (WFQ).
//!
//! Tables and stores double, so that most numbers of flows leave some of them unused: `bytes each` is at
//! 32,768 flows, which leave little. While one doubles, both sizes are there for a moment; that is not
//! counted. Those that know reservations have a second store from the start, for best effort, with room for
//! up to 4,096 packets: in 128 KiB and 1 MiB that is a good part of what they take, and no flow here uses it.

use std::fmt::Write as _;

use giveway_disciplines::{Discipline, Spec, Visit};
use giveway_qdisc::{Cx, FlowKey, LinkContext, Meta, Outbox, Packet, Qdisc, Rate, Slots, Streams, Time};

/// What the live host carries in place of a payload has as many bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Handle([u64; 3]);

/// The smallest packet.
const PACKET: u32 = 64;

/// Counts what a discipline takes with a packet of each of so many flows.
struct Filled(u64);

impl Visit for Filled {
    type Out = i64;

    fn visit<D: Discipline>(self, config: &D) -> i64 {
        let context = LinkContext::new(Rate::gbit(1000), Streams::new(3).within("budget"));
        let mut out: Outbox<Handle> = Outbox::default();
        let before = giveway_counting::held();
        let mut qdisc = config.build::<Handle>(&context).expect("it can be built");
        for flow in 0..self.0 {
            let key = FlowKey(giveway_qdisc::hash::mix(flow, 0x5bd1));
            let mut pkt = Packet::new(key, PACKET, Handle([flow; 3]));
            pkt.meta.reserved = Rate::kbit(10);
            assert_eq!(pkt.payload.0[0], flow);
            qdisc.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
        }
        assert_eq!(qdisc.backlog().packets, self.0, "all of them are there");
        assert!(out.dropped.is_empty());
        let held = giveway_counting::held() - before;
        drop(qdisc);
        assert_eq!(giveway_counting::held(), before, "all of it comes back");
        held
    }
}

/// What so many flows take, packets' data included, in bytes.
fn taken(name: &str, flows: u64) -> i64 {
    let with_flows = format!("{name} limit {flows}p flows {flows}");
    let spec: Spec =
        with_flows.parse().or_else(|_| format!("{name} limit {flows}p").parse()).expect("it is one");
    spec.with(Filled(flows)) + flows as i64 * i64::from(PACKET)
}

/// The most flows for which what they take beyond what nobody takes is within the budget.
fn most(name: &str, at_first: i64, budget: i64) -> u64 {
    let fits = |flows| taken(name, flows) - at_first <= budget;
    let (mut least, mut over) = (1, budget as u64 / u64::from(PACKET) + 1);
    while over - least > 1 {
        let middle = least.midpoint(over);
        if fits(middle) { least = middle } else { over = middle }
    }
    least
}

#[test]
fn flows_within_a_budget() {
    /// So many fill tables and stores that double.
    const FULL: u64 = 32_768;
    const BUDGETS: [i64; 3] = [128 << 10, 1 << 20, 16 << 20];
    let mut table =
        String::from("discipline  at first   128 KiB     1 MiB    16 MiB  bytes each, of 32,768\n");
    let mut in_128 = Vec::new();
    for name in ["drr", "trr", "trr_sound", "tss", "wfq"] {
        let at_first = taken(name, 1) - i64::from(PACKET);
        let flows = BUDGETS.map(|budget| most(name, at_first, budget));
        let each = (taken(name, FULL) - at_first) / FULL as i64;
        let [a, b, c] = flows;
        writeln!(table, "{name:<10} {at_first:>9} {a:>9} {b:>9} {c:>9} {each:>9}").expect("a text");
        in_128.push((name, a));
    }
    let stored = Slots::<Packet<Handle>>::bytes_per_slot();
    writeln!(table, "{} bytes of Meta, {stored} of a stored packet", size_of::<Meta>()).expect("a text");
    println!("{table}");
    insta::assert_snapshot!(table);
    // The order of the paper for the two that it explains: DRR takes the least.
    assert!(in_128[1..].iter().all(|(_, flows)| *flows <= in_128[0].1), "{in_128:?}");
}

//! Number of flows, with a packet of 64 bytes each, that fit into 128 KiB, 1 MiB and 16 MiB. Table 2 of the
//! TRR paper (Chen and Chen, about 2000) has 445 for TRR, 450 for DRR, 396 for WFQ and 412 for TSS in 128
//! KiB.
//!
//! The memory is the bytes requested from the system's allocator, not the sizes that structures report, and
//! the 64 bytes of each packet's data, which a backend has in a pool. A discipline is built for a limit of n
//! packets and n flows, and receives one packet of each flow; the table contains the largest n within the
//! budget. Memory that does not depend on n is in the column `at first`: mostly arrays of slots, which the
//! paper's sizes do not include either.
//!
//! The memory of a flow and its packet is:
//! - the 64 bytes of data;
//! - the packet in the discipline's store: its metadata (`Meta`), its number, and two links; and in the store
//!   of bodies a handle of 24 bytes as in the live backend. In the paper it is the kernel's `sk_buff` of 148
//!   bytes;
//! - its entry in the table of flows. At most half of the table is in use and sizes are powers of two, so a
//!   flow takes two to four entries;
//! - its record: queue, rate, place in the order of lengths, and the state of the schedule: a
//!   stamp (TRR, TSS), a place in a calendar or heap, virtual times (WFQ).
//!
//! Tables and stores double, so a part of them is unused at most numbers of flows; `bytes each` is for 32,768
//! flows, at which this part is small. While a table doubles, both sizes exist for a moment, which is not
//! counted. Disciplines with reservations have a second store from the start, for best effort, with a
//! capacity of up to 4,096 packets. With 128 KiB and 1 MiB that is a large part of their memory, and no flow
//! here uses it.

use std::fmt::Write as _;

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Meta, Outbox, Packet, Qdisc, Rate, Slots, Streams, Time};

/// A payload with the size of the live backend's handle.
#[derive(Clone, Copy, Debug, Default)]
struct Handle([u64; 3]);

/// The smallest packet.
const PACKET: u32 = 64;

/// Memory of a discipline with one packet of each of this many flows.
fn held(spec: &Spec, flows: u64) -> i64 {
    let context = LinkContext::new(Rate::gbit(1000), Streams::new(3).within("budget"));
    let mut out: Outbox<Handle> = Outbox::default();
    let before = giveway_counting::held();
    let mut qdisc = spec.build::<Handle>(&context).expect("it can be built");
    for flow in 0..flows {
        let key = FlowKey(giveway_qdisc::hash::mix(flow, 0x5bd1));
        let mut pkt = Packet::new(key, PACKET, Handle([flow; 3]));
        pkt.meta.reserved = Rate::kbit(10);
        assert_eq!(pkt.payload.0[0], flow);
        qdisc.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
    }
    assert_eq!(qdisc.backlog().packets, flows, "all packets are queued");
    assert!(out.dropped.is_empty());
    let held = giveway_counting::held() - before;
    drop(qdisc);
    assert_eq!(giveway_counting::held(), before, "all memory is freed");
    held
}

/// Memory of this many flows, with the data of their packets, in bytes.
fn taken(name: &str, flows: u64) -> i64 {
    let with_flows = format!("{name} limit {flows}p flows {flows}");
    let spec: Spec = with_flows
        .parse()
        .or_else(|_| format!("{name} limit {flows}p").parse())
        .expect("the specification is valid");
    held(&spec, flows) + flows as i64 * i64::from(PACKET)
}

/// Largest number of flows with a memory, beyond that without flows, within the budget.
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
    /// Number of flows that fills tables and stores that double.
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
    // The order of the paper, which explains it: DRR takes the least memory.
    assert!(in_128[1..].iter().all(|(_, flows)| *flows <= in_128[0].1), "{in_128:?}");
}

//! Where the disciplines with levels are the same, and how long a low packet waits in any of them.

use giveway_disciplines::Spec;
use giveway_qdisc::contract::{Event, Op, drive};
use giveway_qdisc::{Cx, FlowKey, LinkContext, Outbox, Packet, Qdisc, Rate, Streams, Time};
use proptest::prelude::*;

fn context() -> LinkContext {
    LinkContext::new(Rate::mbit(10), Streams::new(1))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (any::<u8>(), any::<u16>())
            .prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
        8 => Just(Op::Dequeue),
        2 => any::<u16>().prop_map(Op::Wait),
        1 => (0..10u8).prop_map(|dice| if dice == 0 { Op::Reset } else { Op::Dequeue }),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..400)
}

fn limit() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..30u64).prop_map(|most| format!("{most}p")),
        (1500..30_000u64).prop_map(|most| format!("{most}b"))
    ]
}

/// Everything that leaves and everything that is dropped.
fn events(text: &str, ops: &[Op]) -> Vec<Event> {
    let spec: Spec = text.parse().unwrap();
    drive(&mut spec.build::<u64>(&context()).unwrap(), spec.properties(&context()), ops).unwrap()
}

proptest! {
    /// A coin that always lands knows every flow from its first packet.
    #[test]
    fn xprotect_that_notices_everyone_is_run2c(ops in ops(), limit in limit(), threshold in 0..20_000u64, flows in 1..20u32) {
        let table = format!("limit {limit} threshold {threshold}b sweep 100ms idle 200ms flows {flows}");
        prop_assert_eq!(
            events(&format!("xprotect probability 100% {table}"), &ops),
            events(&format!("run2c source table {table}"), &ops)
        );
    }

    /// A coin that never lands knows nobody.
    #[test]
    fn xprotect_that_notices_nobody_is_a_fifo(ops in ops(), limit in limit(), drop in prop::sample::select(&["tail", "pushout"])) {
        let xprotect = format!("xprotect probability 0 threshold 0b limit {limit} drop {drop}");
        prop_assert_eq!(events(&xprotect, &ops), events(&format!("fifo limit {limit}"), &ops));
    }

    /// Two levels are two levels.
    #[test]
    fn pias_with_one_threshold_is_run2c(
        ops in ops(),
        limit in limit(),
        threshold in 0..20_000u64,
        source in prop::sample::select(&["carried", "table"]),
    ) {
        let more = format!("limit {limit} source {source} sweep 100ms idle 200ms flows 5");
        prop_assert_eq!(
            events(&format!("pias thresholds [{threshold}b] {more}"), &ops),
            events(&format!("run2c threshold {threshold}b {more}"), &ops)
        );
    }

    /// One level is a queue.
    #[test]
    fn pias_without_thresholds_is_a_fifo(ops in ops(), limit in limit()) {
        prop_assert_eq!(
            events(&format!("pias thresholds [] limit {limit}"), &ops),
            events(&format!("fifo limit {limit}"), &ops)
        );
    }

    /// No lock-out: a low packet that leaves has waited for exactly the packets that were there when it came
    /// and the high ones that came since, and not for a single low one that came later. So while the high
    /// queue's load is bounded, no flow stands still for longer than the low queue takes to drain.
    #[test]
    fn a_low_packet_waits_for_the_low_ones_before_it_and_for_high_ones(
        ops in ops(),
        name in prop::sample::select(&["efd threshold 3p", "run2c threshold 3000b source table", "xprotect probability 30% threshold 2000b"]),
        limit in 1..30u64,
    ) {
        let mut qdisc = format!("{name} limit {limit}p").parse::<Spec>().unwrap().build::<u64>(&context()).unwrap();
        let high = |qdisc: &dyn Qdisc<u64>| {
            let mut packets = 0.0;
            qdisc.gauges(&mut |name, value| if name == "high_packets" { packets = value });
            packets as u64
        };
        // Low packets that wait: number, and how many packets have to leave before it does.
        let mut low: Vec<(u64, u64)> = Vec::new();
        let mut out = Outbox::default();
        for (serial, op) in (0u64..).zip(ops) {
            let mut cx = Cx::new(Time::ms(serial), &mut out);
            match op {
                Op::Enqueue { flow, .. } => {
                    let (high_before, ahead) = (high(&qdisc), qdisc.backlog().packets);
                    qdisc.enqueue(Packet::new(FlowKey(u64::from(flow % 16)), 1000, serial), &mut cx);
                    if high(&qdisc) > high_before {
                        low.iter_mut().for_each(|(_, before)| *before += 1);
                    } else {
                        low.push((serial, ahead));
                    }
                    let lost: Vec<u64> = out.dropped.drain(..).map(|(pkt, _)| pkt.payload).collect();
                    low.retain(|(number, _)| !lost.contains(number));
                }
                _ => {
                    let Some(left) = qdisc.dequeue(&mut cx).packet() else { continue };
                    if let Some(place) = low.iter().position(|(number, _)| *number == left.payload) {
                        prop_assert_eq!(low.remove(place), (left.payload, 0));
                    }
                    low.iter_mut().for_each(|(_, before)| *before -= 1);
                }
            }
        }
    }
}

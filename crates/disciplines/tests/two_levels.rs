//! Settings with which disciplines with levels are equal, and the sojourn time of a low packet in each of
//! them.

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

/// All departures and drops.
fn events(text: &str, ops: &[Op]) -> Vec<Event> {
    let spec: Spec = text.parse().unwrap();
    drive(&mut spec.build_numbered(&context()).unwrap(), spec.properties(&context()), ops).unwrap()
}

proptest! {
    /// With probability 1 every flow is detected at its first packet.
    #[test]
    fn xprotect_that_detects_all_flows_is_run2c(ops in ops(), limit in limit(), threshold in 0..20_000u64, flows in 1..20u32) {
        let table = format!("limit {limit} threshold {threshold}b sweep 100ms idle 200ms flows {flows}");
        prop_assert_eq!(
            events(&format!("xprotect probability 100% {table}"), &ops),
            events(&format!("run2c source table {table}"), &ops)
        );
    }

    /// With probability 0 no flow is detected.
    #[test]
    fn xprotect_that_detects_no_flow_is_a_fifo(ops in ops(), limit in limit(), drop in prop::sample::select(&["tail", "pushout"])) {
        let xprotect = format!("xprotect probability 0 threshold 0b limit {limit} drop {drop}");
        prop_assert_eq!(events(&xprotect, &ops), events(&format!("fifo limit {limit}"), &ops));
    }

    /// PIAS with two levels equals Run2C, for both sources of the bytes sent.
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

    /// PIAS with one level is a single queue.
    #[test]
    fn pias_without_thresholds_is_a_fifo(ops in ops(), limit in limit()) {
        prop_assert_eq!(
            events(&format!("pias thresholds [] limit {limit}"), &ops),
            events(&format!("fifo limit {limit}"), &ops)
        );
    }

    /// No lock-out: a low packet leaves after exactly the packets that were queued at its arrival and the
    /// high packets that arrived later, and before all later low packets. So while the load of the high queue
    /// is bounded, no flow is without service for longer than the low queue takes to drain.
    #[test]
    fn a_low_packet_waits_only_for_earlier_low_packets_and_for_high_packets(
        ops in ops(),
        name in prop::sample::select(&["efd threshold 3p", "run2c threshold 3000b source table", "xprotect probability 30% threshold 2000b"]),
        limit in 1..30u64,
    ) {
        let mut qdisc = format!("{name} limit {limit}p").parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
        let high = |qdisc: &dyn Qdisc<u64>| {
            let mut packets = 0.0;
            qdisc.gauges(&mut |name, value| if name == "high_packets" { packets = value });
            packets as u64
        };
        // Number of each queued low packet, and the number of packets that leave before it.
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

use std::collections::BTreeMap;

use giveway_qdisc::{Dscp, Ecn, FlowKey, Header, Label, Meta, Outbox, Streams};
use proptest::prelude::*;

use super::*;
use crate::Spec;
use crate::testing::events::{build_error, context};
use crate::testing::trace::{trace, trace_on};

/// Runs a trace with departure times in milliseconds, by the length of the packet: "1007" bytes are 1,000
/// bytes that depart at 7 ms. A length without a rest has none.
fn trace_departing(spec: &str, arrivals: &str) -> String {
    dressed(spec, arrivals, |meta| {
        if !meta.bytes.is_multiple_of(1000) {
            meta.label = Label::departing(Time::ms(u64::from(meta.bytes % 1000)));
            meta.bytes -= meta.bytes % 1000;
        }
    })
}

fn dressed(spec: &str, arrivals: &str, dress: impl Fn(&mut Meta)) -> String {
    let qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
    trace_on(qdisc, 1000, arrivals, dress)
}

/// At 4 Mbit/s, half of the link, the quantum of 1,000 bytes takes 2 ms.
#[test]
fn a_flow_is_paced_and_others_use_its_pauses() {
    let paced = "fq maxrate 4mbit quantum 1000 initial_quantum 1000 timer_slack 0s";
    let alone = trace(paced, 1000, "0 A1 1000, A2 1000, A3 1000, A4 1000");
    assert_eq!(alone, "A1[0-1] A2[2-3] A3[4-5] A4[6-7] |");
    let both = trace(paced, 1000, "0 A1 1000, A2 1000, A3 1000, B1 1000, B2 1000");
    assert_eq!(both, "A1[0-1] B1[1-2] A2[2-3] B2[3-4] A3[4-5] |");
    assert_eq!(
        trace("fq maxrate 4mbit nopacing", 1000, "0 A1 1000, A2 1000, A3 1000"),
        "A1[0-1] A2[1-2] A3[2-3] |"
    );
}

/// A new flow may send its initial quantum back to back. Then it has the rate.
#[test]
fn an_initial_window_leaves_without_a_pause() {
    assert_eq!(
        trace(
            "fq maxrate 4mbit quantum 1000 initial_quantum 3000 timer_slack 0s",
            1000,
            "0 A1 1000, A2 1000, A3 1000, A4 1000, A5 1000"
        ),
        "A1[0-1] A2[1-2] A3[2-3] A4[4-5] A5[6-7] |"
    );
}

/// Below the threshold each packet is followed by a pause, whatever the credit.
#[test]
fn at_a_low_rate_there_is_a_pause_after_each_packet() {
    let trace_with = |threshold: &str| {
        let spec = format!("fq maxrate 1mbit low_rate_threshold {threshold} timer_slack 0s");
        trace(&spec, 1000, "0 A1 1000, A2 500, A3 500")
    };
    assert_eq!(trace_with("1mbit"), "A1[0-1] A2[8-8.5] A3[12-12.5] |");
    assert_eq!(trace_with("999kbit"), "A1[0-1] A2[1-1.5] A3[1.5-2] |");
}

/// A flow's own rate counts if it is below the bound for all.
#[test]
fn a_reserved_rate_paces_its_flow() {
    let spec = "fq quantum 1000 initial_quantum 1000 timer_slack 0s";
    let arrivals = "0 A1 1000, A2 1000, B1 1000, B2 1000";
    let out = dressed(spec, arrivals, |meta| {
        meta.reserved = if meta.class == 0 { Rate::mbit(2) } else { Rate::default() };
    });
    assert_eq!(out, "A1[0-1] B1[1-2] B2[2-3] A2[4-5] |");
    // A departure time takes the place of the rate, but not of the bound for all.
    let departing = |more: &str| {
        dressed(&format!("{spec} {more}"), "0 A1 1000, A2 1000", |meta| {
            (meta.reserved, meta.label) = (Rate::mbit(2), Label::departing(Time::ms(1)));
        })
    };
    assert_eq!(departing(""), "A1[1-2] A2[2-3] |");
    assert_eq!(departing("maxrate 1mbit"), "A1[1-2] A2[9-10] |");
    let bounded = dressed(&format!("{spec} maxrate 1mbit"), arrivals, |meta| meta.reserved = Rate::mbit(2));
    assert_eq!(bounded, "A1[0-1] B1[1-2] A2[8-9] B2[9-10] |");
}

#[test]
fn a_packet_waits_until_its_departure_time() {
    let departing = |spec, arrivals| trace_departing(spec, arrivals);
    let exact = "fq timer_slack 0s";
    // A1 departs at 5, A2 at 9; B and C do not wait for them, and the time of C has passed.
    let arrivals = "0 A1 1005, A2 1009, B1 1000; 6.5 C1 1003";
    assert_eq!(departing(exact, arrivals), "B1[0-1] A1[5-6] C1[6.5-7.5] A2[9-10] |");
    // The slack lets the call be late, unless there is another one. B is a new flow, A no longer.
    assert_eq!(
        departing("fq timer_slack 250us", "0 A1 1005, A2 1009; 5.1 B1 1000"),
        "B1[5.1-6.1] A1[6.1-7.1] A2[9.25-10.25] |"
    );
    // A discipline without departure times ignores them.
    assert_eq!(departing("fq_codel", arrivals), departing("fifo", arrivals));
    assert_eq!(departing("fifo", arrivals), "A1[0-1] A2[1-2] B1[2-3] C1[6.5-7.5] |");
}

#[test]
fn packets_of_a_flow_leave_in_the_order_of_their_times() {
    assert_eq!(
        trace_departing("fq timer_slack 0s", "0 A1 1009, A2 1005, A3 1007, A4 1005; 1 A5 1002"),
        "A5[2-3] A2[5-6] A4[6-7] A3[7-8] A1[9-10] |"
    );
}

#[test]
fn a_time_beyond_the_horizon_is_dropped_or_capped() {
    let arrivals = "0 A1 1020, A2 1010, A3 1011";
    let out = |policy: &str| trace_departing(&format!("fq timer_slack 0s horizon 10ms {policy}"), arrivals);
    assert_eq!(out(""), "A2[10-11] | A1@0 A3@0");
    assert_eq!(out("horizon_drop"), out(""));
    assert_eq!(out("horizon_cap"), "A1[10-11] A2[11-12] A3[12-13] |");
}

/// Quantum 1,000: B and C are new while A is an old flow, as in `fq_codel`.
#[test]
fn new_flows_go_before_old_ones() {
    let arrivals = "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 B1 500; 0.4 C1 500";
    assert_eq!(
        trace("fq quantum 1000 initial_quantum 1000", 1000, arrivals),
        trace("fq_codel quantum 1000", 1000, arrivals)
    );
}

#[test]
fn a_flow_and_a_band_have_limits() {
    let arrivals = "0 A1 1000, A2 1000, A3 1000, B1 1000, B2 1000, C1 1000";
    // All are in one band.
    assert_eq!(
        trace("fq limit 4p flow_limit 2p", 1000, arrivals),
        "A1[0-1] A2[1-2] B1[2-3] B2[3-4] | A3@0 C1@0"
    );
    // C is in a band of its own.
    let urgent = |meta: &mut Meta| {
        if meta.class == 2 {
            meta.header = Header::new(Dscp::new(4).unwrap(), false);
        }
    };
    assert_eq!(
        dressed("fq limit 4p flow_limit 2p", arrivals, urgent),
        "C1[0-1] A1[1-2] A2[2-3] B1[3-4] B2[4-5] | A3@0"
    );
}

/// A, B and C are in the bands 0, 1 and 2, with the weights 9, 3 and 1 by default.
#[test]
fn bands_share_the_link_by_weight() {
    let mut fq: Fq<u64> =
        Config { flow_limit: Packets(10_000), ..Config::default() }.build(&context()).unwrap();
    let mut out = Outbox::default();
    let codes = [4, 0, 2];
    for number in 0..30_000 {
        let mut pkt = Packet::new(FlowKey(number % 3), 1500, number % 3);
        pkt.meta.header = Header::new(Dscp::new(codes[(number % 3) as usize]).unwrap(), false);
        fq.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
    }
    let mut sent = [0; 3];
    for _ in 0..8 * 568 {
        let pkt = fq.dequeue(&mut Cx::new(Time::ms(1), &mut out)).packet().unwrap();
        sent[pkt.payload as usize] += 1;
    }
    // 589,824, 196,608 and 65,536 bytes are 393.2, 131.1 and 43.7 packets per turn.
    assert_eq!(sent, [8 * 394 - 6, 8 * 131 + 1, 8 * 43 + 5]);
}

#[test]
fn a_late_packet_is_marked() {
    let marks = |departure: u64| {
        let config = Config { ce_threshold: Some(Span::ms(2)), ..Config::default() };
        let mut fq: Fq<u64> = config.build(&context()).unwrap();
        let mut out = Outbox::default();
        let mut pkt = Packet::new(FlowKey(1), 1000, 1);
        pkt.meta.ecn = Ecn::Ect0;
        pkt.meta.label = Label::departing(Time::ms(departure));
        fq.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
        assert!(fq.dequeue(&mut Cx::new(Time::ms(10), &mut out)).packet().is_some());
        out.marked.len()
    };
    // The delay counts from the departure time.
    assert_eq!([5, 7, 8, 9].map(marks), [1, 1, 0, 0]);
}

/// Flows without a socket share queues by their hash; flows of sockets never do.
#[test]
fn only_flows_of_sockets_have_queues_of_their_own() {
    let flows = |reserved| {
        let config = Config { orphan_mask: 3, ..Config::default() };
        let mut fq: Fq<u64> = config.build(&context()).unwrap();
        let mut out = Outbox::default();
        for flow in 0..100 {
            let mut pkt = Packet::new(FlowKey(flow), 100, flow);
            pkt.meta.reserved = reserved;
            fq.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
        }
        Qdisc::<u64>::flow_table(&fq).flows
    };
    assert_eq!((flows(Rate::default()), flows(Rate::mbit(1))), (4, 100));
}

#[test]
fn an_idle_flow_is_remembered_while_it_pauses_and_then_for_three_seconds() {
    let config = Config { maxrate: Some(Rate::kbit(1)), ..Config::default() };
    let mut fq: Fq<u64> = config.build(&context()).unwrap();
    let mut out = Outbox::default();
    let mut flows = |flow, at| {
        fq.enqueue(Packet::new(FlowKey(flow), 1000, flow), &mut Cx::new(at, &mut out));
        while fq.dequeue(&mut Cx::new(at, &mut out)).packet().is_some() {}
        fq.flows.table().flows
    };
    // A thousand bytes at 1 kbit/s are a pause of 8 s.
    assert_eq!(flows(1, Time::s(0)), 1);
    assert_eq!([4, 7].map(|s| flows(2, Time::s(s))), [2, 2]);
    assert_eq!(flows(3, Time::s(9)), 2, "the first flow is forgotten, and the second is still waiting");
}

#[test]
fn usual_mistakes_cause_errors_and_warnings() {
    let warnings = |spec: &str| spec.parse::<Spec>().unwrap().warnings(&context());
    assert!(warnings("fq").is_empty());
    assert_eq!(
        warnings("fq maxrate 8mbit"),
        ["maxrate: 8mbit is not below the rate of the link, so it delays no packet"]
    );
    assert_eq!(warnings("fq maxrate 1mbit nopacing"), ["maxrate: has no effect with nopacing"]);
    for (spec, error) in [
        ("fq quantum 100", "quantum: 100 bytes are not between 256 and 1048576; 3028 is usual"),
        ("fq maxrate 0bit", "maxrate: must be above 0 bit/s; leave it out for no bound"),
        ("fq bands 4", "bands: 4 is not 3, the only number that tc accepts, too"),
        (
            "fq weights [1 2 3]",
            "weights: [1, 2, 3] are not three weights of at least 16384: write for example \
             \"weights [589824 196608 65536]\"",
        ),
    ] {
        assert_eq!(build_error(spec).to_string(), error);
    }
}

proptest! {
    /// A flow that always has packets sends no more than its first credit, its rate and a packet; and no less
    /// than its rate less a quantum, on a link that is fast and free.
    #[test]
    fn the_rate_is_exact(
        rate in 600_000..50_000_000u64, quantum in 256..5000u64, initial in 0..20_000u64,
        sizes in prop::collection::vec(40..3000u32, 100..300), low in any::<bool>(),
    ) {
        let config = Config {
            quantum: Some(Bytes(quantum)),
            initial_quantum: Some(Bytes(initial)),
            maxrate: Some(Rate::bit(rate)),
            low_rate_threshold: Rate::bit(if low { rate } else { 0 }),
            flow_limit: Packets(1000),
            timer_slack: Span::ZERO,
            ..Config::default()
        };
        let link = LinkContext::new(Rate::gbit(1000), Streams::new(1));
        let mut fq: Fq<u64> = config.build(&link).unwrap();
        let mut out = Outbox::default();
        let mut now = Time::ms(1);
        for bytes in &sizes {
            fq.enqueue(Packet::new(FlowKey(1), *bytes, 0), &mut Cx::new(now, &mut out));
        }
        let mut sent = 0u64;
        loop {
            match fq.dequeue(&mut Cx::new(now, &mut out)) {
                Next::Packet(pkt) => {
                    let free = now.since(Time::ms(1));
                    let paid = Rate::bit(rate).bytes_in(free);
                    let first = if low { 0 } else { initial.max(quantum) };
                    prop_assert!(sent <= first + paid + 1, "{sent} bytes, {paid} paid");
                    prop_assert!(sent + 3000 + quantum >= paid, "{sent} bytes, {paid} paid");
                    sent += u64::from(pkt.bytes());
                }
                Next::At(at) => now = at,
                Next::Empty => break,
            }
        }
        prop_assert_eq!(sent, sizes.iter().map(|bytes| u64::from(*bytes)).sum::<u64>());
    }

    /// No packet leaves before its departure time, the packets of a flow leave in the order of their times
    /// and then of their arrivals, and every packet leaves as soon as it may if the link is free.
    #[test]
    fn departure_times_are_kept(
        packets in prop::collection::vec((0..4u64, 0..20_000u64, prop::option::of(0..40_000u64)), 1..100),
    ) {
        let config = Config { timer_slack: Span::ZERO, ..Config::default() };
        let mut fq: Fq<u64> = config.build(&context()).unwrap();
        let mut out = Outbox::default();
        let mut arrivals: Vec<_> = packets.into_iter().map(|(flow, at, departs)| (Time::us(at), flow, departs)).collect();
        arrivals.sort_unstable();
        let mut due = BTreeMap::new();
        let (mut now, mut next) = (Time::ZERO, 0usize);
        let mut left: Vec<u64> = Vec::new();
        loop {
            while let Some((at, flow, departs)) = arrivals.get(next).filter(|(at, ..)| *at <= now) {
                let mut pkt = Packet::new(FlowKey(*flow), 100, next as u64);
                // The flow is a socket's whether it has a time or not.
                pkt.meta.reserved = Rate::gbit(100);
                if let Some(departs) = departs {
                    pkt.meta.label = Label::departing(Time::us(*departs));
                }
                let may = departs.map_or(*at, |departs| Time::us(departs).max(*at));
                due.insert(next as u64, (*flow, may));
                fq.enqueue(pkt, &mut Cx::new(now, &mut out));
                next += 1;
            }
            let arrival = arrivals.get(next).map(|(at, ..)| *at);
            match fq.dequeue(&mut Cx::new(now, &mut out)) {
                Next::Packet(pkt) => {
                    let (flow, may) = due[&pkt.payload];
                    prop_assert!(now >= may && now.since(may) < Span::ms(1));
                    for before in left.iter().filter(|before| due[before].0 == flow) {
                        prop_assert!((due[before].1, *before) < (may, pkt.payload) || due[before].1 < arrivals[pkt.payload as usize].0);
                    }
                    left.push(pkt.payload);
                }
                Next::At(at) => now = arrival.map_or(at, |arrival| arrival.min(at)),
                Next::Empty => match arrival {
                    Some(arrival) => now = arrival,
                    None => break,
                },
            }
        }
        prop_assert_eq!(left.len(), arrivals.len());
    }
}

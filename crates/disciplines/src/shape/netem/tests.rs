use giveway_qdisc::{Ecn, FlowKey, Outbox};
use proptest::prelude::*;

use super::*;
use crate::Spec;
use crate::testing::events::{build_error, context};
use crate::testing::trace::{T1, trace};

fn built(spec: &str) -> Box<dyn Qdisc<u64>> {
    spec.parse::<Spec>().unwrap().build_numbered(&context()).unwrap()
}

/// The share of 100,000 packets that are lost, and of the losses that follow a loss.
fn losses(spec: &str) -> (f64, f64) {
    let mut netem = built(spec);
    let mut out = Outbox::default();
    let (mut lost, mut pairs, mut before) = (0.0, 0.0, false);
    for number in 0..100_000 {
        let mut cx = Cx::new(Time::us(number), &mut out);
        netem.enqueue(Packet::new(FlowKey(0), 100, number), &mut cx);
        let _ = netem.dequeue(&mut cx);
        let is_lost = out.dropped.pop().is_some_and(|(_, why)| why == DropReason::Wire);
        lost += f64::from(u8::from(is_lost));
        pairs += f64::from(u8::from(is_lost && before));
        before = is_lost;
    }
    (lost / 100_000.0, pairs / lost)
}

#[test]
fn without_parameters_it_is_a_fifo() {
    assert_eq!(trace("netem limit 4", 1000, T1), trace("fifo limit 4p", 1000, T1));
}

#[test]
fn packets_wait_for_the_delay() {
    assert_eq!(
        trace("netem delay 10ms", 1000, "0 A1 1000; 0.5 A2 1000; 20 B1 500"),
        "A1[10-11] A2[11-12] B1[30-30.5] |"
    );
}

/// The limit counts the packets in the delay line.
#[test]
fn the_limit_counts_the_delay_line() {
    assert_eq!(
        trace("netem delay 10ms limit 2", 1000, "0 A1 100; 1 A2 100; 2 A3 100; 10.5 A4 100"),
        "A1[10-10.1] A2[11-11.1] A4[20.5-20.6] | A3@2"
    );
    let warnings = |spec: &str| spec.parse::<Spec>().unwrap().warnings(&context());
    assert_eq!(
        warnings("netem delay 2s"),
        [
            "limit: 1000p also counts the packets in the delay line: 2s at 8mbit hold 1333 packets of 1500 bytes, and the rest is dropped"
        ]
    );
    assert!(warnings("netem delay 2s limit 2000").is_empty());
    assert!(warnings("netem delay 2s rate 4mbit").is_empty());
    assert_eq!(
        warnings("netem jitter 5ms"),
        ["jitter: 5ms is more than the delay of 0s: shorter delays than none become none"]
    );
}

/// Each third packet after one that was sent at once is the first that may be.
#[test]
fn every_third_packet_overtakes_with_a_gap_of_three() {
    assert_eq!(
        trace(
            "netem delay 10ms reorder 100% gap 3",
            1000,
            "0 A1 100; 1 A2 100; 2 A3 100; 3 A4 100; 4 A5 100; 5 A6 100"
        ),
        "A3[2-2.1] A6[5-5.1] A1[10-10.1] A2[11-11.1] A4[13-13.1] A5[14-14.1] |"
    );
    assert_eq!(trace("netem delay 10ms reorder 100%", 1000, T1), trace("fifo", 1000, T1));
}

#[test]
fn the_rate_is_that_of_a_transmitter_in_front_of_the_delay() {
    // 1,000 bytes at 4 Mbit/s take 2 ms.
    let arrivals = "0 A1 1000, A2 1000; 10 A3 1000";
    assert_eq!(trace("netem rate 4mbit", 1000, arrivals), "A1[2-3] A2[4-5] A3[12-13] |");
    assert_eq!(trace("netem rate 4mbit delay 5ms", 1000, arrivals), "A1[7-8] A2[9-10] A3[17-18] |");
    // With an overhead of 1,000 bytes they take 4 ms.
    assert_eq!(trace("netem rate 4mbit overhead 1000", 1000, arrivals), "A1[4-5] A2[8-9] A3[14-15] |");
}

/// A slot opens for the first packet that is due, and then every 5 ms at the earliest.
#[test]
fn slots_release_bursts() {
    let arrivals = "1 A1 100; 2 A2 100; 3 A3 100; 5 A4 100; 30 A5 100; 31 A6 100";
    assert_eq!(
        trace("netem slot [5ms]", 1000, arrivals),
        "A1[1-1.1] A2[6-6.1] A3[6.1-6.2] A4[6.2-6.3] A5[30-30.1] A6[35-35.1] |"
    );
    assert_eq!(
        trace("netem slot [5ms] packets 2", 1000, arrivals),
        "A1[1-1.1] A2[6-6.1] A3[6.1-6.2] A4[11-11.1] A5[30-30.1] A6[35-35.1] |"
    );
    // The packet that reaches the number of bytes is the last of its slot.
    assert_eq!(
        trace("netem slot [5ms] bytes 101", 1000, arrivals),
        trace("netem slot [5ms] packets 2", 1000, arrivals)
    );
}

/// The bounds are four standard errors of independent packets; runs of losses add up to twice as much.
#[test]
fn each_model_loses_its_share() {
    for (spec, share, after) in [
        ("netem loss 2%", 0.02, 0.02),
        ("netem gemodel [2%]", 0.02, 0.02),
        ("netem gemodel [1% 20%]", 0.01 / 0.21, 0.8),
        // Losses are half of the packets in the bad state.
        ("netem gemodel [1% 20% 50% 0%]", 0.5 * 0.01 / 0.21, 0.4),
        ("netem state [2%]", 0.02, 0.02),
        ("netem state [1% 20%]", 0.01 / 0.21, 0.8),
        // An isolated loss is followed by a packet that arrives.
        ("netem state [0% 100% 0% 100% 2%]", 0.02 / 1.02, 0.0),
    ] {
        let (lost, follow) = losses(spec);
        assert!((lost - share).abs() < 8.0 * libm::sqrt(share / 1e5), "{spec} {lost}");
        assert!((follow - after).abs() < 0.03, "{spec} {follow}");
    }
}

/// States 2 and 3 alternate within a burst: with p32 = p23 = 50 % half of the packets of a burst arrive.
#[test]
fn a_burst_has_good_packets_in_it() {
    let (lost, follow) = losses("netem state [1% 10% 50% 50%]");
    // Balance of the chain: as many packets meet the states 2 and 3, each a tenth of those that meet state 1.
    assert!((lost - 0.1 / 1.2).abs() < 0.012, "{lost}");
    assert!((follow - 0.4).abs() < 0.02, "{follow}");
}

#[test]
fn a_correlation_makes_bursts_and_keeps_the_share() {
    let (lost, follow) = losses("netem loss 10% loss_correlation 50%");
    assert!((lost - 0.1).abs() < 0.006, "{lost}");
    assert!(follow > 0.25, "{follow}");
}

#[test]
fn losses_are_marks_with_ecn() {
    let mut netem = built("netem loss 100% ecn");
    let mut out = Outbox::default();
    for ecn in [Ecn::Ect0, Ecn::NotCapable, Ecn::Ect1] {
        let mut pkt = Packet::new(FlowKey(0), 100, 0);
        pkt.meta.ecn = ecn;
        netem.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut out));
    }
    assert_eq!((out.marked.len(), out.dropped.len(), netem.backlog().packets), (2, 1, 2));
    assert_eq!(out.dropped[0].1, DropReason::Wire);
}

#[test]
fn a_discipline_says_what_it_cannot_do() {
    for (spec, error) in [
        (
            "netem duplicate 1%",
            "duplicate: a discipline cannot copy a packet: a [[link]] of a scenario has the key duplicate",
        ),
        (
            "netem corrupt 1%",
            "corrupt: a discipline does not see the bytes of a packet: a [[link]] of a scenario has the key corrupt",
        ),
        ("netem loss 1% gemodel [1%]", "loss: loss, gemodel and state are three models: write one of them"),
        ("netem gemodel [1% 2% 3% 4% 5%]", "gemodel: 5 values are too many: write [p r 1-h 1-k]"),
        (
            "netem state [60% 10% 10% 10% 60%]",
            "state: p13 and p14 leave the same state, so their sum is at most 100 %",
        ),
        ("netem reorder 25%", "reorder: it needs delay: write for example \"delay 10ms\", too"),
        ("netem delay 1ms gap 5", "gap: it needs reorder: write for example \"reorder 25%\", too"),
        ("netem overhead 20", "overhead: it needs rate: write for example \"rate 1mbit\", too"),
        (
            "netem slot [10ms 5ms]",
            "slot: 10ms and 5ms are not a shortest time above 0 and a longest one: write for example \"slot [5ms 10ms]\"",
        ),
    ] {
        assert_eq!(build_error(spec).to_string(), error);
    }
}

proptest! {
    /// Each packet leaves after its delay, which is within the jitter, and at once when it is due.
    #[test]
    fn delays_are_within_the_jitter(gaps in prop::collection::vec(0..3000u64, 1..200), jitter in 0..8000u64) {
        let spec = format!("netem delay 8ms jitter {jitter}us");
        let mut netem = built(&spec);
        let mut out = Outbox::default();
        let mut arrivals: Vec<Time> = Vec::new();
        for gap in gaps {
            let last = arrivals.last().copied().unwrap_or(Time::ZERO);
            arrivals.push(last + Span::us(gap));
        }
        for (at, number) in arrivals.iter().zip(0..) {
            netem.enqueue(Packet::new(FlowKey(0), 100, number), &mut Cx::new(*at, &mut out));
        }
        let mut now = *arrivals.last().unwrap();
        let begin = now;
        loop {
            match netem.dequeue(&mut Cx::new(now, &mut out)) {
                Next::Packet(pkt) => {
                    let waited = now.since(arrivals[pkt.payload as usize]);
                    prop_assert!(waited >= Span::us(8000 - jitter));
                    prop_assert!(now == begin || waited <= Span::us(8000 + jitter));
                }
                Next::At(at) => now = at,
                Next::Empty => break,
            }
        }
        prop_assert!(out.dropped.is_empty());
    }
}

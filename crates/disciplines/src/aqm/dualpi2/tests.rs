use giveway_qdisc::{FlowKey, Outbox, Rate, Streams};
use proptest::prelude::*;

use super::*;
use crate::Spec;
use crate::testing::events::{any_flows, build_error, context, events};

/// A controller that does not move.
const FIXED: Law = Law { alpha: 0.0, beta: 0.0, target: Span::ms(15), tupdate: Span::ms(16), most: 1.0 };

/// A discipline with its time and the results of its calls.
struct Bench {
    q: DualPi2<u64>,
    now: Time,
    out: Outbox<u64>,
    serial: u64,
}

impl Bench {
    fn new(spec: &str) -> Bench {
        let Spec::dualpi2(config) = spec.parse::<Spec>().unwrap() else { panic!("{spec} is not dualpi2") };
        Bench { q: config.build(&context()).unwrap(), now: Time::ms(1), out: Outbox::default(), serial: 0 }
    }

    /// With a base probability that stays at `base`.
    fn fixed(spec: &str, base: f64) -> Bench {
        let mut bench = Bench::new(spec);
        bench.q.controller = Controller::starting_at(FIXED, base);
        bench
    }

    /// Offers a packet, and returns its fate at arrival.
    fn offer(&mut self, ecn: Ecn, bytes: u32) -> Option<DropReason> {
        let mut pkt = Packet::new(FlowKey(ecn as u64), bytes, self.serial);
        pkt.meta.ecn = ecn;
        pkt.meta.arrived = self.now;
        self.serial += 1;
        self.q.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.out.dropped.pop().map(|(_, why)| why)
    }

    fn fill(&mut self, ecn: Ecn, packets: usize) {
        (0..packets).for_each(|_| assert_eq!(self.offer(ecn, 1000), None));
    }

    fn take(&mut self) -> Option<Packet<u64>> {
        self.q.dequeue(&mut Cx::new(self.now, &mut self.out)).packet()
    }

    fn gauge(&self, wanted: &str) -> f64 {
        let mut found = None;
        self.q.gauges(&mut |name, value| found = found.or((name == wanted).then_some(value)));
        found.unwrap_or_else(|| panic!("there is a gauge {wanted}"))
    }
}

/// Shares of packets with this ECN field that are marked and dropped with a fixed base probability, and the
/// reason of the drops. They arrive to a queue of 50 packets, and wait for less than the threshold.
fn fates(spec: &str, base: f64, ecn: Ecn) -> (f64, f64, Option<DropReason>) {
    const PACKETS: usize = 100_000;
    let mut bench = Bench::fixed(spec, base);
    while bench.q.backlog().packets < 50 {
        bench.offer(ecn, 1000);
    }
    let (mut marked, mut dropped, mut why) = (0, 0, None);
    bench.out.marked.clear();
    for _ in 0..PACKETS {
        let early = bench.offer(ecn, 1000);
        dropped += usize::from(early.is_some());
        why = why.or(early);
        if bench.q.backlog().packets > 50 {
            bench.take();
        }
        for (_, reason) in bench.out.dropped.drain(..) {
            dropped += 1;
            why = why.or(Some(reason));
        }
        marked += bench.out.marked.drain(..).count();
    }
    (marked as f64 / PACKETS as f64, dropped as f64 / PACKETS as f64, why)
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.006
}

/// RFC 9332, section 2.1: p_C = (p_CL / k)^2, as drops or as marks of classic packets. With p' = 0.3 and k =
/// 2, p_CL = 0.6 and p_C = 0.09.
#[test]
fn classic_signals_are_the_square_of_coupled_marks() {
    for (base, k) in [(0.3, 2.0), (0.1, 2.0), (0.1, 4.0), (0.4, 1.0)] {
        for when in ["drop_dequeue", "drop_enqueue"] {
            let spec = format!("dualpi2 coupling_factor {k} {when}");
            let (marks, drops, _) = fates(&spec, base, Ecn::Ect1);
            assert!(near(marks, k * base) && drops == 0.0, "{spec}: L {marks} {drops}");
            let squared = (marks / k) * (marks / k);
            let (none, lost, why) = fates(&spec, base, Ecn::NotCapable);
            assert!(none == 0.0 && near(lost, squared), "{spec}: not ECT {none} {lost}");
            let reason = if when == "drop_enqueue" { DropReason::Early } else { DropReason::Congested };
            assert_eq!(why, Some(reason), "{spec}");
            let (marked, lost, _) = fates(&spec, base, Ecn::Ect0);
            assert!(near(marked, squared) && lost == 0.0, "{spec}: ECT(0) {marked} {lost}");
        }
    }
}

/// RFC 9332, appendix A.2: from p_CL = 100 % on, both queues drop with p_C, and what is left of the L queue
/// is marked. With k = 2 that is p_C = 25 %.
#[test]
fn overload_switches_to_drops_in_both_queues() {
    for (base, p_c) in [(0.5, 0.25), (0.7, 0.49)] {
        let (marks, drops, _) = fates("dualpi2", base, Ecn::Ect1);
        assert!(near(drops, p_c) && near(marks, 1.0 - p_c), "L {marks} {drops}");
        for ecn in [Ecn::Ect0, Ecn::NotCapable] {
            let (marks, drops, _) = fates("dualpi2", base, ecn);
            assert!(near(drops, p_c) && marks == 0.0, "{ecn:?} {marks} {drops}");
        }
    }
    // Just below, nothing of the L queue is dropped.
    let (marks, drops, _) = fates("dualpi2", 0.499, Ecn::Ect1);
    assert!(near(marks, 0.998) && drops == 0.0, "{marks} {drops}");
}

#[test]
fn with_overflow_the_probability_is_limited_and_nothing_with_ecn_is_dropped() {
    let mut bench = Bench::new("dualpi2 overflow");
    bench.fill(Ecn::Ect0, 100);
    bench.now = Time::s(1);
    bench.take();
    assert_eq!(bench.gauge("base_probability"), 0.5, "1 / k");
    let (marks, drops, _) = fates("dualpi2 overflow", 0.5, Ecn::Ect1);
    assert_eq!((marks, drops), (1.0, 0.0));
    let (marks, drops, _) = fates("dualpi2 overflow", 0.5, Ecn::Ect0);
    assert!(near(marks, 0.25) && drops == 0.0, "{marks} {drops}");
    let (_, drops, _) = fates("dualpi2 overflow", 0.5, Ecn::NotCapable);
    assert!(near(drops, 0.25), "{drops}");
}

/// RFC 9332, appendix A.2: curq is the greater of the two delays. At the first update, 16 ms after the first
/// call, a packet that arrived after 6 ms has waited for 10 ms, and one that arrived first for 16 ms.
#[test]
fn the_controller_follows_the_longer_delay() {
    for (first, second) in [(Ecn::Ect1, Ecn::Ect0), (Ecn::Ect0, Ecn::Ect1)] {
        let mut bench = Bench::new("dualpi2");
        bench.fill(first, 1);
        bench.now += Span::ms(6);
        bench.fill(second, 1);
        bench.now += Span::ms(10);
        bench.take();
        let by_hand = 0.16 * (0.016 - 0.015) + 3.2 * 0.016;
        assert!((bench.gauge("base_probability") - by_hand).abs() < 1e-12);
    }
}

#[test]
fn a_classic_queue_marks_packets_of_an_empty_l_queue() {
    let mut bench = Bench::new("dualpi2 step_thresh 1s");
    // A queue of 50 packets of 1 ms stands in the C queue, above the target.
    bench.fill(Ecn::Ect0, 50);
    let (mut sent, mut marked, mut expected) = (0, 0, 0.0);
    for _ in 0..100 {
        bench.now += Span::ms(1);
        bench.fill(Ecn::Ect0, 1);
        assert_eq!(bench.offer(Ecn::Ect1, 500), None);
        expected += 2.0 * bench.gauge("base_probability");
        while let Some(pkt) = bench.take().filter(|pkt| pkt.bytes() == 500) {
            sent += 1;
            marked += u8::from(pkt.meta.ecn == Ecn::Marked);
        }
    }
    // Within three standard deviations.
    let apart = (f64::from(marked) - expected).abs();
    assert!(
        sent == 100 && expected > 10.0 && apart < 3.0 * libm::sqrt(expected),
        "{sent} {marked} {expected}"
    );
    assert_eq!(bench.gauge("step_marked_packets"), 0.0);
}

#[test]
fn packets_above_the_threshold_in_time_are_marked() {
    for (waits, marks) in [(Span::ms(1), 0.0), (Span::ms(1) + Span::from_ps(1), 1.0)] {
        let mut bench = Bench::new("dualpi2");
        bench.fill(Ecn::Ect1, 1);
        bench.now += waits;
        assert!(bench.take().is_some());
        assert_eq!((bench.gauge("step_marked_packets"), bench.out.marked.len() as f64), (marks, marks));
    }
    // The C queue has no threshold.
    let mut bench = Bench::new("dualpi2");
    bench.fill(Ecn::Ect0, 1);
    bench.now += Span::ms(5);
    assert!(bench.take().is_some_and(|pkt| pkt.meta.ecn == Ecn::Ect0));
}

#[test]
fn packets_above_the_threshold_in_packets_are_marked() {
    let mut bench = Bench::new("dualpi2 step_thresh 3p");
    bench.fill(Ecn::Ect1, 6);
    let marks: Vec<bool> =
        std::iter::from_fn(|| bench.take()).map(|pkt| pkt.meta.ecn == Ecn::Marked).collect();
    // Behind the packets are 5, 4, 3, 2, 1 and no packets.
    assert_eq!(marks, [true, true, false, false, false, false]);
}

#[test]
fn sparse_lone_packets_are_exempt_from_the_threshold() {
    let mut bench = Bench::new("dualpi2 min_qlen_step 1p");
    for _ in 0..50 {
        // A packet that waits for 5 ms behind a long packet on the link, alone.
        bench.fill(Ecn::Ect1, 1);
        bench.now += Span::ms(5);
        assert!(bench.take().is_some_and(|pkt| pkt.meta.ecn == Ecn::Ect1));
        bench.now += Span::ms(20);
    }
    // The second of two packets did not arrive alone.
    bench.fill(Ecn::Ect1, 2);
    bench.now += Span::ms(5);
    let marks = [bench.take(), bench.take()].map(|pkt| pkt.unwrap().meta.ecn == Ecn::Marked);
    assert_eq!(marks, [false, true]);
}

#[test]
fn fewer_than_two_packets_are_left_alone() {
    // The two packets of 1,499 bytes are less than two of 1,500.
    for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1] {
        let mut bench = Bench::fixed("dualpi2", 1.0);
        bench.offer(ecn, 1499);
        bench.offer(ecn, 1499);
        assert!(bench.take().is_some_and(|pkt| pkt.meta.ecn == ecn));
        bench.offer(ecn, 1501);
        assert_eq!((bench.take().is_some(), bench.out.dropped.len()), (true, 1), "{ecn:?}");
    }
}

/// Both queues have packets of 1,500 bytes; the order of departures.
fn order(spec: &str, departures: usize) -> String {
    let mut bench = Bench::new(spec);
    for _ in 0..departures {
        bench.offer(Ecn::Ect0, 1500);
        bench.offer(Ecn::Ect1, 1500);
    }
    let name = |pkt: Packet<u64>| if pkt.meta.flow.0 == Ecn::Ect1 as u64 { 'L' } else { 'C' };
    (0..departures).map(|_| bench.take().map_or('-', name)).collect()
}

/// A classic packet pays 90 % of 1,500 bytes, and each packet of the L queue earns 10 % of them: one of ten.
#[test]
fn the_l_queue_goes_first_and_the_c_queue_gets_its_share() {
    assert_eq!(order("dualpi2", 30), "LLLLLLLLLC".repeat(3));
    assert_eq!(order("dualpi2 classic_protection 25%", 12), "LLLC".repeat(3));
    assert_eq!(order("dualpi2 classic_protection 50%", 6), "LC".repeat(3));
    assert_eq!(order("dualpi2 classic_protection 0%", 6), "LLLLLL");
    assert_eq!(order("dualpi2 classic_protection 100%", 6), "CCCCCC");
}

#[test]
fn the_queues_take_packets_by_their_ecn_field() {
    let lanes = |spec: &str| {
        let mut bench = Bench::new(spec);
        [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Marked].map(|ecn| {
            let before = bench.gauge("arrived_l_packets");
            bench.fill(ecn, 1);
            bench.gauge("arrived_l_packets") > before
        })
    };
    assert_eq!(lanes("dualpi2"), [false, false, true, true]);
    assert_eq!(lanes("dualpi2 l4s_ect"), [false, false, true, true]);
    assert_eq!(lanes("dualpi2 any_ect"), [false, true, true, true]);
}

#[test]
fn both_limits_hold_for_both_queues_together() {
    let mut bench = Bench::new("dualpi2 limit 3p");
    bench.fill(Ecn::Ect0, 2);
    bench.fill(Ecn::Ect1, 1);
    assert_eq!(bench.offer(Ecn::Ect1, 100), Some(DropReason::Overlimit));
    let mut bench = Bench::new("dualpi2 memlimit 2000b");
    assert_eq!(bench.offer(Ecn::Ect0, 1500), None);
    assert_eq!(bench.offer(Ecn::Ect1, 501), Some(DropReason::Overlimit));
    assert_eq!(bench.offer(Ecn::Ect1, 2001), Some(DropReason::TooLarge));
    assert_eq!(bench.offer(Ecn::Ect1, 500), None);
    assert_eq!(bench.gauge("most_queued_bytes"), 2000.0);
}

/// Unresponsive classic traffic at a quarter above the link's rate: one of five packets is dropped, so p' is
/// the root of 0.2, and the delay stays at the target. The few packets of the L queue do not wait for it.
#[test]
fn the_classic_delay_settles_at_the_target_and_the_l_delay_stays_low() {
    let mut bench = Bench::new("dualpi2");
    let (mut delay, mut base, mut slow) = (0.0, 0.0, 0);
    for ms in 0..40_000u64 {
        bench.now = Time::ms(ms + 1);
        for _ in ms * 120 / 100..(ms + 1) * 120 / 100 {
            bench.offer(Ecn::NotCapable, 1000);
        }
        if ms % 20 == 0 {
            bench.offer(Ecn::Ect1, 1000);
        }
        let sent = bench.take().expect("the link is busy");
        slow += u32::from(
            sent.meta.flow.0 == Ecn::Ect1 as u64 && bench.now.since(sent.meta.arrived) > Span::ZERO,
        );
        bench.out.dropped.clear();
        bench.out.marked.clear();
        if ms >= 30_000 {
            delay += bench.q.controller.delay().as_s() / 10_000.0;
            base += bench.gauge("base_probability") / 10_000.0;
        }
    }
    // 1.2 packets per millisecond arrive for 0.95 that the L queue leaves.
    let root = libm::sqrt(1.0 - 0.95 / 1.2);
    assert!((delay - 0.015).abs() < 0.001, "{delay}");
    assert!((base - root).abs() < 0.01, "{base} {root}");
    assert_eq!(slow, 0, "the L queue goes first");
}

/// An unresponsive L queue at twice the rate of the link, next to classic traffic at a tenth of it.
#[test]
fn classic_traffic_gets_its_share_beside_an_overload_of_the_l_queue() {
    let mut bench = Bench::new("dualpi2");
    let (mut classic, mut both, mut low_latency_delay) = (0, 0, Span::ZERO);
    for ms in 0..20_000u64 {
        bench.now = Time::ms(ms + 1);
        bench.offer(Ecn::Ect1, 1000);
        bench.offer(Ecn::Ect1, 1000);
        if ms % 5 == 0 {
            bench.offer(Ecn::NotCapable, 1000);
        }
        let sent = bench.take().expect("the link is busy");
        bench.out.dropped.clear();
        bench.out.marked.clear();
        if ms >= 10_000 {
            both += 1;
            classic += u32::from(sent.meta.flow.0 == Ecn::NotCapable as u64);
            if sent.meta.flow.0 == Ecn::Ect1 as u64 {
                low_latency_delay = low_latency_delay.max(bench.now.since(sent.meta.arrived));
            }
        }
    }
    let share = f64::from(classic) / f64::from(both);
    assert!(share > 0.095, "{share}");
    assert!(low_latency_delay < Span::ms(100), "drops keep the queue short: {low_latency_delay}");
}

/// tc-dualpi2(8): max_rtt 100 ms and typical_rtt 15 ms describe the defaults. With the equations of RFC 9332,
/// appendix A.1, Tupdate = 15 ms, alpha = 0.1 x 0.015 / 0.1^2 = 0.15 and beta = 0.3 / 0.1 = 3.
#[test]
fn round_trip_times_set_the_controller() {
    let law = |spec: &str| {
        let Spec::dualpi2(config) = spec.parse::<Spec>().unwrap() else { panic!("{spec} is not dualpi2") };
        let Law { alpha, beta, target, tupdate, .. } = config.law().unwrap();
        (libm::round(alpha * 1e6) / 1e6, libm::round(beta * 1e6) / 1e6, target, tupdate)
    };
    assert_eq!(law("dualpi2"), (0.16, 3.2, Span::ms(15), Span::ms(16)));
    assert_eq!(law("dualpi2 max_rtt 100ms typical_rtt 15ms"), (0.15, 3.0, Span::ms(15), Span::ms(15)));
    assert_eq!(law("dualpi2 typical_rtt 5ms"), law("dualpi2 max_rtt 30ms"));
    assert_eq!(law("dualpi2 max_rtt 6ms typical_rtt 5ms"), (5.555556, 50.0, Span::ms(5), Span::ms(2)));
}

#[test]
fn specs_have_the_words_of_tc() {
    let written = |spec: &str| spec.parse::<Spec>().unwrap().to_string();
    let all = "dualpi2 limit 10000 coupling_factor 2 step_thresh 1ms min_qlen_step 0 drop_on_overload drop_dequeue l4s_ect classic_protection 10% target 15ms tupdate 16ms alpha 0.16 beta 3.2";
    assert_eq!(written(all), "dualpi2", "these are the defaults");
    let other = "dualpi2 step_thresh 20p overflow drop_enqueue any_ect";
    assert_eq!(written(other), other);
    let error = |spec: &str| spec.parse::<Spec>().unwrap_err().to_string();
    assert_eq!(
        error("dualpi2 overflow drop_on_overload"),
        "\"overflow\" is given twice, here as \"drop_on_overload\""
    );
    assert_eq!(
        error("dualpi2 step_thresh 20"),
        "step_thresh: \"20\" needs a unit: \"1ms\" is a time, \"20p\" counts packets"
    );
}

#[test]
fn nonsense_is_refused_and_mistakes_cause_warnings() {
    for (parameters, parameter) in [
        ("limit 0p", "limit"),
        ("memlimit 100b", "memlimit"),
        ("tupdate 0s", "tupdate"),
        ("alpha -1", "alpha"),
        ("beta 1e9", "beta"),
        ("coupling_factor 0", "coupling_factor"),
        ("coupling_factor 256", "coupling_factor"),
        ("max_rtt 5ms typical_rtt 6ms", "typical_rtt"),
        ("max_rtt 0s", "max_rtt"),
        ("max_rtt 1ns", "max_rtt"),
    ] {
        assert_eq!(build_error(&format!("dualpi2 {parameters}")).parameter, parameter, "{parameters}");
    }
    let warnings =
        |spec: &str, rate| spec.parse::<Spec>().unwrap().warnings(&LinkContext::new(rate, Streams::new(1)));
    assert!(warnings("dualpi2", Rate::mbit(100)).is_empty());
    assert!(warnings("dualpi2", Rate::mbit(10))[0].starts_with("step_thresh: 1ms is less than one packet"));
    assert!(warnings("dualpi2 min_qlen_step 1p", Rate::mbit(10)).is_empty());
    assert!(warnings("dualpi2 limit 10p", Rate::mbit(100))[0].starts_with("limit: 10p drain in"));
    assert!(warnings("dualpi2 classic_protection 0%", Rate::mbit(100))[0].starts_with("classic_protection"));
    let ignored = warnings("dualpi2 max_rtt 50ms target 3ms", Rate::mbit(100));
    assert_eq!(ignored, ["target: it has no effect, because max_rtt and typical_rtt set it"]);
}

proptest! {
    /// With classic traffic only, `dualpi2` that decides at arrival is `pi2`: the same random stream, the
    /// same departures and drops.
    #[test]
    fn with_classic_traffic_it_is_pi2(ops in any_flows()) {
        let gains = "target 1ms tupdate 1ms alpha 5 beta 50";
        let of = |spec: &str| events(&format!("{spec} {gains}").parse().unwrap(), &ops);
        prop_assert_eq!(of("dualpi2 drop_enqueue"), of("pi2"));
    }

    /// Packets of one ECN field leave in the order of their arrival, and while both queues have packets, the
    /// C queue gets its share of the bytes, less a packet of each.
    #[test]
    fn order_and_share_hold_for_packets_of_any_size(
        sizes in prop::collection::vec((40..1500u32, 40..1500u32), 20..120),
        percent in 0..=100u32,
    ) {
        let mut bench = Bench::fixed(&format!("dualpi2 classic_protection {percent}%"), 0.0);
        for (low_latency, classic) in &sizes {
            bench.offer(Ecn::Ect1, *low_latency);
            bench.offer(Ecn::Ect0, *classic);
        }
        let (mut sent, mut last) = ([0i64; 2], [None; 2]);
        while bench.gauge("queued_c_packets") > 0.0 && bench.gauge("queued_l_packets") > 0.0 {
            let pkt = bench.take().expect("there is a backlog");
            let lane = usize::from(pkt.meta.flow.0 == Ecn::Ect0 as u64);
            sent[lane] += i64::from(pkt.bytes());
            prop_assert!(last[lane] < Some(pkt.payload));
            last[lane] = Some(pkt.payload);
        }
        let (percent, [low_latency, classic]) = (i64::from(percent), sent);
        let owed = percent * low_latency - (100 - percent) * classic;
        prop_assert!((-100 * 2 * 1500..=100 * 2 * 1500).contains(&owed), "{owed} {sent:?}");
    }
}

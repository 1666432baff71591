//! Links whose rate, delay and wire vary, in a running simulation.

use std::io::Write;

use giveway_links::{Gilbert, Impairments, Loss, Model, Profile, Quantity, Reorder, Shape};
use giveway_qdisc::{DropReason, FlowReport, Meta, PortId, Probe, Rate, Share, Span, Time};
use giveway_sim::traffic::cbr;
use giveway_sim::{LinkPlan, Segment, Sim, TcpConfig};
use serde_json::json;

use crate::support::{Counters, Lab};

/// The bytes that a link has sent and lost, and the packets that its wire delivered.
#[derive(Debug, Default)]
struct Passed {
    sent: u64,
    sent_packets: u64,
    lost: u64,
    delivered: u64,
}

impl Probe<Segment> for Passed {
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, _: Time) {
        if at == PortId(0) {
            self.sent += u64::from(meta.bytes);
            self.sent_packets += 1;
        }
    }
    fn on_drop(&mut self, at: PortId, _: &Meta, _: &Segment, why: DropReason, _: Time) {
        self.lost += u64::from(at == PortId(0) && why == DropReason::Wire);
    }
    fn on_delivery(&mut self, node: u16, _: &Meta, _: &Segment, _: Time) {
        self.delivered += u64::from(node == 1);
    }
}

/// Two nodes, a link with these impairments, and more datagrams than it carries.
fn lab(spec: &str, impairments: &Impairments, rate: &str) -> Lab {
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::mbit(20), Span::ms(5));
    lab.network.links_mut()[0].impairments = impairments.clone();
    if spec != "fifo" {
        let context = giveway_qdisc::LinkContext::new(Rate::mbit(20), lab.streams.within("0->1"));
        lab.network.links_mut()[0].qdisc =
            spec.parse::<giveway_disciplines::Spec>().unwrap().build(&context).unwrap();
    }
    let constant: cbr::Config = serde_json::from_value(json!({ "rate": rate, "packet": "1500b" })).unwrap();
    lab.source(&constant, &[(0, 1)], &TcpConfig::rfc());
    lab
}

fn passed(spec: &str, impairments: &Impairments, rate: &str, until: Time) -> Passed {
    let mut passed = Passed::default();
    lab(spec, impairments, rate).run(until, Time::ZERO, &mut passed);
    passed
}

fn varying(rate: Profile) -> Impairments {
    Impairments { rate: Some(rate), ..Impairments::default() }
}

fn rates(points: &[(u64, u64)], shape: Shape, repeats: bool) -> Profile {
    let points: Vec<_> = points.iter().map(|(ms, kbit)| (Span::ms(*ms), 1000 * kbit)).collect();
    Profile::points(Quantity::Rate, shape, &points, repeats).unwrap()
}

/// The bytes that a saturated link has sent are the integral of its rate, but for the first packet, which
/// arrives a little after the beginning, and the last, which counts when its transmission starts. For every
/// format, once and looped, and with a discipline of any kind.
#[test]
fn a_saturated_link_sends_the_integral_of_its_rate() {
    let mut mahimahi = tempfile::NamedTempFile::new().unwrap();
    (1..=400u64).filter(|ms| ms % 7 != 3).for_each(|ms| writeln!(mahimahi, "{ms}").unwrap());
    let mut csv = tempfile::NamedTempFile::new().unwrap();
    writeln!(csv, "time,rate\n0,20mbit\n0.3,1500000\n500ms,0\n0.6,35mbit\n1.1,2mbit").unwrap();
    let until = Time::s(3);
    for repeats in [false, true] {
        let points = [(0, 20_000), (300, 1_000), (700, 0), (800, 40_000), (1000, 12_345)];
        let profiles = [
            ("steps", rates(&points, Shape::Steps, repeats)),
            ("ramp", rates(&points, Shape::Ramp, repeats)),
            ("mahimahi", Profile::mahimahi(mahimahi.path(), repeats).unwrap()),
            ("csv", Profile::csv(Quantity::Rate, csv.path(), repeats).unwrap()),
        ];
        for (name, profile) in profiles {
            let offered = profile.integral(Time::ZERO, until) / 8;
            for spec in ["fifo", "drr limit 100000p", "fq_codel", "wfq limit 100000p"] {
                let sent = u128::from(passed(spec, &varying(profile.clone()), "80mbit", until).sent);
                // Datagrams come each 150 µs: the first within an interval and a half. At 40 Mbit/s that is
                // 1,125 bytes. An opportunity carries one of 1,500 bytes.
                assert!(
                    sent.abs_diff(offered) <= 3000,
                    "{name}, {repeats}, {spec}: {sent} bytes of {offered}"
                );
            }
        }
    }
    let model = Model::Lte { mean: Rate::mbit(20), spread: 20.0, hold: Span::ms(50) };
    let profile = Profile::model(model, 4).unwrap();
    let offered = profile.integral(Time::ZERO, until) / 8;
    let sent = u128::from(passed("fifo", &varying(profile), "80mbit", until).sent);
    assert!(sent.abs_diff(offered) <= 3000, "{sent} bytes of {offered}");
}

/// At 20 Mbit/s 1,500 bytes take 600 µs, without rounding.
#[test]
fn a_trace_of_one_rate_is_a_link_of_that_rate() {
    let report = |impairments: &Impairments| {
        let mut counters = Counters::default();
        let mut lab = lab("fifo", impairments, "8mbit");
        lab.bulk(
            &[(0, 1)],
            Some(3_000_000),
            &TcpConfig { mss: giveway_qdisc::Bytes(1460), ..TcpConfig::rfc() },
        );
        lab.run(Time::s(5), Time::ZERO, &mut counters);
        counters.flows
    };
    let constant = report(&Impairments::default());
    assert_eq!(constant.len(), 2);
    assert_eq!(report(&varying(rates(&[(0, 20_000)], Shape::Steps, false))), constant);
    assert_eq!(report(&varying(rates(&[(0, 20_000), (13, 20_000)], Shape::Ramp, true))), constant);
}

/// A wire loses or delivers each packet that it takes, and a copy is delivered, too. Datagrams that are on
/// the way when the run ends are neither.
#[test]
fn a_wire_loses_delivers_or_copies_each_packet() {
    let share = |share| Share::new(share).unwrap();
    let impairments = Impairments {
        loss: Some(Loss::Gilbert(Gilbert {
            p: share(0.02),
            r: share(0.3),
            bad: share(1.0),
            good: share(0.0),
        })),
        duplicate: share(0.1),
        corrupt: share(0.03),
        reorder: Some(Reorder { percent: share(0.05), distance: 4 }),
        unordered: true,
        ..Impairments::default()
    };
    let Passed { sent_packets, lost, delivered, .. } = passed("fifo", &impairments, "10mbit", Time::s(20));
    assert!((16_000..17_000).contains(&sent_packets), "{sent_packets}");
    // p / (p + r) = 6.25 % and 3 % of the rest: 9.06 %. A tenth of the others arrive twice.
    let others = (sent_packets - lost) as f64;
    assert!((lost as f64 / sent_packets as f64 - 0.0906).abs() < 0.015, "{lost}");
    // Up to ten packets are on a wire of 5 ms at the end.
    assert!((delivered as f64 - 1.1 * others).abs() < 4.0 * 39.0 + 12.0, "{delivered} of {others}");
}

/// TCP gets through a wire with all impairments at once, and every byte arrives once.
#[test]
fn tcp_survives_every_impairment() {
    let share = |share| Share::new(share).unwrap();
    let delay = [(Span::ZERO, Span::ms(10).as_ps()), (Span::ms(500), Span::ms(30).as_ps())];
    let impairments = Impairments {
        rate: Some(rates(
            &[(0, 20_000), (400, 0), (500, 5_000), (900, 50_000), (1000, 0)],
            Shape::Steps,
            true,
        )),
        delay: Some(Profile::points(Quantity::Delay, Shape::Steps, &delay, false).unwrap()),
        loss: Some(Loss::Gilbert(Gilbert {
            p: share(0.002),
            r: share(0.3),
            bad: share(0.8),
            good: share(0.0001),
        })),
        duplicate: share(0.01),
        corrupt: share(0.001),
        reorder: Some(Reorder { percent: share(0.01), distance: 3 }),
        unordered: true,
        dispatch_jitter: Some(giveway_links::Lateness::uniform(Span::ms(1))),
    };
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::mbit(20), Span::ms(5));
    for link in lab.network.links_mut() {
        link.impairments = impairments.clone();
        link.jitter = Span::ms(2);
    }
    lab.bulk(&[(0, 1)], Some(2_000_000), &TcpConfig::rfc());
    let mut counters = Counters::default();
    lab.run(Time::s(300), Time::ZERO, &mut counters);
    let [flow] = &counters.flows[..] else { panic!("there is one flow") };
    assert_eq!((flow.delivered, flow.ending), (2_000_000, giveway_qdisc::Ending::Completed));
}

/// A shaper without its own rate follows the link: it lets as much through. A packet counts when its
/// transmission starts.
#[test]
fn a_shaper_follows_the_rate_of_its_link() {
    let profile = rates(&[(0, 20_000), (1000, 2_000), (2000, 40_000)], Shape::Steps, false);
    let offered = profile.integral(Time::ZERO, Time::s(3)) / 8;
    let sent = u128::from(passed("tbf limit 100000p", &varying(profile), "80mbit", Time::s(3)).sent);
    assert!(sent <= offered + 1500 && sent + 10_000 > offered, "{sent} of {offered}");
}

/// A trace of a day with a row per second, read again after it: 3 MB of text. The memory at the end is that
/// after the first hour.
#[test]
fn a_trace_of_a_day_takes_no_memory() {
    let mut csv = tempfile::NamedTempFile::new().unwrap();
    {
        let mut out = std::io::BufWriter::new(&mut csv);
        for second in 0..=86_400u64 {
            writeln!(out, "{second},{}", 100_000 + second % 977 * 100).unwrap();
        }
    }
    let profile = Profile::csv(Quantity::Rate, csv.path(), true).unwrap();
    let plan = lab("fifo limit 50p", &varying(profile), "10kbit").plan(Time::s(100_000));
    let mut sim = Sim::new(plan);
    sim.step_to(Time::s(3600), &mut ());
    let (held, calls) = (giveway_counting::held(), giveway_counting::calls());
    sim.step_to(Time::s(100_000), &mut ());
    let (more, calls) = (giveway_counting::held() - held, giveway_counting::calls() - calls);
    assert!(more < 10_000, "{more} bytes");
    // The parser of quantities makes a text of the digits, of each of the two numbers of a row.
    assert!(calls < 200_100, "{calls} allocations for 100,000 rows");
}

/// The link of the plan in `lib.rs` has no impairments.
#[test]
fn a_constant_link_has_the_constant_delay() {
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::mbit(1), Span::ms(7));
    let link: &LinkPlan = &lab.network.links_mut()[0];
    assert_eq!(link.least_delay(), Span::ms(7));
}

/// A download of 10 Mbit/s with a way back of 64 kbit/s: some 210 acknowledgements of 40 bytes per second
/// fit, and there is one for two segments, 430 per second. They fill the queue of the way back, and a
/// datagram there waits behind a hundred of them. Nothing is lost on the way forth: acknowledgements with
/// SACK blocks are kept.
#[test]
fn thin_acknowledgements_free_the_way_back() {
    let run = |thin: bool| {
        let mut lab = Lab::new(2, 1);
        lab.link(0, 1, Rate::mbit(10), Span::ms(10), "fifo limit 10000p");
        lab.link(1, 0, Rate::kbit(64), Span::ms(10), "fifo limit 100p");
        let back = &mut lab.network.links_mut()[1];
        if thin {
            let inner = std::mem::replace(&mut back.qdisc, Box::new(crate::support::Gate::new(1, &[], &[])));
            back.qdisc = Box::new(giveway_sim::ThinAcks::new(8, inner));
        }
        lab.bulk(&[(0, 1)], Some(10_000_000), &TcpConfig::rfc());
        let constant: cbr::Config =
            serde_json::from_value(json!({ "rate": "4kbit", "packet": "50b" })).unwrap();
        lab.source(&constant, &[(1, 0)], &TcpConfig::rfc());
        let mut counters = Counters::default();
        lab.run(Time::s(20), Time::ZERO, &mut counters);
        let [download] = counters.flows.iter().filter(|flow| flow.from == 0).collect::<Vec<_>>()[..] else {
            panic!("there is one download")
        };
        assert_eq!((download.delivered, download.ending), (10_000_000, giveway_qdisc::Ending::Completed));
        let [datagrams] = counters.flows.iter().filter(|flow| flow.from == 1).collect::<Vec<_>>()[..] else {
            panic!("there is one stream of datagrams")
        };
        datagrams.delay_max
    };
    let (all, thin) = (run(false), run(true));
    // A hundred acknowledgements take half a second.
    assert!(all > Span::ms(400), "{all}");
    assert!(thin < Span::ms(50), "{thin}");
}

/// The progress of a connection from node 0 to node 1.
#[derive(Debug)]
struct Progress {
    /// The time from which it counts.
    from: Time,
    /// The time of the last packet that reached the receiver.
    last: Time,
    /// The acknowledgement number at `from`, and now.
    acknowledged: (u64, u64),
    /// The longest time without more data in order, in the whole run.
    pause: Span,
}

impl Probe<Segment> for Progress {
    fn on_delivery(&mut self, node: u16, _: &Meta, segment: &Segment, now: Time) {
        if node == 1 {
            self.last = now;
            return;
        }
        self.acknowledged.1 = self.acknowledged.1.max(segment.ack);
        if now <= self.from {
            self.acknowledged.0 = self.acknowledged.1;
        }
    }
    fn on_flow(&mut self, report: &FlowReport) {
        self.pause = self.pause.max(report.longest_pause);
    }
}

/// A link becomes slow, and its queue delays acknowledgements by more than the timeout. The data in flight
/// are then younger than a round-trip time, so RACK does not count them as lost, and they exceed the window
/// of one segment. The first segment leaves nevertheless (RFC 6298, section 5, rule 5.4), and restarts the
/// timer. Without it the connection would never send again. From then on the connection uses at least four
/// fifths of the slow link with FQ-CoDel, and three fifths with the FIFO: losses of that time do not wait for
/// one timeout each, which leaves half of it and less. The FIFO holds 200 packets for 4.8 s, while RACK waits
/// for no more than a smallest round trip before it takes the acknowledgement of an original for the
/// acknowledgement of a retransmission. So part of the link carries copies.
#[test]
fn a_timeout_with_a_full_network_does_not_stop_a_connection() {
    let mut slow = Vec::new();
    for step in (500..1500).step_by(20) {
        for (spec, least) in [("fifo limit 200p", 0.6), ("fq_codel", 0.8)] {
            let mut lab =
                lab(spec, &varying(rates(&[(0, 40_000), (step, 500)], Shape::Steps, false)), "1kbit");
            lab.bulk(&[(0, 1)], None, &TcpConfig::linux());
            let from = Time::ms(step);
            let mut progress = Progress { from, last: from, acknowledged: (0, 0), pause: Span::ZERO };
            lab.run(Time::s(30), Time::ZERO, &mut progress);
            let Progress { last, acknowledged: (before, after), pause, .. } = progress;
            let share = (after - before) as f64 / (500.0 * (30_000 - step) as f64 / 8.0);
            if last <= Time::s(29) || share < least {
                slow.push(format!("{spec}, slow after {step} ms: {share:.2} of the rate, pause {pause}, last packet at {last}"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

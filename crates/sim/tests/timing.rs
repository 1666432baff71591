//! Machines that are late, in a running simulation.

use giveway_links::{Impairments, Lateness, Profile, Quantity, Shape};
use giveway_qdisc::{Bytes, Interest, Meta, PortId, Probe, Rate, Span, Time};
use giveway_sim::traffic::cbr;
use giveway_sim::{Segment, TcpConfig, Timing};
use serde_json::json;

use crate::support::{Counters, Lab};

/// The times at which packets leave node 0 and are handled at node 1, and the number of those that node 1
/// sends.
#[derive(Default)]
struct Seen {
    emitted: Vec<Time>,
    handled: Vec<Time>,
    answers: u64,
    flows: u64,
}

impl Probe<Segment> for Seen {
    fn interest(&self, _: PortId) -> Interest {
        Interest::Nothing
    }
    fn on_emission(&mut self, node: u16, _: &Meta, _: &Segment, now: Time) {
        if node == 0 {
            self.emitted.push(now);
        } else {
            self.answers += 1;
        }
    }
    fn on_delivery(&mut self, node: u16, _: &Meta, _: &Segment, now: Time) {
        if node == 1 {
            self.handled.push(now);
        }
    }
    fn on_flow(&mut self, report: &giveway_qdisc::FlowReport) {
        self.flows += u64::from(report.bytes > 0);
    }
}

const DELAY: Span = Span::ms(5);

/// Two nodes, with one datagram of 1,500 bytes per millisecond.
fn datagrams(timing: Timing) -> Seen {
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::gbit(12), DELAY);
    lab.timing = timing;
    let config: cbr::Config =
        serde_json::from_value(json!({ "rate": "12mbit", "packet": "1500b", "jitter": "0%" })).unwrap();
    lab.source(&config, &[(0, 1)], &TcpConfig::rfc());
    let mut seen = Seen::default();
    lab.run(Time::s(10), Time::ZERO, &mut seen);
    seen
}

#[test]
fn a_late_source_sends_as_many_packets_and_none_early() {
    let exact = datagrams(Timing::default()).emitted;
    let senders = Some(Lateness::uniform(Span::us(1500)));
    let late = datagrams(Timing { senders, ..Timing::default() }).emitted;
    assert!(exact.len().abs_diff(late.len()) <= 2, "{} and {} packets", exact.len(), late.len());
    let lateness: Vec<Span> = late.iter().zip(&exact).map(|(late, exact)| late.since(*exact)).collect();
    assert!(late.iter().zip(&exact).all(|(late, exact)| late >= exact));
    assert!(lateness.iter().all(|late| *late <= Span::us(1500)));
    let mean = lateness.iter().map(|late| late.as_ps()).sum::<u64>() / lateness.len() as u64;
    assert!(mean > Span::us(500).as_ps(), "{mean} ps");
    // A wake-up that is late by more than a millisecond sends two packets.
    assert!(late.windows(2).any(|pair| pair[0] == pair[1]));
}

#[test]
fn a_late_receiver_handles_what_has_arrived_by_then() {
    let receivers = Some(Lateness::uniform(Span::us(3500)));
    let Seen { emitted, handled, .. } = datagrams(Timing { receivers, ..Timing::default() });
    assert!(handled.is_sorted());
    let on_wire = DELAY + Span::us(1);
    for (sent, handled) in emitted.iter().zip(&handled) {
        assert!((*sent + on_wire..=*sent + on_wire + Span::us(3500)).contains(handled));
    }
    assert!(handled.windows(3).any(|three| three[0] == three[2]), "some are handled together");
}

#[test]
fn an_interrupt_waits_for_further_packets() {
    let handled = datagrams(Timing { coalesce: Span::us(2500), ..Timing::default() }).handled;
    assert!(handled[..9000].chunks(3).all(|three| three[0] == three[2]), "three packets an interrupt");
    assert!(handled[..9000].windows(4).all(|four| four[0] != four[3]));
}

/// A transfer over 1 Gbit/s, whose receiver has an interrupt each 200 us: 16 segments.
fn transfer(timing: Timing, tcp: &TcpConfig) -> Seen {
    let mut lab = Lab::new(2, 1);
    lab.wire(0, 1, Rate::gbit(1), Span::us(500));
    lab.timing = timing;
    lab.bulk(&[(0, 1)], Some(20_000_000), tcp);
    let mut seen = Seen::default();
    lab.run(Time::s(5), Time::ZERO, &mut seen);
    assert_eq!(seen.flows, 1, "the transfer is complete");
    seen
}

/// A host takes a time for each segment, and none for a datagram. Nothing is lost, and segments stay in
/// order.
#[test]
fn hosts_take_a_moment_for_each_segment() {
    let moment = |handling| Timing { handling, ..Timing::default() };
    let (exact, drawn) = (datagrams(moment(Span::ZERO)), datagrams(moment(Span::us(1))));
    assert_eq!(exact.handled, drawn.handled);
    let [exact, drawn] =
        [Span::ZERO, Span::us(1)].map(|handling| transfer(moment(handling), &TcpConfig::rfc()).handled);
    assert_eq!(exact.len(), drawn.len(), "nothing is sent twice");
    assert!(drawn.is_sorted() && drawn != exact);
    // The first segments are late by their own moment, and by the ones of the handshake and of the request.
    let late: Vec<Span> = drawn.iter().zip(&exact).map(|(drawn, exact)| drawn.since(*exact)).collect();
    assert!(late[..10].iter().all(|late| *late <= Span::us(4)), "{late:?}");
    assert!(late[..10].windows(2).any(|pair| pair[0] != pair[1]));
}

/// A tenth of the time of a full packet is the limit: 12 ns on a link of 100 Gbit/s.
#[test]
fn a_moment_is_far_below_the_time_of_a_packet() {
    let first = |handling| {
        let mut lab = Lab::new(2, 1);
        lab.wire(0, 1, Rate::gbit(100), DELAY);
        lab.timing = Timing { handling, ..Timing::default() };
        lab.bulk(&[(0, 1)], Some(1000), &TcpConfig::rfc());
        let mut seen = Seen::default();
        lab.run(Time::s(1), Time::ZERO, &mut seen);
        seen.handled[0]
    };
    let late = first(Span::us(1)).since(first(Span::ZERO));
    assert!(late <= Span::ns(12), "{late}");
}

/// Without the offload every second segment is acknowledged.
#[test]
fn joined_segments_are_acknowledged_once() {
    let timing = |gro| Timing { coalesce: Span::us(200), gro, ..Timing::default() };
    let each = transfer(timing(false), &TcpConfig::rfc());
    let joined = transfer(timing(true), &TcpConfig::rfc());
    let segments = each.handled.len() as u64;
    assert!(each.answers * 2 > segments, "{} acknowledgements of {segments} segments", each.answers);
    assert!(joined.answers * 8 < segments, "{} acknowledgements of {segments} segments", joined.answers);
}

/// A sender with segmentation offload waits until it may send a third of its window.
#[test]
fn a_sender_with_offload_sends_longer_bursts() {
    let mean_burst = |gso| {
        let tcp = TcpConfig { gso: Bytes(gso), ..TcpConfig::rfc() };
        let emitted = transfer(Timing::default(), &tcp).emitted;
        let bursts = emitted.chunk_by(|one, other| one == other).count();
        emitted.len() as f64 / bursts as f64
    };
    let (without, with) = (mean_burst(0), mean_burst(65_536));
    assert!(without < 4.0, "an acknowledgement of two segments lets two or three out: {without}");
    assert!(with > 10.0, "up to 44 segments leave together: {with}");
}

#[test]
fn the_last_segments_of_a_transfer_leave_with_offload() {
    for bytes in [1, 1460, 1461, 20_000, 100_001] {
        let mut lab = Lab::new(2, 1);
        lab.wire(0, 1, Rate::mbit(10), Span::ms(10));
        lab.bulk(&[(0, 1)], Some(bytes), &TcpConfig { gso: Bytes(65_536), ..TcpConfig::rfc() });
        let mut counters = Counters::default();
        lab.run(Time::s(3), Time::ZERO, &mut counters);
        assert_eq!(counters.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(), [bytes]);
    }
}

/// A link of 20 Mbit/s with more datagrams than it carries, whose discipline is asked up to 5 ms late.
fn late_link(impairments: Impairments, queue: &str) -> Seen {
    let mut lab = Lab::new(2, 1);
    lab.link(0, 1, Rate::mbit(20), DELAY, queue);
    lab.wire(1, 0, Rate::mbit(20), DELAY);
    lab.network.links_mut()[0].impairments = impairments;
    let config: cbr::Config = serde_json::from_value(json!({ "rate": "25mbit", "packet": "1500b" })).unwrap();
    lab.source(&config, &[(0, 1)], &TcpConfig::rfc());
    let mut seen = Seen::default();
    lab.run(Time::s(10), Time::ZERO, &mut seen);
    seen
}

#[test]
fn a_link_that_is_asked_late_loses_no_time() {
    let dispatch_jitter = Some(Lateness::uniform(Span::ms(5)));
    let steps = [(Span::ZERO, 20_000_000), (Span::ms(40), 0), (Span::ms(50), 3_000_000), (Span::ms(80), 0)];
    let rate = Profile::points(Quantity::Rate, Shape::Steps, &steps, true).unwrap();
    for queue in ["fifo limit 100p", "fq_codel"] {
        let late = Impairments { dispatch_jitter: dispatch_jitter.clone(), ..Impairments::default() };
        let handled = late_link(late.clone(), queue).handled;
        // 16,666.7 packets in 10 s, less those of the delay and of the last wake-up.
        assert!((16_640..=16_660).contains(&handled.len()), "{queue}: {} packets", handled.len());
        assert!(handled.windows(2).any(|pair| pair[0] == pair[1]), "a wake-up takes several packets");
        // 40 ms at 20 Mbit/s and 30 ms at 3 Mbit/s in each 80 ms: 74.2 packets.
        let handled = late_link(Impairments { rate: Some(rate.clone()), ..late }, queue).handled;
        assert!((9_240..=9_272).contains(&handled.len()), "{queue}: {} packets", handled.len());
    }
}

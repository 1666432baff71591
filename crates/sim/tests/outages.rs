//! Links that fail and come back: routes lead around them, next hops are updated, and no queued packet is
//! lost.

use crate::support::Lab;
use giveway_qdisc::{Bytes, DropReason, Meta, PortId, Probe, Rate, Share, Span, Time};
use giveway_sim::traffic::cbr;
use giveway_sim::{Plan, Segment, Sim, TcpConfig};

/// Counters and events of datagrams.
#[derive(Default)]
struct Log {
    sent: u64,
    /// Numbers of the datagrams that arrived, in the order of arrival.
    arrived: Vec<u64>,
    unreachable: u64,
    lost: u64,
    /// Time and next hops of the packets that left the first port.
    next_hops: Vec<(Time, Vec<u16>)>,
    /// Number of packets that left each port.
    ports: [u64; 8],
}

impl Probe<Segment> for Log {
    fn on_emission(&mut self, _: u16, _: &Meta, _: &Segment, _: Time) {
        self.sent += 1;
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, now: Time) {
        self.ports[at.0 as usize] += 1;
        if at == PortId(0) {
            self.next_hops.push((now, meta.next_hops.iter().collect()));
        }
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, _: &Segment, why: DropReason, _: Time) {
        match why {
            DropReason::Unreachable => self.unreachable += 1,
            DropReason::Reset => {} // still in the network when the run ended
            _ => self.lost += 1,
        }
    }
    fn on_delivery(&mut self, _: u16, _: &Meta, segment: &Segment, _: Time) {
        self.arrived.push(segment.seq);
    }
}

/// The sender 0, the router 1, and two routes to 4: the short one over 2 (port 1, then 2), a longer one over
/// 3 and 5. The link 1 -> 2 has outages. With `around` the longer route exists.
fn run(outages: &[(u64, u64)], around: bool) -> Log {
    let mut lab = Lab::new(6, 1);
    let (fast, slow, wire) = (Rate::mbit(100), Rate::mbit(1), Span::ms(1));
    lab.link(0, 1, fast, wire, "fifo limit 1000p");
    let outages = outages.iter().map(|(down, up)| (Time::ms(*down), Time::ms(*up))).collect();
    lab.link_with_outages(1, 2, slow, wire, "fifo limit 1000p", outages);
    lab.link(2, 4, fast, wire, "fifo limit 1000p");
    if around {
        lab.link(1, 3, fast, wire, "fifo limit 1000p");
        lab.link(3, 5, fast, wire, "fifo limit 1000p");
        lab.link(5, 4, fast, wire, "fifo limit 1000p");
    }
    // 1.25 times the rate of the slow link, so that it has a backlog when it fails.
    let cbr = cbr::Config {
        rate: Rate::kbit(1250),
        packet: Bytes(500),
        jitter: Share::default(),
        flows: 1,
        step: Rate::default(),
        stagger: None,
        fastest_first: false,
        batch: 1,
    };
    let mut context = lab.context(&[(0, 4)], &TcpConfig::rfc());
    context.stop = Time::s(3);
    lab.source_at(&cbr, &context);
    let mut log = Log::default();
    let mut sim = Sim::new(Plan {
        network: lab.network,
        sources: lab.sources,
        until: Time::s(10),
        measured: Time::ZERO..Time::s(10),
        sample: None,
        sample_senders: false,
        streams: lab.streams.within("run"),
        lookahead: 6,
        timing: giveway_sim::Timing::default(),
    });
    sim.step_to(Time::s(10), &mut log);
    sim.finish(&mut log);
    log
}

#[test]
fn packets_go_around_a_link_that_is_down_and_its_backlog_arrives_late() {
    let log = run(&[(1_000, 2_000)], true);
    assert_eq!((log.lost, log.unreachable), (0, 0), "no packet is lost");
    let mut numbers = log.arrived.clone();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..log.sent).collect::<Vec<_>>(), "each arrives once");
    // The backlog of the first second waits for a second. Packets that are sent meanwhile go around it.
    assert!(!log.arrived.is_sorted(), "those that went around passed those that waited");
    let around = log.ports[3];
    assert!((310..=315).contains(&around), "a second of 312.5 packets went around: {around}");

    let none = run(&[], true);
    assert!(none.arrived.is_sorted() && none.ports[3] == 0);
}

#[test]
fn next_hops_follow_the_routes() {
    let log = run(&[(1_000, 2_000)], true);
    let mut seen: Vec<(u64, &[u16])> = Vec::new();
    for (at, hops) in &log.next_hops {
        if seen.last().is_none_or(|(_, last)| last != hops) {
            seen.push((at.as_ps() / 1_000_000_000, hops));
        }
    }
    let seen: Vec<_> = seen.iter().map(|(ms, hops)| format!("{ms} ms: {hops:?}")).collect();
    // Packets every 3.2 ms: the first after each change has the next hops of the new route.
    assert_eq!(seen, ["2 ms: [2, 4]", "1000 ms: [3, 5, 4]", "2002 ms: [2, 4]"]);
}

#[test]
fn without_another_route_packets_are_unreachable_and_the_queue_waits() {
    let log = run(&[(1_000, 2_000), (2_500, 2_600)], false);
    assert_eq!(log.lost, 0);
    assert!((340..=346).contains(&log.unreachable), "1.1 s of 312.5 packets: {}", log.unreachable);
    assert_eq!(log.arrived.len() as u64 + log.unreachable, log.sent, "all the others arrive");
    assert!(log.arrived.is_sorted());
}

#[test]
fn a_link_that_is_never_repaired_keeps_its_backlog() {
    let log = run(&[(1_000, 60_000)], true);
    assert_eq!((log.lost, log.unreachable), (0, 0));
    let backlog = log.sent - log.arrived.len() as u64;
    // 62 of the 312 packets of the first second exceed the capacity of the link.
    assert!((58..=66).contains(&backlog), "{backlog}");
}

//! Links that share a medium, in a running simulation.

use giveway_links::{Airtime, MediumSpec};
use giveway_qdisc::{Interest, Meta, PortId, Probe, Rate, Span, Time};
use giveway_sim::traffic::cbr;
use giveway_sim::{MediumPlan, Segment, TcpConfig};
use serde_json::json;

use crate::support::{Counters, Lab};

/// The access point.
const AP: u16 = 0;
const MTU: u32 = 1500;

/// Packets that reach each node, and the times at which they do.
#[derive(Default)]
struct Arrivals(Vec<(Time, u16)>);

impl Arrivals {
    fn packets(&self, node: u16) -> u64 {
        self.0.iter().filter(|(_, to)| *to == node).count() as u64
    }
}

impl Probe<Segment> for Arrivals {
    fn interest(&self, _: PortId) -> Interest {
        Interest::Nothing
    }
    fn on_delivery(&mut self, node: u16, _: &Meta, _: &Segment, now: Time) {
        self.0.push((now, node));
    }
}

/// An access point with links of these rates to stations 1, 2, ..., all on one medium.
fn lab(spec: MediumSpec, rates: &[Rate], queue: &str) -> Lab {
    let mut lab = Lab::new(rates.len() + 1, 1);
    let medium = lab.network.medium(MediumPlan { name: "air".to_owned(), spec });
    for (rate, station) in rates.iter().zip(1..) {
        for (from, to) in [(AP, station), (station, AP)] {
            let number = lab.link(from, to, *rate, Span::us(1), queue);
            lab.network.links_mut()[number as usize].medium = Some((medium, MTU));
        }
    }
    lab
}

/// Datagrams of full size to or from a station.
fn datagrams(lab: &mut Lab, (from, to): (u16, u16), rate: &str) {
    let config: cbr::Config = serde_json::from_value(json!({ "rate": rate, "packet": "1500b" })).unwrap();
    lab.source(&config, &[(from, to)], &TcpConfig::rfc());
}

fn delivered(lab: Lab, until: Time) -> Arrivals {
    let mut arrivals = Arrivals::default();
    lab.run(until, Time::ZERO, &mut arrivals);
    arrivals
}

/// The time between the beginnings of two bursts of `packets` packets, on average, if one node sends.
fn cycle(spec: &MediumSpec, packets: u64, rate: Rate) -> Span {
    spec.access + spec.backoff / 2 + spec.overhead + rate.time_for(u64::from(MTU)) * packets
}

/// At most 43 packets fit 65,535 bytes. At 144.4 Mbit/s they take 3.57 ms, less than the limit of 4 ms; at
/// 57.8 Mbit/s 19 packets fit the limit of time.
#[test]
fn a_saturated_link_sends_full_bursts() {
    let spec = MediumSpec::default();
    for (rate, packets) in [(Rate::kbit(144_400), 43), (Rate::kbit(57_800), 19), (Rate::mbit(1), 1)] {
        let mut lab = lab(spec, &[rate], "fifo limit 1000p");
        datagrams(&mut lab, (AP, 1), "300mbit");
        let until = Time::s(10);
        let arrived = delivered(lab, until).packets(1);
        let expected = until.as_ps() / cycle(&spec, packets, rate).as_ps() * packets;
        assert!(arrived.abs_diff(expected) * 200 < expected, "{rate}: {arrived} packets, not {expected}");
    }
}

#[test]
fn the_packets_of_a_burst_arrive_together() {
    let mut lab = lab(MediumSpec::default(), &[Rate::mbit(100)], "fifo limit 1000p");
    datagrams(&mut lab, (AP, 1), "200mbit");
    let arrivals = delivered(lab, Time::ms(100)).0;
    let mut bursts: Vec<(Time, usize)> = Vec::new();
    for (at, _) in arrivals {
        match bursts.last_mut() {
            Some((last, packets)) if *last == at => *packets += 1,
            _ => bursts.push((at, 1)),
        }
    }
    // The first bursts begin with a short queue. At 100 Mbit/s 33 packets take 3.96 ms, and 34 take 4.08 ms.
    assert!(bursts.len() > 15 && bursts[4..].iter().all(|(_, packets)| *packets == 33), "{bursts:?}");
}

/// The performance anomaly: with a burst each, stations get packets in proportion to what fits a burst, and
/// the slow one has most of the time. With fair airtime each has its rate by the number of stations.
#[test]
fn the_choice_of_airtime_decides_about_fast_stations() {
    let rates = [Rate::kbit(144_400), Rate::kbit(7_200)];
    let run = |airtime| {
        let mut lab = lab(MediumSpec { airtime, ..MediumSpec::default() }, &rates, "fifo limit 1000p");
        datagrams(&mut lab, (AP, 1), "200mbit");
        datagrams(&mut lab, (AP, 2), "200mbit");
        let arrivals = delivered(lab, Time::s(10));
        [arrivals.packets(1), arrivals.packets(2)]
    };
    // 4 ms at 7.2 Mbit/s are two packets, 3.33 ms. One round has 43 packets for the fast one.
    let [fast, slow] = run(Airtime::Turns);
    assert!((fast / 43).abs_diff(slow / 2) <= 2, "{fast} and {slow} packets");
    let spec = MediumSpec::default();
    let share =
        |rate: Rate, packets: u64| Time::s(10).as_ps() / 2 / cycle(&spec, packets, rate).as_ps() * packets;
    let [fair_fast, fair_slow] = run(Airtime::Fair);
    for (arrived, expected) in [(fair_fast, share(rates[0], 43)), (fair_slow, share(rates[1], 2))] {
        assert!(arrived.abs_diff(expected) * 50 < expected, "{arrived} packets, expected {expected}");
    }
}

/// Stations that send compete with the access point, each as often.
#[test]
fn every_node_gets_the_medium_as_often() {
    let rates = [Rate::mbit(100); 3];
    let mut lab = lab(MediumSpec::default(), &rates, "fifo limit 1000p");
    datagrams(&mut lab, (AP, 1), "200mbit");
    datagrams(&mut lab, (2, AP), "200mbit");
    datagrams(&mut lab, (3, AP), "200mbit");
    let arrivals = delivered(lab, Time::s(10));
    let (down, up) = (arrivals.packets(1), arrivals.packets(AP));
    assert!((2 * down).abs_diff(up) * 20 < up, "{down} packets down, {up} packets of two stations up");
}

/// A discipline that shapes releases packets in its own time: a burst has what it releases.
#[test]
fn a_shaper_on_a_medium_keeps_its_rate() {
    let mut lab = lab(MediumSpec::default(), &[Rate::mbit(100)], "tbf rate 10mbit burst 15kb limit 100p");
    datagrams(&mut lab, (AP, 1), "50mbit");
    let arrived = delivered(lab, Time::s(10)).packets(1) * u64::from(MTU) * 8 / 10;
    assert!(arrived.abs_diff(10_000_000) < 50_000, "{arrived} bit/s");
}

#[test]
fn transfers_in_both_directions_end() {
    let mut lab = lab(MediumSpec::default(), &[Rate::mbit(50), Rate::mbit(20)], "fq_codel");
    lab.bulk(&[(AP, 1), (2, AP)], Some(2_000_000), &TcpConfig::rfc());
    let mut counters = Counters::default();
    lab.run(Time::s(20), Time::ZERO, &mut counters);
    assert_eq!(counters.flows.len(), 2);
    assert!(counters.flows.iter().all(|flow| flow.bytes == 2_000_000), "{:?}", counters.flows);
}

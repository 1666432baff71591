//! Delay bounds of reservations: values computed by hand, and simulations that must not exceed them.

use giveway_qdisc::{Bytes, FlowReport, Probe, Span};
use giveway_scenario::{Bound, LinkBounds, Network, Scenario};
use giveway_sim::Segment;

/// A link of 8 Mbit/s, one byte per microsecond. Two calls and a video have reservations. Best effort offers
/// twice the rate of the link.
const TEXT: &str = r#"
title = "Reserved"
duration = "20 s"
disciplines = ["fifo limit 1000p", "drr limit 1000p", "wfq limit 1000p", "vc limit 1000p", "trr_sound limit 1000p width 2ms", "vtrr limit 1000p width 2ms",
    "qfq limit 1000p", "drr limit 1000p quanta [8000b 500b 1500b]"]

[[link]]
from = "a"
to = "b"
rate = "8 Mbit/s"
delay = "0 ms"
qdisc = "compare"

[[traffic]]
kind = "cbr"
name = "video"
from = "a"
to = "b"
rate = "4 Mbit/s"
packet = "1000b"
jitter = "0%"
reserved = "4 Mbit/s"
class = 0

[[traffic]]
kind = "cbr"
name = "calls"
from = "a"
to = "b"
rate = "80 kbit/s"
packet = "200b"
jitter = "0%"
flows = 2
reserved = "100 kbit/s"
class = 1

[[traffic]]
kind = "cbr"
name = "flood"
from = "a"
to = "b"
rate = "8 Mbit/s"
packet = "1500b"
flows = 2
class = 2
"#;

fn network(text: &str) -> (Scenario, Network) {
    let scenario = Scenario::parse(text, ".").unwrap();
    let network = scenario.network().expect("the backend is a network").clone();
    (scenario, network)
}

/// The bounds of a stream, in microseconds.
fn us(link: &LinkBounds, stream: &str) -> Vec<Option<f64>> {
    let stream = link.streams.iter().find(|found| found.name == stream).expect("the stream has a bound");
    let us = |bound: &Bound| match bound {
        Bound::Delay(seconds) => Some((seconds * 1e9).round() / 1e3),
        _ => None,
    };
    stream.bounds.iter().map(us).collect()
}

#[test]
fn bounds_agree_with_the_formulae() {
    let (_, network) = network(TEXT);
    let links = network.bounds(None);
    let [link] = links.as_slice() else { panic!("one link: {links:?}") };
    assert_eq!((link.link.as_str(), link.flows, link.best_effort), ("a->b", Some(5), Bytes(1500)));
    assert_eq!(link.reserved.as_bit(), 4_200_000);
    // L/ρ + L_max/r: 2 + 1.5 ms; + a slot of 2 ms; with three reserved flows and best effort (N - 1)·L_max/r
    // + L_max/r in place of L_max/r.
    let video = us(link, "video");
    assert_eq!(video[..6], [None, None, Some(3500.0), Some(3500.0), Some(5500.0), Some(8500.0)]);
    // A frame of 8,000 + 2·500 + 2·1,500 bytes: 5/8 of the link at least, 5.33 Mbit/s. (12 - 8)·(1 + 1/8) + 1
    // + 0.4 + 3 + 1.5.
    assert_eq!(video[7], Some(10_400.0));
    let calls = us(link, "calls");
    // Five flows with equal turns: (7.5 - 1.5)·(1 + 200/1500) + 1 + 0.4 + 3 + 1.5, 12.7 ms.
    assert_eq!(calls[..5], [None, Some(12_700.0), Some(17_500.0), Some(17_500.0), Some(19_500.0)]);
    let shares: Vec<&Bound> = link.streams[0].bounds.iter().take(2).collect();
    assert_eq!(shares[0], &Bound::Nothing);
    assert!(matches!(shares[1], Bound::Share(rate) if rate.as_bit() == 1_600_000), "{shares:?}");
    // Nine more packets of a call at 100 kbit/s are 144 ms.
    let burst = us(&network.bounds(Some(Bytes(2000)))[0], "calls");
    assert_eq!(burst[2], Some(161_500.0));
}

#[test]
fn turns_have_no_bound_for_a_varying_number_of_flows() {
    let text = TEXT.replace(
        "kind = \"cbr\"\nname = \"flood\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\npacket = \"1500b\"\nflows = 2",
        "kind = \"web\"\nname = \"flood\"\nfrom = \"b\"\nto = \"a\"",
    );
    let (_, network) = network(&text);
    let link = &network.bounds(None)[0];
    assert_eq!((link.flows, link.best_effort), (None, Bytes(1500)), "requests and acknowledgements cross it");
    assert_eq!(link.streams[1].bounds[1], Bound::Uncounted);
    assert_eq!(us(link, "calls")[2], Some(17_500.0));
    // The reverse direction has no reservations.
    assert_eq!(network.bounds(None).len(), 1);
}

/// The largest delay of each stream, by source.
#[derive(Default)]
struct Largest(Vec<Span>);

impl Probe<Segment> for Largest {
    fn on_flow(&mut self, report: &FlowReport) {
        let source = report.source as usize;
        self.0.resize(self.0.len().max(source + 1), Span::ZERO);
        self.0[source] = self.0[source].max(report.delay_max);
    }
}

/// No packet exceeds the bound of its discipline. With a discipline without a bound the delays are larger
/// than the bounds of the others.
#[test]
fn no_simulated_packet_exceeds_its_bound() {
    let (scenario, network) = network(TEXT);
    let link = &network.bounds(None)[0];
    for trial in scenario.trials() {
        let mut largest = Largest::default();
        network.run(&trial, &mut largest, &|_| true).unwrap();
        for (source, stream) in link.streams.iter().enumerate() {
            let found = largest.0[source].as_s();
            match stream.bounds[trial.discipline] {
                Bound::Delay(bound) => {
                    assert!(
                        found <= bound,
                        "{} of {}: {found} s, {bound} s are allowed",
                        trial.name,
                        stream.name
                    );
                    assert!(found > 0.2e-3, "no delay was measured");
                }
                _ => assert!(found > 0.015, "{} guarantees {} nothing: {found} s", trial.name, stream.name),
            }
        }
    }
}

/// The bounds of classes hold in simulations, too. Only the first band of `prio` has one.
#[test]
fn no_simulated_packet_exceeds_the_bound_of_its_class() {
    let (before, rest) = TEXT.split_once("disciplines = [").unwrap();
    let (_, after) = rest.split_once("]\n\n[[link]]").unwrap();
    let disciplines = [
        "htb default flood classes [(name video rate 4mbit quantum 4000b burst 30kb cburst 30kb match [(class 0)]) (name calls \
         rate 200kbit quantum 1500b burst 10kb cburst 10kb match [(class 1)]) (name flood rate 3mbit quantum 4000b)]",
        "hfsc classes [(name video sc (rate 4mbit) match [(class 0)]) (name calls rt (m1 1mbit d 10ms m2 200kbit) ls (rate 200kbit) \
         match [(class 1)]) (name flood ls (rate 3mbit) match [(class 2)])]",
        "ets quanta [5000b 1500b 1500b]",
        "prio",
    ];
    let disciplines = disciplines.map(|text| format!("{text:?}")).join(", ");
    let (scenario, network) = network(&format!("{before}disciplines = [{disciplines}]\n\n[[link]]{after}"));
    let link = &network.bounds(None)[0];
    let bounded = |stream: &str| us(link, stream).iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(bounded("video"), [true; 4], "{:?}", link.streams[0].bounds);
    assert_eq!(bounded("calls"), [true, true, true, false], "{:?}", link.streams[1].bounds);
    for trial in scenario.trials() {
        let mut largest = Largest::default();
        network.run(&trial, &mut largest, &|_| true).unwrap();
        for (source, stream) in link.streams.iter().enumerate() {
            let found = largest.0[source].as_s();
            if let Bound::Delay(bound) = stream.bounds[trial.discipline] {
                assert!(
                    found <= bound,
                    "{} of {}: {found} s, {bound} s are allowed",
                    trial.name,
                    stream.name
                );
            }
        }
    }
}

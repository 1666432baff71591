//! Edge and core routers over several hops. Labels are written at the first router and lowered at later ones,
//! and each flow gets its max-min share of the links of its path.

use std::collections::BTreeMap;

use giveway_qdisc::{Label, Meta, PortId, Probe, Rate, Time};
use giveway_scenario::Scenario;
use giveway_sim::Segment;
use giveway_theory::fairness::fair_share;

/// Two links of 10 Mbit/s in a row. The stream `through` crosses both. Four other streams cross the first,
/// two others the second. Every stream sends 6 Mbit/s.
const TWO_LINKS: &str = r#"
title = "Two congested links"
duration = "30 s"
warmup = "5 s"
disciplines = ["DISCIPLINE"]

[[link]]
from = "host[1-2]"
to = "r[1-2]"
rate = "1 Gbit/s"
delay = "1 ms"

[[link]]
from = "r[1-2]"
to = "r[2-3]"
rate = "10 Mbit/s"
delay = "5 ms"
qdisc = "compare"

[[traffic]]
kind = "cbr"
name = "through"
from = "host1"
to = "r3"
rate = "6 Mbit/s"
packet = "500b"

[[traffic]]
kind = "cbr"
name = "at first"
from = "host1"
to = "r2"
rate = "6 Mbit/s"
packet = "500b"
flows = 4

[[traffic]]
kind = "cbr"
name = "at second"
from = "host2"
to = "r3"
rate = "6 Mbit/s"
packet = "500b"
flows = 2
"#;

/// The labels at the two ports, and the delivered bytes.
#[derive(Default)]
struct Labels {
    /// The names of the ports, by number.
    ports: Vec<String>,
    /// The labels of arriving packets by port: the number of packets without one, and the largest rate.
    arrived_with: BTreeMap<String, (u64, Rate)>,
    /// The largest label of packets that left a port after the warm-up, by port and source.
    left_with: BTreeMap<(String, u16), Rate>,
    /// The labels of packets between the two ports, by connection and sequence number.
    between: BTreeMap<(u32, u64), Label>,
    /// The number of packets whose label is larger behind the second port than behind the first.
    raised: u64,
    /// The bytes delivered after the warm-up, by source.
    delivered: BTreeMap<u16, u64>,
}

/// The end of the warm-up.
const MEASURED_FROM: Time = Time::s(5);

impl Probe<Segment> for Labels {
    fn on_arrival(&mut self, at: PortId, meta: &Meta, _: Time) {
        let (none, highest) = self.arrived_with.entry(self.ports[at.0 as usize].clone()).or_default();
        *none += u64::from(!meta.label.is_set());
        *highest = (*highest).max(meta.label.rate());
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, payload: &Segment, now: Time) {
        let name = self.ports[at.0 as usize].as_str();
        let packet = (payload.conn, payload.seq);
        if name == "r1->r2" {
            self.between.insert(packet, meta.label);
        } else if name == "r2->r3" {
            // A router may lower a label, never raise it.
            let before = self.between.remove(&packet);
            self.raised += u64::from(before.is_some_and(|before| before.rate() < meta.label.rate()));
        }
        if now >= MEASURED_FROM {
            let highest = self.left_with.entry((name.to_owned(), payload.source)).or_default();
            *highest = (*highest).max(meta.label.rate());
        }
    }
    fn on_delivery(&mut self, _: u16, meta: &Meta, payload: &Segment, now: Time) {
        if now >= MEASURED_FROM {
            *self.delivered.entry(payload.source).or_default() += u64::from(meta.bytes);
        }
    }
}

fn run(discipline: &str) -> Labels {
    let scenario = Scenario::parse(&TWO_LINKS.replace("DISCIPLINE", discipline), ".").unwrap();
    let network = scenario.network().expect("the backend is a network");
    let mut labels = Labels { ports: network.measured().port_names, ..Labels::default() };
    network.run(&scenario.trials()[0], &mut labels, &|_| true).unwrap();
    labels
}

/// The goodput of each stream of a source, in Mbit/s.
fn mbit(labels: &Labels, source: u16, streams: f64) -> f64 {
    labels.delivered[&source] as f64 * 8e-6 / 25.0 / streams
}

#[test]
fn every_stream_gets_its_max_min_share() {
    // Five streams share the first link. The share of `through` there is its demand at the second link.
    let first = fair_share(&[6e6; 5], 10e6).unwrap() / 1e6;
    let second = fair_share(&[first, 6.0, 6.0], 10.0).unwrap();
    assert_eq!((first, second), (2.0, 4.0));
    for discipline in ["csfq", "fpip"] {
        let labels = run(discipline);
        for (source, streams, share) in [(0, 1.0, first), (1, 4.0, first), (2, 2.0, second)] {
            let got = mbit(&labels, source, streams);
            assert!((got / share - 1.0).abs() < 0.1, "{discipline}: source {source} got {got}, not {share}");
        }
    }
    // With FIFO each stream gets a part of its sending rate, and a stream that crosses two links has losses
    // at both.
    let blind = run("fifo limit 600p");
    assert!(mbit(&blind, 0, 1.0) < 1.5, "{}", mbit(&blind, 0, 1.0));
}

#[test]
fn labels_are_written_at_the_first_router_and_lowered_at_later_ones() {
    for discipline in ["csfq", "fpip"] {
        let labels = run(discipline);
        let (none_first, highest_first) = labels.arrived_with["r1->r2"];
        assert_eq!(highest_first, Rate::bit(0), "{discipline}: packets of hosts have no label");
        assert!(none_first > 100_000);
        // At the second router only the packets of its host have no label: about 3,000 per second for 30 s.
        let (none, highest) = labels.arrived_with["r2->r3"];
        assert!(
            (80_000..=91_000).contains(&none),
            "{discipline}: {none} without a label at the second router"
        );
        // Until the queue of the first router is long, for about 30 ms, labels keep the rate of their stream.
        assert!(highest > Rate::mbit(1), "{discipline}: {highest}");
        assert_eq!(labels.raised, 0, "{discipline}: a router raised a label");
        // The first router lowered labels to its fair share, about 2 Mbit/s. The second did not raise them.
        let left = |port: &str, source| labels.left_with[&(port.to_owned(), source)];
        assert!(left("r2->r3", 0) <= left("r1->r2", 0), "{discipline}");
        assert!(left("r1->r2", 1) < Rate::mbit(6), "{discipline}");
    }
}

/// A router that does not write labels uses only the labels of other routers.
#[test]
fn a_core_router_without_an_edge_router_does_not_share_fairly() {
    let labels = run("csfq noedge");
    assert_eq!(labels.arrived_with["r2->r3"].1, Rate::bit(0));
    assert!(mbit(&labels, 0, 1.0) < 1.5);
}

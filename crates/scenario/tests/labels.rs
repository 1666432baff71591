//! Edges and cores over several hops: labels are written where a packet comes in, lowered on the way, and what each flow gets in the
//! end is its max-min share of the links on its way.

use std::collections::BTreeMap;

use giveway_qdisc::{Label, Meta, PortId, Probe, Rate, Time};
use giveway_scenario::Scenario;
use giveway_sim::Segment;
use giveway_theory::fairness::fair_share;

/// Two links of 10 Mbit/s in a row. Over the first go the stream `through` and four others, over the second `through` and two
/// others; every stream sends 6 Mbit/s.
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

/// What is heard at the two ports and at the receivers.
#[derive(Default)]
struct Heard {
    /// Names of the ports, by number.
    ports: Vec<String>,
    /// Labels with which packets came to a port: how many had none, and the largest rate.
    came: BTreeMap<String, (u64, Rate)>,
    /// Largest rate on packets that left a port, after the first five seconds, by source.
    left: BTreeMap<(String, u16), Rate>,
    /// Packets with a rate, on their way between the ports: stream, number, label.
    between: BTreeMap<(u32, u64), Label>,
    /// How many packets came to the second port with another label than they left the first with.
    changed: u64,
    /// Bytes per source after the first five seconds.
    got: BTreeMap<u16, u64>,
}

const MEASURED_FROM: Time = Time::s(5);

impl Probe<Segment> for Heard {
    fn arrived(&mut self, at: PortId, meta: &Meta, _: Time) {
        let (none, highest) = self.came.entry(self.ports[at.0 as usize].clone()).or_default();
        *none += u64::from(!meta.label.is_set());
        *highest = (*highest).max(meta.label.rate());
    }
    fn sent(&mut self, at: PortId, meta: &Meta, payload: &Segment, now: Time) {
        let name = self.ports[at.0 as usize].as_str();
        let packet = (payload.conn, payload.seq);
        if name == "r1->r2" {
            self.between.insert(packet, meta.label);
        } else if name == "r2->r3" {
            // Labels only ever fall on the way.
            let before = self.between.remove(&packet);
            self.changed += u64::from(before.is_some_and(|before| before.rate() < meta.label.rate()));
        }
        if now >= MEASURED_FROM {
            let highest = self.left.entry((name.to_owned(), payload.source)).or_default();
            *highest = (*highest).max(meta.label.rate());
        }
    }
    fn delivered(&mut self, _: u16, meta: &Meta, payload: &Segment, now: Time) {
        if now >= MEASURED_FROM {
            *self.got.entry(payload.source).or_default() += u64::from(meta.bytes);
        }
    }
}

fn run(discipline: &str) -> Heard {
    let scenario = Scenario::parse(&TWO_LINKS.replace("DISCIPLINE", discipline), ".").unwrap();
    let network = scenario.network().expect("it runs on one");
    let mut heard = Heard { ports: network.measured().port_names, ..Heard::default() };
    network.run(&scenario.trials()[0], &mut heard, &|_| true).unwrap();
    heard
}

/// Mbit/s of each stream of a source.
fn mbit(heard: &Heard, source: u16, streams: f64) -> f64 {
    heard.got[&source] as f64 * 8e-6 / 25.0 / streams
}

#[test]
fn every_stream_gets_its_max_min_share() {
    // The first link is shared by five; what `through` has there is what it asks for at the second.
    let first = fair_share(&[6e6; 5], 10e6).unwrap() / 1e6;
    let second = fair_share(&[first, 6.0, 6.0], 10.0).unwrap();
    assert_eq!((first, second), (2.0, 4.0));
    for discipline in ["csfq", "fpip"] {
        let heard = run(discipline);
        for (source, streams, share) in [(0, 1.0, first), (1, 4.0, first), (2, 2.0, second)] {
            let got = mbit(&heard, source, streams);
            assert!((got / share - 1.0).abs() < 0.1, "{discipline}: source {source} got {got}, not {share}");
        }
    }
    // First in, first out: each gets a part of what it sends, and whoever crosses two links loses twice.
    let blind = run("fifo limit 600p");
    assert!(mbit(&blind, 0, 1.0) < 1.5, "{}", mbit(&blind, 0, 1.0));
}

#[test]
fn labels_are_written_at_the_first_router_and_lowered_on_the_way() {
    for discipline in ["csfq", "fpip"] {
        let heard = run(discipline);
        let (none_first, highest_first) = heard.came["r1->r2"];
        assert_eq!(highest_first, Rate::bit(0), "{discipline}: what comes from a host has no label");
        assert!(none_first > 100_000);
        // At the second router only its own host's packets have none, about 3,000 per second for 30 s.
        let (none, highest) = heard.came["r2->r3"];
        assert!(
            (80_000..=91_000).contains(&none),
            "{discipline}: {none} without a label at the second router"
        );
        // 30 ms before its queue was long the first router let everything through with its own rate.
        assert!(highest > Rate::mbit(1), "{discipline}: {highest}");
        assert_eq!(heard.changed, 0, "{discipline}: labels that grew");
        // What left the first router was lowered to the share there, which moves around 2 Mbit/s; nobody raised it later.
        let left = |port: &str, source| heard.left[&(port.to_owned(), source)];
        assert!(left("r2->r3", 0) <= left("r1->r2", 0), "{discipline}");
        assert!(left("r1->r2", 1) < Rate::mbit(6), "{discipline}");
    }
}

/// A router that does not label acts on the labels of others, and on nothing else.
#[test]
fn a_core_without_an_edge_knows_only_what_it_is_told() {
    let heard = run("csfq noedge");
    assert_eq!(heard.came["r2->r3"].1, Rate::bit(0));
    assert!(mbit(&heard, 0, 1.0) < 1.5);
}

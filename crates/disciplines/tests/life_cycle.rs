//! The life of a class: it is added, changed and removed while packets are in the tree. A new configuration
//! takes over from the old one what both have.

use giveway_disciplines::Spec;
use giveway_qdisc::{
    Backlog, ClassState, FlowKey, LinkContext, Next, Packet, Port, PortId, Probe, Rate, Streams, Time,
};
use proptest::prelude::*;

use crate::trees::trees;

const LINK: Rate = Rate::mbit(10);

fn build(text: &str) -> Box<dyn giveway_qdisc::Qdisc<u64>> {
    let spec: Spec = text.parse().expect("the text is a discipline");
    spec.build_numbered(&LinkContext::new(LINK, Streams::new(7).within("life"))).expect("it can be built")
}

/// A port whose packets have numbers.
struct Tree {
    port: Port<u64>,
    now: Time,
    sent: u64,
}

impl Tree {
    fn new(text: &str) -> Tree {
        Tree { port: Port::new(PortId(0), build(text), LINK), now: Time::ms(1), sent: 0 }
    }

    /// Packets of a class of traffic, of 1,000 bytes each.
    fn offer(&mut self, class: u16, packets: u64) {
        for _ in 0..packets {
            let mut pkt = Packet::new(FlowKey(u64::from(class)), 1000, self.sent);
            pkt.meta.class = class;
            self.sent += 1;
            self.port.offer(pkt, self.now, &mut ());
        }
    }

    fn change(&mut self, text: &str) {
        self.port.replace(build(text), self.now, &mut ());
        self.drops();
    }

    fn drops(&mut self) -> usize {
        self.port.dropped().count()
    }

    /// The packets that leave until `until`, as (class, number).
    fn run(&mut self, until: Time) -> Vec<(u16, u64)> {
        let mut left = Vec::new();
        loop {
            match self.port.pull(self.now, &mut ()) {
                Next::Packet(pkt) => left.push((pkt.meta.class, pkt.payload)),
                Next::At(at) if at <= until => self.now = at,
                Next::At(_) | Next::Empty => break,
            }
        }
        self.now = until;
        left
    }

    fn class(&self, path: &str) -> Option<ClassState> {
        struct Find<'a>(&'a str, Option<ClassState>);
        impl Probe<u64> for Find<'_> {
            fn on_class(&mut self, _: PortId, state: &ClassState, _: Time) {
                if state.path == self.0 {
                    self.1 = Some(state.clone());
                }
            }
        }
        let mut find = Find(path, None);
        self.port.report_classes(self.now, &mut find);
        find.1
    }
}

/// Number of packets of each class that left.
fn counts(left: &[(u16, u64)]) -> [usize; 4] {
    [0, 1, 2, 3].map(|class| left.iter().filter(|(of, _)| *of == class).count())
}

#[test]
fn a_class_is_added_while_packets_wait() {
    let mut tree = Tree::new("htb default a classes [(name a rate 4mbit)]");
    tree.offer(0, 30);
    tree.offer(1, 30);
    assert_eq!(tree.run(Time::ms(21)).len(), 12, "20 ms at 4 Mbit/s, and a burst that may end in debt");
    tree.change("htb default a classes [(name a rate 4mbit) (name b rate 2mbit match [(class 1)])]");
    assert_eq!(tree.class("a").unwrap().arrived.packets, 60, "its counters go on");
    tree.offer(1, 10);
    let left = tree.run(Time::ms(61));
    // Forty milliseconds: 20 packets of the old class, in which 18 of class 0 and then those of class 1
    // waited before, and 10 of the new one.
    assert_eq!(counts(&left), [18, 12, 0, 0]);
    assert_eq!(tree.class("b").unwrap().sent.packets, 10);
    assert_eq!(tree.port.counters().dropped, Backlog::ZERO);
}

#[test]
fn a_class_is_removed_and_its_packets_go_where_the_filters_say() {
    let both = "htb default a classes [(name a rate 4mbit) (name b rate 100kbit match [(class 1)])]";
    let mut tree = Tree::new(both);
    tree.offer(0, 5);
    tree.offer(1, 5);
    tree.change("htb default a classes [(name a rate 4mbit)]");
    assert_eq!(tree.class("b"), None);
    assert_eq!(tree.class("a").unwrap().backlog.packets, 10);
    let left = tree.run(Time::ms(30));
    assert_eq!(left, (0..10).map(|number| (u16::from(number >= 5), number)).collect::<Vec<_>>());
}

#[test]
fn packets_of_a_removed_class_without_a_new_one_are_direct() {
    let mut tree = Tree::new(
        "htb classes [(name a rate 4mbit match [(class 0)]) (name b rate 8kbit match [(class 1)])]",
    );
    tree.offer(1, 5);
    tree.offer(0, 5);
    tree.change("htb classes [(name a rate 4mbit match [(class 0)])]");
    let left = tree.run(Time::ms(6));
    assert_eq!(counts(&left[..5]), [0, 5, 0, 0], "at the rate of the link, and before all others");
}

/// The debts of a class go on: it does not get a burst by each change.
#[test]
fn a_class_that_is_changed_again_and_again_keeps_its_rate() {
    let mut tree = Tree::new("htb default a classes [(name a rate 1mbit)]");
    tree.offer(0, 200);
    let mut left = 0;
    for change in 0..100u64 {
        let quantum = 1500 + change;
        tree.change(&format!("htb default a classes [(name a rate 1mbit quantum {quantum}b)]"));
        left += tree.run(Time::ms(1) + giveway_qdisc::Span::ms(8 * (change + 1))).len();
    }
    assert_eq!(left, 102, "one in 8 ms, and a burst of 1,600 bytes that may end in debt");
}

#[test]
fn a_new_rate_holds_at_once() {
    let mut tree = Tree::new("htb default a classes [(name a rate 1mbit)]");
    tree.offer(0, 100);
    let _ = tree.run(Time::ms(101));
    tree.change("htb default a classes [(name a rate 8mbit)]");
    let left = tree.run(Time::ms(121)).len();
    assert!((19..=21).contains(&left), "20 ms at 8 Mbit/s, without a further burst: {left}");
}

/// A leaf with another discipline gets the packets of the old one, and its counters.
#[test]
fn the_discipline_of_a_leaf_is_changed() {
    for name in ["htb", "hfsc"] {
        let service = if name == "htb" { "rate 8mbit" } else { "sc (rate 8mbit)" };
        let of = |leaf: &str| format!("{name} default a classes [(name a {service} leaf ({leaf}))]");
        let mut tree = Tree::new(&of("fifo limit 50p"));
        tree.offer(0, 10);
        tree.change(&of("fq_codel limit 60p"));
        let state = tree.class("a").unwrap();
        assert_eq!((state.arrived.packets, state.backlog.packets), (10, 10), "{name}");
        assert_eq!(tree.run(Time::s(1)).len(), 10, "{name}");
        assert_eq!(tree.class("a").unwrap().sent.packets, 10, "{name}");
    }
}

/// A leaf that holds its packets back cannot hand them over.
#[test]
fn packets_that_a_removed_leaf_holds_back_are_dropped() {
    let mut tree = Tree::new(
        "htb default a classes [(name a rate 4mbit) (name b rate 4mbit match [(class 1)] leaf (tbf rate 8kbit burst 2kb))]",
    );
    tree.offer(1, 5);
    tree.change("htb default a classes [(name a rate 4mbit)]");
    assert_eq!(tree.port.counters().dropped.packets, 3, "the burst of two packets was free to go");
    assert_eq!(tree.run(Time::s(1)).len(), 2);
}

#[test]
fn bands_are_taken_over_by_their_numbers() {
    for (name, two, three) in [
        ("prio", "bands 2", "bands 3"),
        ("wrr", "weights [1 1]", "weights [1 1 1]"),
        ("ets", "quanta [2000b 2000b]", "quanta [2000b 2000b 2000b]"),
        ("ets", "strict 1 quanta [2000b]", "strict 1 quanta [2000b 2000b]"),
    ] {
        let (two, three) = (format!("{name} {two}"), format!("{name} {three}"));
        let mut tree = Tree::new(&three);
        (0..3).for_each(|class| tree.offer(class, 4));
        tree.change(&two);
        assert_eq!(tree.class("band1").unwrap().backlog.packets, 8, "{two}: band 2 is in band 1 now");
        tree.change(&three);
        tree.offer(2, 4);
        let left = tree.run(Time::s(1));
        assert_eq!(counts(&left), [4, 4, 8, 0], "{three}");
        assert_eq!(tree.port.counters().dropped, Backlog::ZERO, "{three}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// From every tree to every other of its discipline, in any state: nothing is lost without a drop, every
    /// packet leaves, and a class of both keeps the order of its packets.
    #[test]
    fn every_tree_becomes_every_other(
        steps in prop::collection::vec((0u16..8, 0u64..20, 0u64..20_000), 1..20),
    ) {
        let trees = trees();
        for from in &trees {
            for to in trees.iter().filter(|to| to.name() == from.name()) {
                let mut tree = Tree::new(&from.to_string());
                let mut left = Vec::new();
                for (at, (class, packets, wait)) in steps.iter().enumerate() {
                    tree.offer(*class, *packets);
                    left.extend(tree.run(tree.now + giveway_qdisc::Span::us(*wait)));
                    tree.change(&if at % 2 == 0 { to } else { from }.to_string());
                }
                left.extend(tree.run(Time::s(1000)));
                let end = tree.port.counters();
                prop_assert_eq!(end.backlog(), Backlog::ZERO, "{} to {}", from, to);
                prop_assert_eq!(left.len() as u64 + end.dropped.packets, tree.sent, "{} to {}", from, to);
            }
        }
    }
}

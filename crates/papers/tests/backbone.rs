//! The nodes of the network in BSQ's experiments have the roles that the paper gives them in section 5.1 and
//! figure 6.

use std::collections::BTreeSet;
use std::path::Path;

use giveway_scenario::{Draft, Network, Scenario};

fn backbone() -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/bsq/backbone.toml");
    Draft::load(&file).expect("the file exists").finish().unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The links whose queues are compared, as the names of their ends.
fn compared(network: &Network) -> BTreeSet<(String, String)> {
    let name = |node: u16| network.nodes[usize::from(node)].clone();
    let measured = network.measured.iter().map(|port| &network.ports[port.0 as usize]);
    measured.map(|port| (name(port.from), name(port.to))).collect()
}

#[test]
fn three_cascades_follow_each_other() {
    let links = compared(backbone().network().unwrap());
    let into = |node: &str| -> Vec<&str> {
        links.iter().filter(|(_, to)| to == node).map(|(from, _)| from.as_str()).collect()
    };
    let out_of = |node: &str| -> Vec<&str> {
        links.iter().filter(|(from, _)| from == node).map(|(_, to)| to.as_str()).collect()
    };
    // Each cascade is like figure 1: links join at a node, and fork after it.
    for (node, from, to) in [
        ("l2", &["s1", "s2"][..], &["m2", "m3"][..]),
        ("m2", &["l1", "l2", "l3"], &["n1", "n2"]),
        ("n1", &["m1", "m2", "m4"], &["r1", "r2", "r3", "r4"]),
    ] {
        assert_eq!((into(node).as_slice(), out_of(node).as_slice()), (from, to), "{node}");
    }
    // The open ends are the paper's sources and destinations.
    let nodes: BTreeSet<&str> = links.iter().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect();
    let open_in: Vec<&str> = nodes.iter().copied().filter(|node| into(node).is_empty()).collect();
    assert_eq!(open_in, ["l1", "l3", "m1", "m4", "s1", "s2"]);
    let open_out: Vec<&str> = nodes.iter().copied().filter(|node| out_of(node).is_empty()).collect();
    assert_eq!(open_out, ["n2", "n3", "r1", "r2", "r3", "r4"]);
}

#[test]
fn links_packets_and_queues_are_the_papers() {
    let scenario = backbone();
    let network = scenario.network().unwrap();
    for port in &network.measured {
        let port = &network.ports[port.0 as usize];
        assert_eq!((port.rate, port.mtu.0), (giveway_qdisc::Rate::kbit(12_500), 500), "{}", port.name);
    }
    for spec in &network.disciplines {
        assert!(spec.to_string().contains("limit 20000b"), "{spec}");
    }
    assert!(network.traffic.iter().all(|stream| stream.tcp.mss.0 + 40 == 500 && stream.tcp.sack));
    // Every open end sends UDP, and both kinds of traffic reach several destinations.
    let name = |node: u16| network.nodes[usize::from(node)].as_str();
    let of = |kind: &'static str| network.traffic.iter().filter(move |stream| stream.spec.name() == kind);
    let senders: BTreeSet<&str> = of("onoff").flat_map(|s| &s.pairs).map(|(from, _)| name(*from)).collect();
    assert_eq!(Vec::from_iter(senders), ["l1", "l3", "m1", "m4", "s1", "s2"]);
    let reached: BTreeSet<&str> = of("onoff").flat_map(|s| &s.pairs).map(|(_, to)| name(*to)).collect();
    assert_eq!(reached.len(), 6);
    assert_eq!(of("bulk").map(|stream| stream.pairs.len()).sum::<usize>(), 15);
}

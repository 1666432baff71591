//! Topologies: what each kind writes, the routes between its hosts, and the messages about invalid ones.

use std::collections::{BTreeMap, BTreeSet};

use giveway_qdisc::{Meta, PortId, Probe, Time};
use giveway_scenario::{Network, Scenario, TOPOLOGIES};
use giveway_sim::{Routes, Routing, Segment};

/// A scenario with a topology, and traffic between its first two hosts.
fn with(topology: &str, hosts: (&str, &str)) -> String {
    let (from, to) = hosts;
    format!(
        "duration = \"10 ms\"\n[[topology]]\n{topology}\n[[traffic]]\nkind = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n"
    )
}

fn read(topology: &str) -> Scenario {
    Scenario::parse(&with(topology, ("h1", "h2")), ".").expect("it is valid")
}

fn network(scenario: &Scenario) -> &Network {
    scenario.network().expect("the backend is a network")
}

/// The expected properties of a topology with these keys.
struct Expected {
    keys: &'static str,
    hosts: usize,
    nodes: usize,
    links: usize,
    /// Number of links between two hosts, numbered from 0.
    hops: fn(usize, usize) -> usize,
    /// Number of equally short paths between them.
    paths: fn(usize, usize) -> usize,
}

const RATE: &str = "rate = \"10 Gbit/s\"\ndelay = \"1 us\"";

/// The topologies of the tests, at least one of each kind that numbers its hosts.
const EXPECTED: &[Expected] = &[
    Expected {
        keys: "kind = \"star\"\nhosts = 9",
        hosts: 9,
        nodes: 10,
        links: 9,
        hops: |_, _| 2,
        paths: |_, _| 1,
    },
    Expected {
        keys: "kind = \"dumbbell\"\nhosts = 5\nhost_rate = \"1 Gbit/s\"\nhost_delay = \"1 ms\"",
        hosts: 10,
        nodes: 12,
        links: 11,
        hops: |a, b| if a / 5 == b / 5 { 2 } else { 3 },
        paths: |_, _| 1,
    },
    Expected {
        keys: "kind = \"parking_lot\"\nhops = 4\nhosts = 3\nhost_rate = \"1 Gbit/s\"\nhost_delay = \"1 ms\"",
        hosts: 15,
        nodes: 20,
        links: 19,
        hops: |a, b| 2 + (a / 3).abs_diff(b / 3),
        paths: |_, _| 1,
    },
    Expected {
        keys: "kind = \"leaf_spine\"\nleaves = 4\nspines = 3\nhosts = 6",
        hosts: 24,
        nodes: 31,
        links: 36,
        hops: |a, b| if a / 6 == b / 6 { 2 } else { 4 },
        paths: |a, b| if a / 6 == b / 6 { 1 } else { 3 },
    },
    Expected {
        keys: "kind = \"fat_tree\"\nk = 2",
        hosts: 2,
        nodes: 7,
        links: 6,
        hops: |_, _| 6,
        paths: |_, _| 1,
    },
    Expected {
        keys: "kind = \"fat_tree\"\nk = 4",
        hosts: 16,
        nodes: 36,
        links: 48,
        hops: fat_tree_hops::<4>,
        paths: fat_tree_paths::<4>,
    },
    Expected {
        keys: "kind = \"fat_tree\"\nk = 8",
        hosts: 128,
        nodes: 208,
        links: 384,
        hops: fat_tree_hops::<8>,
        paths: fat_tree_paths::<8>,
    },
];

fn fat_tree_hops<const K: usize>(a: usize, b: usize) -> usize {
    let (edge, pod) = (K / 2, K * K / 4);
    if a / edge == b / edge {
        2
    } else if a / pod == b / pod {
        4
    } else {
        6
    }
}

/// Section 3.1 of the paper: (k/2)^2 paths between hosts of different pods, one through each core switch.
fn fat_tree_paths<const K: usize>(a: usize, b: usize) -> usize {
    match fat_tree_hops::<K>(a, b) {
        2 => 1,
        4 => K / 2,
        _ => K * K / 4,
    }
}

/// The number of links of the shortest paths between two nodes, and the number of these paths.
fn paths(routes: &Routes, network: &Network, from: u16, to: u16) -> (usize, usize) {
    let mut at = BTreeMap::from([(from, 1)]);
    for hops in 0..network.nodes.len() {
        if let Some(paths) = at.get(&to) {
            assert_eq!(at.len(), 1, "all shortest paths have the same length");
            return (hops, *paths);
        }
        let mut next: BTreeMap<u16, usize> = BTreeMap::new();
        for (node, paths) in at {
            for link in routes.all(node, to) {
                *next.entry(network.ports[link as usize].to).or_default() += paths;
            }
        }
        at = next;
    }
    panic!("no path leads from {from} to {to}");
}

#[test]
fn every_host_reaches_every_other_over_the_expected_paths() {
    for Expected { keys, hosts, nodes, links, hops, paths: count } in EXPECTED {
        let scenario = read(&format!("{keys}\n{RATE}"));
        let network = network(&scenario);
        assert_eq!((network.nodes.len(), network.ports.len()), (*nodes, 2 * links), "{keys}");
        let number: BTreeMap<&str, u16> = network.nodes.iter().map(String::as_str).zip(0..).collect();
        let named = |host: usize| number[&*format!("h{}", host + 1)];
        assert!(!number.contains_key(&*format!("h{}", hosts + 1)), "{keys}");
        let ports = network.ports.iter().map(|port| (port.from, port.to, port.cost));
        let routes = Routes::with(network.routing, network.nodes.len(), ports);
        for a in 0..*hosts {
            for b in (0..*hosts).filter(|b| a != *b) {
                let found = paths(&routes, network, named(a), named(b));
                assert_eq!(found, (hops(a, b), count(a, b)), "{keys}: h{} to h{}", a + 1, b + 1);
            }
        }
    }
}

#[test]
fn the_tests_have_every_kind() {
    let tested: BTreeSet<&str> = EXPECTED.iter().filter_map(|each| each.keys.split('"').nth(1)).collect();
    let all: BTreeSet<&str> = TOPOLOGIES.iter().map(|kind| kind.name).collect();
    let others: Vec<&&str> = all.difference(&tested).collect();
    assert_eq!(others, [&"edges"], "the hosts of a file have their own names");
}

#[test]
fn a_fat_tree_of_a_thousand_hosts_is_read() {
    let text = with(&format!("kind = \"fat_tree\"\nk = 16\n{RATE}"), ("h[1-512]", "h[513-1024]"));
    let scenario = Scenario::parse(&text, ".").expect("it is valid");
    let network = network(&scenario);
    assert_eq!((network.nodes.len(), network.ports.len()), (1_344, 6_144));
    assert_eq!(network.traffic[0].pairs.len(), 512);
}

#[test]
fn switches_and_hosts_have_their_own_disciplines() {
    let keys =
        "kind = \"star\"\nhosts = 2\nqdisc = \"compare\"\nhost_qdisc = \"fifo limit 9p\"\nmtu = \"9000b\"";
    let text = with(&format!("{keys}\n{RATE}"), ("h1", "h2"));
    let scenario = Scenario::parse(&format!("disciplines = [\"fifo\", \"drr\"]\n{text}"), ".").unwrap();
    let network = network(&scenario);
    let queue = |name: &str| {
        let port = network.ports.iter().find(|port| port.name == name).unwrap();
        assert_eq!(port.mtu.0, 9_000);
        port.spec(&network.disciplines[1]).to_string()
    };
    assert_eq!((queue("s1->h2"), queue("h1->s1")), ("drr".to_owned(), "fifo limit 9p".to_owned()));
    // The compared ports are those that are measured.
    assert_eq!(network.measured.len(), 2);
}

#[test]
fn topologies_with_prefixes_are_joined_by_links() {
    let text = format!(
        "duration = \"10 ms\"\nroutes = \"first\"\n\
         [[topology]]\nkind = \"star\"\nprefix = \"a-\"\nhosts = 2\n{RATE}\n\
         [[topology]]\nkind = \"leaf_spine\"\nprefix = \"b-\"\nleaves = 2\nspines = 2\nhosts = 2\n{RATE}\n\
         [[link]]\nfrom = \"a-s1\"\nto = \"b-spine[1-2]\"\n{RATE}\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a-h[1-2]\"\nto = \"b-h[3-4]\"\n"
    );
    let scenario = Scenario::parse(&text, ".").expect("it is valid");
    let network = network(&scenario);
    assert_eq!((network.nodes.len(), network.ports.len()), (3 + 8, 2 * (2 + 8 + 2)));
    assert_eq!(network.routing, Routing::First);
}

/// The ports that packets of each flow left, over the links between leaves and spines.
#[derive(Default)]
struct Uplinks {
    /// First port above the hosts.
    first: u32,
    by_flow: BTreeMap<u64, BTreeSet<u32>>,
}

impl Probe<Segment> for Uplinks {
    fn on_transmission(&mut self, port: PortId, meta: &Meta, _: &Segment, _: Time) {
        if port.0 >= self.first {
            self.by_flow.entry(meta.flow.0).or_default().insert(port.0);
        }
    }
}

/// The numbers of ports between leaves and spines that the flows of a permutation cross.
fn crossed(routes: &str) -> Vec<usize> {
    let text = format!(
        "duration = \"5 ms\"\nroutes = \"{routes}\"\n\
         [[topology]]\nkind = \"leaf_spine\"\nleaves = 4\nspines = 4\nhosts = 1\n{RATE}\n\
         [[traffic]]\nkind = \"permutation\"\nhosts = \"h[1-4]\"\n"
    );
    let scenario = Scenario::parse(&text, ".").expect("it is valid");
    let network = network(&scenario);
    let mut uplinks = Uplinks { first: 8, ..Uplinks::default() };
    network.run(&scenario.trials()[0], &mut uplinks, &|_| true).expect("it is not stopped");
    uplinks.by_flow.values().map(BTreeSet::len).collect()
}

#[test]
fn a_flow_stays_on_one_path_unless_packets_are_sprayed() {
    // Four flows and their acknowledgements, each over two of the ports.
    assert_eq!(crossed("first"), [2; 8]);
    assert_eq!(crossed("flow"), [2; 8]);
    // Data over all four spines, there and back.
    assert!(crossed("packet").iter().filter(|ports| **ports == 8).count() >= 4);
}

#[test]
fn traffic_among_hosts_has_every_host_as_sender_and_as_receiver() {
    let text = format!(
        "duration = \"10 ms\"\n[[topology]]\nkind = \"star\"\nhosts = 5\n{RATE}\n\
         [[traffic]]\nkind = \"all_to_all\"\nhosts = \"h[1-5]\"\nfraction = \"50 %\"\nsize = \"web_search\"\n"
    );
    let scenario = Scenario::parse(&text, ".").expect("it is valid");
    let stream = &network(&scenario).traffic[0];
    assert_eq!((stream.hosts.len(), stream.pairs.len()), (5, 10));
    assert_eq!(stream.access.as_bit(), 50_000_000_000);
    // Half of 50 Gbit/s in transfers of 1,665,831 bytes.
    let offered = "transfers of 1665831 bytes on average, 1875.9 per second";
    assert_eq!(stream.offered.as_deref(), Some(offered));
}

/// The errors of a scenario with this topology.
fn errors(topology: &str) -> String {
    Scenario::parse(&with(topology, ("h1", "h2")), ".").expect_err("it is invalid").to_string()
}

/// Like [`errors`], for keys of a kind with one rate and one delay.
fn refused(keys: &str) -> String {
    errors(&format!("{keys}\n{RATE}"))
}

#[test]
fn an_invalid_topology_gets_a_sentence() {
    insta::assert_snapshot!(refused("kind = \"fat-tree\"\nk = 4"), @r#"
    error: unknown topology "fat-tree"
     --> scenario:3:8
    3 | kind = "fat-tree"
      |        ^^^^^^^^^^
      = help: did you mean "fat_tree"?
    "#);
    insta::assert_snapshot!(refused("kind = \"fat_tree\"\nk = 7"), @r#"
    error: topology "fat_tree": k: 7 is odd: write an even number, for example k = 6
     --> scenario:4:5
    4 | k = 7
      |     ^
    "#);
    insta::assert_snapshot!(refused("kind = \"fat_tree\"\nk = 0"), @r#"
    error: topology "fat_tree": k: a fat tree of 0 has 0 hosts: write an even number from 2 to 16
     --> scenario:4:5
    4 | k = 0
      |     ^
    "#);
    insta::assert_snapshot!(refused("kind = \"fat_tree\"\nk = 1"), @r#"
    error: topology "fat_tree": k: an edge switch has k/2 hosts: write an even number, for example k = 2
     --> scenario:4:5
    4 | k = 1
      |     ^
    "#);
    insta::assert_snapshot!(refused("kind = \"fat_tree\"\nk = 48"), @r#"
    error: topology "fat_tree": k: a fat tree of 48 has 27648 hosts: write an even number from 2 to 16
     --> scenario:4:5
    4 | k = 48
      |     ^^
    "#);
    insta::assert_snapshot!(refused("kind = \"star\"\nhosts = 0"), @r#"
    error: topology "star": hosts: must be at least 1: write for example hosts = 16
     --> scenario:4:9
    4 | hosts = 0
      |         ^
    "#);
    insta::assert_snapshot!(refused("kind = \"leaf_spine\"\nleaves = 4\nspines = 0\nhosts = 2"), @r#"
    error: topology "leaf_spine": spines: must be at least 1: write for example spines = 2
     --> scenario:5:10
    5 | spines = 0
      |          ^
    "#);
    insta::assert_snapshot!(refused("kind = \"leaf_spine\"\nleaves = 4\nhosts = 2"), @r#"
    error: topology "leaf_spine" needs "spines"
     --> scenario:2:1
    2 | [[topology]]
      | ^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(refused("kind = \"star\"\nhosts = 2\nleaves = 3"), @r#"
    error: unknown key "leaves" of a star topology
     --> scenario:5:1
    5 | leaves = 3
      | ^^^^^^
      = help: there are kind, prefix, qdisc, host_qdisc, mtu, hosts, rate, delay
    "#);
    insta::assert_snapshot!(refused("kind = \"star\"\nhosts = 2\nprefix = \"a b\""), @r#"
    error: prefix: the name of a node has letters, digits, "-", "_" and ".", not " "
     --> scenario:5:10
    5 | prefix = "a b"
      |          ^^^^^
      = help: write for example prefix = "a-"
    "#);
    insta::assert_snapshot!(errors("kind = \"star\"\nhosts = 2\nrate = \"0 Gbit/s\"\ndelay = \"1 us\""), @r#"
    error: topology "star": rate: must be above 0: write for example "10 Gbit/s"
     --> scenario:5:8
    5 | rate = "0 Gbit/s"
      |        ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("kind = \"star\"\nhosts = 2\nrate = \"1 Gbit/s\""), @r#"
    error: topology "star" needs "delay"
     --> scenario:2:1
    2 | [[topology]]
      | ^^^^^^^^^^^^
    "#);
}

#[test]
fn a_topology_that_is_too_large_is_refused_with_its_size() {
    insta::assert_snapshot!(refused("kind = \"star\"\nhosts = 4000000000"), @r#"
    error: topology "star" is too large: it has 4,000,000,001 nodes
     --> scenario:2:1
    2 | [[topology]]
      | ^^^^^^^^^^^^
      = help: a network has at most 65,534 nodes: write fewer hosts
    "#);
    insta::assert_snapshot!(refused("kind = \"leaf_spine\"\nleaves = 1000\nspines = 1000\nhosts = 10"), @r#"
    error: topology "leaf_spine" is too large: it has 2,020,000 ports
     --> scenario:2:1
    2 | [[topology]]
      | ^^^^^^^^^^^^
      = help: a network has at most 262,144 ports: write fewer leaves, spines or hosts
    "#);
    insta::assert_snapshot!(refused("kind = \"leaf_spine\"\nleaves = 20000\nspines = 1\nhosts = 1"), @r#"
    error: topology "leaf_spine" is too large: its ports and routes take 13 GiB of memory
     --> scenario:2:1
    2 | [[topology]]
      | ^^^^^^^^^^^^
      = help: a network has at most 4 GiB for them: write fewer leaves, spines or hosts
    "#);
}

/// The errors of a list of links with this text.
fn edges(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("links.csv"), text).unwrap();
    let text = with("kind = \"edges\"\nfile = \"links.csv\"", ("a", "b"));
    match Scenario::parse(&text, folder.path()) {
        Ok(scenario) => {
            let ports = &network(&scenario).ports;
            let line = |port: &giveway_scenario::Port| {
                format!("{} {} {} {}", port.name, port.rate, port.delay, port.cost)
            };
            ports.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        Err(error) => {
            let folder = format!("{}", folder.path().display());
            error.diagnostics[0].message.replace(&folder, "FOLDER")
        }
    }
}

#[test]
fn a_list_of_links_is_read() {
    let text = "# a triangle\nto, from, rate, delay, cost, back\nb,a,10 Gbit/s,5 us,,\nc,b,1 Gbit/s,5 us,3,true\na,c,1 Gbit/s,1 ms,,false\n";
    insta::assert_snapshot!(edges(text), @r"
    a->b 10gbit 5us 1
    b->a 10gbit 5us 1
    b->c 1gbit 5us 3
    c->b 1gbit 5us 3
    c->a 1gbit 1ms 1
    ");
}

#[test]
fn an_invalid_list_of_links_is_refused_with_its_row() {
    let rows = |rows: &str| edges(&format!("from,to,rate,delay\na,b,1 Gbit/s,1 us\n{rows}\n"));
    insta::assert_snapshot!(edges(""), @r#"topology "edges": file: FOLDER/links.csv: has no rows; expected a first row of from,to,rate,delay"#);
    insta::assert_snapshot!(edges("from,to,rate,delay\n"), @r#"topology "edges": file: FOLDER/links.csv: has no rows; expected a first row of from,to,rate,delay"#);
    insta::assert_snapshot!(edges("a,b,1 Gbit/s,1 us\n"), @r#"topology "edges": file: FOLDER/links.csv: the first row has a column "a"; there are from, to, rate, delay, cost, mtu, loss, jitter, back"#);
    insta::assert_snapshot!(edges("from,to,rate\na,b,1 Gbit/s\n"), @r#"topology "edges": file: FOLDER/links.csv: the first row has no column "delay"; expected from,to,rate,delay"#);
    insta::assert_snapshot!(rows("b,c,fast,1 us"), @r#"topology "edges": file: FOLDER/links.csv: row 3, column rate: found "fast", expected a rate above 0, such as 10 Gbit/s"#);
    insta::assert_snapshot!(rows("b,c,1 Gbit/s,1"), @r#"topology "edges": file: FOLDER/links.csv: row 3, column delay: found "1", expected a time, such as 5 us"#);
    insta::assert_snapshot!(rows("b,b,1 Gbit/s,1 us"), @r#"topology "edges": file: FOLDER/links.csv: row 3: a link leads from "b" to itself"#);
    insta::assert_snapshot!(rows("b,c d,1 Gbit/s,1 us"), @r#"topology "edges": file: FOLDER/links.csv: row 3, column to: found "c d", expected a name of letters, digits, "-", "_" and ".""#);
    insta::assert_snapshot!(rows("b,c,1 Gbit/s"), @r#"topology "edges": file: FOLDER/links.csv: CSV error: record 2 (line: 3, byte: 37): found record with 3 fields, but the previous record has 4 fields"#);
    insta::assert_snapshot!(rows("b,a,1 Gbit/s,1 us"), @r#"topology "edges": file: FOLDER/links.csv: row 3: row 2 has a link from "b" to "a" already"#);
    let missing = with("kind = \"edges\"\nfile = \"nothing.csv\"", ("a", "b"));
    let missing = Scenario::parse(&missing, "/nonexistent").expect_err("there is no file").to_string();
    assert!(
        missing.contains("topology \"edges\": file: /nonexistent/nothing.csv: cannot be read: "),
        "{missing}"
    );
}

#[test]
fn traffic_among_hosts_needs_hosts_and_a_load() {
    let among = |keys: &str| {
        let text = format!(
            "duration = \"10 ms\"\n[[topology]]\nkind = \"star\"\nhosts = 4\n{RATE}\n[[traffic]]\n{keys}\n"
        );
        Scenario::parse(&text, ".").expect_err("it is invalid").to_string()
    };
    insta::assert_snapshot!(among("kind = \"permutation\""), @r#"
    error: traffic "permutation" needs "hosts"
     --> scenario:7:1
    7 | [[traffic]]
      | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(among("kind = \"permutation\"\nfrom = \"h1\"\nto = \"h2\""), @r#"
    error: traffic "permutation": permutation draws its pairs of nodes among the hosts
     --> scenario:9:8
    9 | from = "h1"
      |        ^^^^
      = help: leave from out, and write for example hosts = "h[1-16]"

    error: traffic "permutation": permutation draws its pairs of nodes among the hosts
      --> scenario:10:6
    10 | to = "h2"
       |      ^^^^
       = help: leave to out, and write for example hosts = "h[1-16]"
    "#);
    insta::assert_snapshot!(among("kind = \"permutation\"\nhosts = \"h1\""), @r#"
    error: traffic "permutation": hosts: traffic among hosts needs two of them: write for example "h[1-16]"
     --> scenario:9:9
    9 | hosts = "h1"
      |         ^^^^
    "#);
    insta::assert_snapshot!(among("kind = \"permutation\"\nhosts = \"h[1-5]\""), @r#"
    error: no link has a node "h5"
     --> scenario:9:9
    9 | hosts = "h[1-5]"
      |         ^^^^^^^^
      = help: did you mean "h1"?
    "#);
    insta::assert_snapshot!(among("kind = \"bulk\"\nhosts = \"h[1-4]\"\nfrom = \"h1\"\nto = \"h2\""), @r#"
    error: traffic "bulk": bulk does not draw its pairs of nodes among hosts
     --> scenario:9:9
    9 | hosts = "h[1-4]"
      |         ^^^^^^^^
      = help: write from and to
    "#);
    insta::assert_snapshot!(among("kind = \"all_to_all\"\nhosts = \"h[1-4]\"\nsize = \"web_search\""), @r#"
    error: traffic "all_to_all": fraction: the load is missing: write fraction = "60 %" or load = "8 Gbit/s"
     --> scenario:7:1
    7 | [[traffic]]
      | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(among("kind = \"all_to_all\"\nhosts = \"h[1-4]\"\nsize = \"web-search\"\nfraction = \"60 %\""), @r#"
    error: unknown size "web-search"
      --> scenario:10:8
    10 | size = "web-search"
       |        ^^^^^^^^^^^^
       = help: did you mean "web_search"?
    "#);
    insta::assert_snapshot!(among("kind = \"incast\"\nfrom = \"h[2-4]\"\nto = \"h1\"\neach = \"20kb\"\nfan_in = 8"), @r#"
    error: traffic "incast": fan_in: 8 senders of 3: write 1 to 3, or name more senders in from
      --> scenario:12:10
    12 | fan_in = 8
       |          ^
    "#);
    insta::assert_snapshot!(among("kind = \"incast\"\nfrom = \"h[2-4]\"\nto = \"h1\""), @r#"
    error: traffic "incast": each: the size is missing: write total = "1mb" or each = "20kb"
     --> scenario:7:1
    7 | [[traffic]]
      | ^^^^^^^^^^^
    "#);
}

#[test]
fn the_choice_of_paths_is_one_of_three() {
    let text = with(&format!("kind = \"star\"\nhosts = 4\n{RATE}"), ("h1", "h2"));
    let wrong = Scenario::parse(&format!("routes = \"ecmp\"\n{text}"), ".").expect_err("it is invalid");
    insta::assert_snapshot!(wrong.to_string(), @r#"
    error: unknown routes "ecmp"
     --> scenario:1:10
    1 | routes = "ecmp"
      |          ^^^^^^
      = help: there are first, flow, packet
    "#);
}

/// At one link another discipline stands in place of a compared one, in one direction.
#[test]
fn a_link_has_its_own_words_for_a_compared_discipline() {
    let text = |link: &str| {
        format!(
            "duration = \"2s\"\nwarmup = \"1s\"\ndisciplines = [\"fifo limit 10p\", \"cake\"]\n\
             link = [{{ from = \"a\", to = \"b\", rate = \"2mbit\", delay = \"5ms\", {link} }}]\n\
             traffic = [{{ kind = \"bulk\", name = \"q\", from = \"a\", to = \"b\" }}]\n"
        )
    };
    let scenario = Scenario::parse(
        &text("qdisc = \"compare\", in_place_of = { \"cake\" = \"cake bandwidth 2mbit\" }, back = { qdisc = \"compare\" }"),
        ".",
    )
    .expect("it is valid");
    let network = network(&scenario);
    let specs = |port: usize| {
        network.disciplines.iter().map(|one| network.ports[port].spec(one).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(specs(0), ["fifo limit 10p", "cake bandwidth 2mbit"]);
    assert_eq!(specs(1), ["fifo limit 10p", "cake"]);
    let error = |link: &str| Scenario::parse(&text(link), ".").expect_err("it is wrong").to_string();
    let unknown = error("qdisc = \"compare\", in_place_of = { \"pie\" = \"codel\" }");
    assert!(unknown.contains("in_place_of: \"pie\" is not compared"), "{unknown}");
    let fixed = error("qdisc = \"pie\", in_place_of = { \"cake\" = \"codel\" }");
    assert!(fixed.contains("the link compares no disciplines"), "{fixed}");
}

//! Names of nodes: ranges in brackets, and the pairs of two ranges.

use giveway_scenario::{Network, Scenario};

/// A scenario with these ends of a link, and traffic on another one.
fn read(from: &str, to: &str) -> Result<Network, String> {
    let link = |from: &str, to: &str| {
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1mbit\"\ndelay = \"1ms\"\nqdisc = \"fifo\"\n"
        )
    };
    let traffic = "[[traffic]]\nkind = \"bulk\"\nfrom = \"one\"\nto = \"two\"\n";
    let text = format!("duration = \"1 s\"\n{}{}{traffic}", link(from, to), link("one", "two"));
    let scenario = Scenario::parse(&text, ".").map_err(|error| {
        let first = &error.diagnostics[0];
        let place = error.origin.place(&first.span);
        format!("{:?}: {}", &place.text[place.span.clone()], first.message)
    })?;
    Ok(scenario.network().expect("it has links").clone())
}

/// The nodes of a name, or what is wrong with it.
fn names(text: &str) -> String {
    let found = read(text, "hub").map(|network| {
        let hub = network.nodes.iter().position(|node| node == "hub").expect("the link ends there");
        network.nodes[..hub].join(" ")
    });
    found.unwrap_or_else(|error| error)
}

#[test]
fn a_range_is_two_numbers_in_brackets() {
    assert_eq!(names("home"), "home");
    assert_eq!(names("s[7-7]"), "s7");
    assert_eq!(names("s[3-1]"), "\"[3-1]\": this range is empty: 3 is above 1");
    assert_eq!(names("s[a-b]"), "\"[a-b]\": \"a-b\" is not a range of numbers");
    assert_eq!(names("s[1-10"), "\"[1-10\": this range has no end");
    assert_eq!(names("[]"), "\"[]\": \"\" is not a range of numbers");
    assert_eq!(names("[-]"), "\"[-]\": \"-\" is not a range of numbers");
    assert_eq!(
        names("[1-2][3-4]"),
        "\"[\": the name of a node has letters, digits, \"-\", \"_\" and \".\", not \"[\""
    );
    assert_eq!(names("s[0-99999]"), "\"[0-99999]\": this range has more than 10000 nodes");
    assert_eq!(
        names("home->isp"),
        "\">\": the name of a node has letters, digits, \"-\", \"_\" and \".\", not \">\""
    );
    assert_eq!(names(""), "\"\": the name of a node is empty");
}

#[test]
fn equal_ranges_pair_one_by_one_and_a_single_node_with_all() {
    // Both directions of each link; the last link has the traffic.
    let pairs = |from, to| {
        let network = read(from, to)?;
        let name = |node: u16| network.nodes[usize::from(node)].as_str();
        let forward =
            network.ports.iter().step_by(2).map(|port| format!("{}->{}", name(port.from), name(port.to)));
        let mut pairs: Vec<_> = forward.collect();
        assert_eq!(pairs.pop().as_deref(), Some("one->two"));
        Ok::<_, String>(pairs.join(" "))
    };
    assert_eq!(pairs("rack[8-10].top", "[1-3]").unwrap(), "rack8.top->1 rack9.top->2 rack10.top->3");
    assert_eq!(pairs("s[1-2]", "[9-10]th").unwrap(), "s1->9th s2->10th");
    assert_eq!(pairs("s[1-2]", "d").unwrap(), "s1->d s2->d");
    assert_eq!(pairs("s", "d[1-2]").unwrap(), "s->d1 s->d2");
    assert!(pairs("s[1-2]", "d[1-3]").unwrap_err().ends_with("2 nodes cannot be paired with 3"));
}

//! Large scenarios are read in bounded time. Those that are too large are refused with the place and a
//! remedy.

use std::fmt::Write as _;

use giveway_scenario::Scenario;

/// The processor time of this thread in seconds, as counted by Linux, so that a busy machine does not matter.
/// 0 on other systems, where these tests measure nothing.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// The keys at the top of all scenarios.
const HEAD: &str = "duration = \"10 s\"\ndisciplines = [\"fifo limit 100p\"]\n";

fn link(from: &str, to: &str, more: &str) -> String {
    format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n{more}")
}
fn bulk(from: &str, to: &str, more: &str) -> String {
    format!("[[traffic]]\nkind = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n{more}")
}
const COMPARE: &str = "qdisc = \"compare\"\n";

fn small(top: &str, traffic: &str) -> String {
    format!("{HEAD}{top}{}{traffic}", link("a", "b", COMPARE))
}

/// The errors of a scenario, each as its message, its line and its help.
fn errors(text: &str) -> Vec<String> {
    let Err(error) = Scenario::parse(text, ".") else { return Vec::new() };
    let errors = error.diagnostics.iter().map(|each| {
        let place = error.origin.place(&each.span);
        let line = place.text.lines().nth(place.line - 1).unwrap_or_default();
        format!("{} | {line} | {}", each.message, each.help.clone().unwrap_or_default())
    });
    errors.collect()
}
/// The only error of a scenario.
fn only_error(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.into_iter().next().unwrap()
}

/// Routes are not computed for every pair of nodes: for 10,001 nodes that takes a minute and half a gigabyte.
#[test]
fn ten_thousand_links_are_read_in_seconds() {
    let mut chain = HEAD.to_owned();
    let mut tree = HEAD.to_owned();
    for number in 1..=10_000 {
        let compare = if number == 1 { COMPARE } else { "" };
        chain += &link(&format!("n{}", number - 1), &format!("n{number}"), compare);
        tree += &link(&format!("n{}", (number - 1) / 2), &format!("n{number}"), compare);
    }
    for (near, far) in [(0, 10_000), (5, 20), (9000, 100)] {
        chain += &bulk(&format!("n{near}"), &format!("n{far}"), "");
        tree += &bulk(&format!("n{}", 9000 - near / 10), &format!("n{far}"), "");
    }
    let star = link("s[1-10000]", "hub", "") + &link("hub", "d", COMPARE) + &bulk("s[1-10000]", "d", "");
    for text in [chain, tree, format!("{HEAD}{star}")] {
        let before = cpu_s();
        let scenario = Scenario::parse(&text, ".").unwrap();
        assert!(scenario.network().unwrap().nodes.len() > 10_000);
        let took = cpu_s() - before;
        assert!(took < 10.0, "{took} s");
    }
}

/// A free name is found without a comparison with all other names.
#[test]
fn thousands_of_entries_without_a_name_are_read_in_seconds() {
    let text = small("", &bulk("a", "b", "").repeat(5000));
    let before = cpu_s();
    let scenario = Scenario::parse(&text, ".").unwrap();
    let traffic = &scenario.network().unwrap().traffic;
    assert_eq!([&traffic[0].name, &traffic[1].name, &traffic[4999].name], ["bulk", "bulk-2", "bulk-5000"]);
    assert!(cpu_s() - before < 10.0);
}

#[test]
fn of_ten_thousand_errors_fifty_are_shown() {
    let mut text = small("", &bulk("a", "b", ""));
    (0..5000).for_each(|number| writeln!(text, "oops{number} = {number}").unwrap());
    (0..5000).for_each(|number| text += &bulk("a", &format!("nowhere{number}"), ""));
    let before = cpu_s();
    let error = Scenario::parse(&text, ".").unwrap_err();
    assert_eq!(error.diagnostics.len(), 10_000);
    let shown = error.to_string();
    assert_eq!(shown.matches("error: ").count(), 50);
    assert!(shown.ends_with("\nand 9,950 more errors\n"), "{}", &shown[shown.len() - 100..]);
    assert!(cpu_s() - before < 10.0, "{} s", cpu_s() - before);
}

/// An error at column 1,000,000 of a line with 2,000,000 columns.
#[test]
fn a_long_line_is_clipped() {
    let mut keys = String::new();
    (0..100_000).for_each(|number| write!(keys, "key{number} = 1, ").unwrap());
    let text = small("", &bulk("a", "b", &format!("tcp = {{ {keys} last = 1 }}\n")));
    let error = Scenario::parse(&text, ".").unwrap_err();
    assert_eq!(error.diagnostics.len(), 100_001);
    let last = error.diagnostics.last().unwrap();
    assert!(error.origin.place(&last.span).column > 1_000_000);
    let excerpt = error.origin.excerpt(&last.span, 1);
    assert!(excerpt.text.len() < 1000 && excerpt.text.contains('…'), "{}", excerpt.text);
    assert_eq!(&excerpt.text[excerpt.span], "last");
    let shown = error.to_string();
    assert!(shown.lines().all(|line| line.chars().count() < 300));
    // A value of a million characters is clipped in the message.
    let long = "x".repeat(1_000_000);
    let shown = only_error(&small("", &bulk("a", "b", &format!("start = \"{long}\"\n"))));
    assert!(shown.split(" | ").next().unwrap().chars().count() < 700);
}

#[test]
fn too_many_nodes_ports_or_entries_are_refused() {
    let mut text = HEAD.to_owned();
    (0..7).for_each(|hub| text += &link(&format!("x{hub}s[1-9999]"), &format!("hub{hub}"), ""));
    text += &link("hub0", "hub1", COMPARE);
    text += &bulk("x0s1", "hub1", "");
    let shown = only_error(&text);
    assert!(shown.starts_with("with this link there are more than 65,534 nodes | [[link]] | "), "{shown}");
    assert!(shown.ends_with("this is the limit of a network: name fewer nodes"), "{shown}");
    // The largest number of nodes is accepted.
    let most = text.replace("x6s[1-9999]", "x6s[1-5533]");
    assert_eq!(Scenario::parse(&most, ".").unwrap().network().unwrap().nodes.len(), 65_534);
    let mesh: String = (0..14).map(|hub| link(&format!("h{hub}"), "s[1-10000]", "")).collect();
    let shown = only_error(&format!("{HEAD}{}{mesh}{}", link("a", "b", COMPARE), bulk("a", "b", "")));
    assert!(shown.starts_with("with this link there are more than 262,144 ports | [[link]]"), "{shown}");
    let entries = bulk("a", "b", "").repeat(65_536);
    let shown = only_error(&small("", &entries));
    assert!(shown.starts_with("there are more than 65,535 entries of traffic"), "{shown}");
}

/// Values that determine the use of memory, or the length of a run.
#[test]
fn values_that_need_too_much_memory_are_refused() {
    const HUGE: &str = "4294967295";
    for (kind, key, more) in [
        ("bulk", "flows", ""),
        ("cbr", "flows", "rate = \"1kbit\"\n"),
        ("poisson", "flows", "rate = \"1kbit\"\n"),
        ("audio", "flows", ""),
        ("video", "flows", ""),
        ("web", "users", ""),
        ("onoff", "sources", "rate = \"10mbit\"\noff = \"1s\"\n"),
    ] {
        let of = |from: &str, count: &str| {
            let traffic = bulk(from, "b", &format!("{more}{key} = {count}\n"));
            let links = link("a", "b", COMPARE) + &link("s[1-10]", "b", "");
            format!("{HEAD}{links}{}", traffic.replace("\"bulk\"", &format!("\"{kind}\"")))
        };
        let shown = only_error(&of("a", HUGE));
        assert!(
            shown.contains(&format!("{key}: ")) && shown.contains(&format!("| {key} = {HUGE} |")),
            "{shown}"
        );
        // A connection of `bulk` is only a start until it begins.
        let most = if kind == "bulk" { 1_000_000 } else { 100_000 };
        assert!(shown.contains(&format!("write at most {most}")), "{shown}");
        let shown = only_error(&of("s[1-10]", &(most / 10 + 1).to_string()));
        assert!(shown.contains(&format!("write at most {}", most / 10)), "{shown}");
        assert!(Scenario::parse(&of("a", "100"), ".").is_ok(), "{kind}");
    }
    let shown = only_error(&small("", &bulk("a", "b", "flows = 4294967296\n")));
    assert!(shown.starts_with("flows: expected a whole number from 0 to 4,294,967,295"), "{shown}");
    let shown = only_error(&small("", &bulk("a", "b", "flows = 99999999999999999999\n")));
    assert!(shown.contains("this number is too large") && shown.contains("9223372036854775807"), "{shown}");

    let links = link("s[1-1000]", "hub", "") + &link("hub", "d[1-1000]", "") + &link("a", "b", COMPARE);
    let every = format!("{HEAD}{links}{}", bulk("s[1-1000]", "d[1-1000]", "every_pair = true\n"));
    let shown = only_error(&every);
    assert!(
        shown.contains("1,000 senders and 1,000 receivers make 1,000,000 pairs | every_pair = true"),
        "{shown}"
    );

    let top = |key: &str| only_error(&small(&format!("{key}\n"), &bulk("a", "b", "")));
    let shown = top("seeds = 4294967295");
    assert!(shown.contains("expected a count from 1 to 100000"), "{shown}");
    let list: Vec<String> = (0..100_001).map(|seed| seed.to_string()).collect();
    let shown = top(&format!("seeds = [{}]", list.join(",")));
    assert!(shown.starts_with("seeds: expected at most 100000 seeds"), "{}", &shown[..100]);
    let shown = only_error(&small("", &(bulk("a", "b", "") + "[short]\nseeds = 4294967295\n")));
    assert!(shown.contains("| seeds = 4294967295 | write at most 100000"), "{shown}");
    let shown = only_error(&small("", &(bulk("a", "b", "") + "[record]\nsample = \"1ps\"\n")));
    assert!(shown.ends_with("| sample = \"1ps\" | write at least \"1us\""), "{shown}");
    let shown = only_error(&small("", &bulk("a", "b", "")).replace("10 s", "5000 h"));
    assert!(shown.ends_with("| duration = \"5000 h\" | write at most \"4800h\""), "{shown}");
    let shown = only_error(&small("", &bulk("a", "b", "")).replace("10 s", "6000 h"));
    assert!(shown.contains("is too large for a time: write \"5124h\" at most"), "{shown}");
    let shown = only_error(&small("", &bulk("a", "b", "")).replace("qdisc", "cost = 0\nqdisc"));
    assert!(
        shown.starts_with(
            "cost: must be above 0, otherwise packets could travel in a loop | cost = 0 | write at least 1"
        ),
        "{shown}"
    );
}

/// The mean length of a burst is computed while the scenario is read, in a time that does not depend on it.
#[test]
fn long_bursts_are_read_in_seconds() {
    let text = small(
        "",
        &bulk("a", "b", "rate = \"400gbit\"\non = \"1h\"\noff = \"1h\"\n").replace("bulk", "onoff"),
    );
    let before = cpu_s();
    assert!(Scenario::parse(&text, ".").is_ok(), "{:?}", errors(&text));
    assert!(cpu_s() - before < 10.0);
}

//! Large scenarios are read in bounded time, and what is too large is refused with its place and what to write instead.

use std::fmt::Write as _;

use giveway_scenario::Scenario;

/// Processor time of this thread, seconds, as Linux counts it: a busy machine does not matter. 0 elsewhere, which measures nothing.
fn worked() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

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

/// What is wrong with a scenario: each message with the line that it is about and what to do.
fn wrong(text: &str) -> Vec<String> {
    let Err(wrong) = Scenario::parse(text, ".") else { return Vec::new() };
    let told = wrong.diagnostics.iter().map(|each| {
        let place = wrong.origin.place(&each.span);
        let line = place.text.lines().nth(place.line - 1).unwrap_or_default();
        format!("{} | {line} | {}", each.message, each.help.clone().unwrap_or_default())
    });
    told.collect()
}
fn only(text: &str) -> String {
    let told = wrong(text);
    assert_eq!(told.len(), 1, "{told:#?}");
    told.into_iter().next().unwrap()
}

/// Routes for every pair of 10,001 nodes would take a minute and half a gigabyte.
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
        let before = worked();
        let scenario = Scenario::parse(&text, ".").unwrap();
        assert!(scenario.network().unwrap().nodes.len() > 10_000);
        let took = worked() - before;
        assert!(took < 10.0, "{took} s");
    }
}

/// Names of the traffic, too, are found without comparing each with each.
#[test]
fn thousands_of_entries_without_a_name_are_read_in_seconds() {
    let text = small("", &bulk("a", "b", "").repeat(5000));
    let before = worked();
    let scenario = Scenario::parse(&text, ".").unwrap();
    let traffic = &scenario.network().unwrap().traffic;
    assert_eq!([&traffic[0].name, &traffic[1].name, &traffic[4999].name], ["bulk", "bulk-2", "bulk-5000"]);
    assert!(worked() - before < 10.0);
}

#[test]
fn ten_thousand_mistakes_are_found_and_fifty_are_shown() {
    let mut text = small("", &bulk("a", "b", ""));
    (0..5000).for_each(|number| writeln!(text, "oops{number} = {number}").unwrap());
    (0..5000).for_each(|number| text += &bulk("a", &format!("nowhere{number}"), ""));
    let before = worked();
    let wrong = Scenario::parse(&text, ".").unwrap_err();
    assert_eq!(wrong.diagnostics.len(), 10_000);
    let shown = wrong.to_string();
    assert_eq!(shown.matches("error: ").count(), 50);
    assert!(shown.ends_with("\n... and 9,950 more\n"), "{}", &shown[shown.len() - 100..]);
    assert!(worked() - before < 10.0, "{} s", worked() - before);
}

/// A mistake a million columns to the right, in a line of two million.
#[test]
fn long_lines_are_shown_in_part() {
    let mut keys = String::new();
    (0..100_000).for_each(|number| write!(keys, "key{number} = 1, ").unwrap());
    let text = small("", &bulk("a", "b", &format!("tcp = {{ {keys} last = 1 }}\n")));
    let wrong = Scenario::parse(&text, ".").unwrap_err();
    assert_eq!(wrong.diagnostics.len(), 100_001);
    let last = wrong.diagnostics.last().unwrap();
    assert!(wrong.origin.place(&last.span).column > 1_000_000);
    let excerpt = wrong.origin.excerpt(&last.span, 1);
    assert!(excerpt.text.len() < 1000 && excerpt.text.contains('…'), "{}", excerpt.text);
    assert_eq!(&excerpt.text[excerpt.span], "last");
    let shown = wrong.to_string();
    assert!(shown.lines().all(|line| line.chars().count() < 300));
    // A text of a million characters is quoted in part.
    let long = "x".repeat(1_000_000);
    let told = only(&small("", &bulk("a", "b", &format!("start = \"{long}\"\n"))));
    assert!(told.split(" | ").next().unwrap().chars().count() < 700);
}

#[test]
fn node_numbers_do_not_wrap() {
    let mut text = HEAD.to_owned();
    (0..7).for_each(|hub| text += &link(&format!("x{hub}s[1-9999]"), &format!("hub{hub}"), ""));
    text += &link("hub0", "hub1", COMPARE);
    text += &bulk("x0s1", "hub1", "");
    let told = only(&text);
    assert!(told.starts_with("with this link there are more than 65,534 nodes | [[link]] | "), "{told}");
    assert!(told.ends_with("this is the limit of a network: name fewer nodes"), "{told}");
    // As many as there may be.
    let most = text.replace("x6s[1-9999]", "x6s[1-5533]");
    assert_eq!(Scenario::parse(&most, ".").unwrap().network().unwrap().nodes.len(), 65_534);
    let mesh: String = (0..14).map(|hub| link(&format!("h{hub}"), "s[1-10000]", "")).collect();
    let told = only(&format!("{HEAD}{}{mesh}{}", link("a", "b", COMPARE), bulk("a", "b", "")));
    assert!(told.starts_with("with this link there are more than 262,144 ports | [[link]]"), "{told}");
    let entries = bulk("a", "b", "").repeat(65_536);
    let told = only(&small("", &entries));
    assert!(told.starts_with("there are more than 65,535 entries of traffic"), "{told}");
}

/// What sizes memory, or how long something takes.
#[test]
fn numbers_that_fill_the_memory_are_refused() {
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
        let told = only(&of("a", HUGE));
        assert!(
            told.contains(&format!("{key}: ")) && told.contains(&format!("| {key} = {HUGE} |")),
            "{told}"
        );
        assert!(told.contains("write 100000 at most"), "{told}");
        let told = only(&of("s[1-10]", "10001"));
        assert!(told.contains("write 10000 at most"), "{told}");
        assert!(Scenario::parse(&of("a", "100"), ".").is_ok(), "{kind}");
    }
    let told = only(&small("", &bulk("a", "b", "flows = 4294967296\n")));
    assert!(told.starts_with("flows: expected a whole number from 0 to 4,294,967,295"), "{told}");
    let told = only(&small("", &bulk("a", "b", "flows = 99999999999999999999\n")));
    assert!(told.contains("this number is too large") && told.contains("9223372036854775807"), "{told}");

    let links = link("s[1-1000]", "hub", "") + &link("hub", "d[1-1000]", "") + &link("a", "b", COMPARE);
    let every = format!("{HEAD}{links}{}", bulk("s[1-1000]", "d[1-1000]", "every_pair = true\n"));
    let told = only(&every);
    assert!(
        told.contains("1,000 senders and 1,000 receivers make 1,000,000 pairs | every_pair = true"),
        "{told}"
    );

    let top = |key: &str| only(&small(&format!("{key}\n"), &bulk("a", "b", "")));
    let told = top("seeds = 4294967295");
    assert!(told.contains("expected a count from 1 to 100000"), "{told}");
    let list: Vec<String> = (0..100_001).map(|seed| seed.to_string()).collect();
    let told = top(&format!("seeds = [{}]", list.join(",")));
    assert!(told.starts_with("seeds: expected at most 100000 seeds"), "{}", &told[..100]);
    let told = only(&small("", &(bulk("a", "b", "") + "[short]\nseeds = 4294967295\n")));
    assert!(told.contains("| seeds = 4294967295 | write at most 100000"), "{told}");
    let told = only(&small("", &(bulk("a", "b", "") + "[record]\nsample = \"1ps\"\n")));
    assert!(told.ends_with("| sample = \"1ps\" | write at least \"1us\""), "{told}");
    let told = only(&small("", &bulk("a", "b", "")).replace("10 s", "5000 h"));
    assert!(told.ends_with("| duration = \"5000 h\" | write at most \"4800h\""), "{told}");
    let told = only(&small("", &bulk("a", "b", "")).replace("10 s", "6000 h"));
    assert!(told.contains("is too large for a time: write \"5124h\" at most"), "{told}");
    let told = only(&small("", &bulk("a", "b", "")).replace("qdisc", "cost = 0\nqdisc"));
    assert!(
        told.starts_with(
            "cost: with a cost of 0 packets could travel in circles | cost = 0 | write at least 1"
        ),
        "{told}"
    );
}

/// The mean length of a burst is computed when the scenario is read.
#[test]
fn long_bursts_take_no_longer_to_read() {
    let text = small(
        "",
        &bulk("a", "b", "rate = \"400gbit\"\non = \"1h\"\noff = \"1h\"\n").replace("bulk", "onoff"),
    );
    let before = worked();
    assert!(Scenario::parse(&text, ".").is_ok(), "{:?}", wrong(&text));
    assert!(worked() - before < 10.0);
}

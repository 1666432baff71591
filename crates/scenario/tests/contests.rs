//! Contests: every pair of senders shares its own link.

use giveway_scenario::{Network, Scenario};

const CONTEST: &str = r#"
duration = "2 s"
disciplines = ["fifo limit 100p"]

[contest]
senders = ["reno", "bbr version 3", { name = "reno with ECN", congestion = "reno", ecn = true }]
rate = "50mbit"
delay = "20ms"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, ".").unwrap_or_else(|error| panic!("{error}"))
}

fn network(scenario: &Scenario) -> &Network {
    scenario.network().expect("the backend is a network")
}

fn errors(old: &str, new: &str) -> String {
    assert!(CONTEST.contains(old), "{old:?} is not in the scenario");
    Scenario::parse(&CONTEST.replacen(old, new, 1), ".").expect_err("it is invalid").to_string()
}

/// Three senders have six links. On the link of a sender with itself both transfers have one name.
#[test]
fn each_pair_has_a_link_and_its_transfers() {
    let scenario = parse(CONTEST);
    let network = network(&scenario);
    let contest = network.contest.as_ref().expect("it is a contest");
    assert_eq!(contest.senders, ["reno", "bbr version 3", "reno with ECN"]);
    assert_eq!(network.measured.len(), 6);
    let measured = network.measured.iter().map(|id| network.ports[id.0 as usize].name.as_str());
    let of_pairs: Vec<String> = contest.pairs().map(|(one, other)| contest.port(one, other)).collect();
    assert_eq!(measured.collect::<Vec<_>>(), of_pairs);
    let names: Vec<&str> = network.traffic.iter().map(|stream| stream.name.as_str()).collect();
    insta::assert_snapshot!(names.join("\n"), @"
    reno beside itself
    reno beside bbr version 3
    bbr version 3 beside reno
    reno beside reno with ECN
    reno with ECN beside reno
    bbr version 3 beside itself
    bbr version 3 beside reno with ECN
    reno with ECN beside bbr version 3
    reno with ECN beside itself
    ");
    let ecn: Vec<bool> = network.traffic.iter().map(|stream| stream.tcp.ecn).collect();
    assert_eq!(ecn.iter().filter(|ecn| **ecn).count(), 3, "only one of the senders has ECN");
}

/// Keys of a link apply to every link, and links of the scenario are next to them.
#[test]
fn a_contest_has_the_keys_of_links() {
    let text = CONTEST
        .replace("delay", "qdisc = \"fq_codel\"\nback = { rate = \"5mbit\" }\ndelay")
        .replace("disciplines = [\"fifo limit 100p\"]", "");
    let scenario = parse(&text);
    let rates: Vec<u64> =
        network(&scenario).ports.iter().map(|port| port.rate.as_bit() / 1_000_000).collect();
    assert_eq!(rates, [50, 5].repeat(6));
}

/// A mistake in the table is reported once, although six links and nine transfers have it.
#[test]
fn mistakes_are_reported_once_at_their_place() {
    insta::assert_snapshot!(errors("\"20ms\"", "20"), @r#"
    error: delay: expected a time with its unit, such as "5ms"
     --> scenario:8:9
    8 | delay = 20
      |         ^^ this number has no unit
    "#);
    insta::assert_snapshot!(errors("delay = ", "dealy = "), @r#"
    error: a link needs "delay"
     --> scenario:5:1
    5 | [contest]
      | ^^^^^^^^^

    error: unknown key "dealy" of [contest]
     --> scenario:8:1
    8 | dealy = "20ms"
      | ^^^^^
      = help: did you mean "delay"?
    "#);
    insta::assert_snapshot!(errors("\"reno\", \"bbr", "\"renno\", \"bbr"), @r#"
    error: congestion: unknown congestion control "renno"; did you mean "reno"?
     --> scenario:6:12
    6 | senders = ["renno", "bbr version 3", { name = "reno with ECN", congestion = "reno", ecn = true }]
      |            ^^^^^^^
    "#);
    insta::assert_snapshot!(errors("ecn = true", "ecm = true"), @r#"
    error: unknown key "ecm" of tcp
     --> scenario:6:84
    6 | senders = ["reno", "bbr version 3", { name = "reno with ECN", congestion = "reno", ecm = true }]
      |                                                                                    ^^^
      = help: did you mean "ecn"?
    "#);
    insta::assert_snapshot!(errors("\"bbr version 3\"", "\"reno\""), @r#"
    error: senders: "reno" is listed twice
     --> scenario:6:11
    6 | senders = ["reno", "reno", { name = "reno with ECN", congestion = "reno", ecn = true }]
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      = help: a sender also competes with itself; give each variant its own name
    "#);
    insta::assert_snapshot!(errors("\"bbr version 3\"", "7"), @r#"
    error: senders: expected a congestion control, or a table
     --> scenario:6:20
    6 | senders = ["reno", 7, { name = "reno with ECN", congestion = "reno", ecn = true }]
      |                    ^ this is a number
      = help: write for example "cubic" or { congestion = "cubic", ecn = true }
    "#);
    insta::assert_snapshot!(errors("\"bbr version 3\"", "{ name = \"reno-with-ECN\", congestion = \"reno\" }"), @r#"
    error: "reno" and "reno with ECN" have similar names
     --> scenario:6:11
    6 | senders = ["reno", { name = "reno-with-ECN", congestion = "reno" }, { name = "reno with ECN", congestion = "reno", ecn = true }]
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      = help: names differ in more than spaces and punctuation
    "#);
}

//! The messages about invalid scenarios, in full: the mistake, its line, and a remedy.

use giveway_scenario::{Draft, Scenario};

/// A valid scenario. Each test changes one part of it.
const VALID: &str = r#"
title = "Home uplink"
duration = "10 s"
warmup = "1 s"
seeds = 2
disciplines = ["fifo limit 100p"]

[tcp]
congestion = "cubic"

[[link]]
from = "home"
to = "isp"
rate = "10 Mbit/s"
delay = "10 ms"
qdisc = "compare"

[[link]]
from = "isp"
to = "server"
rate = "1 Gbit/s"
delay = "5 ms"

[[traffic]]
kind = "bulk"
name = "upload"
from = "home"
to = "server"

[record]
port = "home->isp"
"#;

/// The errors if `old` is replaced by `new`.
fn errors(old: &str, new: &str) -> String {
    assert!(VALID.contains(old), "{old:?} is not in the scenario");
    errors_of(&VALID.replacen(old, new, 1))
}

/// The errors of a scenario.
fn errors_of(text: &str) -> String {
    Scenario::parse(text, ".").expect_err("it is invalid").to_string()
}

/// The errors of the valid scenario with these flags.
fn flag_errors(flags: &[&str]) -> String {
    let draft = flags.iter().fold(Draft::parse(VALID, "."), |draft, flag| draft.set(flag));
    draft.finish().expect_err("it is invalid").to_string()
}

/// The warnings if `old` is replaced by `new`.
fn warnings(old: &str, new: &str) -> String {
    assert!(VALID.contains(old), "{old:?} is not in the scenario");
    let scenario = Scenario::parse(&VALID.replacen(old, new, 1), ".").expect("it is valid");
    giveway_scenario::ScenarioError { origin: scenario.origin().clone(), diagnostics: scenario.warnings }
        .to_string()
}

#[test]
fn a_valid_scenario_has_no_messages() {
    let scenario = Scenario::parse(VALID, ".").expect("it is valid");
    assert_eq!(scenario.warnings, []);
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_key() {
    insta::assert_snapshot!(errors("duration =", "druation ="), @r#"
    error: unknown key "druation" of a scenario
     --> scenario:3:1
    3 | druation = "10 s"
      | ^^^^^^^^
      = help: did you mean "duration"?
    "#);
    insta::assert_snapshot!(errors("delay =", "delya ="), @r#"
    error: unknown key "delya" of a link
      --> scenario:15:1
    15 | delya = "10 ms"
       | ^^^^^
       = help: did you mean "delay"?
    "#);
    insta::assert_snapshot!(errors("name =", "nmae ="), @r#"
    error: unknown key "nmae" of bulk traffic
      --> scenario:26:1
    26 | nmae = "upload"
       | ^^^^
       = help: did you mean "name"?
    "#);
    insta::assert_snapshot!(errors("congestion =", "congestoin ="), @r#"
    error: unknown key "congestoin" of [tcp]
     --> scenario:9:1
    9 | congestoin = "cubic"
      | ^^^^^^^^^^
      = help: did you mean "congestion"?
    "#);
    insta::assert_snapshot!(errors("port =", "prot ="), @r#"
    error: unknown key "prot" of [record]
      --> scenario:31:1
    31 | prot = "home->isp"
       | ^^^^
       = help: did you mean "port"?
    "#);
}

#[test]
fn an_unknown_name_is_reported_with_the_nearest_name() {
    insta::assert_snapshot!(errors("fifo limit", "fivo limit"), @r#"
    error: unknown discipline "fivo"
     --> scenario:6:17
    6 | disciplines = ["fivo limit 100p"]
      |                 ^^^^
      = help: did you mean "fifo"?
    "#);
    insta::assert_snapshot!(errors("fifo limit", "fifo lmit"), @r#"
    error: unknown parameter "lmit" of fifo
     --> scenario:6:22
    6 | disciplines = ["fifo lmit 100p"]
      |                      ^^^^
      = help: did you mean "limit"?
    "#);
    insta::assert_snapshot!(errors("\"fifo limit 100p\"", "{ kind = \"fifo\", lmit = \"100p\" }"), @r#"
    error: unknown key "lmit" of fifo
     --> scenario:6:33
    6 | disciplines = [{ kind = "fifo", lmit = "100p" }]
      |                                 ^^^^
      = help: did you mean "limit"?
    "#);
    insta::assert_snapshot!(errors("\"fifo limit 100p\"", "{ kind = \"fivo\" }"), @r#"
    error: unknown discipline "fivo"
     --> scenario:6:25
    6 | disciplines = [{ kind = "fivo" }]
      |                         ^^^^^^
      = help: did you mean "fifo"?
    "#);
    insta::assert_snapshot!(errors("\"bulk\"", "\"bluk\""), @r#"
    error: unknown kind of traffic "bluk"
      --> scenario:25:8
    25 | kind = "bluk"
       |        ^^^^^^
       = help: did you mean "bulk"?
    "#);
    insta::assert_snapshot!(errors("\"cubic\"", "\"cubicc\""), @r#"
    error: congestion: unknown congestion control "cubicc"; did you mean "cubic"?
     --> scenario:9:14
    9 | congestion = "cubicc"
      |              ^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("port = \"home->isp\"", "port = \"home->ips\""), @r#"
    error: no link has a port "home->ips"
      --> scenario:31:8
    31 | port = "home->ips"
       |        ^^^^^^^^^^^
       = help: did you mean "home->isp"?
    "#);
    insta::assert_snapshot!(errors("to = \"server\"\n\n[record]", "to = \"sever\"\n\n[record]"), @r#"
    error: no link has a node "sever"
      --> scenario:28:6
    28 | to = "sever"
       |      ^^^^^^^
       = help: did you mean "server"?
    "#);
    insta::assert_snapshot!(errors("\"compare\"", "\"comprae\""), @r#"
    error: unknown discipline "comprae"
      --> scenario:16:9
    16 | qdisc = "comprae"
       |         ^^^^^^^^^
       = help: did you mean "compare"?
    "#);
    insta::assert_snapshot!(errors("duration", "backend = \"netwrok\"\nduration"), @r#"
    error: unknown backend "netwrok"
     --> scenario:3:11
    3 | backend = "netwrok"
      |           ^^^^^^^^^
      = help: did you mean "network"?
    "#);
}

#[test]
fn a_quantity_needs_a_unit_and_a_valid_value() {
    insta::assert_snapshot!(errors("\"10 Mbit/s\"", "10"), @r#"
    error: rate: expected a rate with its unit, such as "10mbit"
      --> scenario:14:8
    14 | rate = 10
       |        ^^ this number has no unit
    "#);
    insta::assert_snapshot!(errors("\"10 Mbit/s\"", "\"10\""), @r#"
    error: rate: "10" has no unit: a rate is written for example "10mbit" or "10 Mbit/s"
      --> scenario:14:8
    14 | rate = "10"
       |        ^^^^
    "#);
    insta::assert_snapshot!(errors("\"10 Mbit/s\"", "\"10 Mbitt\""), @r#"
    error: rate: "Mbitt" is not a unit of a rate: did you mean "10mbit"?
      --> scenario:14:8
    14 | rate = "10 Mbitt"
       |        ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("\"10 Mbit/s\"", "\"-10 Mbit/s\""), @r#"
    error: rate: a rate cannot be negative: got "-10 Mbit/s"
      --> scenario:14:8
    14 | rate = "-10 Mbit/s"
       |        ^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("\"10 Mbit/s\"", "\"99999999999 Tbit/s\""), @r#"
    error: rate: "99999999999 Tbit/s" is too large for a rate: write "18446744tbit" at most
      --> scenario:14:8
    14 | rate = "99999999999 Tbit/s"
       |        ^^^^^^^^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("\"10 Mbit/s\"", "\"0 Mbit/s\""), @r#"
    error: rate: must be above 0
      --> scenario:14:8
    14 | rate = "0 Mbit/s"
       |        ^^^^^^^^^^
       = help: write for example "10mbit"
    "#);
    insta::assert_snapshot!(errors("\"10 s\"", "10"), @r#"
    error: duration: expected a time with its unit, such as "5ms"
     --> scenario:3:12
    3 | duration = 10
      |            ^^ this number has no unit
    "#);
    insta::assert_snapshot!(errors("\"10 ms\"", "\"10 mms\""), @r#"
    error: delay: "mms" is not a unit of a time: did you mean "10ms"?
      --> scenario:15:9
    15 | delay = "10 mms"
       |         ^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("fifo limit 100p", "fifo limit 100"), @r#"
    error: limit: "100" needs a unit: "300p" counts packets, "64kb" counts bytes
     --> scenario:6:28
    6 | disciplines = ["fifo limit 100"]
      |                            ^^^
    "#);
    insta::assert_snapshot!(errors("fifo limit 100p", "fifo limit 0p"), @r#"
    error: limit: 0 packets are too few: write at least "1p"
     --> scenario:6:22
    6 | disciplines = ["fifo limit 0p"]
      |                      ^^^^^^^^ at home->isp
    "#);
    insta::assert_snapshot!(errors("fifo limit 100p", "fifo limit 1000b"), @r#"
    error: limit: 1000b cannot hold one packet of 1500 bytes: write at least "1500b"
     --> scenario:6:22
    6 | disciplines = ["fifo limit 1000b"]
      |                      ^^^^^^^^^^^ at home->isp
    "#);
    insta::assert_snapshot!(errors("\"fifo limit 100p\"", "{ kind = \"fifo\", limit = \"1000b\" }"), @r#"
    error: limit: 1000b cannot hold one packet of 1500 bytes: write at least "1500b"
     --> scenario:6:41
    6 | disciplines = [{ kind = "fifo", limit = "1000b" }]
      |                                         ^^^^^^^ at home->isp
    "#);
    insta::assert_snapshot!(errors("\"fifo limit 100p\"", "{ kind = \"fifo\", limit = 100 }"), @r#"
    error: limit: expected a limit in packets or bytes, such as "300p" or "64kb"
     --> scenario:6:41
    6 | disciplines = [{ kind = "fifo", limit = 100 }]
      |                                         ^^^ this is a number
    "#);
    insta::assert_snapshot!(errors("kind = \"bulk\"", "kind = \"bulk\"\nflows = -3"), @r#"
    error: flows: expected a whole number from 0 to 4,294,967,295
      --> scenario:26:9
    26 | flows = -3
       |         ^^
    "#);
    insta::assert_snapshot!(errors("kind = \"bulk\"", "kind = \"bulk\"\nflows = 99999999999999999999"), @r#"
    error: this number is too large
      --> scenario:26:9
    26 | flows = 99999999999999999999
       |         ^^^^^^^^^^^^^^^^^^^^
       = help: TOML has whole numbers from -9223372036854775808 to 9223372036854775807
    "#);
    insta::assert_snapshot!(errors("kind = \"bulk\"", "kind = \"bulk\"\nsize = \"0b\""), @r#"
    error: traffic "upload": size: a transfer of 0 bytes sends nothing: leave size out for no end
      --> scenario:26:8
    26 | size = "0b"
       |        ^^^^
    "#);
    insta::assert_snapshot!(errors("congestion = \"cubic\"", "mss = \"0b\""), @r#"
    error: [tcp]: mss: 0b is not between 1 and 65,495 bytes
     --> scenario:9:7
    9 | mss = "0b"
      |       ^^^^
    "#);
    insta::assert_snapshot!(errors("[tcp]", "[quic]\ndatagram = \"1500b\"\n[tcp]"), @r#"
    error: [quic]: datagram: 1500b is not between 1,200 and 1,452 bytes of UDP payload
     --> scenario:9:12
    9 | datagram = "1500b"
      |            ^^^^^^^
    "#);
    insta::assert_snapshot!(errors("[tcp]", "[quic]\ncongestoin = \"cubic\"\n[tcp]"), @r#"
    error: unknown key "congestoin" of [quic]
     --> scenario:9:1
    9 | congestoin = "cubic"
      | ^^^^^^^^^^
      = help: did you mean "congestion"?
    "#);
    insta::assert_snapshot!(errors("delay = \"10 ms\"", "delay = \"10 ms\"\nloss = \"150%\""), @r#"
    error: loss: "150%" is not a probability: it must lie between 0 and 1 (100%)
      --> scenario:16:8
    16 | loss = "150%"
       |        ^^^^^^
    "#);
    insta::assert_snapshot!(errors("delay = \"10 ms\"", "delay = \"10 ms\"\nmtu = \"20b\""), @r#"
    error: mtu: 20b is not between 68 and 65,535 bytes
      --> scenario:16:7
    16 | mtu = "20b"
       |       ^^^^^
       = help: Ethernet has "1500b"
    "#);
}

#[test]
fn a_missing_key_is_named() {
    insta::assert_snapshot!(errors("duration = \"10 s\"\n", ""), @r#"
    error: a scenario needs "duration"
     --> scenario:2:1
    2 | title = "Home uplink"
      | ^^^^^
      = help: write for example duration = "60 s" at the top
    "#);
    insta::assert_snapshot!(errors("rate = \"10 Mbit/s\"\n", ""), @r#"
    error: a link needs "rate"
      --> scenario:11:1
    11 | [[link]]
       | ^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("kind = \"bulk\"\n", ""), @r#"
    error: traffic "upload" needs "kind"
      --> scenario:24:1
    24 | [[traffic]]
       | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("from = \"home\"\nto = \"server\"", "from = \"home\""), @r#"
    error: traffic "upload" needs "to"
      --> scenario:24:1
    24 | [[traffic]]
       | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("kind = \"bulk\"", "kind = \"cbr\""), @r#"
    error: traffic "upload" needs "rate"
      --> scenario:24:1
    24 | [[traffic]]
       | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("\"fifo limit 100p\"", "{ limit = \"100p\" }"), @r#"
    error: a discipline needs "kind"
     --> scenario:6:16
    6 | disciplines = [{ limit = "100p" }]
      |                ^^^^^^^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(errors_of(""), @r#"
    error: a network needs links
     --> scenario:1:1
    1 | 
      | ^
      = help: write [[link]] with from, to, rate and delay

    error: a scenario needs "duration"
     --> scenario:1:1
    1 | 
      | ^
      = help: write for example duration = "60 s" at the top

    error: a scenario needs traffic
     --> scenario:1:1
    1 | 
      | ^
      = help: write [[traffic]] with kind, from and to
    "#);
}

#[test]
fn all_errors_are_reported_at_once() {
    insta::assert_snapshot!(
        errors_of(&VALID.replace("10 Mbit/s", "10").replace("\"bulk\"", "\"bluk\"").replace("fifo", "fivo").replace("warmup", "wramup")),
        @r#"
    error: unknown key "wramup" of a scenario
     --> scenario:4:1
    4 | wramup = "1 s"
      | ^^^^^^
      = help: did you mean "warmup"?

    error: unknown discipline "fivo"
     --> scenario:6:17
    6 | disciplines = ["fivo limit 100p"]
      |                 ^^^^
      = help: did you mean "fifo"?

    error: rate: "10" has no unit: a rate is written for example "10mbit" or "10 Mbit/s"
      --> scenario:14:8
    14 | rate = "10"
       |        ^^^^

    error: unknown kind of traffic "bluk"
      --> scenario:25:8
    25 | kind = "bluk"
       |        ^^^^^^
       = help: did you mean "bulk"?
    "#
    );
}

#[test]
fn a_syntax_error_is_reported_with_its_line() {
    insta::assert_snapshot!(errors("rate = \"10 Mbit/s\"", "rate = 10 Mbit/s"), @r#"
    error: this is not TOML
      --> scenario:14:8
    14 | rate = 10 Mbit/s
       |        ^^^^^^^^^ string values must be quoted, expected literal string
    "#);
    insta::assert_snapshot!(errors("seeds = 2", "seeds = "), @r#"
    error: this is not TOML
     --> scenario:5:9
    5 | seeds = 
      |         ^ string values must be quoted, expected literal string
    "#);
    insta::assert_snapshot!(errors("[[link]]", "[[link]"), @r#"
    error: this is not TOML
      --> scenario:11:8
    11 | [[link]
       |        ^ unclosed array table, expected `]`
    "#);
}

#[test]
fn an_invalid_topology_is_refused() {
    insta::assert_snapshot!(errors("to = \"isp\"", "to = \"home\""), @r#"
    error: a link leads from "home" to itself
      --> scenario:13:6
    13 | to = "home"
       |      ^^^^^^
       = help: a link joins two nodes
    "#);
    insta::assert_snapshot!(errors("from = \"isp\"\nto = \"server\"", "from = \"home\"\nto = \"isp\""), @r#"
    error: there are two links "home->isp"
      --> scenario:18:1
    18 | [[link]]
       | ^^^^^^^^ the first is in line 11
       = help: a [[link]] has both directions; write back = false for one

    error: no link has a node "server"
      --> scenario:28:6
    28 | to = "server"
       |      ^^^^^^^^
       = help: there are home, isp
    "#);
    insta::assert_snapshot!(errors("from = \"isp\"\nto = \"server\"", "from = \"cloud\"\nto = \"server\""), @r#"
    error: traffic "upload": there is no path from "home" to "server"
      --> scenario:28:6
    28 | to = "server"
       |      ^^^^^^^^ unreachable
    "#);
    insta::assert_snapshot!(errors("qdisc = \"compare\"", "qdisc = \"compare\"\nback = false"), @r#"
    error: traffic "upload": there is no path for acknowledgements from "server" to "home"
      --> scenario:29:6
    29 | to = "server"
       |      ^^^^^^^^
       = help: a [[link]] has both directions unless it has back = false
    "#);
    insta::assert_snapshot!(errors("qdisc = \"compare\"", "qdisc = \"compare\"\nback = 3"), @r"
    error: back: expected a table, or false for a link without a reverse direction
      --> scenario:17:8
    17 | back = 3
       |        ^ this is a number
    ");
    insta::assert_snapshot!(errors("from = \"home\"\nto = \"isp\"", "from = \"s[1-3]\"\nto = \"d[1-2]\""), @r#"
    error: 3 nodes cannot be paired with 2
      --> scenario:13:6
    13 | to = "d[1-2]"
       |      ^^^^^^^^
       = help: ranges of the same length are paired one by one; a single node is paired with all
    "#);
    insta::assert_snapshot!(errors("from = \"home\"", "from = \"s[3-1]\""), @r#"
    error: this range is empty: 3 is above 1
      --> scenario:12:10
    12 | from = "s[3-1]"
       |          ^^^^^
       = help: write a name such as "home", or a range such as "s[1-10]"
    "#);
    insta::assert_snapshot!(errors("from = \"home\"\nto = \"server\"", "from = \"home\"\nto = \"home\""), @r#"
    error: traffic "upload" goes from "home" to itself
      --> scenario:28:6
    28 | to = "home"
       |      ^^^^^^
    "#);
    insta::assert_snapshot!(errors_of("duration = \"1 s\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"), @r#"
    error: a network needs links
     --> scenario:5:9
    5 | to = "b"
      |         ^
      = help: write [[link]] with from, to, rate and delay
    "#);
    insta::assert_snapshot!(errors("[[link]]\nfrom = \"home\"", "[[link]]\nfrom = \"home\"\nname = \"x\""), @r#"
    error: unknown key "name" of a link
      --> scenario:13:1
    13 | name = "x"
       | ^^^^
       = help: there are from, to, back, rate, delay, qdisc, loss, jitter, cost, mtu, outages, unordered, ...
    "#);
}

#[test]
fn a_comparison_needs_disciplines_and_a_link() {
    insta::assert_snapshot!(errors("disciplines = [\"fifo limit 100p\"]", ""), @r#"
    error: a link compares disciplines, but there are none
      --> scenario:16:9
    16 | qdisc = "compare"
       |         ^^^^^^^^^
       = help: write for example disciplines = ["fifo limit 100p"] above the links
    "#);
    insta::assert_snapshot!(errors("disciplines = [\"fifo limit 100p\"]", "disciplines = []"), @r#"
    error: there are no disciplines to compare
     --> scenario:6:15
    6 | disciplines = []
      |               ^^
      = help: write for example disciplines = ["fifo limit 100p"]
    "#);
    insta::assert_snapshot!(errors("qdisc = \"compare\"", ""), @r#"
    error: no link compares these disciplines
     --> scenario:6:15
    6 | disciplines = ["fifo limit 100p"]
      |               ^^^^^^^^^^^^^^^^^^^
      = help: write qdisc = "compare" in the [[link]] at which they are compared
    "#);
    insta::assert_snapshot!(errors("[\"fifo limit 100p\"]", "[\"fifo limit 100p\", \"fifo limit 100 packets\"]"), @r#"
    error: limit: "100" needs a unit: "300p" counts packets, "64kb" counts bytes
     --> scenario:6:47
    6 | disciplines = ["fifo limit 100p", "fifo limit 100 packets"]
      |                                               ^^^
    "#);
    insta::assert_snapshot!(errors("[\"fifo limit 100p\"]", "[\"fifo limit 100p\", \"fifo limit 0p\"]"), @r#"
    error: limit: 0 packets are too few: write at least "1p"
     --> scenario:6:41
    6 | disciplines = ["fifo limit 100p", "fifo limit 0p"]
      |                                         ^^^^^^^^ at home->isp
    "#);
    insta::assert_snapshot!(errors("[\"fifo limit 100p\"]", "3"), @r#"
    error: expected a discipline
     --> scenario:6:15
    6 | disciplines = 3
      |               ^ this is a number
      = help: write "fifo limit 100p", or { kind = "fifo", limit = "100p" }
    "#);
}

#[test]
fn a_run_without_results_is_refused() {
    insta::assert_snapshot!(errors("warmup = \"1 s\"", "warmup = \"10 s\""), @r#"
    error: warmup: 10s leaves nothing to measure of a duration of 10s
     --> scenario:4:10
    4 | warmup = "10 s"
      |          ^^^^^^
    "#);
    insta::assert_snapshot!(errors("seeds = 2", "seeds = 0"), @r"
    error: seeds: at least one is needed
     --> scenario:5:9
    5 | seeds = 0
      |         ^
      = help: write a count, as in seeds = 3, or a list, as in seeds = [1, 7, 42]
    ");
    insta::assert_snapshot!(errors("seeds = 2", "seeds = -1"), @r"
    error: seeds: expected a count from 1 to 100000
     --> scenario:5:9
    5 | seeds = -1
      |         ^^
      = help: write a count, as in seeds = 3, or a list, as in seeds = [1, 7, 42]
    ");
    insta::assert_snapshot!(errors("seeds = 2", "seeds = [1, 7, 1]"), @r"
    error: seeds: this seed is listed twice
     --> scenario:5:16
    5 | seeds = [1, 7, 1]
      |                ^
      = help: write a count, as in seeds = 3, or a list, as in seeds = [1, 7, 42]
    ");
    insta::assert_snapshot!(errors("name = \"upload\"", "name = \"upload\"\nstart = \"5 s\"\nstop = \"2 s\""), @r#"
    error: traffic "upload" stops at 2s, before it starts
      --> scenario:28:8
    28 | stop = "2 s"
       |        ^^^^^ it starts at 5s
    "#);
    insta::assert_snapshot!(errors("warmup = \"1 s\"", "warmup = \"1 s\"\ncooldown = \"9 s\""), @r#"
    error: cooldown: 9s leaves nothing to measure of a duration of 10s with a warm-up of 1s
     --> scenario:5:12
    5 | cooldown = "9 s"
      |            ^^^^^
    "#);
    insta::assert_snapshot!(errors("[record]", "[short]\nduration = \"2 s\"\nwarmup = \"3 s\"\n[record]"), @r#"
    error: [short]: a warm-up of 3s leaves nothing to measure of a duration of 2s
      --> scenario:32:10
    32 | warmup = "3 s"
       |          ^^^^^
    "#);
}

#[test]
fn an_error_in_a_flag_shows_the_flag_without_a_line_number() {
    insta::assert_snapshot!(flag_errors(&["duration"]), @r#"
    error: --set needs a key and a value
      | --set duration
      |       ^^^^^^^^
      = help: write for example --set duration=5s
    "#);
    insta::assert_snapshot!(flag_errors(&["duration=5"]), @r#"
    error: duration: expected a time with its unit, such as "5ms"
      | --set duration=5
      |                ^ this number has no unit
    "#);
    insta::assert_snapshot!(flag_errors(&["druation=5s"]), @r#"
    error: unknown key "druation" of a scenario
      | --set druation=5s
      |       ^^^^^^^^
      = help: did you mean "duration"?
    "#);
    insta::assert_snapshot!(flag_errors(&["link.7.rate=5mbit"]), @r#"
    error: "link" has no element 7
      | --set link.7.rate=5mbit
      |            ^
      = help: it has 2 elements, numbered from 0
    "#);
    insta::assert_snapshot!(flag_errors(&["traffic.uplaod.flows=3"]), @r#"
    error: "traffic" has no element "uplaod"
      | --set traffic.uplaod.flows=3
      |               ^^^^^^
      = help: did you mean "upload"?
    "#);
    insta::assert_snapshot!(flag_errors(&["link.0.rate=5mbit", "link.0.rte=5mbit"]), @r#"
    error: unknown key "rte" of a link
      | --set link.0.rte=5mbit
      |              ^^^
      = help: did you mean "rate"?
    "#);
    insta::assert_snapshot!(flag_errors(&["disciplines.0=fivo"]), @r#"
    error: unknown discipline "fivo"
      | --set disciplines.0=fivo
      |                     ^^^^
      = help: did you mean "fifo"?
    "#);
    insta::assert_snapshot!(flag_errors(&["title.x=3"]), @r#"
    error: "title" has no keys
      | --set title.x=3
      |       ^^^^^
    "#);
    // A place in another flag has no line number, either.
    let twice =
        "link=[{from='a',to='b',rate='1mbit',delay='1ms'},{from='a',to='b',rate='1mbit',delay='1ms'}]";
    let message = flag_errors(&[twice]);
    assert!(message.contains("^ the first is in --set\n") && !message.contains("in line"), "{message}");
}

/// Reservations of 6 Mbit/s and twice 2,500 kbit/s exceed a link of 10 Mbit/s. One after the other they fit.
#[test]
fn reservations_above_the_rate_of_a_link_are_refused() {
    let more = |stop: &str| {
        format!(
            r#"reserved = "6 Mbit/s"
{stop}

[[traffic]]
kind = "cbr"
name = "calls"
from = "home"
to = "server"
rate = "1 Mbit/s"
packet = "200b"
flows = 2
start = "5 s"
reserved = "2500 kbit/s"

[record]"#
        )
    };
    insta::assert_snapshot!(errors("\n[record]", &more("")), @r#"
    error: traffic "calls" reserves more than the unreserved rate of home->isp
      --> scenario:41:12
    41 | reserved = "2500 kbit/s"
       |            ^^^^^^^^^^^^^ 2500kbit for each of its flows; the link has 10mbit
       = help: reserve less here or above, or make the link faster
    "#);
    let in_succession = VALID.replacen("\n[record]", &more("stop = \"5 s\""), 1);
    Scenario::parse(&in_succession, ".").expect("they fit");
}

#[test]
fn probable_mistakes_cause_warnings() {
    insta::assert_snapshot!(warnings("fifo limit 100p", "fifo limit 1p"), @r#"
    warning: 1p is 26 times less than the bandwidth-delay product
     --> scenario:6:22
    6 | disciplines = ["fifo limit 1p"]
      |                      ^^^^^^^^ home->isp at 10mbit with a round-trip time of 31.2 ms: 26 packets
      = help: a single TCP flow cannot fill the link
    "#);
    insta::assert_snapshot!(warnings("fifo limit 100p", "fifo limit 5000p"), @r#"
    warning: 5000p is 192 times the bandwidth-delay product
     --> scenario:6:22
    6 | disciplines = ["fifo limit 5000p"]
      |                      ^^^^^^^^^^^ home->isp at 10mbit with a round-trip time of 31.2 ms: 26 packets
      = help: a full queue delays packets by 6.0 s
    "#);
    // The shaper has the full queue, whatever the rate of the link is.
    insta::assert_snapshot!(warnings("fifo limit 100p", "tbf rate 1mbit burst 10kb limit 100p"), @r#"
    warning: 100p is 29 times the bandwidth-delay product
     --> scenario:6:43
    6 | disciplines = ["tbf rate 1mbit burst 10kb limit 100p"]
      |                                           ^^^^^^^^^^ home->isp shaped to 1mbit with a round-trip time of 42.0 ms: 4 packets
      = help: a full queue delays packets by 1.2 s
    "#);
    assert_eq!(warnings("fifo limit 100p", "cake bandwidth 10mbit overhead 44 atm"), "");
    insta::assert_snapshot!(warnings("fifo limit 100p", "tbf rate 5mbit burst 60kb limit 1500b"), @r#"
    warning: 1500b hold no packet of 1500b with its Ethernet header
     --> scenario:6:43
    6 | disciplines = ["tbf rate 5mbit burst 60kb limit 1500b"]
      |                                           ^^^^^^^^^^^
      = help: giveway live and Linux count the header, and drop every full packet: write at least 1514b
    "#);
    insta::assert_snapshot!(warnings("\"10 Mbit/s\"", "\"10 Mbps\""), @r#"
    warning: "10 Mbps" is a rate in bytes per second, as in tc: 80mbit
      --> scenario:14:9
    14 | rate = "10 Mbps"
       |         ^^^^^^^
       = help: megabits per second are written "mbit" or "Mbit/s"
    "#);
    insta::assert_snapshot!(warnings("\"10 ms\"", "\"900 ms\""), @r#"
    warning: the run lasts 10s, less than ten round-trip times of 1.81 s
     --> scenario:3:12
    3 | duration = "10 s"
      |            ^^^^^^
      = help: TCP is in slow start for most of that time

    warning: 100p is 15 times less than the bandwidth-delay product
     --> scenario:6:22
    6 | disciplines = ["fifo limit 100p"]
      |                      ^^^^^^^^^^ home->isp at 10mbit with a round-trip time of 1811.2 ms: 1509 packets
      = help: a single TCP flow cannot fill the link
    "#);
    insta::assert_snapshot!(warnings("name = \"upload\"", "name = \"upload\"\nstart = \"20 s\""), @r#"
    warning: traffic "upload" starts after the end of the run
      --> scenario:27:9
    27 | start = "20 s"
       |         ^^^^^^
    "#);
    insta::assert_snapshot!(warnings("fifo limit 100p", "ared target 20ms"), @r#"
    warning: packets of 1500b are 3.0 times avpkt (500b): the queue settles near 60.0 ms, not at target (20ms)
     --> scenario:6:16
    6 | disciplines = ["ared target 20ms"]
      |                ^^^^^^^^^^^^^^^^^^ at home->isp, 10mbit, with traffic "upload"
      = help: write avpkt 1500b
    "#);
    assert_eq!(warnings("fifo limit 100p", "ared target 20ms avpkt 1500b"), "");
    insta::assert_snapshot!(warnings("congestion = \"cubic\"", "mss = \"8kb\""), @r#"
    warning: packets of 8244 bytes are larger than the mtu of home->isp, 1500b
     --> scenario:9:7
    9 | mss = "8kb"
      |       ^^^^^
      = help: the simulator sends them, a real link would not: make mss smaller or mtu larger
    "#);
}

/// The errors of a scenario with a list in a file; the numbers of files and pairs if it is valid.
fn listed(kind: &str, rows: Option<&str>, keys: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder can be created");
    if let Some(rows) = rows {
        std::fs::write(folder.path().join("rows.csv"), rows).expect("a file can be written");
    }
    let entry = format!("[[traffic]]\nkind = \"{kind}\"\nfile = \"rows.csv\"\n{keys}\n[record]");
    let text = VALID.replace("[record]", &entry);
    let summary = Scenario::parse(&text, folder.path()).map(|scenario| {
        let pairs = &scenario.network().unwrap().traffic[1].pairs;
        format!("{} file, {} pairs", scenario.files().len(), pairs.len())
    });
    let result = summary.unwrap_or_else(|error| error.to_string());
    result.replace(&folder.path().display().to_string(), "FOLDER")
}

#[test]
fn a_flow_list_is_read_with_the_scenario() {
    assert_eq!(listed("flow_list", Some("0,home,server,1000\n"), ""), "1 file, 1 pairs");
    insta::assert_snapshot!(listed("flow_list", Some("0,home,server,1000\n1,home,sever,1000\n"), ""), @r#"
    error: traffic "flow_list": file: FOLDER/rows.csv: row 2, column dst: found "sever", expected the name of a node, perhaps "server"
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(listed("flow_list", Some("0,home,server,many\n"), ""), @r#"
    error: traffic "flow_list": file: FOLDER/rows.csv: row 1, column size_bytes: found "many", expected a whole number of bytes, 1 or more
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(listed("flow_list", None, ""), @r#"
    error: traffic "flow_list": file: FOLDER/rows.csv: cannot be read: No such file or directory (os error 2)
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^
    "#);
    insta::assert_snapshot!(listed("flow_list", Some("0,home,server,1000\n"), "from = \"home\""), @r#"
    error: traffic "flow_list": flow_list names its nodes in its file
      --> scenario:33:8
    33 | from = "home"
       |        ^^^^^^
       = help: leave from out
    "#);
}

/// There must be a path to each node that a file names.
#[test]
fn nodes_of_a_list_need_a_path() {
    let alone = "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nback = false\n";
    insta::assert_snapshot!(listed("flow_list", Some("0,home,server,1000\n1,home,a,1000\n"), alone), @r#"
    error: traffic "flow_list": there is no path from "home" to "a"
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^ unreachable
    "#);
    insta::assert_snapshot!(listed("flow_list", Some("0,a,b,1000\n"), alone), @r#"
    error: traffic "flow_list": there is no path for acknowledgements from "b" to "a"
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^
       = help: a [[link]] has both directions unless it has back = false
    "#);
    assert_eq!(listed("datagram_list", Some("0,a,b,1000\n"), alone), "1 file, 1 pairs");
}

#[test]
fn the_nodes_of_a_datagram_list_are_in_the_file_or_in_the_scenario() {
    let ends = "from = \"home\"\nto = \"server\"";
    assert_eq!(listed("datagram_list", Some("0,1000\n"), ends), "1 file, 1 pairs");
    let both_ways = "0,home,server,1000,1\n1,server,home,100,1\n2,home,server,50,2\n";
    assert_eq!(listed("datagram_list", Some(both_ways), ""), "1 file, 2 pairs");
    insta::assert_snapshot!(listed("datagram_list", Some("0,1000\n"), ""), @r#"
    error: traffic "datagram_list": the file names no nodes
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^
       = help: write from and to, or give it the columns src and dst
    "#);
    insta::assert_snapshot!(listed("datagram_list", Some("0,1000\n"), "from = \"home\""), @r#"
    error: traffic "datagram_list" needs "to"
      --> scenario:30:1
    30 | [[traffic]]
       | ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(listed("datagram_list", Some("0,home,server,1000\n"), ends), @r#"
    error: traffic "datagram_list": datagram_list names its nodes in its file
      --> scenario:33:8
    33 | from = "home"
       |        ^^^^^^
       = help: leave from out

    error: traffic "datagram_list": datagram_list names its nodes in its file
      --> scenario:34:6
    34 | to = "server"
       |      ^^^^^^^^
       = help: leave to out
    "#);
    insta::assert_snapshot!(listed("datagram_list", Some("0,home,server,20\n"), ""), @r#"
    error: traffic "datagram_list": file: FOLDER/rows.csv: row 1, column size_bytes: found "20", expected the length of an IP packet in bytes, 28 to 65,535
      --> scenario:32:8
    32 | file = "rows.csv"
       |        ^^^^^^^^^^
    "#);
}

#[test]
fn spread_and_stagger_exclude_each_other() {
    insta::assert_snapshot!(errors("to = \"server\"\n\n[record]", "to = \"server\"\nspread = \"1 s\"\nstagger = \"1 s\"\n\n[record]"), @r#"
    error: traffic "upload": spread: with a stagger of 1s each flow begins at a fixed time, and nothing is spread: leave spread or stagger out
      --> scenario:29:10
    29 | spread = "1 s"
       |          ^^^^^
    "#);
}

#[test]
fn traffic_without_answers_needs_no_reverse_path() {
    let one_way = VALID.replace("qdisc = \"compare\"", "qdisc = \"compare\"\nback = false");
    let call = one_way.replace("\"bulk\"", "\"audio\"");
    assert_eq!(
        Scenario::parse(&call, ".")
            .map(|scenario| scenario.network().unwrap().ports.len())
            .map_err(|error| error.to_string()),
        Ok(3)
    );
}

#[test]
fn outages_are_in_order_and_do_not_overlap() {
    let rate = "rate = \"10 Mbit/s\"";
    let with = |outages: &str| errors(rate, &format!("{rate}\noutages = {outages}"));
    insta::assert_snapshot!(with(r#"[{ at = "2 s", lasts = "0 s" }]"#), @r#"
    error: outages: an outage must last longer than 0
      --> scenario:15:11
    15 | outages = [{ at = "2 s", lasts = "0 s" }]
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       = help: write for example outages = [{ at = "10 s", lasts = "5 s" }]
    "#);
    insta::assert_snapshot!(with(r#"[{ at = "2 s", lasts = "3 s" }, { at = "4 s", lasts = "1 s" }]"#), @r#"
    error: outages: the outage at 2s lasts until 5s, and the next begins at 4s
      --> scenario:15:11
    15 | outages = [{ at = "2 s", lasts = "3 s" }, { at = "4 s", lasts = "1 s" }]
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       = help: write outages in order, with time between them
    "#);
    insta::assert_snapshot!(with(r#"[{ at = "2 s", last = "3 s" }]"#), @r#"
    error: unknown key "last" of outages
      --> scenario:15:26
    15 | outages = [{ at = "2 s", last = "3 s" }]
       |                          ^^^^
       = help: did you mean "lasts"?
    "#);
    insta::assert_snapshot!(with(r#""2 s""#), @r#"
    error: outages: expected a list
      --> scenario:15:11
    15 | outages = "2 s"
       |           ^^^^^ this is a string
    "#);
}

#[test]
fn a_misspelled_path_is_reported_with_the_nearest_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("quickstart.toml"), VALID).unwrap();
    let error = Draft::load(folder.path().join("quickstrat.toml")).unwrap_err();
    let near = folder.path().join("quickstart.toml");
    assert!(error.to_string().ends_with(&format!("; did you mean {}?", near.display())), "{error}");
    assert_eq!(error.near, Some(near));
    assert_eq!(Draft::load(folder.path().join("other.toml")).unwrap_err().near, None);
}

#[test]
fn host_is_an_older_name_of_backend() {
    let with = |key: &str| VALID.replacen("duration", &format!("{key} = \"network\"\nduration"), 1);
    assert_eq!(Scenario::parse(&with("host"), ".").unwrap().backend.name(), "network");
    let both = with("backend").replacen("duration", "host = \"network\"\nduration", 1);
    assert!(
        errors_of(&both).contains("host is an older name of backend, and both are given"),
        "{}",
        errors_of(&both)
    );
    assert!(flag_errors(&["host=netwrok"]).contains("unknown backend \"netwrok\""));
}

/// A scalable sender without a queue that marks is no better than a classic one.
#[test]
fn a_scalable_sender_needs_a_queue_that_marks() {
    insta::assert_snapshot!(warnings("\"cubic\"", "\"dctcp\""), @r#"
    warning: traffic "upload" has dctcp, which finds its rate by marks, and no queue on its path marks
     --> scenario:9:14
    9 | congestion = "dctcp"
      |              ^^^^^^^
      = help: write for example qdisc = "dualpi2" or "fq_codel ce_threshold 1ms" at the slowest link
    "#);
    let marked = VALID.replacen("\"cubic\"", "\"dctcp\"", 1).replacen(
        "\"fifo limit 100p\"",
        "\"fifo limit 100p\", \"fq_codel\"",
        1,
    );
    assert!(
        Scenario::parse(&marked, ".").unwrap().warnings.is_empty(),
        "one of the compared disciplines marks"
    );
}

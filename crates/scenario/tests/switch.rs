//! What a wrong scenario on a switch is told, in full, and what a right one comes to.

use scenario::{Host, Scenario};

/// A scenario in which everything is right; tests change one thing of it.
const RIGHT: &str = r#"
host = "switch"
duration = "1000 slots"
warmup = "100 slots"
disciplines = ["islip", "p_spf lazy 2"]

[switch]
ports = 8

[[traffic]]
kind = "onoff"
load = 0.8
"#;

/// What is told when `old` is replaced by `new`.
fn told(old: &str, new: &str) -> String {
    assert!(RIGHT.contains(old), "{old:?} is in the scenario");
    Scenario::parse(&RIGHT.replacen(old, new, 1), ".").expect_err("it is wrong").to_string()
}

#[test]
fn slots_are_counted_whatever_a_link_carries() {
    for switch in ["", "\nrate = \"1 Gbit/s\"", "\ncell = \"53b\""] {
        let text = RIGHT.replace("ports = 8", &format!("ports = 8{switch}"));
        let scenario = Scenario::parse(&text, ".").expect("it is right");
        let Host::Switch(crossbar) = &scenario.host else { panic!("it is a switch") };
        assert_eq!((crossbar.ports, crossbar.slots, crossbar.warmup), (8, 1000, 100), "{switch}");
        assert_eq!(scenario.host.compared(), ["islip", "p_spf lazy 2"]);
    }
}

#[test]
fn schedulers_that_make_no_sense_are_pointed_at() {
    insta::assert_snapshot!(told("\"islip\"", "\"islop\""), @r#"
    error: unknown scheduler "islop"
     --> scenario:5:17
    5 | disciplines = ["islop", "p_spf lazy 2"]
      |                 ^^^^^
      = help: did you mean "islip"?
    "#);
    insta::assert_snapshot!(told("p_spf lazy 2", "islip lazy 2"), @r#"
    error: lazy: nothing is interrupted in this mode: write "mode preemptive" or leave it out
     --> scenario:5:32
    5 | disciplines = ["islip", "islip lazy 2"]
      |                                ^^^^^^
    "#);
    insta::assert_snapshot!(told("\"islip\"", "\"fifo mode spf\""), @r#"
    error: mode: only virtual output queues have classes: write "cell" or "packet"
     --> scenario:5:22
    5 | disciplines = ["fifo mode spf", "p_spf lazy 2"]
      |                      ^^^^^^^^
    "#);
    insta::assert_snapshot!(told("disciplines = [\"islip\", \"p_spf lazy 2\"]", ""), @r#"
    error: a scenario on a switch needs "disciplines"
     --> scenario:2:1
    2 | host = "switch"
      | ^^^^
      = help: write for example disciplines = ["islip", "p_spf"] at the top
    "#);
}

#[test]
fn traffic_that_no_switch_can_carry_is_refused() {
    insta::assert_snapshot!(told("load = 0.8", "load = 1.2"), @r#"
    error: traffic "onoff": load: input 0 is offered 1.2000 cells a slot, and its link brings at most 1
      --> scenario:12:8
    12 | load = 1.2
       |        ^^^
    "#);
    insta::assert_snapshot!(told("load = 0.8", "load = 0.8\npattern = { hotspot = 0.5 }"), @r#"
    error: traffic "onoff": pattern: the traffic is not admissible: output 0 is asked to take 3.6000 cells a slot, and its link takes 1; lower the load, or write overload = true if that is meant
      --> scenario:13:11
    13 | pattern = { hotspot = 0.5 }
       |           ^^^^^^^^^^^^^^^^^
    "#);
    let network = told("kind = \"onoff\"", "kind = \"bulk\"");
    assert!(network.starts_with("error: unknown kind of traffic \"bulk\" on a switch\n"), "{network}");
    insta::assert_snapshot!(told("load = 0.8", "load = 0.8\n[[traffic]]\nkind = \"bernoulli\"\nload = 0.1"), @r#"
    error: a switch has one [[traffic]], for all inputs
      --> scenario:13:1
    13 | [[traffic]]
       | ^^^^^^^^^^^
       = help: a matrix of loads says which input sends how much to whom
    "#);
}

#[test]
fn what_is_of_a_network_is_not_of_a_switch() {
    insta::assert_snapshot!(told("[switch]", "[[link]]\nfrom = \"a\"\nto = \"b\"\n[switch]"), @r#"
    error: unknown key "link" of a scenario on a switch
     --> scenario:7:3
    7 | [[link]]
      |   ^^^^
      = help: there are title, description, host, duration, warmup, seeds, disciplines, switch, traffic, short
    "#);
    insta::assert_snapshot!(told("ports = 8", "ports = 1"), @r#"
    error: ports: 1: a switch has 2 to 1024
     --> scenario:8:9
    8 | ports = 1
      |         ^
    "#);
    insta::assert_snapshot!(told("host = \"switch\"", ""), @r#"
    error: a scenario with a [switch] runs on a switch
     --> scenario:7:1
    7 | [switch]
      | ^^^^^^^^
      = help: write host = "switch" at the top
    "#);
}

//! Scenarios on a switch: what is read, and what is refused with its reason.

use scenario::{Host, Scenario};

const SWITCH: &str = r#"
host = "switch"
duration = "1000 slots"
warmup = "100 slots"
disciplines = ["islip", "p_spf speedup 2"]
[switch]
ports = 4
speedup = 1.176
[[traffic]]
kind = "onoff"
load = 0.8
"#;

/// What is said of it when something is put in the place of something else.
fn told(from: &str, to: &str) -> String {
    assert!(SWITCH.contains(from), "{from} is in the scenario");
    let wrong = Scenario::parse(&SWITCH.replacen(from, to, 1), ".").unwrap_err();
    wrong.diagnostics.iter().map(|each| each.message.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_switch_is_read() {
    let scenario = Scenario::parse(SWITCH, ".").unwrap();
    let Host::Switch(crossbar) = &scenario.host else { panic!("it is on a switch") };
    assert_eq!((crossbar.ports, crossbar.slots, crossbar.warmup), (4, 1000, 100));
    // 64 bytes at 10 Gbit/s.
    assert_eq!(crossbar.slot.as_ps(), 51_200);
    // What a scheduler says itself counts more than what the switch says for all.
    let cells: Vec<String> = scenario.cells().into_iter().map(|cell| cell.name).collect();
    assert_eq!(cells, ["islip speedup 1.176", "p_spf speedup 2"]);
    let outcome = crossbar.run(&scenario.cells()[0], &|_| true).unwrap();
    assert_eq!((outcome.slots, outcome.ports), (900, 4));
    assert!(crossbar.run(&scenario.cells()[0], &|share| share < 0.5).is_none(), "it can be stopped");
    // A time is as good as slots, and a short run has fewer.
    let timed = Scenario::parse(&SWITCH.replace("1000 slots", "51.2 us"), ".").unwrap();
    assert_eq!(timed.duration, scenario.duration);
    let long = Scenario::parse(&SWITCH.replace("1000 slots", "1_000_000 slots"), ".").unwrap();
    let Host::Switch(short) = &long.short().unwrap().host else { panic!("it is on a switch") };
    assert_eq!((short.slots, short.warmup), (50_000, 5));
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    assert_eq!(told("ports = 4", "ports = 1"), "ports: 1: a switch has 2 to 1024");
    assert_eq!(told("ports = 4", "ports = 2000"), "ports: 2000: a switch has 2 to 1024");
    assert!(told("load = 0.8", "load = 1.2").contains("input 0 is offered 1.2000 cells a slot"));
    assert!(told("load = 0.8", "load = -1.0").contains("expected a number above 0"));
    assert!(told("load = 0.8", "load = 0.8\npattern = { hotspot = 0.5 }").contains("not admissible"));
    assert!(told("load = 0.8", "load = 0.8\npattern = \"diagnal\"").contains("diagnal"));
    assert!(told("speedup = 1.176", "speedup = 0.9").contains("below 1 the fabric could not keep up"));
    assert!(told("speedup 2", "speedup 0.5").contains("below 1 the fabric could not keep up"));
    let sizes = "load = 0.8\nsizes = { trimodel = { a = 1, b = 9, c = 24, pa = 0.8, pb = 0.3 } }";
    assert!(told("load = 0.8", sizes).contains("together at most 1"));
    let matrix = "load = 1.0\npattern = { matrix = [[0.1, -0.1], [0.1, 0.1]] }";
    assert!(told("load = 0.8", matrix).contains("the matrix has 2 rows, and the switch has 4 ports"));
    assert!(told("\"islip\"", "\"islop\"").contains("unknown scheduler \"islop\""));
    assert!(told("\"islip\"", "\"islip lazy 3\"").contains("nothing is interrupted in this mode"));
    assert!(
        told("kind = \"onoff\"", "kind = \"bulk\"").contains("unknown kind of traffic \"bulk\" on a switch")
    );
    assert!(
        told("[[traffic]]", "[[link]]\n[[traffic]]")
            .contains("unknown key \"link\" of a scenario on a switch")
    );
    let two = "[[traffic]]\nkind = \"bernoulli\"\nload = 0.1\n[[traffic]]";
    assert!(told("[[traffic]]", two).contains("a switch has one [[traffic]]"));
    assert!(told("\"1000 slots\"", "\"many slots\"").contains("is no number of slots"));
    assert!(told("\"1000 slots\"", "\"50 slots\"").contains("leaves nothing of the duration"));
    assert!(told("host = \"switch\"\n", "").contains("a scenario with a [switch] runs on a switch"));
}

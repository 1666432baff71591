//! Scenarios on a switch: the messages about invalid ones, and the result of a run.

use giveway_scenario::{Backend, Scenario};
use giveway_switch::{Outside, SlotRequests};

/// A valid scenario. Each test changes one part of it.
const VALID: &str = r#"
backend = "switch"
duration = "1000 slots"
warmup = "100 slots"
disciplines = ["islip", "p_spf lazy 2"]

[switch]
ports = 8

[[traffic]]
kind = "onoff"
load = 0.8
"#;

/// The errors if `old` is replaced by `new`.
fn errors(old: &str, new: &str) -> String {
    assert!(VALID.contains(old), "{old:?} is not in the scenario");
    Scenario::parse(&VALID.replacen(old, new, 1), ".").expect_err("it is invalid").to_string()
}

#[test]
fn a_number_of_slots_does_not_depend_on_their_length() {
    for switch in ["", "\nrate = \"1 Gbit/s\"", "\ncell = \"53b\""] {
        let text = VALID.replace("ports = 8", &format!("ports = 8{switch}"));
        let scenario = Scenario::parse(&text, ".").expect("it is valid");
        let Backend::Switch(crossbar) = &scenario.backend else { panic!("the backend is not a switch") };
        assert_eq!((crossbar.ports, crossbar.slots, crossbar.warmup), (8, 1000, 100), "{switch}");
        assert_eq!(scenario.backend.compared(), ["islip", "p_spf lazy 2"]);
    }
}

#[test]
fn invalid_arbiters_are_refused() {
    insta::assert_snapshot!(errors("\"islip\"", "\"islop\""), @r#"
    error: unknown arbiter "islop"
     --> scenario:5:17
    5 | disciplines = ["islop", "p_spf lazy 2"]
      |                 ^^^^^
      = help: did you mean "islip"?
    "#);
    insta::assert_snapshot!(errors("p_spf lazy 2", "islip lazy 2"), @r#"
    error: lazy: nothing is interrupted in this mode: write "mode preemptive" or leave it out
     --> scenario:5:32
    5 | disciplines = ["islip", "islip lazy 2"]
      |                                ^^^^^^
    "#);
    insta::assert_snapshot!(errors("\"islip\"", "\"fifo mode spf\""), @r#"
    error: mode: only virtual output queues have classes: write "cell" or "packet"
     --> scenario:5:22
    5 | disciplines = ["fifo mode spf", "p_spf lazy 2"]
      |                      ^^^^^^^^
    "#);
    insta::assert_snapshot!(errors("disciplines = [\"islip\", \"p_spf lazy 2\"]", ""), @r#"
    error: a scenario on a switch needs "disciplines"
     --> scenario:2:1
    2 | backend = "switch"
      | ^^^^^^^
      = help: write for example disciplines = ["islip", "p_spf"] at the top
    "#);
}

#[test]
fn inadmissible_traffic_is_refused() {
    insta::assert_snapshot!(errors("load = 0.8", "load = 1.2"), @r#"
    error: traffic "onoff": load: input 0 is offered 1.2000 cells a slot, and its link brings at most 1
      --> scenario:12:8
    12 | load = 1.2
       |        ^^^
    "#);
    insta::assert_snapshot!(errors("load = 0.8", "load = 0.8\npattern = { hotspot = 0.5 }"), @r#"
    error: traffic "onoff": pattern: the traffic is not admissible: output 0 is offered 3.6000 cells a slot, and its link takes 1; lower the load, or write overload = true if that is meant
      --> scenario:13:11
    13 | pattern = { hotspot = 0.5 }
       |           ^^^^^^^^^^^^^^^^^
    "#);
    let network = errors("kind = \"onoff\"", "kind = \"bulk\"");
    assert!(network.starts_with("error: unknown kind of switch traffic \"bulk\"\n"), "{network}");
    insta::assert_snapshot!(errors("load = 0.8", "load = 0.8\n[[traffic]]\nkind = \"bernoulli\"\nload = 0.1"), @r"
    error: a switch has one [[traffic]] for all inputs
      --> scenario:13:1
    13 | [[traffic]]
       | ^^^^^^^^^^^
       = help: a matrix has the load of each input to each output
    ");
}

#[test]
fn numbers_out_of_range_are_refused() {
    assert!(errors("ports = 8", "ports = 2000").contains("ports: 2000 is not between 2 and 1024"));
    assert!(errors("load = 0.8", "load = -1.0").contains("expected a number above 0"));
    assert!(errors("load = 0.8", "load = 0.8\npattern = \"diagnal\"").contains("diagnal"));
    for (old, new) in [("ports = 8", "ports = 8\nspeedup = 0.9"), ("\"islip\"", "\"islip speedup 0.5\"")] {
        assert!(errors(old, new).contains("below 1 the fabric could not keep up"), "{new}");
    }
    let sizes = "load = 0.8\nsizes = { trimodel = { a = 1, b = 9, c = 24, pa = 0.8, pb = 0.3 } }";
    assert!(errors("load = 0.8", sizes).contains("together at most 1"));
    let matrix = |rows: &str| errors("load = 0.8", &format!("load = 1.0\npattern = {{ matrix = [{rows}] }}"));
    assert!(matrix("[0.1, 0.1], [0.1, 0.1]").contains("the matrix has 2 rows, and the switch has 8 ports"));
    let negative = ["[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, -0.1]"; 8].join(", ");
    assert!(matrix(&negative).contains("-0.1"), "{}", matrix(&negative));
}

#[test]
fn a_run_without_a_measurement_interval_is_refused() {
    assert!(errors("\"1000 slots\"", "\"many slots\"").contains("is not a number of slots"));
    assert!(errors("\"1000 slots\"", "\"50 slots\"").contains("leaves nothing to measure of a duration"));
}

#[test]
fn a_switch_has_its_own_keys() {
    insta::assert_snapshot!(errors("[switch]", "[[link]]\nfrom = \"a\"\nto = \"b\"\n[switch]"), @r#"
    error: unknown key "link" of a scenario on a switch
     --> scenario:7:3
    7 | [[link]]
      |   ^^^^
      = help: there are title, description, backend, duration, warmup, cooldown, seeds, disciplines, sweep, switch, traffic, short
    "#);
    insta::assert_snapshot!(errors("ports = 8", "ports = 1"), @r"
    error: ports: 1 is not between 2 and 1024
     --> scenario:8:9
    8 | ports = 1
      |         ^
    ");
    insta::assert_snapshot!(errors("backend = \"switch\"", ""), @r#"
    error: a scenario with a [switch] needs the backend "switch"
     --> scenario:7:1
    7 | [switch]
      | ^^^^^^^^
      = help: write backend = "switch" at the top
    "#);
}

#[test]
fn a_scenario_on_a_switch_runs() {
    let text = VALID.replace("ports = 8", "ports = 4\nspeedup = 1.176").replace("lazy 2", "speedup 2");
    let scenario = Scenario::parse(&text, ".").unwrap();
    let Backend::Switch(crossbar) = &scenario.backend else { panic!("the backend is not a switch") };
    assert_eq!((crossbar.ports, crossbar.slots, crossbar.warmup), (4, 1000, 100));
    // 64 bytes at 10 Gbit/s.
    assert_eq!(crossbar.slot.as_ps(), 51_200);
    // The speedup of an arbiter takes precedence over that of the switch.
    let names: Vec<String> = scenario.trials().into_iter().map(|trial| trial.name).collect();
    assert_eq!(names, ["islip speedup 1.176", "p_spf speedup 2"]);
    let outcome = crossbar.run(&scenario.trials()[0], &|_| true).unwrap();
    assert_eq!((outcome.slots, outcome.ports), (900, 4));
    assert!(
        crossbar.run(&scenario.trials()[0], &|share| share < 0.5).is_none(),
        "a stopped run has no result"
    );
    // The duration can be a time. A quick check has fewer slots.
    let timed = Scenario::parse(&text.replace("1000 slots", "51.2 us"), ".").unwrap();
    assert_eq!(timed.duration, scenario.duration);
    let long = Scenario::parse(&text.replace("1000 slots", "1_000_000 slots"), ".").unwrap();
    let Backend::Switch(short) = &long.short().unwrap().backend else {
        panic!("the backend is not a switch")
    };
    assert_eq!((short.slots, short.warmup), (50_000, 5));
}

/// An arbiter of the caller, which matches all requests that fit, or all requests.
struct Own {
    all: bool,
}

impl Outside for Own {
    fn decide(&mut self, asked: &SlotRequests<'_>, pairs: &mut Vec<(usize, usize)>) -> Result<(), String> {
        for &(input, output) in asked.pairs {
            if self.all || pairs.iter().all(|&(one, other)| one != input && other != output) {
                pairs.push((input, output));
            }
        }
        Ok(())
    }
}

#[test]
fn a_trial_runs_with_an_arbiter_of_the_caller() {
    let scenario = Scenario::parse(VALID, ".").expect("it is valid");
    let Backend::Switch(crossbar) = &scenario.backend else { panic!("the backend is not a switch") };
    for trial in scenario.trials() {
        let outcome = crossbar.run_built(&trial, &|_, _| Box::new(Own { all: false }), &|_| true);
        let outcome = outcome.expect("it makes no mistake").expect("it was not stopped");
        assert!(outcome.throughput > 0.5, "{}: {}", trial.name, outcome.throughput);
        let wrong = crossbar.run_built(&trial, &|_, _| Box::new(Own { all: true }), &|_| true).unwrap_err();
        assert!(wrong.contains("is in two pairs"), "{wrong}");
        let stopped = crossbar.run_built(&trial, &|_, _| Box::new(Own { all: false }), &|done| done < 0.5);
        assert_eq!(stopped, Ok(None));
    }
}

//! Commands for switches: lists, slots step by step, and searches.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The path of a scenario in this repository.
fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// Runs the program to its end. Returns its exit code, standard output and standard error.
fn ran(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).env("COLUMNS", "100").env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("no signal ends it"), text(stdout), text(stderr))
}

/// A switch of four ports with independent arrivals of cells.
const CELLS: &str = r#"
backend = "switch"
duration = "20000 slots"
warmup = "4000 slots"
seeds = 3
disciplines = ["fifo", "oq"]

[switch]
ports = 4

[[traffic]]
kind = "bernoulli"
load = 0.5
"#;

/// Creates a folder with a scenario. Returns the folder and the path of the scenario.
fn scenario(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("cells.toml");
    std::fs::write(&file, text).expect("there is room for a file");
    let name = file.to_string_lossy().into_owned();
    (folder, name)
}

#[test]
fn a_run_prints_what_its_report_says_of_arbiters() {
    let (_folder, file) = scenario(CELLS);
    let (code, printed, errors) = ran(&["run", &file]);
    assert_eq!(code, 0, "{errors}");
    assert!(printed.contains("\nEvery arbiter carries the offered load of 0.499 ± "), "{printed}");
    assert!(!printed.contains("No metric"), "{printed}");
}

#[test]
fn arbiters_and_traffic_are_listed() {
    let (_, all, _) = ran(&["list"]);
    for line in ["\nArbiters of a switch\n", "\n  islip ", "\nTraffic of a switch\n", "\n  bernoulli "] {
        assert!(all.contains(line), "{line} in {all}");
    }
    let (_, arbiters, _) = ran(&["list", "arbiters"]);
    assert_eq!(arbiters.lines().count(), 1 + giveway_switch::ALL.len(), "{arbiters}");
    let (_, traffic, _) = ran(&["list", "switch-traffic"]);
    assert_eq!(traffic.lines().count(), 1 + giveway_switch::traffic::SOURCES.len(), "{traffic}");
}

#[test]
fn arbiters_are_explained_with_the_parameters_of_all_arbiters() {
    for entry in giveway_switch::ALL {
        let (code, page, _) = ran(&["explain", entry.name]);
        assert_eq!(code, 0, "{}", entry.name);
        assert!(page.contains("References\n"), "{page}");
        let (own, all) = page.split_once("Parameters of every arbiter\n").expect("the options are there");
        assert!(!own.contains("\n  speedup "), "{page}");
        assert!(all.contains("  speedup ") && all.contains("store_and_forward"), "{page}");
    }
    let (_, islip, _) = ran(&["explain", "islip"]);
    let (own, _) = islip.split_once("Parameters of every arbiter\n").expect("the options are there");
    assert!(own.contains("\nParameters\n  iterations  a whole number    default 4\n"), "{islip}");
}

#[test]
fn names_on_networks_and_switches_are_explained_twice() {
    let (_, fifo, _) = ran(&["explain", "fifo"]);
    let at = |text: &str| fifo.find(text).unwrap_or_else(|| panic!("{text} in {fifo}"));
    assert!(at("fifo, a queue discipline\n") < at("  limit  packets or bytes"));
    assert!(at("  limit  packets or bytes") < at("fifo, an arbiter of a switch\n"));
    let (_, onoff, _) = ran(&["explain", "onoff"]);
    assert!(onoff.contains("onoff, a source of traffic\n") && onoff.contains("onoff, traffic of a switch\n"));
}

/// The steps are computed by hand. In slot 0 all three inputs request output 0, whose pointer is at 0, so it
/// grants input 0. In slot 1 the pointer is at 1. In cell mode output 0 then grants input 1, although the
/// packet of input 0 has not ended. In packet mode output 0 stays connected to input 0, and input 1 sends its
/// second packet to output 2. With P-SPF the short packet of input 1 interrupts in slot 0.
#[test]
fn slots_are_printed_step_by_step() {
    let file = shipped("switch/by-hand.toml");
    let file = file.to_string_lossy();
    let (code, out, err) = ran(&["run", &file, "--trace-slots", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
    let (_, four, _) =
        ran(&["run", &file, "--trace-slots", "4", "--set", "disciplines=p_spf", "--seeds", "2"]);
    assert_eq!(
        four.lines().filter(|line| line.starts_with("slot ")).count(),
        4,
        "the first seed only: {four}"
    );
}

#[test]
fn slots_need_a_switch() {
    let file = shipped("quickstart.toml");
    let (code, out, err) = ran(&["run", &file.to_string_lossy(), "--trace-slots", "2"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("--trace-slots is for a switch"), "{err}");
}

/// Karol, Hluchyj and Morgan (1987), table I: FIFO input queues of four ports end at 0.6553.
#[test]
fn the_capacity_of_fifo_inputs_is_found() {
    let (_folder, file) = scenario(CELLS);
    let args = ["search", &file, "--capacity", "--between", "0.5:0.9", "--width", "0.01"];
    let (code, out, err) = ran(&[&args[..], &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(found["search"], "capacity");
    assert_eq!(found["seeds"], serde_json::json!([1, 2, 3]));
    let fifo = &found["results"][0];
    let load = |key: &str| fifo[key].as_f64().unwrap_or_else(|| panic!("{key} in {fifo}"));
    assert!(load("not_stable") - load("stable") < 0.01, "{fifo}");
    assert!((load("stable") - 0.6553).abs() < 0.02, "{fifo}");
    let oq = &found["results"][1];
    assert_eq!((oq["stable"].as_f64(), &oq["not_stable"]), (Some(0.9), &Value::Null), "{oq}");
    // The table has the same values, with another number of jobs.
    let (_, table, _) = ran(&[&args[..], &["--jobs", "1"]].concat());
    let row = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let four = |key: &str| format!("{:.4}", load(key));
    assert_eq!(row("fifo "), ["fifo".to_owned(), four("stable"), four("not_stable")], "{table}");
    assert_eq!(row("oq "), ["oq", "0.9000", "above", "0.9"], "{table}");
}

/// An arbiter that is unstable at the lower end of the interval is listed as below it.
#[test]
fn a_capacity_below_the_interval_is_reported() {
    let (_folder, file) = scenario(CELLS);
    let args = ["search", &file, "--capacity", "--between", "0.8:0.9", "--set", "disciplines=fifo"];
    let (code, out, _) = ran(&args);
    assert_eq!(code, 0);
    assert!(out.ends_with("fifo     below 0.8  0.8000\n"), "{out}");
}

/// Preemption shortens delays at low loads and reduces the capacity, so the curves of the mean delay of P-SPF
/// and iSLIP cross.
#[test]
fn a_crossover_is_between_the_loads_that_it_names() {
    let text = CELLS.replace("bernoulli", "onoff").replace("ports = 4", "ports = 16");
    let (_folder, file) = scenario(&text);
    let args = ["search", &file, "--crossover", "p_spf", "islip", "--between", "0.6:0.95", "--width", "0.05"];
    let (code, out, err) = ran(&[&args[..], &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(found["arbiters"], serde_json::json!(["p_spf", "islip"]));
    let ends: Vec<f64> =
        found["crossing"].as_array().expect("they cross").iter().flat_map(Value::as_f64).collect();
    assert!(0.6 < ends[0] && ends[1] < 0.95 && ends[1] - ends[0] <= 0.05, "{ends:?}");
    for point in found["points"].as_array().expect("there are points") {
        let number = |value: &Value| value.as_f64().expect("it is a number");
        let p_spf_is_faster = number(&point["means"][0]) < number(&point["means"][1]);
        assert_eq!(p_spf_is_faster, number(&point["load"]) <= ends[0], "{point}");
    }
    let (_, table, _) = ran(&args);
    let head =
        format!("p_spf and islip cross between {:.4} and {:.4} in wait_mean_slots\n", ends[0], ends[1]);
    assert!(table.starts_with(&head), "{table}");
    let (_, never, _) = ran(&["search", &file, "--crossover", "oq", "islip", "--between", "0.5:0.7"]);
    assert!(
        never.starts_with("no crossing: oq has less wait_mean_slots than islip at both ends\n"),
        "{never}"
    );
}

#[test]
fn invalid_searches_are_refused() {
    let (_folder, file) = scenario(CELLS);
    let refused = |args: &[&str]| {
        let (code, out, err) = ran(&[&["search"][..], args].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        err
    };
    let network = shipped("quickstart.toml");
    let by_hand = shipped("switch/by-hand.toml");
    let (network, by_hand) = (network.to_string_lossy(), by_hand.to_string_lossy());
    insta::assert_snapshot!(refused(&[&network, "--capacity"]), @"giveway: giveway plan capacity needs a switch, and this scenario runs on a network");
    insta::assert_snapshot!(refused(&[&by_hand, "--capacity"]), @r#"giveway: the traffic "list" has no load to search; write kind = "onoff" or "bernoulli""#);
    let crossover = |more: &[&str]| refused(&[&[&*file, "--crossover"][..], more].concat());
    insta::assert_snapshot!(crossover(&["islop", "fifo"]), @r#"giveway: --crossover: unknown arbiter "islop"; did you mean "islip"?"#);
    insta::assert_snapshot!(crossover(&["islip", "fifo mode spf"]), @r#"giveway: --crossover: fifo mode spf: mode: only virtual output queues have classes: write "cell" or "packet""#);
    insta::assert_snapshot!(crossover(&["islip", "fifo", "--metric", "wait_mean_slot"]), @r#"giveway: --metric: a switch does not measure "wait_mean_slot"; did you mean "wait_mean_slots"?"#);
    insta::assert_snapshot!(refused(&[&file, "--capacity", "--between", "0.5:1.5"]), @"giveway: --between: at a load of 1.5: load: input 0 is offered 1.5000 cells a slot, and its link brings at most 1");
    assert!(refused(&[&network]).contains("needs a switch"), "the capacity is the usual question");
    assert!(refused(&[&file, "--capacity", "--between", "0.9:0.5"]).contains("write two loads above 0"));
    assert!(refused(&[&file, "--capacity", "--width", "0"]).contains("write a number from 0.000001 to 1"));
}

//! The program on a test bed, from outside. What needs root, `ip` and `ethtool` is skipped with the reason where they are missing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn shipped(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    path.to_str().expect("it is text").to_owned()
}

/// Runs it to its end: exit code, output, errors.
fn ran(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).env("COLUMNS", "100").env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

#[test]
fn each_scenario_has_its_command() {
    let (code, _, said) = ran(&["run", &shipped("testbed/quickstart.toml")]);
    assert_eq!(code, 2);
    assert!(said.contains("giveway testbed") && said.contains("--set backend=network"), "{said}");
    let (code, _, said) = ran(&["testbed", &shipped("quickstart.toml")]);
    assert_eq!(code, 2);
    assert!(said.contains("giveway run"), "{said}");
    let alone = "disciplines=[\"kernel:tbf limit 100000\"]";
    let (code, _, said) =
        ran(&["testbed", &shipped("testbed/quickstart.toml"), "--against-simulation", "--set", alone]);
    assert_eq!(code, 2);
    assert!(said.contains("the simulator has no disciplines of the kernel"), "{said}");
}

#[test]
fn a_scenario_of_a_test_bed_can_be_simulated() {
    let (code, out, said) =
        ran(&["run", &shipped("testbed/quickstart.toml"), "--set", "backend=network", "--short", "--json"]);
    assert_eq!(code, 0, "{said}");
    let told: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(told["results"][1]["qdisc"], "fq_codel");
}

#[test]
fn the_quick_start_runs_beside_its_simulation() {
    if let Err(error) = giveway_testbed::ready() {
        // Written past the harness, which keeps what a passing test prints to itself.
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let file = shipped("testbed/quickstart.toml");
    let place = out.to_str().unwrap();
    let only = "disciplines=[\"fq_codel\"]";
    let args =
        ["testbed", &file, "--short", "--against-simulation", "--out", place, "--json", "--attempts", "1"];
    let (code, text, said) = ran(&[&args[..], &["--set", only]].concat());
    assert_eq!(code, 0, "{said}");
    let lines: Value = serde_json::from_str(&text).expect("it is JSON");
    let lines = lines.as_array().expect("a row for each metric");
    assert!(lines.iter().all(|line| line["qdisc"] == "fq_codel"));
    let of = |metric: &str| lines.iter().find(|line| line["metric"] == metric).expect(metric);
    // Transfers took some time, and small packets waited: both hosts measured both.
    for metric in ["fct_le100kB_p50_s", "small_sojourn_p95_s"] {
        for host in ["reality", "simulation"] {
            assert!(of(metric)[host]["mean"].as_f64().expect(metric) > 0.0, "{metric} in {host}: {lines:?}");
        }
    }
    for kept in [
        "against.md",
        "against.json",
        "reality/flows.parquet",
        "simulation/flows.parquet",
        "reality/router/fq-codel-seed-1/forward/queue.parquet",
    ] {
        assert!(out.join(kept).is_file(), "{kept}");
    }
}

/// Where the kernel takes them, `cargo xtask test-kernel` runs them.
#[test]
fn ours_in_the_kernel_are_refused_with_their_place() {
    let file = shipped("testbed/quickstart.toml");
    let told = |discipline: &str| {
        let only = format!("disciplines=[\"fq_codel\", \"{discipline}\"]");
        let (code, _, said) = ran(&["testbed", &file, "--short", "--set", &only]);
        assert_eq!(code, 2, "{said}");
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = told("bpf:efd limit 200000p");
    assert!(said.contains("at most 131070") && said.contains("bpf:efd limit 200000p"), "{said}");
    let said = told("bpf:drr quanta [1]");
    assert!(said.contains("bpf:drr quanta"), "{said}");
    if giveway_testbed::ready().is_ok() && giveway_kernel::attach::ready().is_err() {
        let said = told("bpf:efd");
        assert!(said.contains("does not support qdiscs in BPF") && said.contains("disciplines=["), "{said}");
    }
}

/// The kernel's disciplines have no delay of their own: a wire of ours behind them has it.
#[test]
fn a_discipline_of_the_kernel_stands_in() {
    if let Err(error) = giveway_testbed::ready() {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    let kernel = "disciplines=[\"kernel:tbf limit 100000\"]";
    let file = shipped("testbed/quickstart.toml");
    let (code, text, said) =
        ran(&["testbed", &file, "--short", "--json", "--attempts", "1", "--set", kernel]);
    if code == 2 && said.contains("this kernel has no discipline") {
        let _ = writeln!(std::io::stderr(), "skipped: {said}");
        return;
    }
    assert_eq!(code, 0, "{said}");
    let told: Value = serde_json::from_str(&text).expect("it is JSON");
    let metrics = &told["results"][0]["metrics"];
    // Two ways of 10 ms for the handshake's and the data's first round trips: nothing completes in less than 30 ms.
    assert!(metrics["fct_p50_s"]["mean"].as_f64().expect("transfers completed") > 0.030, "{metrics}");
    // Only the ends measure.
    assert!(metrics["small_sojourn_p50_s"]["mean"].is_null() && metrics["goodput_bps"]["mean"].is_f64());
}

//! `giveway testbed`. Tests that need root, `ip` and `ethtool` are skipped with the reason if these are
//! missing.

#![expect(clippy::disallowed_methods, reason = "a skipped test says so past the capture of its output")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::programs::has_net;

/// The path of a scenario in this repository.
fn shipped(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    path.to_str().expect("it is text").to_owned()
}

/// Runs the program to its end. Returns its exit code, standard output and standard error.
fn ran(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).env("COLUMNS", "100").env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("no signal ends it"), text(stdout), text(stderr))
}

#[test]
fn each_scenario_has_its_command() {
    let (code, _, errors) = ran(&["run", &shipped("testbed/quickstart.toml")]);
    assert_eq!(code, 2);
    assert!(errors.contains("giveway testbed") && errors.contains("--set backend=network"), "{errors}");
    let (code, _, errors) = ran(&["testbed", &shipped("quickstart.toml")]);
    assert_eq!(code, 2);
    assert!(errors.contains("giveway run"), "{errors}");
    let alone = "disciplines=[\"kernel:tbf limit 100000\"]";
    let (code, _, errors) =
        ran(&["testbed", &shipped("testbed/quickstart.toml"), "--against-simulation", "--set", alone]);
    assert_eq!(code, 2);
    assert!(errors.contains("the simulator has no disciplines of the kernel"), "{errors}");
}

#[test]
fn a_scenario_of_a_test_bed_can_be_simulated() {
    let (code, out, errors) =
        ran(&["run", &shipped("testbed/quickstart.toml"), "--set", "backend=network", "--short", "--json"]);
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(report["results"][1]["qdisc"], "fq_codel");
}

#[test]
fn the_quick_start_is_compared_with_its_simulation() {
    if let Err(error) = giveway_testbed::ready() {
        // Written directly, since the test harness hides the output of tests that pass.
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    if !has_net() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let file = shipped("testbed/quickstart.toml");
    let out_name = out.to_str().unwrap();
    let only = "disciplines=[\"fq_codel\"]";
    let args =
        ["testbed", &file, "--short", "--against-simulation", "--out", out_name, "--json", "--attempts", "1"];
    let (code, text, errors) = ran(&[&args[..], &["--set", only]].concat());
    assert_eq!(code, 0, "{errors}");
    let lines: Value = serde_json::from_str(&text).expect("it is JSON");
    let lines = lines.as_array().expect("a row for each metric");
    assert!(lines.iter().all(|line| line["qdisc"] == "fq_codel"));
    let of = |metric: &str| lines.iter().find(|line| line["metric"] == metric).expect(metric);
    // Both backends measured completion times of transfers and sojourn times of small packets.
    for metric in ["fct_le100kB_p50_s", "small_sojourn_p95_s"] {
        for backend in ["reality", "simulation"] {
            assert!(
                of(metric)[backend]["mean"].as_f64().expect(metric) > 0.0,
                "{metric} in {backend}: {lines:?}"
            );
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

/// The rate falls from 8 to 2 Mbit/s. The router uses what the link offers, and its trace, with the changes
/// of the rate, is replayed with the same decisions.
#[test]
fn the_bottleneck_varies_on_a_test_bed() {
    if let Err(error) = giveway_testbed::ready() {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    if !has_net() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("router.trace");
    let trace = trace.to_str().unwrap();
    let file = shipped("testbed/step.toml");
    let rate = "link.1.rate={ steps = [[\"0s\", \"8mbit\"], [\"2s\", \"2mbit\"]] }";
    let only = "disciplines=[\"codel\"]";
    let settings = ["--set", rate, "--set", only, "--set", "duration=4s", "--set", "warmup=1s"];
    let args = ["testbed", &file, "--seeds", "1", "--attempts", "1", "--json", "--trace", trace];
    let (code, text, errors) = ran(&[&args[..], &settings].concat());
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    // 8 Mbit in the second after the warm-up, and 4 Mbit in the other two.
    let used = report["results"][0]["metrics"]["utilization"]["mean"].as_f64().expect("it is measured");
    assert!((0.8..=1.03).contains(&used), "{used}: {errors}");
    let (code, out, errors) = ran(&["replay-check", trace]);
    assert_eq!(code, 0, "{out}{errors}");
    let (code, _, errors) = ran(&[&args[..3], &["2", "--trace", trace]].concat());
    assert!(code == 2 && errors.contains("--trace captures one run"), "{errors}");
}

#[test]
fn the_timing_of_the_machine_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("timing.csv");
    let name = csv.to_str().unwrap();
    let measure = ["testbed", "--measure-timing", name, "--wake-ups", "100", "--quiet"];
    let (code, out, errors) = ran(&measure);
    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("timer of a sender, idle") && out.contains("receive, one busy core"), "{out}");
    let text = std::fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("# How late threads wake up") && text.contains("\nwhat,share,delay\ntimer,0,"));
    assert_eq!(ran(&[&measure[..], &["--busy"]].concat()).0, 0, "a file of this kind is replaced");
    assert!(std::fs::read_to_string(&csv).unwrap().contains("# load: one busy core"));
    std::fs::write(&csv, "mine").unwrap();
    let (code, _, errors) = ran(&measure);
    assert!(code == 2 && errors.contains("timing.csv") && errors.contains("--force"), "{errors}");
    let (code, _, errors) = ran(&["testbed"]);
    assert!(code == 2 && errors.contains("<FILE>"), "{errors}");
}

/// Tests with a kernel that supports BPF qdiscs are in `cargo xtask test-kernel`.
#[test]
fn invalid_bpf_disciplines_are_refused_with_their_position() {
    let file = shipped("testbed/quickstart.toml");
    let refused = |discipline: &str| {
        let only = format!("disciplines=[\"fq_codel\", \"{discipline}\"]");
        let (code, _, errors) = ran(&["testbed", &file, "--short", "--set", &only]);
        assert_eq!(code, 2, "{errors}");
        errors.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let errors = refused("bpf:efd limit 200000p");
    assert!(errors.contains("at most 131070") && errors.contains("bpf:efd limit 200000p"), "{errors}");
    let errors = refused("bpf:drr quanta [1]");
    assert!(errors.contains("bpf:drr quanta"), "{errors}");
    if giveway_testbed::ready().is_ok() && giveway_kernel::attach::ready().is_err() {
        let errors = refused("bpf:efd");
        assert!(
            errors.contains("does not support qdiscs in BPF") && errors.contains("disciplines=["),
            "{errors}"
        );
    }
}

/// A discipline of the kernel has no propagation delay; a link emulation behind it adds the delay.
#[test]
fn a_discipline_of_the_kernel_replaces_the_router() {
    if let Err(error) = giveway_testbed::ready() {
        let _ = writeln!(std::io::stderr(), "skipped: {error}");
        return;
    }
    if !has_net() {
        return;
    }
    let kernel = "disciplines=[\"kernel:tbf limit 100000\"]";
    let file = shipped("testbed/quickstart.toml");
    let args = ["testbed", &file, "--short", "--json", "--attempts", "1", "--set", kernel];
    let (code, text, errors) = ran(&args);
    if code == 2 && errors.contains("this kernel has no discipline") {
        let _ = writeln!(std::io::stderr(), "skipped: {errors}");
        return;
    }
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    let metrics = &report["results"][0]["metrics"];
    // The round-trip time is 20 ms, and handshake and data need 1.5 of them: no transfer completes in less
    // than 30 ms.
    assert!(metrics["fct_p50_s"]["mean"].as_f64().expect("transfers completed") > 0.030, "{metrics}");
    // The router does not measure, only the end systems do.
    assert!(metrics["small_sojourn_p50_s"]["mean"].is_null() && metrics["goodput_bps"]["mean"].is_f64());
    assert!(errors.contains("packets, forward"), "{errors}");
    let (code, _, errors) = ran(&[&args[..], &["--quiet"]].concat());
    assert_eq!((code, errors.as_str()), (0, ""), "--quiet prints no remark on a run");
}

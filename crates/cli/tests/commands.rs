//! Commands of the program: their output and their exit codes.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str = r#"
title = "Two queues"
duration = "1 s"
warmup = "200 ms"
seeds = 2
disciplines = ["fifo limit 50p", "fifo limit 10p"]

[[link]]
from = "home"
to = "isp"
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
from = "home"
to = "isp"
"#;

/// Creates a folder with a scenario.
fn folder(scenario: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    std::fs::write(folder.path().join("home.toml"), scenario).expect("there is room for a file");
    folder
}

fn giveway(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1");
    command
}

/// Runs the program to its end. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = giveway(folder, args).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("no signal ends it"), text(stdout), text(stderr))
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let (code, out, _) = ran(folder, args);
    assert_eq!(code, 0);
    assert_eq!(out.lines().count(), 1, "only the object: {out}");
    serde_json::from_str(&out).expect("it is JSON")
}

/// Removes the margin that all lines of a message have.
fn shown(err: &str) -> String {
    let lines = err.trim_matches('\n').lines();
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn mistakes_in_scenarios_are_shown_with_their_lines() {
    let wrong = SCENARIO.replace("5 Mbit/s", "5").replace("fifo limit 10p", "fivo limit 10p");
    let folder = folder(&wrong);
    for command in ["check", "run"] {
        let (code, out, err) = ran(folder.path(), &[command, "home.toml"]);
        assert_eq!((code, out.as_str()), (2, ""));
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&err), @r#"
            error: unknown discipline "fivo"
            --> home.toml:6:35
             |
            5 | seeds = 2
            6 | disciplines = ["fifo limit 50p", "fivo limit 10p"]
             |                                   ^^^^
            7 |
             |
             = help: did you mean "fifo"?

            error: rate: "5" has no unit: a rate is written for example "10mbit" or "10 Mbit/s"
             --> home.toml:11:8
              |
            10 | to = "isp"
            11 | rate = "5"
              |        ^^^
            12 | delay = "10 ms"
              |
            "#);
        }
    }
}

#[test]
fn valid_scenarios_are_summarised() {
    let folder = folder(SCENARIO);
    let (code, out, err) = ran(folder.path(), &["check", "home.toml"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out, @r#"home.toml: ok: 2 nodes, 2 ports, 2 disciplines, 4 runs of 1s"#);
}

#[test]
fn lints_are_warnings() {
    let folder = folder(SCENARIO);
    let (code, _, err) = ran(folder.path(), &["check", "home.toml", "--set", "disciplines=fifo limit 3000p"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(shown(&err), @r#"
    warning: 3000p is 321 times the bandwidth-delay product
     |
    1 | --set disciplines=fifo limit 3000p
     |                        ^^^^^^^^^^^ home->isp at 5mbit with a round-trip time of 22.4 ms: 9 packets
     |
     = help: a full queue delays packets by 7.2 s
    "#);
}

/// The plot is below the table. It is the same from a folder that already has the trials. Widths and colours
/// match the table: it is plain text.
#[test]
fn delays_over_time_are_plotted() {
    let folder = folder(
        &SCENARIO.replace("\"5 Mbit/s\"", "{ steps = [[\"0s\", \"5mbit\"], [\"500ms\", \"1mbit\"]] }"),
    );
    let plot = |out: &str| {
        let (_, plot) = out.split_once("One-way").unwrap_or_else(|| panic!("there is no plot: {out}"));
        let (plot, _) = plot.split_once("\nfingerprint").expect("the fingerprint is the last line");
        format!("One-way{plot}")
    };
    let args = ["run", "home.toml", "--seeds", "1", "--plot", "--out", "kept"];
    let (code, out, _) = ran(folder.path(), &args[..5]);
    assert_eq!(code, 0);
    assert!(!out.contains('\x1b') && plot(&out).lines().all(|line| line.chars().count() <= 100));
    insta::assert_snapshot!(plot(&out), @r"
    One-way delay over time at home->isp, mean over 10 ms each, seed 1. From ▁ 31.9 ms to █ 513 ms,
    logarithmic; blank: no packet arrived.

                0.2 s                                                        1 s        mean         max
    fifo limit 50p
      bulk      ▂▂▂▃▃▃▃▄▄▄▄▄▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅ ▅▅▆▆ ▆▆▆▇ ▇▇▇▇▇▇▇▇▇████ ████ ████ █      161 ms      516 ms
    fifo limit 10p
      bulk      ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂▂ ▃▃▄▄ ▄▅▅▄ ▄▅▄▅▅▅▄▄▄▄▅▅▅ ▅▅▅▅ ▅▅▅▅ ▅     54.5 ms      142 ms
    link rate   ████████████████████████▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂ 2.50 Mbit/s 5.00 Mbit/s
    ");
    for _ in 0..2 {
        let (code, kept, _) = ran(folder.path(), &args);
        assert_eq!((code, plot(&kept)), (0, plot(&out)));
    }
    let narrow =
        giveway(folder.path(), &args).env("COLUMNS", "50").output().expect("the program starts").stdout;
    let narrow = plot(&String::from_utf8(narrow).expect("it writes text"));
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    assert_eq!(ran(folder.path(), &["run", "home.toml", "--plot", "--json"]).0, 2);
}

#[test]
fn mistakes_in_flags_are_shown_with_the_flag() {
    let folder = folder(SCENARIO);
    let (code, _, err) = ran(folder.path(), &["check", "home.toml", "--set", "link.0.rte=5mbit"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(shown(&err), @r#"
    error: unknown key "rte" of a link
     |
    1 | --set link.0.rte=5mbit
     |              ^^^
     |
     = help: did you mean "rate"?
    "#);
}

/// The column counts in the file, not in the excerpt.
#[test]
fn a_clipped_line_is_shown_with_its_position() {
    let others: String = (100..130).map(|packets| format!("\"fifo limit {packets}p\", ")).collect();
    let wrong = SCENARIO.replace("\"fifo limit 10p\"", &format!("{others}\"fivo limit 10p\""));
    let folder = folder(&wrong);
    let (code, _, err) = ran(folder.path(), &["check", "home.toml"]);
    assert_eq!(code, 2);
    assert!(err.contains("--> home.toml:6:605\n") && err.contains("^^^^\n") && !err.contains(":::"), "{err}");
}

#[test]
fn a_missing_file_is_an_error_with_a_similar_name() {
    let folder = folder(SCENARIO);
    let (code, _, err) = ran(folder.path(), &["run", "hmoe.toml"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(shown(&err), @r#"giveway: cannot read hmoe.toml: No such file or directory (os error 2); did you mean home.toml?"#);
    assert_eq!(ran(folder.path(), &["run", "home.toml", "--seeds", "0"]).0, 2);
    assert_eq!(ran(folder.path(), &["rnu"]).0, 2);
}

/// Each name is known from another command.
#[test]
fn a_first_look_is_short_or_quick() {
    let folder = folder(SCENARIO);
    let outputs =
        ["--short", "--quick"].map(|flag| ran(folder.path(), &["run", "home.toml", "--quiet", flag]));
    assert_eq!(outputs[0].0, 0);
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(ran(folder.path(), &["reproduce", "--short"]), ran(folder.path(), &["reproduce", "--quick"]));
}

#[test]
fn a_run_prints_a_row_for_each_discipline() {
    let folder = folder(SCENARIO);
    let (code, out, err) = ran(folder.path(), &["run", "home.toml", "--quiet"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..2],
        ["Two queues", "home->isp at 5mbit, 1 s, measured from 0.2 s on, 2 seeds, phases sampled"]
    );
    for row in ["fifo limit 50p ", "fifo limit 10p "] {
        assert!(lines.iter().any(|line| line.starts_with(row)), "{out}");
    }
    assert!(lines.last().is_some_and(|line| line.starts_with("fingerprint ")));
    // The sentences of the demo, before the fingerprint.
    for part in ["has the lowest 99th percentile of the sojourn times", "Means over 2 seeds;"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("goodput of each source"), "there is one source: {out}");
}

/// Two trials are kept from an earlier run, and others are interrupted.
#[test]
#[allow(clippy::disallowed_methods, reason = "it waits for another process")]
fn a_partial_run_has_no_fingerprint_and_names_the_command_that_resumes_it() {
    let folder = folder(&SCENARIO.replace("\"1 s\"", "\"300 s\""));
    let path = folder.path();
    let asked = ["run", "home.toml", "--out", "kept", "--quiet"];
    assert_eq!(ran(path, &[&asked[..], &["--seeds", "1"]].concat()).0, 0);
    for form in [&[][..], &["--json"]] {
        let child = giveway(path, &[&asked[..], &["--seeds", "500"], form].concat())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let written = || walk(&path.join("kept/trials")).len();
        let before = written();
        while written() <= before {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGINT)
            .expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let out = String::from_utf8(output.stdout).expect("it writes text");
        assert_eq!(output.status.code(), Some(130), "{out}");
        let command = "giveway run home.toml --out kept --quiet --seeds 500";
        if form.is_empty() {
            assert!(!out.contains("fingerprint ") && !out.contains("Means over"), "{out}");
            assert!(
                out.contains("This run is partial: ") && out.contains(" of 1000 trials finished"),
                "{out}"
            );
            assert!(out.ends_with(&format!("This command resumes it:\n  {command}\n")), "{out}");
        } else {
            let found: Value = serde_json::from_str(&out).expect("it is JSON");
            assert_eq!(found["fingerprint"], Value::Null);
            assert_eq!(found["partial"]["planned"], 1000);
            assert_eq!(found["partial"]["resume"], format!("{command} --json"));
        }
        let manifest = std::fs::read_to_string(path.join("kept/manifest.json")).expect("it is there");
        let manifest: Value = serde_json::from_str(&manifest).expect("it is JSON");
        assert_eq!((&manifest["complete"], &manifest["fingerprint"]), (&Value::Bool(false), &Value::Null));
    }
}

#[test]
fn json_is_one_object_that_does_not_depend_on_the_number_of_jobs() {
    let folder = folder(SCENARIO);
    let one = json(folder.path(), &["run", "home.toml", "--json", "--jobs", "1"]);
    let two = json(folder.path(), &["run", "home.toml", "--json", "--jobs", "2"]);
    let keys: Vec<&String> = one.as_object().expect("it is an object").keys().collect();
    assert_eq!(keys, ["scenario", "fingerprint", "cpu_s", "events", "bottleneck_packets", "results"]);
    assert_eq!(one["scenario"], "home");
    assert!(one["events"].as_u64() > Some(1000) && one["bottleneck_packets"].as_u64() > Some(100));
    for key in ["fingerprint", "events", "bottleneck_packets", "results"] {
        assert_eq!(one[key], two[key], "{key}");
    }
    let results = one["results"].as_array().expect("there is a row for each discipline");
    let disciplines: Vec<&str> = results.iter().filter_map(|row| row["qdisc"].as_str()).collect();
    assert_eq!(disciplines, ["fifo limit 50p", "fifo limit 10p"]);
    let used = &results[0]["metrics"]["utilization"];
    assert!(used["mean"].as_f64() > Some(0.9), "{used}");
    assert_eq!(used["per_seed"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        results[0]["metrics"]["fct_mean_s"]["mean"],
        Value::Null,
        "without transfers it is null, not 0"
    );
}

#[test]
fn a_folder_keeps_runs_and_accepts_more_seeds() {
    let folder = folder(SCENARIO);
    let path = folder.path();
    let first = json(path, &["run", "home.toml", "--json", "--out", "kept", "--seeds", "1"]);
    let summary = path.join("kept/summary.parquet");
    assert!(summary.is_file() && path.join("kept/manifest.json").is_file());
    // The file of a trial that is resumed keeps its time.
    let trials = || {
        let mut found: Vec<_> = walk(&path.join("kept/trials"));
        found.retain(|file| file.ends_with("summary.json"));
        found
    };
    let before: Vec<_> =
        trials().iter().map(|file| std::fs::metadata(file).unwrap().modified().unwrap()).collect();
    let more = json(path, &["run", "home.toml", "--json", "--out", "kept", "--seeds", "2"]);
    assert_eq!(trials().len(), 4);
    let kept = trials()
        .iter()
        .filter(|file| before.contains(&std::fs::metadata(file).unwrap().modified().unwrap()))
        .count();
    assert_eq!(kept, before.len(), "finished runs are not repeated");
    let per_seed = |object: &Value| object["results"][0]["metrics"]["drops"]["per_seed"][0].clone();
    assert_eq!(per_seed(&first), per_seed(&more));
    let fresh = json(path, &["run", "home.toml", "--json", "--seeds", "2"]);
    assert_eq!(fresh["fingerprint"], more["fingerprint"]);
}

/// All files in a folder. A run in progress renames folders, so one may be gone when it is read.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

#[test]
fn a_run_fails_if_its_results_cannot_be_kept() {
    let folder = folder(SCENARIO);
    let (code, _, err) = ran(folder.path(), &["run", "home.toml", "--quiet", "--out", "home.toml"]);
    assert_eq!(code, 1);
    assert!(err.starts_with("giveway: cannot write home.toml"), "{err}");
}

#[test]
fn ctrl_c_keeps_finished_runs() {
    let folder = folder(&SCENARIO.replace("seeds = 2", "seeds = 50000"));
    let mut command =
        giveway(folder.path(), &["run", "home.toml", "--json", "--quiet", "--jobs", "1", "--out", "kept"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    // Once a run has finished, the handler of Ctrl-C is installed.
    let trials = folder.path().join("kept/trials");
    let begun = || trials.is_dir() && walk(&trials).iter().any(|file| file.ends_with("seed-1/summary.json"));
    while !begun() {
        assert_eq!(child.try_wait().expect("its state is known"), None, "it runs");
        std::thread::yield_now();
    }
    let killed =
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    let mut out = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut out).expect("it writes text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let found: Value = serde_json::from_str(&out).expect("the finished runs are shown");
    let seeds = found["results"][0]["seeds"].as_u64().expect("there are some");
    assert!((1..50_000).contains(&seeds), "{seeds}");
    let manifest = std::fs::read_to_string(folder.path().join("kept/manifest.json")).expect("it is kept");
    assert_eq!(serde_json::from_str::<Value>(&manifest).expect("it is JSON")["complete"], false);
}

#[test]
fn bounds_are_printed_without_a_run() {
    let reserved = SCENARIO.replace("kind = \"bulk\"", "kind = \"bulk\"\nreserved = \"500 kbit/s\"");
    assert_ne!(reserved, SCENARIO);
    let folder = folder(&reserved);
    let (code, out, err) =
        ran(folder.path(), &["bound", "home.toml", "--set", "disciplines=[\"fifo\", \"wfq\"]"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("fifo  no bound that holds") && out.contains(" ms at most"), "{out}");
    let args = ["bound", "home.toml", "--json", "--burst", "15kb", "--set", "disciplines=[\"wfq\"]"];
    let (_, out, _) = ran(folder.path(), &args);
    let bounds: Value = serde_json::from_str(&out).expect("it is JSON");
    let stream = &bounds["links"][0]["streams"][0];
    assert_eq!((&stream["reserved_bps"], &stream["burst_bytes"]), (&500_000.into(), &15_360.into()), "{out}");
    assert!(stream["bounds"][0]["delay_s"].as_f64().is_some_and(|delay| delay > 0.24), "{out}");
}

#[test]
fn bounds_need_reservations() {
    let folder = folder(SCENARIO);
    let (code, out, err) = ran(folder.path(), &["bound", "home.toml"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("home.toml has no reservation: write for example reserved"), "{err}");
}

#[test]
fn papers_are_listed_and_reproduced() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (code, out, _) = ran(folder.path(), &["reproduce"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("efd "), "{out}");
    let args = ["reproduce", "efd", "--quick", "--seeds", "1", "--figure", "1b"];
    let (code, out, err) = ran(folder.path(), &args);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Figure 1b: ") && out.contains(", of 1 claims."), "{out}");
    assert!(err.contains("the report is runs/efd-quick/report.html"), "{err}");
    let claims =
        std::fs::read_to_string(folder.path().join("runs/efd-quick/claims.json")).expect("it was written");
    let claims: Value = serde_json::from_str(&claims).expect("it is JSON");
    let (code, out, _) = ran(folder.path(), &[&args[..], &["--json", "--jobs", "1"]].concat());
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<Value>(&out).expect("it is JSON"), claims, "with any number of jobs");
    let page =
        std::fs::read_to_string(folder.path().join("runs/efd-quick/report.html")).expect("it was written");
    assert!(page.contains("Figure 1b"));
}

#[test]
fn unknown_papers_and_figures_are_errors_with_the_known_ones() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (code, _, err) = ran(folder.path(), &["reproduce", "edf"]);
    assert_eq!(code, 2);
    assert!(err.contains("unknown paper \"edf\"") && err.contains("there are: efd"), "{err}");
    let (code, _, err) = ran(folder.path(), &["reproduce", "efd", "--figure", "8"]);
    assert_eq!(code, 2);
    assert!(err.contains("unknown figure 8; there are: 1b, 2, 3"), "{err}");
    assert!(!folder.path().join("runs").exists(), "nothing is left behind");
}

#[test]
fn lists_have_a_line_for_each_entry() {
    let folder = folder(SCENARIO);
    let path = folder.path();
    let (code, all, _) = ran(path, &["list"]);
    assert_eq!(code, 0);
    for name in [
        "Queue disciplines",
        "  fifo ",
        "TCP congestion controls",
        "  cubic ",
        "Sources of traffic",
        "  bulk ",
        "Arbiters of a switch",
    ] {
        assert!(all.contains(name), "{name} in {all}");
    }
    let (_, some, _) = ran(path, &["list", "congestion"]);
    assert!(some.contains("reno") && !some.contains("fifo"));
}

/// A discipline is below the heading of the place where it runs.
#[test]
fn disciplines_are_listed_by_where_they_run() {
    let folder = folder(SCENARIO);
    let (code, all, _) = ran(folder.path(), &["list", "disciplines"]);
    assert_eq!(code, 0);
    let headings = [
        "\nIn Linux today, ",
        "\nHere only\n",
        "\nHere only, for flows that have",
        "\nHere only, with knowledge",
        "\nFamilies\n",
    ];
    let at =
        headings.map(|heading| all.find(heading).unwrap_or_else(|| panic!("{heading} is missing in {all}")));
    assert!(at.is_sorted(), "{all}");
    for (group, names) in
        [["fq_codel", "htb"], ["efd", "las"], ["trr_sound", "wf2q"], ["srpt", "bsq"]].iter().enumerate()
    {
        let within = &all[at[group]..at[group + 1]];
        assert!(names.iter().all(|name| within.contains(&format!("\n  {name} "))), "{within}");
    }
    let srpt = all.lines().find(|line| line.starts_with("  srpt ")).unwrap();
    assert!(srpt.contains("  size ") && srpt.ends_with("; needs the sizes of flows"), "{srpt}");
}

#[test]
fn commands_are_listed_by_task() {
    let folder = folder(SCENARIO);
    let (code, help, _) = ran(folder.path(), &["--help"]);
    assert_eq!(code, 0);
    let tasks = [
        "\nCompare disciplines on a capture",
        "\nSimulate:\n",
        "\nReal frames:\n",
        "\nThe kernel of Linux:\n",
    ];
    let tasks = tasks.into_iter().chain(["\nPapers:\n", "\nTools:\n", "\nOptions:\n"]);
    let at: Vec<usize> =
        tasks.map(|task| help.find(task).unwrap_or_else(|| panic!("{task} in {help}"))).collect();
    assert!(at.is_sorted() && help[at[1]..at[2]].contains("\n  run  "), "{help}");
    assert!(help[at[5]..at[6]].contains("\n  list  "), "{help}");
}

/// Long examples stand on separate lines at any width of the terminal, so that they can be copied.
#[test]
fn examples_in_the_help_are_not_broken() {
    let folder = folder(SCENARIO);
    let line = "  giveway compare evening.pcapng --rate 10mbit --mode replay --link 192.168.0.0/16 --export queues.pcapng";
    for columns in ["40", "80", "100", "200"] {
        for args in [&["compare", "--help"][..], &["compare", "-h"], &["help", "compare"]] {
            let output =
                giveway(folder.path(), args).env("COLUMNS", columns).output().expect("the program starts");
            let help = String::from_utf8(output.stdout).expect("it writes text");
            assert!(help.lines().any(|shown| shown == line), "{columns}: {help}");
            let codes = help.split_once("Exit codes:").expect("exit codes are the end").1;
            assert!(codes.lines().all(|line| line.len() <= 100), "other text is wrapped: {codes}");
        }
    }
}

#[test]
fn events_are_counted_for_those_who_ask() {
    let folder = folder(SCENARIO);
    let (code, _, err) = ran(folder.path(), &["run", "home.toml", "--short"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for flag in ["-v", "--verbose"] {
        let (code, _, err) = ran(folder.path(), &["run", "home.toml", "--short", flag]);
        assert!(code == 0 && err.contains(" events, ") && err.contains(" s of processor time"), "{err}");
    }
}

#[test]
fn explanations_have_the_header_and_the_parameters() {
    let folder = folder(SCENARIO);
    let path = folder.path();
    let (_, fifo, _) = ran(path, &["explain", "fifo"]);
    // The second page explains the arbiter of a switch.
    let (fifo, _) = fifo.split_once("\n\nfifo, an arbiter").expect("networks and switches have a fifo");
    insta::assert_snapshot!(fifo, @r#"
    fifo, a queue discipline

    First in, first out: the default queue of a link.

    Principles
    - Departure order is acceptance order, whatever the flow.
    - The limit counts packets or bytes, as written; the packet on the wire does not count.
    - When the queue is full, the arriving packet is refused (`drop tail`), or the oldest is dropped
      (`drop head`), so that the sender detects congestion a queue's length earlier.
    - When the limit is lowered while packets are queued, those above it are dropped: the newest ones,
      or with `drop head` the oldest.

    Deviations
    - None. ns-2's drop-tail refuses when the queue *reaches* the limit, so its capacity is one packet
      less: `limit 39p` here is `limit_ 40` there.

    Cost
    - One queue operation per packet; the memory of the packets themselves.

    References
    - Linux `pfifo`, `bfifo`, `pfifo_head_drop`: tc-bfifo(8). The default limit there is the device's
      transmit queue length, 1,000 packets.

    Parameters
      limit  packets or bytes, "300p"  default "1000p"
             Capacity, in packets or in bytes.
      drop   "tail", "head"            default "tail"
             The packet that is dropped when the queue is full.
             "tail": The arriving packet.
             "head": The oldest packets, until the arriving packet fits.
    "#);
    let names = giveway_disciplines::ALL.iter().map(|entry| entry.name);
    let names = names.chain(giveway_sim::SOURCES.iter().map(|source| source.entry.name));
    let names = names.chain(giveway_switch::traffic::SOURCES.iter().map(|entry| entry.name));
    let names = names.chain(["reno", "cubic", "units", "tcp"]);
    for name in names {
        let (code, text, _) = ran(path, &["explain", name]);
        assert!(code == 0 && text.len() > 200, "{name}: {text}");
    }
    let (code, _, err) = ran(path, &["explain", "fivo"]);
    assert_eq!((code, err.as_str()), (2, "giveway: unknown name \"fivo\"; did you mean \"fifo\"?\n"));
}

#[test]
fn the_schema_and_completions_are_printed() {
    let folder = folder(SCENARIO);
    let (_, schema, _) = ran(folder.path(), &["schema"]);
    assert_eq!(serde_json::from_str::<Value>(&schema).expect("it is JSON")["title"], "Giveway scenario");
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = ran(folder.path(), &["completions", shell]);
        assert!(code == 0 && script.contains("giveway"));
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let folder = folder(SCENARIO);
    for args in [&["schema"][..], &["list"], &["completions", "bash"], &["run", "home.toml", "--quiet"]] {
        let mut child =
            giveway(folder.path(), args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

/// A long line is clipped, and of many mistakes only the first fifty are shown. Neither ends the program or
/// takes long.
#[test]
fn long_lines_and_many_mistakes_are_shown_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let head = "duration = \"1 s\"\ndisciplines = [\"fifo\"]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1mbit\"\n\
                delay = \"1ms\"\nqdisc = \"compare\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
    let check = |name: &str, text: String| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_giveway"))
            .arg("check")
            .arg(&file)
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).unwrap()
    };
    let spaces = " ".repeat(100_000);
    let errors = check("wide.toml", format!("{head}tcp = {{ mss = \"1460b\",{spaces}last = 1 }}\n"));
    assert!(errors.contains("unknown key \"last\"") && errors.contains(":13:100023\n"), "{errors}");
    assert!(errors.lines().all(|line| line.chars().count() < 400), "{errors}");
    let many: String = (0..10_000).map(|number| format!("oops{number} = 1\n")).collect();
    let errors = check("many.toml", format!("{head}{many}"));
    assert_eq!(errors.matches("unknown key").count(), 3);
    let last = "and 9,997 more errors; --all-errors shows them\n";
    assert!(errors.ends_with(last), "{}", &errors[errors.len() - 200..]);
}

/// A card of one cell, with the own best of each discipline and the sensitivity of the first.
#[test]
fn a_card_has_the_own_best_and_the_sensitivity() {
    let folder = tempfile::tempdir().unwrap();
    let card = ["evaluate", "fifo limit 10p", "--against", "codel", "--cells", "rrul/tcp-8-down"];
    let short = ["--seeds", "2", "--short", "--no-timing", "--quiet", "--out", "card"];
    let args = |more: &[&'static str]| [&card[..], &short[..], more].concat();
    let (code, out, _) = ran(folder.path(), &args(&["--tune", "4"]));
    assert_eq!(code, 0);
    assert!(out.contains("At their own best of 4 settings"), "{out}");
    assert!(out.contains("limit 10p -> 8p:") && out.contains("limit 10p -> 12p:"), "{out}");
    let page = std::fs::read_to_string(folder.path().join("card/card.html")).unwrap();
    assert!(page.contains("At its own best") && page.contains("Sensitivity"));
    let json: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("card/card.json")).unwrap()).unwrap();
    let best = json["own_best"]["settings"][0]["own_best"].as_str().unwrap();
    let (code, explained, _) = ran(folder.path(), &args(&["--tune", "0", "--no-sensitivity"]));
    assert!(
        code == 0 && !explained.contains("own best") && !explained.contains("Sensitivity"),
        "{explained}"
    );
    // The best setting is one that the program accepts.
    let (code, ..) =
        ran(folder.path(), &[&["evaluate", best][..], &card[2..], &short, &["--tune", "0"]].concat());
    assert_eq!(code, 0, "{best}");
    let (code, _, err) = ran(folder.path(), &args(&["--tune", "many"]));
    assert!(code == 2 && err.contains("--tune"), "{err}");
}

/// Several disciplines share the runs of their baselines, and each card equals the card of the
/// discipline alone.
#[test]
fn several_cards_are_those_of_each_discipline_alone() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--against", "fifo", "--cells", "rrul/tcp-8-down", "--seeds", "2", "--short", "--no-timing"];
    let plain = ["--quiet", "--tune", "0", "--no-sensitivity"];
    let args = |of: &[&'static str]| [&["evaluate"], of, &short[..], &plain[..]].concat();
    let (code, out, _) = ran(folder.path(), &args(&["codel", "fq_codel", "--out", "both"]));
    assert_eq!(code, 0);
    assert!(out.starts_with("Against fifo\n") && out.contains("\n  fq_codel  "), "{out}");
    assert!(out.ends_with("Cards: both/index.html\n"), "{out}");
    let (code, ..) = ran(folder.path(), &args(&["fq_codel", "--out", "alone"]));
    assert_eq!(code, 0);
    let read = |file: &str| std::fs::read(folder.path().join(file)).unwrap();
    assert_eq!(read("both/fq_codel/card.json"), read("alone/card.json"));
    let rows: Value = serde_json::from_slice(&read("both/overview.json")).unwrap();
    let disciplines: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["discipline"].as_str().unwrap()).collect();
    assert!(disciplines.contains(&"codel") && disciplines.contains(&"fq_codel"), "{rows}");
    assert!(read("both/index.html").len() > 10_000);
}

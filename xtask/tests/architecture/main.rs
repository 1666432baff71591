//! The shape of the workspace, enforced: which crate knows which, and who may name a discipline.
//!
//! `ARCHITECTURE.md` says why. A crate that is not in the table below has no place yet: give it one.

mod modules;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates of the workspace that a crate may use, and those that only its tests and benchmarks may use.
struct Place {
    name: &'static str,
    knows: &'static [&'static str],
    tests_know: &'static [&'static str],
}

/// The innermost first.
const PLACES: &[Place] = &[
    Place { name: "counting", knows: &[], tests_know: &[] },
    Place { name: "qdisc", knows: &[], tests_know: &[] },
    Place { name: "spec", knows: &["qdisc"], tests_know: &[] },
    Place { name: "disciplines", knows: &["qdisc", "spec"], tests_know: &["theory", "counting"] },
    Place { name: "replay", knows: &["qdisc", "disciplines"], tests_know: &["counting"] },
    Place { name: "kernel-plan", knows: &["qdisc", "disciplines"], tests_know: &[] },
    Place { name: "kernel", knows: &["kernel-plan"], tests_know: &[] },
    Place {
        name: "kernel-check",
        knows: &["qdisc", "disciplines", "replay", "kernel-plan"],
        tests_know: &[],
    },
    Place { name: "capture", knows: &["qdisc"], tests_know: &[] },
    Place { name: "watch", knows: &["qdisc", "capture", "wire"], tests_know: &[] },
    Place { name: "wire", knows: &["qdisc"], tests_know: &["capture", "counting"] },
    Place { name: "reserve", knows: &["qdisc"], tests_know: &[] },
    Place { name: "workload", knows: &["qdisc", "capture"], tests_know: &["counting"] },
    Place { name: "theory", knows: &[], tests_know: &[] },
    Place {
        name: "sim",
        knows: &["qdisc", "capture", "workload"],
        tests_know: &["disciplines", "theory", "counting"],
    },
    Place { name: "switch", knows: &["qdisc", "spec", "capture"], tests_know: &["theory", "counting"] },
    Place {
        name: "live",
        knows: &["qdisc", "capture", "wire", "watch", "reserve"],
        tests_know: &["disciplines"],
    },
    Place {
        name: "control",
        knows: &["qdisc", "disciplines", "live", "watch", "wire", "replay", "reserve"],
        tests_know: &[],
    },
    Place { name: "measure", knows: &["qdisc", "theory"], tests_know: &[] },
    Place { name: "document", knows: &["measure"], tests_know: &[] },
    Place { name: "record", knows: &["qdisc", "theory", "measure", "document"], tests_know: &[] },
    Place {
        name: "scenario",
        knows: &["qdisc", "spec", "disciplines", "kernel-plan", "sim", "switch", "theory"],
        tests_know: &["measure"],
    },
    Place { name: "testbed", knows: &["qdisc", "kernel", "sim", "scenario", "measure"], tests_know: &[] },
    Place {
        name: "papers",
        knows: &["qdisc", "theory", "disciplines", "sim", "switch", "scenario", "measure", "document"],
        tests_know: &[],
    },
    Place { name: "sources", knows: &[], tests_know: &[] },
    Place {
        name: "runner",
        knows: &[
            "qdisc",
            "disciplines",
            "sim",
            "switch",
            "capture",
            "workload",
            "wire",
            "scenario",
            "measure",
            "document",
            "record",
            "papers",
            "replay",
            "sources",
        ],
        tests_know: &["testbed"],
    },
    Place {
        name: "cli",
        knows: &[
            "qdisc",
            "spec",
            "disciplines",
            "sim",
            "switch",
            "live",
            "control",
            "watch",
            "capture",
            "workload",
            "wire",
            "theory",
            "scenario",
            "measure",
            "document",
            "record",
            "papers",
            "replay",
            "kernel",
            "kernel-plan",
            "reserve",
            "testbed",
            "sources",
            "runner",
        ],
        tests_know: &[],
    },
    Place {
        name: "fuzzing",
        knows: &[
            "qdisc",
            "disciplines",
            "replay",
            "kernel",
            "kernel-check",
            "kernel-plan",
            "capture",
            "wire",
            "reserve",
            "workload",
            "sim",
            "switch",
            "live",
            "watch",
            "control",
            "measure",
            "record",
            "scenario",
            "papers",
        ],
        tests_know: &[],
    },
    Place {
        name: "docs",
        knows: &["spec", "disciplines", "sim", "switch", "scenario", "measure", "record", "cli"],
        tests_know: &[],
    },
    Place { name: "xtask", knows: &[], tests_know: &[] },
];

/// Crates from outside that the innermost crates may use: they must build for browsers, kernels and fuzzers.
const INNERMOST: &[&str] = &["libm", "rand_core", "rand_pcg", "schemars", "serde", "serde_json"];

/// Heavy or dangerous things that exactly one crate may see.
const KEPT_APART: &[(&str, &[&str])] = &[
    ("parquet", &["record"]),
    ("arrow-array", &["record"]),
    ("arrow-schema", &["record"]),
    ("minijinja", &["document"]),
    ("clap", &["cli"]),
    ("annotate-snippets", &["cli"]),
    ("indicatif", &["cli"]),
    ("rayon", &["runner"]),
    ("petgraph", &["sim"]),
    ("caps", &["live"]),
    ("landlock", &["live"]),
    ("libc", &["live"]),
    ("seccompiler", &["live"]),
];

#[test]
fn crates_know_what_they_may() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = short(&package);
        let Some(place) = PLACES.iter().find(|place| place.name == name) else {
            wrong.push(format!("{name} has no place in this test"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("a package lists its dependencies") {
            let other = short(dependency);
            // A crate of the workspace is known by its path.
            if dependency["path"].is_null() {
                continue;
            }
            let for_tests = dependency["kind"] == "dev";
            let may = place.knows.contains(&&*other) || (for_tests && place.tests_know.contains(&&*other));
            if !may {
                let whom = if for_tests { format!("tests of {name}") } else { name.clone() };
                wrong.push(format!("{whom} must not know {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_innermost_crates_use_next_to_nothing() {
    for package in
        packages().iter().filter(|package| ["qdisc", "spec", "disciplines"].contains(&&*short(package)))
    {
        for name in outside(package) {
            assert!(INNERMOST.contains(&&*name), "{} must not use {name}", short(package));
        }
    }
}

#[test]
fn what_is_kept_apart_stays_apart() {
    for package in packages() {
        for name in outside(&package) {
            if let Some((_, who)) = KEPT_APART.iter().find(|(kept, _)| *kept == name) {
                assert!(
                    who.contains(&&*short(&package)),
                    "only {} may use {name}, not {}",
                    who.join(", "),
                    short(&package)
                );
            }
        }
    }
}

#[test]
fn hosts_name_no_discipline() {
    let names = registry("crates/disciplines/src/lib.rs");
    // A switch has arbiters of its own, and may name those; one of them has the name of a discipline.
    let arbiters = registry("crates/switch/src/registry.rs");
    assert!([&names, &arbiters].iter().all(|names| names.iter().any(|name| name == "fifo")), "no registry");
    let mut wrong = Vec::new();
    for host in [
        "crates/sim/src",
        "crates/switch/src",
        "crates/live/src",
        "crates/measure/src",
        "crates/document/src",
        "crates/record/src",
    ] {
        let own: &[String] = if host == "crates/switch/src" { &arbiters } else { &[] };
        // Tests that are a file of their own may name what they use.
        let is_test =
            |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs"));
        let files = rust_files(&root().join(host)).into_iter().filter(|file| !is_test(file));
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source file is text");
            for (number, line) in code_of(&text) {
                let named = names.iter().find(|name| !own.contains(name) && has_word(line, name));
                if let Some(name) = named {
                    wrong.push(format!("{}:{number} names {name}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `unsafe` is for who speaks to the kernel: everybody else takes the lints of the workspace, which deny it.
#[test]
fn only_the_live_host_may_be_unsafe() {
    for package in packages().iter().filter(|package| short(package) != "live") {
        let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
        let text = std::fs::read_to_string(manifest).expect("cargo has just read it");
        assert!(text.contains("[lints]\nworkspace = true"), "{manifest} has lints of its own");
    }
}

/// The lines that are compiled outside of tests and are no comments, numbered from 1.
fn code_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // House style: the tests are the last thing in a file.
    let lines = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    lines.map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn comments_and_tests_do_not_count_as_code() {
    let text = "let a = fifo; // red\n/// drr\n#[cfg(test)]\nmod tests { efd }\n";
    let code: Vec<(usize, &str)> = code_of(text).collect();
    assert_eq!(code, [(1, "let a = fifo; "), (2, "")]);
    assert!(has_word("Spec::fifo(config)", "fifo") && has_word("\"fifo limit\"", "fifo"));
    assert!(!has_word("fn shared_fifos()", "fifo") && !has_word("spared", "red"));
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|other| other == word)
}

/// The names in the registry of a file: each is a line "name,", perhaps in a family.
fn registry(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = text.lines().skip_while(|line| !line.starts_with("registry! {")).skip(1);
    let lines = lines.take_while(|line| *line != "}").map(str::trim).filter(|line| !line.starts_with("//"));
    lines.filter_map(|line| line.strip_suffix(',')).map(str::to_owned).collect()
}

/// The crates of the workspace.
fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let output = command.output().expect("cargo runs tests, so there is one");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"].as_array().expect("a workspace has packages").clone()
}

/// Names of what a crate uses from outside, tests apart.
fn outside(package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().expect("a package lists its dependencies").iter();
    let outside =
        dependencies.filter(|dependency| dependency["path"].is_null() && dependency["kind"] != "dev");
    outside.map(short).collect()
}

fn short(package: &Value) -> String {
    let name = package["name"].as_str().expect("a package has a name");
    name.strip_prefix("giveway-").unwrap_or(name).to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_owned()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

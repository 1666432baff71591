//! Tests of the structure of the workspace: the dependencies between crates, and the crates that may name a
//! discipline. `ARCHITECTURE.md` has the reasons. Each crate needs an entry in the table below.

mod labels;
mod modules;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Dependencies that a crate may have in the workspace.
struct Allowed {
    /// Name of the crate, without `giveway-`.
    name: &'static str,
    /// Crates that it may use.
    uses: &'static [&'static str],
    /// Further crates that its tests and benchmarks may use.
    tests_use: &'static [&'static str],
}

/// All crates, the innermost first.
const ALLOWED: &[Allowed] = &[
    Allowed { name: "counting", uses: &[], tests_use: &[] },
    Allowed { name: "files", uses: &[], tests_use: &[] },
    Allowed { name: "text", uses: &[], tests_use: &[] },
    Allowed { name: "qdisc", uses: &[], tests_use: &[] },
    Allowed { name: "spec", uses: &["qdisc"], tests_use: &[] },
    Allowed { name: "disciplines", uses: &["qdisc", "spec"], tests_use: &["theory", "counting"] },
    Allowed { name: "replay", uses: &["qdisc", "disciplines"], tests_use: &["counting"] },
    Allowed { name: "kernel-plan", uses: &["qdisc", "disciplines"], tests_use: &[] },
    Allowed { name: "kernel", uses: &["kernel-plan"], tests_use: &[] },
    Allowed {
        name: "kernel-check",
        uses: &["qdisc", "disciplines", "replay", "kernel-plan"],
        tests_use: &[],
    },
    Allowed { name: "senders", uses: &[], tests_use: &[] },
    Allowed { name: "capture", uses: &["files", "qdisc"], tests_use: &[] },
    Allowed { name: "watch", uses: &["qdisc", "capture", "wire"], tests_use: &[] },
    Allowed { name: "wire", uses: &["qdisc"], tests_use: &["capture", "counting"] },
    Allowed { name: "reserve", uses: &["qdisc"], tests_use: &[] },
    Allowed { name: "links", uses: &["files", "qdisc"], tests_use: &[] },
    Allowed { name: "workload", uses: &["qdisc", "capture"], tests_use: &["counting"] },
    Allowed { name: "theory", uses: &[], tests_use: &[] },
    Allowed {
        name: "sim",
        uses: &["qdisc", "links", "spec", "capture", "workload"],
        tests_use: &["disciplines", "theory", "counting"],
    },
    Allowed { name: "switch", uses: &["qdisc", "spec", "capture"], tests_use: &["theory", "counting"] },
    Allowed {
        name: "live",
        uses: &["files", "qdisc", "links", "capture", "wire", "watch", "reserve"],
        tests_use: &["disciplines"],
    },
    Allowed {
        name: "control",
        uses: &[
            "files",
            "qdisc",
            "links",
            "disciplines",
            "live",
            "watch",
            "wire",
            "replay",
            "reserve",
            "scenario",
        ],
        tests_use: &[],
    },
    Allowed { name: "measure", uses: &["qdisc", "theory"], tests_use: &[] },
    Allowed { name: "document", uses: &["text", "measure"], tests_use: &[] },
    Allowed {
        name: "record",
        uses: &["files", "text", "qdisc", "theory", "measure", "document"],
        tests_use: &[],
    },
    Allowed { name: "recording", uses: &["qdisc", "measure"], tests_use: &[] },
    Allowed {
        name: "scenario",
        uses: &["files", "qdisc", "links", "spec", "disciplines", "kernel-plan", "sim", "switch", "theory"],
        tests_use: &["measure"],
    },
    Allowed {
        name: "testbed",
        uses: &["files", "qdisc", "capture", "kernel", "sim", "scenario", "measure"],
        tests_use: &[],
    },
    Allowed {
        name: "observe",
        uses: &["qdisc", "disciplines", "sim", "switch", "scenario", "measure"],
        tests_use: &[],
    },
    Allowed {
        name: "papers",
        uses: &["qdisc", "theory", "disciplines", "sim", "observe", "scenario", "measure", "document"],
        tests_use: &[],
    },
    Allowed { name: "sources", uses: &[], tests_use: &[] },
    Allowed {
        name: "bridge",
        uses: &[
            "files",
            "qdisc",
            "capture",
            "control",
            "kernel",
            "kernel-plan",
            "live",
            "measure",
            "recording",
            "replay",
            "sources",
            "watch",
        ],
        tests_use: &[],
    },
    Allowed { name: "trials", uses: &["files", "scenario", "record", "sources"], tests_use: &[] },
    Allowed {
        name: "runner",
        uses: &[
            "files",
            "qdisc",
            "disciplines",
            "sim",
            "switch",
            "capture",
            "wire",
            "scenario",
            "measure",
            "document",
            "record",
            "observe",
            "papers",
            "replay",
            "sources",
            "trials",
        ],
        tests_use: &["testbed"],
    },
    Allowed {
        name: "compare",
        uses: &[
            "files",
            "qdisc",
            "disciplines",
            "kernel-plan",
            "sim",
            "capture",
            "workload",
            "scenario",
            "measure",
            "record",
            "trials",
            "runner",
        ],
        tests_use: &[],
    },
    Allowed {
        name: "sweep",
        uses: &[
            "files", "qdisc", "scenario", "measure", "document", "record", "observe", "sources", "trials",
        ],
        tests_use: &[],
    },
    Allowed {
        name: "evaluate",
        uses: &[
            "qdisc",
            "spec",
            "disciplines",
            "scenario",
            "measure",
            "document",
            "record",
            "observe",
            "sources",
            "trials",
        ],
        tests_use: &[],
    },
    Allowed { name: "wasm", uses: &["qdisc"], tests_use: &[] },
    Allowed { name: "c", uses: &["qdisc", "disciplines"], tests_use: &[] },
    Allowed {
        name: "judge",
        uses: &[
            "files", "qdisc", "sim", "scenario", "measure", "observe", "record", "trials", "evaluate", "wasm",
        ],
        tests_use: &[],
    },
    Allowed {
        name: "program",
        uses: &["text", "qdisc", "wire", "reserve", "kernel-plan", "kernel"],
        tests_use: &[],
    },
    Allowed {
        name: "net",
        uses: &[
            "files",
            "text",
            "qdisc",
            "disciplines",
            "live",
            "bridge",
            "control",
            "watch",
            "replay",
            "kernel",
            "kernel-plan",
            "reserve",
            "sources",
            "program",
        ],
        tests_use: &["capture", "theory"],
    },
    Allowed {
        name: "cli",
        uses: &[
            "files",
            "text",
            "program",
            "sweep",
            "evaluate",
            "judge",
            "wasm",
            "qdisc",
            "spec",
            "disciplines",
            "sim",
            "switch",
            "capture",
            "workload",
            "scenario",
            "measure",
            "document",
            "record",
            "recording",
            "observe",
            "papers",
            "replay",
            "kernel",
            "kernel-plan",
            "testbed",
            "sources",
            "trials",
            "runner",
            "compare",
        ],
        tests_use: &["live", "theory"],
    },
    Allowed {
        name: "python",
        uses: &[
            "sweep",
            "evaluate",
            "judge",
            "wasm",
            "qdisc",
            "spec",
            "disciplines",
            "sim",
            "switch",
            "theory",
            "scenario",
            "measure",
            "document",
            "record",
            "observe",
            "papers",
            "sources",
            "trials",
            "runner",
            "compare",
            "cli",
        ],
        tests_use: &[],
    },
    Allowed {
        name: "instructions",
        uses: &["qdisc", "disciplines", "switch", "scenario", "observe"],
        tests_use: &[],
    },
    Allowed {
        name: "fuzzing",
        uses: &[
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
            "wasm",
            "watch",
            "control",
            "measure",
            "record",
            "recording",
            "trials",
            "sweep",
            "scenario",
            "observe",
        ],
        tests_use: &[],
    },
    Allowed {
        name: "docs",
        uses: &["spec", "disciplines", "sim", "switch", "scenario", "measure", "record", "evaluate", "cli"],
        tests_use: &[],
    },
    Allowed { name: "xtask", uses: &[], tests_use: &[] },
];

/// Crates from outside that the innermost crates may use: they must build for browsers, kernels and fuzzers.
const INNERMOST: &[&str] = &["libm", "rand_core", "rand_pcg", "schemars", "serde", "serde_json"];

/// Heavy or dangerous crates, each with the crates of the workspace that may use it.
const RESTRICTED: &[(&str, &[&str])] = &[
    ("parquet", &["record"]),
    ("arrow-array", &["record", "python"]),
    ("arrow-schema", &["record", "python"]),
    ("pyo3", &["python"]),
    ("minijinja", &["document"]),
    ("clap", &["cli", "net", "program"]),
    ("annotate-snippets", &["cli"]),
    ("indicatif", &["cli"]),
    ("petgraph", &["sim"]),
    ("caps", &["live"]),
    ("landlock", &["live"]),
    ("libc", &["live", "judge"]),
    ("seccompiler", &["live", "judge"]),
    ("quinn-proto", &["testbed"]),
    ("bytes", &["testbed"]),
    ("wasmi", &["wasm"]),
];

#[test]
fn crates_use_only_allowed_crates() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = short(&package);
        let Some(allowed) = ALLOWED.iter().find(|allowed| allowed.name == name) else {
            wrong.push(format!("{name} has no entry in ALLOWED"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("a package lists its dependencies") {
            let other = short(dependency);
            // Only crates of the workspace have a path.
            if dependency["path"].is_null() {
                continue;
            }
            let for_tests = dependency["kind"] == "dev";
            let may = allowed.uses.contains(&&*other) || (for_tests && allowed.tests_use.contains(&&*other));
            if !may {
                let user = if for_tests { format!("tests of {name}") } else { name.clone() };
                wrong.push(format!("{user} must not use {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_innermost_crates_use_only_a_few_external_crates() {
    for package in
        packages().iter().filter(|package| ["qdisc", "spec", "disciplines"].contains(&&*short(package)))
    {
        for name in outside(package) {
            assert!(INNERMOST.contains(&&*name), "{} must not use {name}", short(package));
        }
    }
}

#[test]
fn restricted_crates_have_only_their_users() {
    for package in packages() {
        for name in outside(&package) {
            if let Some((_, users)) = RESTRICTED.iter().find(|(restricted, _)| *restricted == name) {
                assert!(
                    users.contains(&&*short(&package)),
                    "only {} may use {name}, not {}",
                    users.join(", "),
                    short(&package)
                );
            }
        }
    }
}

/// Crates of the workspace and libraries that the program of root must not link, also through others.
const NOT_FOR_ROOT: &[&str] = &[
    "record",
    "document",
    "trials",
    "runner",
    "compare",
    "observe",
    "papers",
    "sweep",
    "evaluate",
    "judge",
    "wasm",
    "testbed",
    "cli",
    "parquet",
    "arrow-array",
    "arrow-schema",
    "minijinja",
    "wasmi",
    "quinn-proto",
];

/// The program that runs as root is small: `giveway-net` links no tables on disk, no reports and no
/// WebAssembly. In turn, `giveway` links none of the crates that only `giveway-net` needs.
#[test]
fn the_two_programs_link_only_what_they_need() {
    let metadata = metadata(&["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let [net, cli] = ["net", "cli"].map(|program| linked(&metadata, program));
    assert!(net.iter().any(|name| name == "live") && cli.iter().any(|name| name == "parquet"));
    let found: Vec<&String> = net.iter().filter(|name| NOT_FOR_ROOT.contains(&&***name)).collect();
    assert!(found.is_empty(), "giveway-net links {found:?}");
    let only_net = ["live", "control", "bridge", "caps", "landlock"];
    let found: Vec<&String> = cli.iter().filter(|name| only_net.contains(&&***name)).collect();
    assert!(found.is_empty(), "giveway links {found:?}");
}

/// After `giveway`, the build of `giveway-net` takes a minute: both are linked from the same compiled
/// crates, as long as both ask the same features of them.
#[test]
fn the_two_programs_are_linked_from_the_same_compiled_crates() {
    let [cli, net] = ["giveway-cli", "giveway-net"].map(features);
    let both: Vec<_> = cli.iter().filter_map(|(name, own)| Some((name, own, net.get(name)?))).collect();
    assert!(both.len() > 50, "{} crates are in both", both.len());
    let wrong: Vec<_> = both.into_iter().filter(|(_, cli, net)| cli != net).collect();
    assert!(
        wrong.is_empty(),
        "other features in giveway and giveway-net, see crates/net/Cargo.toml: {wrong:#?}"
    );
}

/// The features of each crate that a crate of the workspace is linked with, if only that crate is built.
fn features(package: &str) -> BTreeMap<String, String> {
    let format = ["--prefix", "none", "--format", "{p}\t{f}", "--edges", "normal,no-proc-macro"];
    let text = cargo(&[&["tree", "--offline", "--locked", "--package", package], &format[..]].concat());
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, of)| (name.to_owned(), of.to_owned()))
        .collect()
}

/// The names of the crates that a crate of the workspace is linked with: its dependencies and theirs, except
/// for tests and the build.
fn linked(metadata: &Value, name: &str) -> Vec<String> {
    let list = |value: &Value| value.as_array().expect("it is a list").clone();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let packages = list(&metadata["packages"]);
    let is_normal = |link: &Value| list(&link["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    let id_of = |name: &str| packages.iter().find(|package| short(package) == name).map(|of| &of["id"]);
    let mut found: Vec<Value> = vec![id_of(name).expect("it is in the workspace").clone()];
    let mut at = 0;
    while let Some(id) = found.get(at).cloned() {
        let node = nodes.iter().find(|node| node["id"] == id).expect("each package has a node");
        for link in list(&node["deps"]).iter().filter(|link| is_normal(link)) {
            if !found.contains(&link["pkg"]) {
                found.push(link["pkg"].clone());
            }
        }
        at += 1;
    }
    let name_of = |id: &Value| packages.iter().find(|package| package["id"] == *id).map(short);
    found.iter().filter_map(name_of).collect()
}

#[test]
fn backends_and_tables_name_no_discipline() {
    let names = registry("crates/disciplines/src/lib.rs");
    // A switch may name its arbiters. One of them has the name of a discipline.
    let arbiters = registry("crates/switch/src/registry.rs");
    assert!([&names, &arbiters].iter().all(|names| names.iter().any(|name| name == "fifo")), "no registry");
    let mut wrong = Vec::new();
    for folder in [
        "crates/sim/src",
        "crates/switch/src",
        "crates/live/src",
        "crates/measure/src",
        "crates/document/src",
        "crates/record/src",
    ] {
        let own: &[String] = if folder == "crates/switch/src" { &arbiters } else { &[] };
        // Files of tests may name disciplines.
        let is_test =
            |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs"));
        let files = rust_files(&root().join(folder)).into_iter().filter(|file| !is_test(file));
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

/// Only `live` needs `unsafe`, for system calls. All other crates have the lints of the workspace, which deny
/// it.
#[test]
fn only_the_live_backend_may_use_unsafe_code() {
    for package in packages().iter().filter(|package| short(package) != "live") {
        let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
        let text = std::fs::read_to_string(manifest).expect("cargo has read this manifest");
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{manifest} does not have the lints of the workspace"
        );
    }
}

/// Lines of code outside of comments and tests, numbered from 1.
fn code_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Tests are at the end of a file: CONTRIBUTING.md, "Files".
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

/// Names in the registry of a file. Each is a line `name,`; families are blocks of such lines.
fn registry(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = text.lines().skip_while(|line| !line.starts_with("registry! {")).skip(1);
    let lines = lines.take_while(|line| *line != "}").map(str::trim).filter(|line| !line.starts_with("//"));
    lines.filter_map(|line| line.strip_suffix(',')).map(str::to_owned).collect()
}

/// The crates of the workspace.
fn packages() -> Vec<Value> {
    metadata(&["--no-deps"])["packages"].as_array().expect("a workspace has packages").clone()
}

/// The metadata of the workspace, as cargo prints it.
fn metadata(arguments: &[&str]) -> Value {
    let fixed = ["metadata", "--format-version", "1", "--offline"];
    serde_json::from_str(&cargo(&[&fixed, arguments].concat())).expect("metadata is JSON")
}

/// The output of cargo.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output();
    let output = output.expect("cargo exists, since it runs the tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}

/// Names of the external crates that a crate uses outside its tests.
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
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository").to_owned()
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

//! The equality test: compares each Giveway discipline in the kernel with the one in Rust, for each mix of
//! traffic.

use std::fs;
use std::path::Path;

use super::disk::ENTRIES;
use super::fetch::Kernel;
use super::machine::journals;
use crate::repository::{Done, Repository};

/// One discipline under one mix of traffic.
pub struct Run {
    name: String,
    discipline: &'static str,
    rate: &'static str,
    flows: u32,
    sizes: &'static str,
    marks: u32,
    lane: &'static str,
}

/// Disciplines, each with its interface, and its parameters for 2, 50 and 500 flows.
pub const DISCIPLINES: &[(&str, &str, [&str; 3])] = &[
    ("lane0", "fifo", ["fifo limit 300p", "fifo limit 200kb drop head", "fifo limit 1000p"]),
    ("lane1", "efd", ["efd limit 300p", "efd limit 200kb threshold 10kb", "efd limit 1000p threshold 3p"]),
    ("lane1", "drr", ["drr limit 300p", "drr limit 200kb quantum 500b", "drr limit 1000p"]),
    (
        "lane0",
        "trr",
        [
            "trr limit 300p flows 1000 width 240us slots 64",
            "trr limit 200kb flows 6 width 300us slots 7",
            "trr limit 1000p flows 1000",
        ],
    ),
    (
        "lane1",
        "bsq",
        ["bsq limit 300p level 2", "bsq limit 200kb level 4", "bsq limit 1000p measure packets drop tail"],
    ),
];

/// All runs of the test.
pub fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for (lane, kind, settings) in DISCIPLINES {
        for (sizes, rate) in [("equal", "100mbit"), ("mixed", "50mbit")] {
            for (flows, discipline) in [2, 50, 500].into_iter().zip(settings) {
                let name = format!("{kind}-{sizes}-{flows}");
                let marks = match *kind {
                    "trr" => 4,
                    "bsq" => 12,
                    _ => 0,
                };
                runs.push(Run { name, discipline, rate, flows, sizes, marks, lane });
            }
        }
    }
    runs
}

/// Builds the programs, and compiles the disciplines for the kernel, with and without a journal.
pub fn programs(repository: &Repository, folder: &Path, kernel: &Kernel) -> Done {
    // The programs that the tests have built. `cargo build` chooses other features for some libraries, and
    // would compile nearly everything again.
    repository.build_tests()?;
    let giveway = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let objects = folder.join("objects");
    let _ = fs::remove_dir_all(&objects);
    fs::create_dir_all(objects.join("plain")).map_err(|error| error.to_string())?;
    let types = kernel.types.to_string_lossy();
    for (_, kind, _) in DISCIPLINES {
        for (file, journal) in [(format!("{kind}.o"), true), (format!("plain/{kind}.o"), false)] {
            let out = objects.join(file).to_string_lossy().into_owned();
            let entries = ENTRIES.to_string();
            let mut words = vec!["kernel", "build", kind, "--btf", &types, "--limit", "8000p", "--out", &out];
            if journal {
                words.extend(["--journal", &entries]);
            }
            repository.run(&giveway, &words)?;
        }
    }
    let drive = folder.join("drive").to_string_lossy().into_owned();
    repository.run("cc", &["-O2", "-static", "-Wall", "-Werror", "-o", &drive, "kernel/test/drive.c"])
}

/// The script of the machine: the runs, on two interfaces in parallel.
pub fn plan(runs: &[Run], packets: u32, flags: &[&str]) -> String {
    let mut plan = "ip link add lane0 type dummy; ip link set lane0 up\nip link add lane1 type dummy; ip link set lane1 up\n\
                    memory before\n"
        .to_owned();
    for lane in ["lane0", "lane1"] {
        // The shell rejects empty braces.
        if runs.is_empty() {
            break;
        }
        plan.push_str("{\n");
        for (slot, run) in runs.iter().enumerate().filter(|(_, run)| run.lane == lane) {
            let Run { name, discipline, rate, flows, sizes, marks, lane } = run;
            let line = format!(
                "journal {lane} {name} {slot} '{discipline}' {rate} {packets} {flows} {sizes} {marks}\n"
            );
            plan.push_str(&line);
        }
        plan.push_str("} &\n");
    }
    plan.push_str("wait\nmemory after\n");
    if flags.contains(&"--again") {
        plan.push_str(include_str!("../../../kernel/test/again.sh"));
    }
    plan
}

/// Compares the journals with the Rust disciplines. `output` is the output of the machine.
///
/// # Errors
/// If a discipline behaves differently.
pub fn judge(repository: &Repository, folder: &Path, runs: &[Run], packets: u32, output: &str) -> Done {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    let files = journals(folder, 0, &names, output)?;
    let mut words = Vec::new();
    for (file, run) in files.into_iter().zip(runs) {
        let discipline = run.discipline.replacen("trr ", "trr_sound ", 1);
        words.extend([file, run.rate.to_owned(), discipline, packets.to_string()]);
    }
    let judge = repository.target()?.join("debug/kernel-judge");
    match repository.command(&judge.to_string_lossy()).args(&words).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("a discipline in the kernel differs from the one in Rust".to_owned()),
        Err(error) => Err(format!("kernel-judge cannot be run: {error}")),
    }
}

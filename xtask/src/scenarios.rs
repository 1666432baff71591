//! Runs scenarios, and compares the fingerprints of their short forms with `xtask/golden.toml`.
//!
//! A fingerprint covers everything that a run records. It does not depend on the number of threads, the build
//! profile or the machine. A change of behaviour is therefore a changed line of `golden.toml`, which a
//! reviewer sees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::papers;
use crate::program::{Profile, build, program};
use crate::repository::{Done, Repository};
use crate::steps::Steps;

const GOLDEN: &str = "xtask/golden.toml";

/// Runs the steps of the gate that need scenarios. They use the debug build of the tests, and [`accept`] uses
/// a release build, so the gate compares the fingerprints of both profiles.
pub fn steps(repository: &Repository, steps: &mut Steps) {
    steps.step("scenarios are valid", || check(repository));
    // The second time each network is also divided among threads, with the same results.
    for (name, jobs) in [("scenarios, one thread", 1), ("scenarios, many threads", 2)] {
        steps.step(name, || {
            compare(repository, &run_all(repository, Profile::Debug, jobs, &all(repository))?)
        });
    }
    steps.step("papers, quick run", || papers::quick(repository));
}

/// Runs the short form of every scenario, and writes the fingerprints to `golden.toml`. Prints the changes.
pub fn accept(repository: &Repository) -> Done {
    build(repository, Profile::Release)?;
    let ran = run_all(repository, Profile::Release, 1, &all(repository))?;
    let old = golden(repository).unwrap_or_default();
    for (name, run) in &ran {
        match old.get(name) {
            Some(before) if before == run => {}
            Some(before) => println!("changed  {name}: {before} -> {run}"),
            None => println!("new      {name}: {run}"),
        }
    }
    for name in old.keys().filter(|name| !ran.contains_key(*name)) {
        println!("gone     {name}");
    }
    let mut text = String::from(
        "# Fingerprints of the short form of every scenario, written by `cargo xtask golden`.\n\n",
    );
    for (name, run) in &ran {
        text.push_str(&format!("{name:?} = {run:?}\n"));
    }
    std::fs::write(repository.root.join(GOLDEN), text).map_err(|error| format!("{GOLDEN}: {error}"))?;
    println!("{GOLDEN}: {} scenarios", ran.len());
    Ok(())
}

/// Runs the long form of every scenario.
pub fn long(repository: &Repository) -> Done {
    build(repository, Profile::Release)?;
    let program = program(repository, Profile::Release)?;
    let mut failed = Vec::new();
    for name in all(repository) {
        println!("\n== {name}");
        let begun = Instant::now();
        match repository.run(&program.to_string_lossy(), &["run", &name]) {
            Ok(()) => println!("-- {:.1} s", begun.elapsed().as_secs_f64()),
            Err(error) => {
                println!("-- {error}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Runs the benchmarks of the disciplines, in nanoseconds per packet, then the benchmark scenarios.
pub fn bench(repository: &Repository) -> Done {
    repository.cargo(&["bench", "--workspace"])?;
    build(repository, Profile::Release)?;
    let program = program(repository, Profile::Release)?;
    let folder = Scratch::new(repository, "bench")?;
    for name in all(repository).into_iter().filter(|name| name.starts_with("scenarios/bench/")) {
        let result = run(repository, &program, &["--jobs", "1"], Some(&folder.path), &name)?;
        let number = |key: &str| result[key].as_f64().unwrap_or(f64::NAN);
        let (cpu, packets, events) = (number("cpu_s"), number("bottleneck_packets"), number("events"));
        println!(
            "{name}: {cpu:.2} s of CPU, {:.2} million bottleneck packets and {:.2} million events per second",
            packets / cpu / 1e6,
            events / cpu / 1e6,
        );
    }
    Ok(())
}

/// Names of all simulated scenarios of the repository. Runs of a test bed differ from each other, so they
/// have no fingerprint.
fn all(repository: &Repository) -> Vec<String> {
    let simulated = |name: &String| !name.starts_with("scenarios/testbed/");
    in_folders(repository, &["scenarios", "papers"]).into_iter().filter(simulated).collect()
}

/// Names of all scenarios in these folders.
fn in_folders(repository: &Repository, folders: &[&str]) -> Vec<String> {
    // Other files in the folder of a paper.
    const OTHERS: [&str; 3] = ["/paper.toml", "/claims.toml", "/measured.toml"];
    let files = folders.iter().flat_map(|folder| repository.files(folder, "toml"));
    let names = files.map(|path| repository.name_of(&path));
    names.filter(|name| name != GOLDEN && !OTHERS.iter().any(|other| name.ends_with(other))).collect()
}

/// Checks all scenarios, also those that no step runs: of the validation and of the papers.
fn check(repository: &Repository) -> Done {
    let program = program(repository, Profile::Debug)?;
    let scenarios = in_folders(repository, &["scenarios", "validation", "papers"]).into_iter();
    let wrong =
        scenarios.filter(|name| repository.run(&program.to_string_lossy(), &["check", name]).is_err());
    let wrong: Vec<String> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("invalid scenarios: {}", wrong.join(", "))) }
}

/// Runs the short forms of scenarios, as many in parallel as there are cores for `jobs` threads each. Returns
/// their fingerprints by name.
fn run_all(
    repository: &Repository,
    profile: Profile,
    jobs: usize,
    names: &[String],
) -> Result<BTreeMap<String, String>, String> {
    let program = program(repository, profile)?;
    let folder = Scratch::new(repository, &format!("short-{jobs}"))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pending = Mutex::new(names.iter());
    let (ran, failed) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(name) = pending.lock().expect("no thread panics while it holds the lock").next() {
            let begun = Instant::now();
            let number = jobs.to_string();
            let divided: &[&str] = if jobs > 1 { &["--check-threads"] } else { &[] };
            let options = [&["--short", "--jobs", &number], divided].concat();
            // With divisions the comparison is the test, and the folders of the first time are not written
            // again.
            let folder = (jobs == 1).then_some(&*folder.path);
            match run(repository, &program, &options, folder, name) {
                Ok(result) => {
                    let fingerprint = result["fingerprint"].as_str().unwrap_or("missing").to_owned();
                    println!("{:>7.2} s  {name}", begun.elapsed().as_secs_f64());
                    ran.lock()
                        .expect("no thread panics while it holds the lock")
                        .insert(name.clone(), fingerprint);
                }
                Err(error) => {
                    failed
                        .lock()
                        .expect("no thread panics while it holds the lock")
                        .push(format!("{name}: {error}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..(cores / jobs).max(1) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no thread panics while it holds the lock");
    if !failed.is_empty() {
        return Err(format!("{} of {} scenarios failed\n{}", failed.len(), names.len(), failed.join("\n")));
    }
    let ran = ran.into_inner().expect("no thread panics while it holds the lock");
    if ran.is_empty() { Err("there are no scenarios".to_owned()) } else { Ok(ran) }
}

/// Runs one scenario, and returns the JSON object that it prints.
fn run(
    repository: &Repository,
    program: &Path,
    options: &[&str],
    folder: Option<&Path>,
    name: &str,
) -> Result<Value, String> {
    let out = folder.map(|folder| folder.join(name.replace(['/', '.'], "-")).to_string_lossy().into_owned());
    let out: Vec<&str> = out.iter().flat_map(|out| ["--out", out]).collect();
    let arguments = [&["run", "--json", "--quiet"], &out[..], options, &[name]].concat();
    let text = repository.output(&program.to_string_lossy(), &arguments)?;
    serde_json::from_str(&text).map_err(|error| format!("the output is not JSON: {error}"))
}

fn golden(repository: &Repository) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(repository.root.join(GOLDEN));
    let text = text.map_err(|error| format!("{GOLDEN}: {error}; write it with cargo xtask golden"))?;
    toml::from_str(&text).map_err(|error| format!("{GOLDEN}: {error}"))
}

fn compare(repository: &Repository, ran: &BTreeMap<String, String>) -> Done {
    let golden = golden(repository)?;
    let mut wrong = Vec::new();
    for (name, run) in ran {
        match golden.get(name) {
            None => wrong.push(format!("{name}: is new")),
            Some(before) if before != run => {
                wrong.push(format!("{name}: was {before}, is {run}"));
            }
            Some(_) => {}
        }
    }
    wrong
        .extend(golden.keys().filter(|name| !ran.contains_key(*name)).map(|name| format!("{name}: is gone")));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} scenarios have other fingerprints; if that is intended, run cargo xtask golden\n{}",
        wrong.len(),
        wrong.join("\n")
    ))
}

/// A folder for temporary results. Dropping it removes the folder.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(repository: &Repository, name: &str) -> Result<Scratch, String> {
        let path = repository.built("xtask", name)?.with_extension("");
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

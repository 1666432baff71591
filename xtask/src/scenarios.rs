//! Runs scenarios, and compares the fingerprints of their short forms with `xtask/golden.toml`.
//!
//! A fingerprint covers everything that a run records. It does not depend on the number of threads, the build
//! profile or the machine. A change of behaviour is therefore a changed line of `golden.toml`, which a
//! reviewer sees.

mod golden;
mod short;

use std::time::Instant;

use golden::{GOLDEN, compare, golden};
use short::{Scratch, run, run_all};

use crate::program::{Profile, build, program};
use crate::repository::{Done, Repository};

/// Runs the short form of every scenario, and compares the fingerprints. The program is the debug build of
/// the tests, and [`accept`] uses a release build, so the gate compares the fingerprints of both profiles.
///
/// # Errors
/// If a scenario fails or has another fingerprint.
pub fn one_thread(repository: &Repository) -> Done {
    compare_run(repository, Profile::Debug, 1)
}

/// Runs the short forms with each network divided among threads, and compares the fingerprints.
///
/// # Errors
/// If a scenario fails or has another fingerprint.
pub fn many_threads(repository: &Repository) -> Done {
    compare_run(repository, Profile::Debug, 2)
}

/// Runs the short form of every scenario on `jobs` threads, and compares the fingerprints.
fn compare_run(repository: &Repository, profile: Profile, jobs: usize) -> Done {
    let program = program(repository, profile)?;
    let ran = run_all(repository, &[&program.to_string_lossy()], jobs, &all(repository))?;
    compare(repository, &ran)
}

/// Runs the short form of every scenario with a program that the words of `command` start, and compares the
/// fingerprints.
///
/// # Errors
/// If a scenario fails or has another fingerprint.
pub fn compare_with(repository: &Repository, command: &[&str]) -> Done {
    compare(repository, &run_all(repository, command, 1, &all(repository))?)
}

/// Runs the short form of every scenario, and writes the fingerprints to `golden.toml`. Prints the changes.
pub fn accept(repository: &Repository) -> Done {
    build(repository, Profile::Release)?;
    let program = program(repository, Profile::Release)?;
    let ran = run_all(repository, &[&program.to_string_lossy()], 1, &all(repository))?;
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
        let result =
            run(repository, &[&program.to_string_lossy()], &["--jobs", "1"], Some(&folder.path), &name)?;
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
///
/// # Errors
/// The scenarios with an error or a lint.
pub fn check(repository: &Repository) -> Done {
    let program = program(repository, Profile::Debug)?;
    let scenarios = in_folders(repository, &["scenarios", "validation", "papers"]).into_iter();
    let wrong =
        scenarios.filter(|name| repository.run(&program.to_string_lossy(), &["check", name]).is_err());
    let wrong: Vec<String> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("invalid scenarios: {}", wrong.join(", "))) }
}

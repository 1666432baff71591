//! Builds the test programs of the workspace and runs them in parallel.
//!
//! `cargo test` runs one program after another. Some programs wait for sockets, clocks and browsers for most
//! of their time, and meanwhile a processor is idle. So one lane runs those, one after another, because they
//! share interfaces and ports. The other lanes run the programs that compute.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use serde_json::Value;

use crate::repository::{BUILD_TESTS, Done, Repository, cargo};

/// Packages with tests that wait. They start first, in this order, from the longest to the shortest.
const WAITING: [&str; 4] = ["giveway-cli", "giveway-net", "giveway-live", "giveway-testbed"];

/// A program with tests.
#[derive(Clone)]
pub struct Program {
    path: String,
    /// The folder of its package, which is its working folder.
    folder: PathBuf,
    /// Its source file.
    source: PathBuf,
}

/// Builds all tests, and runs the test programs.
///
/// # Errors
/// If a test does not compile, or fails.
pub fn run(repository: &Repository) -> Done {
    run_with(repository, &[])
}

/// Builds all tests, and runs the tests of the long form: they are ignored, and their names start
/// with `long_`.
///
/// # Errors
/// If a test does not compile, or fails.
pub fn long(repository: &Repository) -> Done {
    run_with(repository, &["--ignored", "long_"])
}

/// Runs the test programs with these arguments.
fn run_with(repository: &Repository, arguments: &[&str]) -> Done {
    let mut programs = build(repository)?;
    let rank = |program: &Program| {
        let package = program.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        WAITING.iter().position(|waiting| *waiting == format!("giveway-{package}"))
    };
    programs.sort_by_key(rank);
    let (waiting, computing): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| rank(program).is_some());
    let queues = [Mutex::new(VecDeque::from(waiting)), Mutex::new(VecDeque::from(computing))];
    let failures = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Tests that compute leave a processor to those that wait, whose devices need it when a packet arrives.
    let threads = |waits: bool| if waits { cores } else { (cores - 1).max(1) };
    let next = |at: usize| queues[at].lock().expect("no lane panics while it holds the lock").pop_front();
    let lane = |first: bool| {
        let waiting = || first.then(|| next(0)).flatten().map(|program| (program, true));
        while let Some((program, waits)) = waiting().or_else(|| Some((next(1)?, false))) {
            if let Err(why) = one(repository, &program, threads(waits), arguments) {
                failures.lock().expect("no lane panics while it holds the lock").push(why);
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 0..cores.max(2) {
            scope.spawn(move || lane(number == 0));
        }
    });
    let failures = failures.into_inner().expect("no lane panics while it holds the lock");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Runs the examples in the documentation of all crates.
///
/// # Errors
/// If an example does not compile, or fails.
pub fn examples(repository: &Repository) -> Done {
    repository.cargo(&["test", "--quiet", "--workspace", "--locked", "--doc"])
}

/// Runs a program, and prints its output when it has ended.
fn one(repository: &Repository, program: &Program, threads: usize, arguments: &[&str]) -> Done {
    let begun = Instant::now();
    let mut command = repository.command(&program.path);
    command
        .args(arguments)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("PROPTEST_RNG_SEED", "1")
        // A test that needs another program of the workspace fails without it.
        .env("GIVEWAY_ALL_PROGRAMS", "1")
        .env("RUST_TEST_THREADS", threads.to_string());
    let output = command.output().map_err(|error| format!("{}: {error}", program.path))?;
    let [printed, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let name = repository.name_of(&program.source);
    let took = begun.elapsed().as_secs_f64();
    if output.status.success() {
        let result = printed.lines().rfind(|line| line.starts_with("test result:")).unwrap_or_default();
        println!("{took:>7.1} s  {name}  {result}");
        return Ok(());
    }
    println!("{printed}{errors}{took:>7.1} s  {name}: {}", output.status);
    let failed: Vec<&str> = printed.lines().filter(|line| line.ends_with("... FAILED")).collect();
    Err(format!(
        "{name} (with PROPTEST_RNG_SEED=1): {}\n{}\n{}",
        output.status,
        failed.join("\n"),
        errors.trim_end()
    ))
}

/// Builds all tests. A second call of this process returns what the first has built.
///
/// # Errors
/// If a test does not compile.
pub fn build(repository: &Repository) -> Result<Vec<Program>, String> {
    static BUILT: OnceLock<Vec<Program>> = OnceLock::new();
    if let Some(built) = BUILT.get() {
        return Ok(built.clone());
    }
    let arguments = [&BUILD_TESTS[..], &["--message-format=json-render-diagnostics"]].concat();
    let messages = repository.output(&cargo(), &arguments)?;
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).map_err(|error| format!("cargo test: {error}"))?;
        if message["profile"]["test"] != true {
            continue;
        }
        if let (Some(path), Some(manifest), Some(source)) = (
            message["executable"].as_str(),
            message["manifest_path"].as_str(),
            message["target"]["src_path"].as_str(),
        ) {
            let folder = Path::new(manifest).parent().expect("a manifest is in a folder").to_owned();
            programs.push(Program { path: path.to_owned(), folder, source: PathBuf::from(source) });
        }
    }
    Ok(BUILT.get_or_init(|| programs).clone())
}

/// Builds all tests. Returns the test programs that use a crate, each with its working folder. A program uses
/// the crate if its source file names it; for a library or `tests/all.rs`, if the manifest does.
pub fn with_dependency(repository: &Repository, dependency: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    for program in build(repository)? {
        let in_manifest = program.source.ends_with("lib.rs") || program.source.ends_with("all.rs");
        let file = if in_manifest { program.folder.join("Cargo.toml") } else { program.source };
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        if text.contains(dependency) {
            found.push((program.path, program.folder));
        }
    }
    Ok(found)
}

//! Fuzzing with libFuzzer: fuzzes each target in turn, stores new inputs, and prints a table at the end.
//!
//! The targets are functions of the crate `giveway-fuzzing`. Its program prints their names, and writes the
//! stored inputs of the repository as files. This module writes a program of three lines for each target,
//! which cargo-fuzz builds.

mod finds;
mod libfuzzer;
mod options;

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::{Done, Repository, cargo};
use libfuzzer::{Coverage, Fuzzer};
use options::Options;

/// Runs `cargo xtask fuzz` with these arguments.
///
/// # Errors
/// If a program is missing, a target does not build, or an input failed.
pub fn run(repository: &Repository, words: &[&str]) -> Done {
    let options = Options::parse(words)?;
    set_up(repository)?;
    let kept = repository.target()?.join("fuzz/kept");
    let targets = options.choose(&targets(repository, &kept)?)?;
    println!("{} targets, {} each", targets.len(), options.bounds_in_words());
    build(repository, &targets)?;
    let scratch = scratch()?;
    let mut lines = Vec::new();
    for target in &targets {
        let fuzzer = Fuzzer::new(repository, target, &kept, &scratch);
        let line = one(&fuzzer, &options);
        if let Err(error) = &line {
            println!("{target}: {error}");
        }
        lines.push(line.unwrap_or_else(|_| Line::failed(target)));
    }
    // The folder is in memory.
    let _ = fs::remove_dir_all(&scratch);
    print(&lines);
    let found: usize = lines.iter().map(|line| line.finds.len()).sum();
    let failed = lines.iter().filter(|line| line.failed).count();
    match (found, failed) {
        (0, 0) => Ok(()),
        (0, _) => Err(format!("{failed} targets did not run: see above")),
        _ => Err(format!(
            "{found} failing inputs are in fuzz/finds: fix the errors, and commit the inputs with the fix; \
             cargo test -p giveway-fuzzing then tests them"
        )),
    }
}

/// Runs each target on a fixed number of mutated inputs, without libFuzzer.
///
/// # Errors
/// If an input panics.
pub fn smoke(repository: &Repository) -> Done {
    repository.run(&built(repository)?, &["smoke"])
}

/// Runs each target on a sixth of these inputs.
///
/// # Errors
/// If an input panics.
pub fn quick(repository: &Repository) -> Done {
    repository.run(&built(repository)?, &["quick"])
}

/// Path of the program of the crate `fuzzing`, which a build of the tests contains. For that package alone,
/// cargo would choose other features for some libraries, and compile nearly everything again.
fn built(repository: &Repository) -> Result<String, String> {
    repository.build_tests()?;
    Ok(repository.built("debug", "giveway-fuzzing")?.to_string_lossy().into_owned())
}

/// Installs a nightly compiler and cargo-fuzz if they are missing.
fn set_up(repository: &Repository) -> Done {
    if !repository.has("rustup", &["--version"]) {
        return Err(
            "fuzzing needs a nightly compiler, which rustup installs: https://rustup.rs. Without it, \
                    cargo run -p giveway-fuzzing tries mutated inputs, which finds less"
                .to_owned(),
        );
    }
    if !repository.has("rustup", &["run", "nightly", "rustc", "--version"]) {
        println!("a nightly compiler is missing: installing it");
        repository.run("rustup", &["toolchain", "install", "nightly", "--profile", "minimal"]).map_err(
            |error| format!("{error}\nfuzzing needs a nightly compiler: rustup toolchain install nightly"),
        )?;
    }
    if !repository.has(&cargo(), &["fuzz", "--version"]) {
        println!("cargo-fuzz is missing: installing it");
        repository.cargo(&["install", "cargo-fuzz", "--locked"]).map_err(|error| {
            format!("{error}\nfuzzing needs cargo-fuzz: cargo install cargo-fuzz --locked")
        })?;
    }
    Ok(())
}

/// Returns the names of the targets, and writes their stored inputs and dictionaries to the folder `kept`.
fn targets(repository: &Repository, kept: &Path) -> Result<Vec<String>, String> {
    // Inputs that were removed from the repository must not stay in the folder.
    match fs::remove_dir_all(kept) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", kept.display()));
        }
        _ => {}
    }
    let folder = kept.to_string_lossy();
    Ok(repository.output(&built(repository)?, &["kept", &folder])?.lines().map(str::to_owned).collect())
}

/// Writes a libFuzzer program for each target, and builds them.
fn build(repository: &Repository, targets: &[String]) -> Done {
    let folder = repository.root.join("fuzz/src/bin");
    let explain = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&folder).map_err(|error| explain(&folder, error))?;
    for target in targets {
        let path = folder.join(format!("{target}.rs"));
        let text = program(target);
        // Writing an unchanged file would make cargo compile it again.
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        fs::write(&path, text).map_err(|error| explain(&path, error))?;
    }
    for target in targets {
        // The targets reach no unsafe code of this repository (it is in the device drivers of `live`), so an
        // address sanitizer would find little and halve the speed.
        let build =
            ["run", "nightly", "cargo", "fuzz", "build", "--fuzz-dir", "fuzz", "--sanitizer", "none", target];
        repository.run("rustup", &build)?;
    }
    Ok(())
}

fn program(target: &str) -> String {
    format!(
        "//! Written by `cargo xtask fuzz`.\n#![no_main]\n\
         libfuzzer_sys::fuzz_target!(|input: &[u8]| giveway_fuzzing::targets::{target}::run(input));\n"
    )
}

/// Creates a folder for files of the targets, in memory if the system has such a file system.
fn scratch() -> Result<PathBuf, String> {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = base.join(format!("giveway-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Result of a target.
struct Line {
    target: String,
    inputs: u64,
    seconds: f64,
    before: Coverage,
    after: Coverage,
    corpus: usize,
    finds: Vec<PathBuf>,
    failed: bool,
}

impl Line {
    fn failed(target: &str) -> Line {
        let nothing = Coverage::default();
        Line {
            target: target.to_owned(),
            inputs: 0,
            seconds: 0.0,
            before: nothing,
            after: nothing,
            corpus: 0,
            finds: Vec::new(),
            failed: true,
        }
    }
}

fn one(fuzzer: &Fuzzer, options: &Options) -> Result<Line, String> {
    println!("\n== {}", fuzzer.target);
    fuzzer.make_folders()?;
    let before = fuzzer.coverage()?;
    let (inputs, seconds) = fuzzer.fuzz(options)?;
    let corpus = fuzzer.minimise()?;
    let after = fuzzer.coverage()?;
    let finds = finds::keep(fuzzer)?;
    for find in &finds {
        println!("find: {}", find.display());
    }
    Ok(Line { target: fuzzer.target.clone(), inputs, seconds, before, after, corpus, finds, failed: false })
}

fn print(lines: &[Line]) {
    println!(
        "\n{:<14} {:>12} {:>9} {:>15} {:>15} {:>7} {:>6}",
        "target", "inputs", "per s", "edges", "features", "corpus", "finds"
    );
    for line in lines {
        if line.failed {
            println!("{:<14} did not run", line.target);
            continue;
        }
        let from_to = |from: u64, to: u64| format!("{from} > {to}");
        println!(
            "{:<14} {:>12} {:>9.0} {:>15} {:>15} {:>7} {:>6}",
            line.target,
            line.inputs,
            line.inputs as f64 / line.seconds.max(0.001),
            from_to(line.before.edges, line.after.edges),
            from_to(line.before.features, line.after.features),
            line.corpus,
            line.finds.len()
        );
    }
}

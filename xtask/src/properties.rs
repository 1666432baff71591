//! Runs all checks of CI.
//!
//! Steps that fail fast come first. The tests build the workspace once, and later steps use that build. The
//! virtual machine takes minutes but little processor time, so it runs in the background of the later steps.

use std::process::ExitCode;
use std::time::SystemTime;

use crate::repository::{Done, Repository, cargo};
use crate::steps::{Beside, Steps};
use crate::{
    book, format, fuzz, instructions, kernel, library, licences, new, pictures, prose, publishable, python,
    scenarios, test_programs, tools,
};

const IN_THE_KERNEL: &str = "kernel disciplines, in a virtual machine";

/// Extent of the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All steps.
    Whole,
    /// All steps except the scenarios, the papers and the trial of the template for a discipline.
    Fast,
}

/// Runs the steps and prints the table.
pub fn run(repository: &Repository, extent: Extent) -> ExitCode {
    let mut steps = Steps::default();
    steps.step("tools", || tools::set_up(repository));
    steps.step("format", || format::check(repository));
    steps.step("prose", || prose::check(repository, &[]));
    steps.step("licences", || licences::check(repository));
    steps.step("clippy", || {
        repository.cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    });
    steps.step("documentation of the code", || documentation(repository));
    browser(repository, &mut steps);
    steps.step("tests", || test_programs::run(repository));
    steps.step("packages of crates", || publishable::pack(repository, false));
    // From here on the programs for the virtual machine are built.
    let machine = kernel::ready(repository).map(|_| Beside::start(repository, "test-kernel", &["--quick"]));
    steps.step("predictions from captures", || library::check(repository, &[]));
    steps.step("fuzz, quick run", || fuzz::smoke(repository));
    oracles(repository, &mut steps);
    package(repository, &mut steps);
    steps.step("generated pages", || repository.docs_are_up_to_date());
    steps.step("pictures of the book", || pictures::check(repository));
    steps.step("book", || book::build(repository));
    if extent == Extent::Whole {
        scenarios::steps(repository, &mut steps);
        steps.step("a new discipline", || new::try_it(repository));
        const COUNTS: &str = "instructions per packet";
        match instructions::set_up(repository) {
            Ok(()) => steps.step(COUNTS, || instructions::check(repository)),
            Err(why) => steps.skip(COUNTS, &why),
        }
    }
    match machine {
        Ok(machine) => steps.step(IN_THE_KERNEL, || machine?.wait()),
        Err(why) => steps.skip(IN_THE_KERNEL, &why),
    }
    steps.close()
}

/// Compiles the crates for a simulator in a browser: from scenarios to tables and figures, without threads,
/// files and C libraries.
fn browser(repository: &Repository, steps: &mut Steps) {
    const NAME: &str = "WebAssembly";
    if let Err(why) = tools::standard_library(repository, tools::WASM) {
        return steps.skip(NAME, &why);
    }
    let packages =
        ["scenario", "measure", "document", "papers"].map(|name| format!("--package=giveway-{name}"));
    let mut arguments = vec!["check", "--quiet", "--locked", "--target", tools::WASM];
    arguments.extend(packages.iter().map(String::as_str));
    steps.step(NAME, || repository.cargo(&arguments));
}

/// Builds the documentation of every crate with warnings denied, such as links without a target.
fn documentation(repository: &Repository) -> Done {
    let flags = format!("{} -D warnings", std::env::var("RUSTDOCFLAGS").unwrap_or_default());
    let mut command = repository.command(&cargo());
    command
        .args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"])
        .env("RUSTDOCFLAGS", flags.trim());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("cargo doc has warnings".to_owned()) }
}

/// Runs every property test with new random cases, `rounds` times.
pub fn properties(repository: &Repository, rounds: &str) -> Done {
    let rounds: u32 = rounds.parse().map_err(|_| format!("{rounds} is not a number of rounds"))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?;
    let tests = test_programs::with_dependency(repository, "proptest")?;
    for round in 0..rounds {
        let seed = now.as_secs() + u64::from(round);
        println!("== round {} of {rounds}, PROPTEST_RNG_SEED={seed}", round + 1);
        for (program, folder) in &tests {
            let mut test = repository.command(program);
            test.current_dir(folder).arg("--quiet").env("PROPTEST_RNG_SEED", seed.to_string());
            // The output of a passing test is not shown.
            let output = test.output().map_err(|error| format!("{program}: {error}"))?;
            if !output.status.success() {
                let [output_text, error_text] =
                    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
                return Err(format!(
                    "{output_text}{error_text}\n{program} with PROPTEST_RNG_SEED={seed}: {}",
                    output.status
                ));
            }
        }
    }
    Ok(())
}

/// Runs the scenarios of `disciplines/tests/starvation.rs`, a million of each.
pub fn starvation(repository: &Repository) -> Done {
    // Each property has eight times the usual number of cases.
    let mut tests = repository.command(&cargo());
    tests.env("PROPTEST_CASES", "125000");
    tests.args(["test", "--package", "giveway-disciplines", "--test", "all", "starvation::"]);
    let status = tests.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("a flow starved".to_owned()) }
}

/// Tests the bounds of `disciplines/tests/bounds.rs` in 100,000 cases for each discipline.
pub fn bounds(repository: &Repository) -> Done {
    // Each property has eight times the usual number of cases.
    let mut tests = repository.command(&cargo());
    tests.env("PROPTEST_CASES", "12500");
    tests.args(["test", "--package", "giveway-disciplines", "--test", "all", "bounds::"]);
    let status = tests.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("a bound is exceeded".to_owned()) }
}

/// The Python package: wheel, types, tests and notebooks.
fn package(repository: &Repository, steps: &mut Steps) {
    const NAME: &str = "Python package";
    match python::set_up(repository) {
        Ok(()) => steps.step(NAME, || python::check(repository)),
        // In CI it must run.
        Err(why) if std::env::var_os("CI").is_some() => steps.step(NAME, || Err(why)),
        Err(why) => steps.skip(NAME, &why),
    }
}

/// The second implementations in Python, and their tests.
fn oracles(repository: &Repository, steps: &mut Steps) {
    const NAME: &str = "oracles in Python";
    let files = repository.files("validation", "py").into_iter();
    let tests =
        files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_")));
    let tests: Vec<String> = tests.map(|path| repository.name_of(&path)).collect();
    if tests.is_empty() {
        return steps.skip(NAME, "there are none");
    }
    if !repository.has("python3", &["--version"]) {
        return steps.skip(NAME, "python3 is not installed");
    }
    steps.step(NAME, || -> Done {
        tests.iter().try_for_each(|test| repository.run("python3", &["-B", test]))
    });
}

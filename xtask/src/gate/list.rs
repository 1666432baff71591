//! The checks of the gate, in the order in which they run.
//!
//! The short form decides whether a change is right. A check of the long form takes minutes, and its result
//! follows from the files that it names: it runs again only when one of them has changed.

use super::inputs::Inputs;
use crate::repository::{Done, Repository, cargo};
use crate::steps::Ended;
use crate::{
    book, format, fuzz, instructions, kernel, library, licences, new, papers, pictures, prose, publishable,
    python, scenarios, test_programs, tools,
};

/// A check of the gate.
pub struct Check {
    /// Its name in tables, and in the record of what was verified.
    pub name: &'static str,
    pub needs: Needs,
    pub work: Work,
    /// The inputs of a check of the long form. `None`: it is part of the short form, and always runs.
    pub inputs: Option<Inputs>,
}

/// The preparation of a check.
#[derive(Clone, Copy)]
pub enum Needs {
    /// There is none.
    Nothing,
    /// It installs what is missing. Without it the check is skipped.
    Optional(fn(&Repository) -> Done),
    /// It installs what is missing. Without it the check is skipped, and in CI it fails.
    InCi(fn(&Repository) -> Done),
}

/// The work of a check.
#[derive(Clone, Copy)]
pub enum Work {
    /// A function.
    Here(fn(&Repository) -> Done),
    /// A chore with arguments, which runs in the background of the checks after it: it takes little processor
    /// time for its duration.
    Beside(&'static str, &'static [&'static str]),
}

impl Needs {
    /// Installs what a check needs; otherwise returns how the check ends.
    ///
    /// # Errors
    /// [`Ended::Skipped`], or [`Ended::Failed`] in CI if the check must run there.
    pub fn prepare(self, repository: &Repository, in_ci: bool) -> Result<(), Ended> {
        match self {
            Needs::Nothing => Ok(()),
            Needs::InCi(install) if in_ci => install(repository).map_err(Ended::Failed),
            Needs::Optional(install) | Needs::InCi(install) => install(repository).map_err(Ended::Skipped),
        }
    }
}

const fn always(name: &'static str, work: fn(&Repository) -> Done) -> Check {
    Check { name, needs: Needs::Nothing, work: Work::Here(work), inputs: None }
}

const fn after_changes(
    name: &'static str,
    crates: &'static [&'static str],
    files: &'static [&'static str],
    needs: Needs,
    work: Work,
) -> Check {
    Check { name, needs, work, inputs: Some(Inputs { crates, files }) }
}

/// All checks. Those that fail fast come first. The tests build the workspace once, and later checks use that
/// build.
pub const CHECKS: &[Check] = &[
    always("tools", tools::set_up),
    always("format", format::check),
    always("prose", |repository| prose::check(repository, &[])),
    always("licences", licences::check),
    always("packages of crates", |repository| publishable::pack(repository, false)),
    always("build of the tests", |repository| test_programs::build(repository).map(drop)),
    // Tests that wait for sockets and clocks leave processors idle. Cargo builds one thing at a time, so it
    // cannot begin before.
    Check { name: "clippy", needs: Needs::Nothing, work: Work::Beside("lint", &[]), inputs: None },
    always("tests", test_programs::run),
    // From here on the programs for the virtual machine are built.
    after_changes(
        "kernel disciplines, in a virtual machine",
        &["cli", "kernel-check", "net", "senders"],
        &["kernel", "scenarios/testbed", "xtask/src/kernel", "xtask/src/kernel.rs"],
        Needs::Optional(|repository| kernel::ready(repository).map(drop)),
        Work::Beside("test-kernel", &["--quick"]),
    ),
    always("scenarios are valid", scenarios::check),
    always("scenarios, one thread", scenarios::one_thread),
    always("kernel disciplines, without a kernel", kernel::native::check),
    // Cargo waits here for the end of clippy.
    always("fuzz, quick run", fuzz::quick),
    always("generated pages", Repository::docs_are_up_to_date),
    always("links of the book", book::check_links),
    Check {
        name: "Python package",
        needs: Needs::InCi(python::set_up),
        work: Work::Here(python::check),
        inputs: None,
    },
    after_changes("fuzz, longer run", &["fuzzing"], &["fuzz"], Needs::Nothing, Work::Here(fuzz::smoke)),
    after_changes(
        "tests, long form",
        &["cli", "judge", "net"],
        &[
            "crates/cli/tests",
            "crates/judge/tests",
            "crates/live/tests",
            "crates/net/tests",
            "crates/sim/tests",
            // The commands of these pages are run, on these files.
            "README.md",
            "docs/book",
            "examples",
            "papers",
            "scenarios",
        ],
        Needs::Nothing,
        Work::Here(test_programs::long),
    ),
    after_changes(
        "examples in the documentation of the code",
        WORKSPACE,
        &[],
        Needs::Nothing,
        Work::Here(test_programs::examples),
    ),
    after_changes(
        "documentation of the code",
        WORKSPACE,
        &["xtask/docs/src", "xtask/src"],
        Needs::Nothing,
        Work::Here(documentation),
    ),
    after_changes(
        "WebAssembly",
        BROWSER,
        &[],
        Needs::Optional(|repository| tools::standard_library(repository, tools::WASM)),
        Work::Here(browser),
    ),
    after_changes(
        "predictions from captures",
        &["compare"],
        &["crates/cli/src/compare", "crates/cli/src/compare.rs", "examples/library", "xtask/src/library"],
        Needs::Nothing,
        Work::Here(|repository| library::check(repository, &[])),
    ),
    after_changes(
        "oracles in Python",
        &[],
        &["validation"],
        Needs::Optional(tools::python),
        Work::Here(oracles),
    ),
    after_changes(
        "scenarios, many threads",
        &["runner"],
        &["scenarios", "papers", "xtask/golden.toml", "xtask/src/scenarios", "xtask/src/scenarios.rs"],
        Needs::Nothing,
        Work::Here(scenarios::many_threads),
    ),
    after_changes(
        "papers, quick run",
        &["papers", "runner"],
        &["papers", "crates/cli/src/reproduce.rs", "xtask/src/papers.rs"],
        Needs::Nothing,
        Work::Here(papers::quick),
    ),
    after_changes(
        "a new discipline",
        &["disciplines"],
        &["crates/disciplines/tests", "xtask/templates", "xtask/src/new.rs"],
        Needs::Nothing,
        Work::Here(new::try_it),
    ),
    after_changes(
        "instructions per packet",
        &["instructions"],
        &["docs/instructions.csv", "xtask/src/instructions", "xtask/src/instructions.rs"],
        Needs::Optional(instructions::set_up),
        Work::Here(instructions::check),
    ),
    after_changes(
        "Python wheel, types, clusters and notebooks",
        &["python"],
        &["python", "xtask/src/python.rs"],
        Needs::InCi(python::set_up_whole),
        Work::Here(python::check_whole),
    ),
    after_changes(
        "book as a site",
        &[],
        &["docs/book", "docs/theme", "python/examples", "xtask/src/book", "xtask/src/book.rs"],
        Needs::Nothing,
        Work::Here(book::build),
    ),
    after_changes(
        "pictures of the book",
        &["cli"],
        &["docs/pictures.toml", "docs/book/images", "docs/book/gallery.md", "xtask/src/pictures"],
        Needs::Nothing,
        Work::Here(pictures::check),
    ),
];

/// The crates at the top: with those that they are compiled with, all of the workspace but its chores.
const WORKSPACE: &[&str] =
    &["cli", "net", "python", "fuzzing", "instructions", "kernel-check", "senders", "counting"];

/// The crates of a simulator in a browser: from scenarios to tables and figures, without threads, files and C
/// libraries.
const BROWSER: &[&str] = &["scenario", "measure", "document", "papers"];

/// Checks these crates for a browser.
fn browser(repository: &Repository) -> Done {
    let packages: Vec<String> = BROWSER.iter().map(|name| format!("--package=giveway-{name}")).collect();
    let mut arguments = vec!["check", "--quiet", "--locked", "--target", tools::WASM];
    arguments.extend(packages.iter().map(String::as_str));
    repository.cargo(&arguments)
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

/// Runs the tests of the second implementations in Python.
fn oracles(repository: &Repository) -> Done {
    let is_test = |name: &str| name.rsplit('/').next().is_some_and(|file| file.starts_with("test_"));
    let names = repository.files("validation", "py").into_iter().map(|path| repository.name_of(&path));
    let tests: Vec<String> = names.filter(|name| is_test(name)).collect();
    if tests.is_empty() {
        return Err("there are none below validation".to_owned());
    }
    tests.iter().try_for_each(|test| repository.run("python3", &["-B", test]))
}

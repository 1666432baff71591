//! The gate: all checks of CI.
//!
//! `cargo xtask test` is the short form. It runs what decides whether a change is right, and names the checks
//! of the long form whose inputs have changed since they last passed. `cargo xtask test --all` runs those,
//! too, and so does the short form in CI. A check with the inputs that were verified is skipped, which is
//! said.

mod inputs;
mod list;
mod verified;

use std::process::ExitCode;

use crate::repository::Repository;
use crate::steps::{Beside, Ended, Steps};
use inputs::Tree;
use list::{CHECKS, Check, Work};
use verified::Verified;

/// Extent of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The short form, and in CI the checks of the long form whose inputs have changed.
    Short,
    /// Also outside CI.
    All,
    /// All checks, whatever was verified.
    Again,
}

/// The words after `cargo xtask test`.
#[derive(Debug, PartialEq, Eq)]
pub struct Options<'a> {
    extent: Extent,
    /// The label under which the times of the steps are stored in the repository.
    label: Option<&'a str>,
    /// The only checks to run; all if it is empty.
    only: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Parses the words.
    ///
    /// # Errors
    /// The word that is not an option.
    pub fn parse(words: &[&'a str]) -> Result<Options<'a>, String> {
        let mut options = Options { extent: Extent::Short, label: None, only: Vec::new() };
        let mut rest = words;
        while let [word, tail @ ..] = rest {
            rest = tail;
            match (*word, tail) {
                ("--all", _) => options.extent = Extent::All,
                ("--again", _) => options.extent = Extent::Again,
                ("--record", [label, after @ ..]) if !label.starts_with('-') => {
                    options.label = Some(label);
                    rest = after;
                }
                ("--only", [name, after @ ..]) if CHECKS.iter().any(|check| check.name == *name) => {
                    options.only.push(name);
                    options.extent = Extent::Again;
                    rest = after;
                }
                ("--only", _) => {
                    return Err("--only needs the name of a check: cargo xtask checks lists them".to_owned());
                }
                ("--record", _) => return Err("--record needs a label, such as 2026-11-29".to_owned()),
                _ => {
                    return Err(format!(
                        "cargo xtask test has no option {word}: write --all, --again, --only CHECK or --record LABEL"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// Runs the checks, and prints the table of their times.
pub fn run(repository: &Repository, options: &Options<'_>) -> ExitCode {
    match Gate::new(repository, options.extent) {
        Ok(gate) => gate.run(options),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table of CONTRIBUTING.md: where each check runs, and on what it depends.
pub fn table() -> String {
    let mut table = String::from("| check | runs | depends on |\n| --- | --- | --- |\n");
    for Check { name, inputs, .. } in CHECKS {
        let (runs, on) = match inputs {
            None => ("always", String::new()),
            Some(inputs) => {
                let crates = inputs.crates.iter().map(|name| format!("crate `{name}`"));
                let files = inputs.files.iter().map(|file| format!("`{file}`"));
                ("after a change", crates.chain(files).collect::<Vec<_>>().join(", "))
            }
        };
        table.push_str(&format!("| {name} | {runs} | {on} |\n"));
    }
    table
}

struct Gate<'a> {
    repository: &'a Repository,
    extent: Extent,
    in_ci: bool,
    tree: Tree,
    verified: Verified,
    steps: Steps,
    /// Checks that were not run although their inputs have changed.
    open: Vec<&'static str>,
    /// Checks that run in the background, with the digests of their inputs; `None` in the short form.
    beside: Vec<(&'static str, Option<String>, Result<Beside, String>)>,
}

impl Gate<'_> {
    fn new(repository: &Repository, extent: Extent) -> Result<Gate<'_>, String> {
        Ok(Gate {
            repository,
            extent,
            in_ci: std::env::var_os("CI").is_some(),
            tree: Tree::read(repository)?,
            verified: Verified::read(repository)?,
            steps: Steps::new(repository),
            open: Vec::new(),
            beside: Vec::new(),
        })
    }

    fn run(mut self, options: &Options<'_>) -> ExitCode {
        let chosen = |check: &&Check| options.only.is_empty() || options.only.contains(&check.name);
        for check in CHECKS.iter().filter(chosen) {
            match &check.inputs {
                None => drop(self.take(check, None)),
                Some(inputs) => match self.tree.digest(self.repository, inputs) {
                    Ok(digest) => self.take_after_changes(check, digest),
                    Err(why) => drop(self.steps.step(check.name, || Ended::Failed(why))),
                },
            }
        }
        for (name, digest, started) in std::mem::take(&mut self.beside) {
            let passed = self.steps.step(name, || started.and_then(Beside::wait).into());
            if let Some(digest) = digest.filter(|_| passed) {
                self.passed(name, &digest);
            }
        }
        let ended = self.steps.close(self.repository, options.label);
        if !self.open.is_empty() {
            println!(
                "not run, although what they depend on has changed since they last passed: {}\n\
                 cargo xtask test --all runs them, and CI does; commit {} with the change",
                self.open.join(", "),
                verified::FILE
            );
        }
        ended
    }

    /// Runs a check of the long form, unless its inputs were verified or this is the short form.
    fn take_after_changes(&mut self, check: &'static Check, digest: String) {
        if self.extent != Extent::Again && self.verified.has(check.name, &digest) {
            return self.steps.skip(check.name, format!("verified with the same inputs ({digest})"));
        }
        if self.extent == Extent::Short && !self.in_ci {
            self.open.push(check.name);
            return self.steps.skip(check.name, "its inputs have changed: cargo xtask test --all runs it");
        }
        if self.take(check, Some(&digest)) {
            self.passed(check.name, &digest);
        }
    }

    /// Runs a check, or starts one that runs in the background. Returns true if it passed.
    fn take(&mut self, check: &'static Check, digest: Option<&str>) -> bool {
        // A clean machine needs the preparation, so its time counts.
        let repository = self.repository;
        let (needs, in_ci) = (check.needs, self.in_ci);
        match check.work {
            Work::Here(work) => self.steps.step(check.name, || match needs.prepare(repository, in_ci) {
                Ok(()) => work(repository).into(),
                Err(ended) => ended,
            }),
            Work::Beside(chore, arguments) => {
                match needs.prepare(repository, in_ci) {
                    Ok(()) => {
                        let started = Beside::start(repository, chore, arguments);
                        self.beside.push((check.name, digest.map(str::to_owned), started));
                    }
                    Err(ended) => drop(self.steps.step(check.name, || ended)),
                }
                false
            }
        }
    }

    fn passed(&self, name: &str, digest: &str) {
        let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        if let Err(why) = Verified::store(self.repository, &names, name, digest) {
            println!("{why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let all = Options { extent: Extent::All, label: Some("idle"), only: Vec::new() };
        assert_eq!(Options::parse(&["--all", "--record", "idle"]), Ok(all));
        assert_eq!(Options::parse(&[]), Ok(Options { extent: Extent::Short, label: None, only: Vec::new() }));
        let one = Options { extent: Extent::Again, label: None, only: vec!["clippy"] };
        assert_eq!(Options::parse(&["--only", "clippy"]), Ok(one));
        for wrong in
            [["--fast"].as_slice(), &["--record"], &["--record", "--all"], &["all"], &["--only", "lint"]]
        {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_inputs_of_each_check_exist() {
        let repository = Repository::find();
        let tree = Tree::read(&repository).expect("the repository can be read");
        for check in CHECKS {
            if let Some(inputs) = &check.inputs {
                tree.digest(&repository, inputs).unwrap_or_else(|why| panic!("{}: {why}", check.name));
            }
        }
    }

    #[test]
    fn contributing_has_the_table_of_checks() {
        let page = include_str!("../../CONTRIBUTING.md");
        assert!(page.contains(&table()), "CONTRIBUTING.md must have this table:\n{}", table());
    }
}

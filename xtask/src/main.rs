//! Chores of the repository, as `cargo xtask CHORE`.
//!
//! `test` is what CI runs, all of it and in its order. The others each do one thing that a change may need.

#![allow(clippy::disallowed_methods, reason = "chores take time, and say how long")]

mod example;
mod format;
mod fuzz;
mod kernel;
mod licences;
mod new;
mod papers;
mod repository;
mod scenarios;
mod steps;
mod test;
mod tools;

use std::process::ExitCode;

use repository::Repository;

const HELP: &str = "\
cargo xtask CHORE

  test [--fast]    everything that CI runs, with what it needs installed first; --fast stops before the scenarios
  fmt [--check]    rustfmt over every file (modules that the registries declare are not found by cargo fmt)
  docs [--check]   writes the JSON Schema and the reference pages from the registries
  new NAME [--family FAMILY]
                   a new discipline: its file, its line in the registry, its scenario; families are shape (the default),
                   fair, size, aqm and reserved
  golden           accepts the fingerprints of the short form of every scenario
  long             runs every scenario in its long form
  properties [N]   every property on new random cases, N times (10 unless told; about twenty seconds each)
  stories          a million random stories in which no flow may starve (about fifteen minutes)
  bounds           searches 100,000 random cases for violations of each bound on delay and fairness (a few minutes)
  fuzz [10m]       looks for inputs that make a target of fuzz/ fail, so long for each (nightly compiler, cargo-fuzz);
                   --runs N: so many inputs instead, --only NAME: this target, --jobs N: so many processes
  papers           does every paper again, in full, and writes its page of the book (about ten minutes each)
  bench            benchmarks of every discipline, then the scenarios under scenarios/bench
  licences         checks what the dependencies are licensed under, against deny.toml
  validate-ns2     the same networks in ns-2 and here (needs ns-2: Debian's package ns2)
  test-kernel      the kernel's disciplines against the Rust ones, in a virtual machine (x86_64, about four minutes); --quick sends
                   fewer packets. Alone, and not the rest: --oracle watches the kernel's own qdiscs, --flood makes each packet a new
                   flow, --again loads and unloads ours 100 times under traffic, --compare measures what a packet costs and what
                   flows get, --book follows the page of the book inside the machine
  record-example   records examples/home-uplink.pcapng over real Linux TCP (Linux, as root; under a minute)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let repository = Repository::find();
    let done = match words.as_slice() {
        ["test"] => return test::run(&repository, test::Extent::Whole),
        ["test", "--fast"] => return test::run(&repository, test::Extent::Fast),
        ["fmt"] => format::write(&repository),
        ["fmt", "--check"] => format::check(&repository),
        ["docs"] => repository.docs(&[]),
        ["docs", "--check"] => repository.docs(&["--check"]),
        ["new", name] => new::discipline(&repository, name, new::FAMILY),
        ["new", name, "--family", family] => new::discipline(&repository, name, family),
        ["golden"] => scenarios::accept(&repository),
        ["long"] => scenarios::long(&repository),
        ["properties"] => test::properties(&repository, "10"),
        ["properties", rounds] => test::properties(&repository, rounds),
        ["stories"] => test::stories(&repository),
        ["bounds"] => test::bounds(&repository),
        ["fuzz", rest @ ..] => fuzz::run(&repository, rest),
        ["papers"] => papers::in_full(&repository),
        ["bench"] => scenarios::bench(&repository),
        ["licences"] => licences::check(&repository),
        ["validate-ns2", rest @ ..] => {
            repository.run("python3", &[&["validation/ns2/run.py"], rest].concat())
        }
        ["test-kernel", flags @ ..] if flags.iter().all(|flag| kernel::FLAGS.contains(flag)) => {
            kernel::test(&repository, flags)
        }
        ["record-example", rest @ ..] => example::record(&repository, rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(format!("cargo xtask {} is not a chore\n\n{HELP}", words.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

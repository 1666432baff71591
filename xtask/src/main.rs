//! Chores of the repository, as `cargo xtask CHORE`.
//!
//! `test` runs all checks of CI, in the same order. Each other chore is a task that a change may need.

#![allow(clippy::disallowed_methods, reason = "chores measure how long their steps take")]

mod book;
mod browser;
mod cards;
mod debian;
mod example;
mod format;
mod fuzz;
mod gate;
mod growth;
mod html;
mod image;
mod instructions;
mod kernel;
mod library;
mod licences;
mod lints;
mod new;
mod papers;
mod pictures;
mod program;
mod properties;
mod prose;
mod publishable;
mod python;
mod recorded;
mod release;
mod repository;
mod scenarios;
mod senders;
mod steps;
mod test_programs;
mod tools;
mod try_it;
mod varying;

use std::process::ExitCode;

use repository::Repository;

const HELP: &str = "\
cargo xtask CHORE

  test [--all | --again | --only CHECK] [--record LABEL]
                   runs the checks that decide whether a change is right, and installs missing programs; names the checks of
                   the long form whose inputs have changed since they last passed. --all runs these, too, and stores in
                   xtask/verified.toml that they passed; --again runs all of them, changed or not; --only
                   runs one check, and may be repeated; --record adds the times of
                   the steps to docs/gate.csv
  checks           prints the table of all checks, with what each depends on
  fmt [--check]    runs rustfmt on every file (cargo fmt misses the modules that registries declare)
  prose [PATH...]  checks the language: obsolete terms, beginnings of docs, lengths of comment lines; without a path also
                   counters of the language that may only improve. --accept stores better counters in xtask/prose.toml
  lint             runs clippy on all crates, tests and benchmarks, with low priority
  docs [--check]   writes the JSON Schema, the reference pages and the picture of the crates
  book             builds the book as a site that needs no network, in target/book, and checks its links and its search; --links
                   checks the links only, without building mdBook
  pictures [NAME]  makes the pictures of docs/pictures.toml and the gallery in docs/book (needs Chromium; a minute after the
                   build); --check compares them with the stored ones
  new NAME         adds a discipline: file, entry in the registry, scenario
  golden           accepts the fingerprints of the short form of every scenario
  long             runs every scenario in its long form
  properties [N]   tests every property with new random cases, N times (default 10; about twenty seconds each)
  starvation       searches a million random scenarios for a flow that starves (about fifteen minutes)
  bounds           searches 100,000 random cases for violations of each bound on delay and fairness (a few minutes)
  fuzz [10m]       fuzzes each target for this time (needs a nightly compiler and cargo-fuzz);
                   --runs N limits the inputs, --only NAME selects a target, --jobs N sets the number of processes
  papers           reproduces every paper in full and writes its page of the book (about ten minutes each)
  bench            runs the benchmarks of every discipline, then the scenarios under scenarios/bench
  instructions     counts instructions per packet of a set of workloads and compares them with docs/instructions.csv
                   (needs valgrind; a minute after the build); --record LABEL adds the counts to the table
  growth           measures how time and memory grow with flows, hops, nodes and buffer, and writes docs/growth.csv
                   (needs valgrind, GNU time and 2 GB of memory; a quarter of an hour);
                   growth hops nodes measures these curves only
  varying          runs the scenarios with links that vary with the disciplines of Linux, and writes docs/varying.csv
                   (about a minute after the build)
  cards            makes the cards of all disciplines of Linux that need no setting, and writes docs/cards.csv
                   (about half an hour after the build)
  senders          runs the cells of docs/senders-linux.csv in the simulator, and writes docs/senders.csv
                   (half a minute after the build)
  licences         checks the licences of the dependencies against deny.toml
  validate-ns2     compares networks in ns-2 and in the simulator (needs Debian's package ns2)
  test-kernel      compares disciplines in the kernel with those in Rust, in a virtual machine (x86_64, about four minutes);
                   --quick sends fewer packets. Each of these flags runs one test only: --oracle compares the qdiscs of Linux,
                   --flood makes each packet a new flow, --again loads and unloads 100 times under traffic,
                   --compare measures the cost of a packet and the shares of flows, --book runs the commands of the book
  kernel-rust      makes programs for the kernel from the Rust sources of all disciplines, or of those that are named,
                   loads each into this kernel, and checks that it decides as the native build
                   (needs root and Linux 6.16; about twenty minutes for all); see kernel/rust/README.md
  senders-linux    measures the TCP senders of Linux in the same virtual machine and writes docs/senders-linux.csv
                   (about an hour on one processor); --quick measures five short cells and writes nothing (a minute),
                   --traces writes the packet traces in crates/sim/tests/data/linux only (two minutes)
  testbed-linux    compares cake of giveway live with the kernel's cake on real TCP in the same virtual machine
                   (five minutes); --quick runs the short form of the scenario once. With other arguments it runs
                   giveway testbed with them in that machine, and prints JSON: scenarios/testbed/NAME.toml --seeds 1
                   --commands runs the commands that giveway compare recommends there
                   --card DISCIPLINE... makes a card there, as giveway evaluate --testbed: --card bpf:efd
                   --against kernel:fq_codel --cells rfc7928 --short --seeds 3
                   --record-library [CELL...] records the captures of examples/library (some minutes for each)
  library [--check] [CELL...]
                   predicts from each capture of examples/library, and compares with what was measured; --check fails
                   if a bound is missed, except those in examples/library/exceptions.toml
  python           runs the tests of the Python package in a virtual environment; --all builds and installs its wheel for that,
                   and also runs the type checks, the notebooks and the tests on clusters;
                   --wheel builds the wheels to publish, in target/python/wheels/dist
  release [--out DIR] [--check] [--without PART]
                   makes everything that is published, from the commit that is checked out: static programs, Debian
                   packages, the book, wheels, licences, components, checksums, and compares the fingerprints on another
                   processor (half an hour); --check builds it a second time in another folder and compares
  publishable      packs the crates that others may use (two seconds); --compile compiles each from its package
  publish [--files DIR] [--upload]
                   uploads these crates to crates.io and the wheels of a release to PyPI; without --upload it only checks them.
                   CARGO_REGISTRY_TOKEN and TWINE_PASSWORD are the tokens of the accounts
  semver           compares the interfaces of these crates with the last tag's (builds cargo-semver-checks)
  changes          prints a draft of the changes since the last tag, for CHANGELOG.md (needs Python)
  image [--files DIR] [--debootstrap] [--checks]
                   builds an image for containers with the package of a release, target/image/giveway.oci.tar, and runs the
                   demo in it; --debootstrap makes the base image from Debian's packages (as root) instead of fetching it,
                   --checks adds what test-kernel needs
  try [--files DIR]
                   installs the files of a release in a bare Debian in a folder, and measures the time until the table of
                   the demo, at most a minute (needs root; debootstrap takes a minute the first time)
  record-example   records examples/home-uplink.pcapng over real Linux TCP (Linux, as root; under a minute)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let repository = Repository::find();
    let done = match words.as_slice() {
        ["test", options @ ..] => match gate::Options::parse(options) {
            Ok(options) => return gate::run(&repository, &options),
            Err(why) => Err(why),
        },
        ["checks"] => {
            print!("{}", gate::table());
            Ok(())
        }
        ["fmt"] => format::write(&repository),
        ["fmt", "--check"] => format::check(&repository),
        ["prose", "--accept"] => prose::accept(&repository),
        ["prose", paths @ ..] => prose::check(&repository, paths),
        ["lint"] => lints::check(&repository),
        ["docs"] => repository.docs(&[]),
        ["docs", "--check"] => repository.docs(&["--check"]),
        ["book"] => book::build(&repository),
        ["book", "--links"] => book::check_links(&repository),
        ["pictures", "--check"] => pictures::check(&repository),
        ["pictures", names @ ..] => pictures::write(&repository, names),
        ["new", name] => new::discipline(&repository, name, new::FAMILY),
        ["new", name, "--family", family] => new::discipline(&repository, name, family),
        ["golden"] => scenarios::accept(&repository),
        ["long"] => scenarios::long(&repository),
        ["properties"] => properties::properties(&repository, "10"),
        ["properties", rounds] => properties::properties(&repository, rounds),
        ["starvation"] => properties::starvation(&repository),
        ["bounds"] => properties::bounds(&repository),
        ["fuzz", rest @ ..] => fuzz::run(&repository, rest),
        ["papers"] => papers::full(&repository),
        ["bench"] => scenarios::bench(&repository),
        ["instructions"] => instructions::check(&repository),
        ["instructions", "--record", label] => instructions::record(&repository, label),
        ["growth", names @ ..] => growth::record(&repository, names),
        ["senders"] => senders::record(&repository),
        ["varying"] => varying::record(&repository),
        ["cards"] => cards::record(&repository),
        ["licences"] => licences::check(&repository),
        ["python"] => python::set_up(&repository).and_then(|()| python::check(&repository)),
        ["python", "--all"] => {
            python::set_up_whole(&repository).and_then(|()| python::check_whole(&repository))
        }
        ["python", "--wheel"] => {
            python::static_net(&repository).and_then(|net| python::wheels(&repository, &net).map(drop))
        }
        ["release", rest @ ..] => release::run(&repository, rest),
        ["publishable"] => publishable::pack(&repository, false),
        ["publishable", "--compile"] => publishable::pack(&repository, true),
        ["publish", rest @ ..] => {
            let (upload, rest) = match rest {
                [rest @ .., "--upload"] => (true, rest),
                rest => (false, rest),
            };
            match rest {
                [] => publishable::publish(&repository, None, upload),
                ["--files", folder] => publishable::publish(&repository, Some(folder), upload),
                _ => Err("publish takes --files DIR and --upload, in this order".to_owned()),
            }
        }
        ["semver"] => publishable::semver(&repository),
        ["changes"] => publishable::changes(&repository),
        ["image", rest @ ..] => image::run(&repository, rest),
        ["try", rest @ ..] => try_it::run(&repository, rest),
        ["validate-ns2", rest @ ..] => {
            repository.run("python3", &[&["validation/ns2/run.py"], rest].concat())
        }
        ["test-kernel", flags @ ..] if flags.iter().all(|flag| kernel::FLAGS.contains(flag)) => {
            kernel::test(&repository, flags)
        }
        ["kernel-rust", names @ ..] => kernel::rust::programs(&repository, names),
        ["senders-linux"] => kernel::senders(&repository, &[]),
        ["senders-linux", flag @ ("--quick" | "--traces")] => kernel::senders(&repository, &[flag]),
        ["library", arguments @ ..] => library::compare(&repository, arguments),
        ["testbed-linux", rest @ ..] => kernel::test_beds(&repository, rest),
        ["record-example", rest @ ..] => example::record(&repository, rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(format!("unknown chore: cargo xtask {}\n\n{HELP}", words.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

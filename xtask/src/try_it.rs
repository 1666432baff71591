//! Installs the files of a release in a bare Debian, and runs the demo, as a newcomer does.
//!
//! The system is Debian's smallest set of packages in a folder: it has no compiler, no Python and no Rust.
//! The chore measures the time from the first command of the user to the table of the demo.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::debian::{self, Copy};
use crate::repository::{Done, Repository};

/// The longest time until the table of the demo.
const LONGEST: Duration = Duration::from_secs(60);

/// The demo, a command that ends if its output has no table, and the program that `giveway live` becomes.
const DEMO: &str =
    "giveway demo --no-open --quiet | tee table; grep -q fq_codel table; giveway-net --version";

/// A way to install a file of the release.
struct Way {
    name: &'static str,
    /// Beginning, middle and end of the name of the file.
    file: [&'static str; 3],
    /// Commands before the time starts: packages of Debian that the way needs.
    before: &'static str,
    /// Commands that install the file.
    install: &'static str,
}

/// The ways. A new way is an entry.
const WAYS: [Way; 3] = [
    Way { name: "package", file: debian::PACKAGE_FILE, before: "", install: "dpkg --install giveway_*.deb" },
    Way {
        name: "wheel",
        file: ["giveway-", "-cp311-abi3-", ".whl"],
        before: "apt-get -qq update; apt-get -qq install --no-install-recommends python3-venv",
        install: "python3 -m venv fresh; . fresh/bin/activate; pip install --quiet --no-index giveway-*.whl",
    },
    Way {
        name: "archive",
        file: ["giveway-", "", "-x86_64-unknown-linux-musl.tar.gz"],
        before: "",
        install: "tar -xzf giveway-*.tar.gz; install giveway-*/giveway giveway-*/giveway-net /usr/local/bin",
    },
];

/// Tries every way with the files in a folder. `--files DIR` names it.
///
/// # Errors
/// If a file is missing, cannot be installed, or the table takes too long.
pub fn run(repository: &Repository, words: &[&str]) -> Done {
    let files = match words {
        [] => repository.target()?.join("release-files"),
        ["--files", folder] => repository.root.join(folder),
        _ => return Err("cargo xtask try takes --files DIR only".to_owned()),
    };
    let bare = debian::bare(repository, &debian::suite()?)?;
    let mut failed = Vec::new();
    for way in &WAYS {
        println!("\n== {}", way.name);
        match time(repository, &bare, &files, way) {
            Ok(took) if took > LONGEST => failed.push(format!("{}: {:.1} s", way.name, took.as_secs_f64())),
            Ok(took) => println!("-- {}: {:.1} s until the table", way.name, took.as_secs_f64()),
            Err(error) => failed.push(format!("{}: {error}", way.name)),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// The time from the first command to the table.
fn time(repository: &Repository, bare: &Path, files: &Path, way: &Way) -> Result<Duration, String> {
    let system = Copy::new(repository, bare, way.name)?;
    let file = debian::file(files, way.file)?;
    println!("{}", file.display());
    system.put(&file)?;
    system.shell(repository, "if command -v cc gcc rustc cargo; then exit 1; fi")?;
    if !way.before.is_empty() {
        let begun = Instant::now();
        system.shell(repository, way.before)?;
        println!("before, for packages of Debian: {:.1} s", begun.elapsed().as_secs_f64());
    }
    let begun = Instant::now();
    let table = system.shell(repository, &format!("{}; {DEMO}", way.install))?;
    let took = begun.elapsed();
    print!("{table}");
    Ok(took)
}

//! Runs scenarios on test beds in the virtual machine, whose kernel has CAKE and BBR.
//!
//! The clock of the machine counts instructions, so that the load of this computer changes no result. The
//! results leave the machine on its serial line.

mod cake;
mod image;
mod library;
mod numbers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use super::fetch::Kernel;
use super::machine::{COUNTED, boot_for};
use crate::library::chosen;
use crate::repository::{Done, Repository};

/// Time limit of a machine, in seconds.
const SECONDS: &str = "3600";

/// Runs the comparison of Giveway's `cake` with the kernel's, and prints its table. `flags` may have
/// `--quick`, which runs the short form of the scenario once.
///
/// # Errors
/// A failed run, or a difference above a bound.
pub fn compare(repository: &Repository, folder: &Path, kernel: &Kernel, flags: &[&str]) -> Done {
    let quick = flags.contains(&"--quick");
    let machine = Machine::new(repository, folder, kernel)?;
    let begun = Instant::now();
    let output = machine.run(&cake::script(quick), 0)?;
    let (table, judgement) = cake::judge(&results(&output, "cake")?, quick)?;
    println!("{table}");
    said(&output);
    println!("test beds in Linux {}: {:.0} s", kernel.version(), begun.elapsed().as_secs_f64());
    judgement
}

/// Runs `giveway testbed` with these arguments in the machine, and prints its results as JSON. Scenarios are
/// those of `scenarios/testbed`, by this path.
///
/// # Errors
/// A failed run.
pub fn single(repository: &Repository, folder: &Path, kernel: &Kernel, arguments: &[&str]) -> Done {
    let machine = Machine::new(repository, folder, kernel)?;
    let quoted = arguments.iter().map(|argument| format!(" '{}'", argument.replace('\'', "'\\''")));
    let output = machine.run(&format!("bed single{}\n", quoted.collect::<String>()), 0)?;
    println!("{:#}", results(&output, "single")?);
    said(&output);
    Ok(())
}

/// Records the library of captures, or the cells of it that are named.
///
/// # Errors
/// A failed run.
pub fn record_library(repository: &Repository, folder: &Path, kernel: &Kernel, names: &[&str]) -> Done {
    let cells = chosen(names)?;
    library::record(&Machine::new(repository, folder, kernel)?, &cells)
}

/// A virtual machine for test beds.
struct Machine<'a> {
    repository: &'a Repository,
    kernel: &'a Kernel,
    folder: PathBuf,
}

impl Machine<'_> {
    /// Builds the programs of the machine.
    fn new<'a>(repository: &'a Repository, folder: &Path, kernel: &'a Kernel) -> Result<Machine<'a>, String> {
        // The programs that the tests have built, as for the other tests of the kernel.
        repository.build_tests()?;
        let folder = folder.join("bed");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Machine { repository, kernel, folder })
    }

    /// Runs a script for the functions of `kernel/test/testbed.sh` and returns the output. `slots` is the
    /// number of captures that it writes to the disk.
    fn run(&self, script: &str, slots: usize) -> Result<String, String> {
        image::write(self.repository, &self.folder, self.kernel, script)?;
        boot_for(&self.folder, self.kernel, slots, &COUNTED, SECONDS)
    }
}

/// The results of a test bed in the output of a machine, as `giveway testbed --json` prints them.
fn results(output: &str, name: &str) -> Result<Value, String> {
    let start = format!("BED {name} ");
    let text = output.lines().find_map(|line| line.strip_prefix(&start));
    let text = text.ok_or_else(|| format!("the output of the machine has no results of {name}"))?;
    serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))
}

/// Prints the messages of the test beds.
fn said(output: &str) {
    output.lines().filter_map(|line| line.strip_prefix("SAID ")).for_each(|line| println!("{line}"));
}

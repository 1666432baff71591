//! Runs scenarios on test beds in the virtual machine, whose kernel has CAKE and BBR.
//!
//! The clock of the machine counts instructions, so that the load of this computer changes no result. The
//! results leave the machine on its serial line.

mod cake;
mod card;
mod commands;
mod host;
mod image;
mod library;
mod numbers;

use std::path::Path;
use std::time::Instant;

use super::equality::programs;
use super::fetch::Kernel;
use super::users::named_objects;
use crate::library::chosen;
use crate::repository::{Done, Repository};
use host::{Machine, quoted, results, said};

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

/// Runs `giveway testbed` with these arguments in the machine, and prints its results as JSON. Scenarios come
/// from `scenarios/testbed`, by this path.
///
/// # Errors
/// A failed run.
pub fn single(repository: &Repository, folder: &Path, kernel: &Kernel, arguments: &[&str]) -> Done {
    let machine = Machine::new(repository, folder, kernel)?;
    let output = machine.run(&format!("bed single{}\n", quoted(arguments)), 0)?;
    println!("{:#}", results(&output, "single")?);
    said(&output);
    Ok(())
}

/// Makes a card with `giveway evaluate --testbed` and these arguments in the machine, and prints it. The
/// disciplines may be BPF qdiscs.
///
/// # Errors
/// A failed run.
pub fn card(repository: &Repository, folder: &Path, kernel: &Kernel, arguments: &[&str]) -> Done {
    programs(repository, folder, kernel)?;
    let objects = named_objects(folder)?;
    let machine = Machine::new(repository, folder, kernel)?.with_objects(objects);
    let begun = Instant::now();
    let output = machine.run(&card::script(arguments), 0)?;
    println!("{}", card::card(&output)?);
    said(&output);
    println!("Linux {}: {:.0} s", kernel.version(), begun.elapsed().as_secs_f64());
    Ok(())
}

/// Runs the commands that `giveway compare` recommends in the machine.
///
/// # Errors
/// A command that fails, has another effect, or is not undone.
pub fn commands(repository: &Repository, folder: &Path, kernel: &Kernel) -> Done {
    let machine = Machine::new(repository, &folder.join("commands"), kernel)?;
    let output = machine.run(&commands::script(repository)?, 0)?;
    let count = output.lines().filter(|line| line.starts_with("TRIED ")).count();
    println!("commands that compare recommends: {count} in Linux {}", kernel.version());
    if count == 0 { Err("no recommended command was run".to_owned()) } else { Ok(()) }
}

/// Records the library of captures, or the cells of it that are named.
///
/// # Errors
/// A failed run.
pub fn record_library(repository: &Repository, folder: &Path, kernel: &Kernel, names: &[&str]) -> Done {
    let cells = chosen(names)?;
    library::record(&Machine::new(repository, folder, kernel)?, &cells)
}

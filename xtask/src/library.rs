//! The library of captures, and the comparison of predictions with what was measured.
//!
//! A cell is a rate, and a congestion control or another load: web pages, or QUIC. Its capture was recorded
//! with `fifo`. `giveway compare` predicts from it the completion times and the delay of the call with
//! `fifo`, `fq_codel` and `cake`; the file next to the capture has the values that were measured with the
//! qdiscs of Linux, in several runs.

mod advice;
mod cells;
mod exceptions;
mod homes;
mod measure;
mod rows;

use std::fs;

use self::advice::Claim;
pub use self::cells::{Cell, FOLDER, QDISCS, RUNS, chosen};
use self::exceptions::{Exceptions, FILE};
pub use self::homes::{RUNS as RUNS_OF_HOMES, SETUPS};
pub use self::measure::QUANTILES;
use self::rows::Prediction;
use crate::repository::{Done, Repository};

/// Predicts from each capture that was recorded, and prints the table of errors. The flag `--check` makes
/// each fault of a prediction an error.
///
/// # Errors
/// If there is no capture, a number is missing, or there is a fault.
pub fn compare(repository: &Repository, arguments: &[&str]) -> Done {
    repository.cargo(&["build", "--quiet", "--locked", "--workspace", "--bin", "giveway"])?;
    match arguments {
        ["--check", names @ ..] => check(repository, names),
        names => table(repository, names).map(drop),
    }
}

/// Checks the predictions from every capture with the program `giveway` that was built.
///
/// # Errors
/// A bound that is missed and not in the list of exceptions, an exception that is not true, or a verdict of a
/// recommendation that is false.
pub fn check(repository: &Repository, names: &[&str]) -> Done {
    let text = fs::read_to_string(repository.root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let exceptions = Exceptions::parse(&text)?;
    let (rows, claims) = table(repository, names)?;
    let mut faults = exceptions.faults(&rows);
    let wrong = claims.iter().filter(|claim| !claim.is_true());
    faults.extend(wrong.map(|claim| format!("a verdict that was measured to be false: {}", claim.text())));
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Prints the tables, and returns their rows: predictions, and verdicts of recommendations.
fn table(repository: &Repository, names: &[&str]) -> Result<(Vec<Prediction>, Vec<Claim>), String> {
    println!("{}", rows::head());
    let (mut all, mut claims) = (Vec::new(), Vec::new());
    for cell in chosen(names)? {
        if !rows::is_recorded(repository, &cell) {
            println!("| {} | not recorded | | | | | | |", cell.name());
            continue;
        }
        let (rows, of_cell) = rows::of(repository, &cell)?;
        rows.iter().for_each(|row| println!("{}", row.text()));
        all.extend(rows);
        claims.extend(of_cell);
    }
    let met: Vec<bool> = all.iter().flat_map(Prediction::met).collect();
    println!(
        "\n{} of {} numbers with a bound are within it",
        met.iter().filter(|met| **met).count(),
        met.len()
    );
    println!("\n| capture | setup | | measured | predicted | verdict | |\n|---|---|---|---:|---:|---|---|");
    claims.iter().for_each(|claim| println!("{}", claim.text()));
    let count = claims.iter().filter(|claim| claim.is_true()).count();
    println!("\n{count} of {} verdicts are true", claims.len());
    if met.is_empty() { Err("no capture of the library is there".to_owned()) } else { Ok((all, claims)) }
}

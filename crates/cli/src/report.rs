//! `giveway report`: the report of one run folder, or of several side by side.

use std::io::Write;
use std::path::{Path, PathBuf};

use giveway_runner::Outcome;
use giveway_runner::report::write_report;

use crate::error::CliError;
use crate::frontend::Terminal;

/// Writes the report of a run folder, or of several side by side.
///
/// The report is one HTML file with findings, charts, tables, the scenario and the provenance of the results.
/// It opens in any browser, without a network, and can be printed. `giveway run --out DIR` and `giveway
/// compare --out DIR` write it automatically; this command writes it again, to another file, or for several
/// folders together.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders of `run --out` or `compare --out`
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// File to write [default: report.html in the folder; for several folders, report.html in the current
    /// folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file, even if it is not a report
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway report runs/quickstart
  giveway report runs/before runs/after --out comparison.html

The checksums of all files in a folder are verified first.

Exit codes: 0 success, 1 the report cannot be written, or a folder is being written, 2 a folder is damaged, or the file is not
a report.";

/// Runs `giveway report`.
pub fn report(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let dirs: Vec<&Path> = args.dirs.iter().map(PathBuf::as_path).collect();
    let place = match (&args.out, dirs.as_slice()) {
        (Some(file), _) => file.clone(),
        (None, [dir]) => dir.join(giveway_record::REPORT),
        (None, _) => PathBuf::from(giveway_record::REPORT),
    };
    let frontend = Terminal { quiet: false };
    write_report(&dirs, &place, args.force, &frontend)?;
    writeln!(out, "{}", place.display())?;
    Ok(Outcome::Done)
}

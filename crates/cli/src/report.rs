//! `giveway report`: the page of one run folder, or of several side by side.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use record::report::{self, Report};

use crate::{Outcome, show};

/// Writes the report of a run folder, or of several side by side.
///
/// One HTML file with the findings, the charts, the table, the scenario and where it all comes from. It opens offline in any
/// browser, and prints. `giveway run --out DIR` and `giveway compare ... --out DIR` write it by themselves; this makes it
/// again, elsewhere, or of several folders together.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders that `run --out` or `compare --out` wrote
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Where to write it [default: report.html, in the folder if there is one, here if there are several]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  giveway report runs/quickstart
  giveway report runs/before runs/after --out comparison.html

Exit codes: 0 all is well, 1 the report could not be written, 2 a folder is not what it should be.";

/// Does it.
pub fn report(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let dirs: Vec<&Path> = args.dirs.iter().map(PathBuf::as_path).collect();
    let place = match (&args.out, dirs.as_slice()) {
        (Some(file), _) => file.clone(),
        (None, [dir]) => dir.join(record::REPORT),
        (None, _) => PathBuf::from(record::REPORT),
    };
    let html = match Report::read(&dirs).and_then(|report| report.html()) {
        Ok(html) => html,
        Err(error) => {
            show::sentence(&error.to_string());
            return Ok(Outcome::Wrong);
        }
    };
    if let Err(error) = report::write(&place, &html) {
        show::sentence(&error.to_string());
        return Ok(Outcome::Failed);
    }
    writeln!(out, "{}", place.display())?;
    Ok(Outcome::Done)
}

/// The report of several folders that were just written, side by side.
///
/// # Errors
/// As [`of_folder`].
pub fn of_folders(dirs: &[PathBuf], place: &Path) -> Result<(), String> {
    let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    let html = Report::read(&dirs).and_then(|report| report.html()).map_err(|error| error.to_string())?;
    report::write(place, &html).map_err(|error| error.to_string())
}

/// The report of a folder that was just written, in the folder.
///
/// # Errors
/// A sentence when a table cannot be read, or the report cannot be written.
pub fn of_folder(dir: &Path) -> Result<PathBuf, String> {
    let html = Report::read(&[dir]).and_then(|report| report.html()).map_err(|error| error.to_string())?;
    let place = dir.join(record::REPORT);
    report::write(&place, &html).map_err(|error| error.to_string())?;
    Ok(place)
}

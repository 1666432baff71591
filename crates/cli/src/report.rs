//! `giveway report`: the page of one run folder, or of several side by side.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use giveway_runner::Outcome;
use giveway_runner::report::write_report;

use crate::frontend::Terminal;
use crate::show;

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
    /// Replace what is at the place although it is no report
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway report runs/quickstart
  giveway report runs/before runs/after --out comparison.html

Every file of a folder is checked before it is believed.

Exit codes: 0 all is well, 1 the report could not be written, or a folder is being written, 2 a folder or the file that is there
is not what it should be.";

/// Does it.
pub fn report(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let dirs: Vec<&Path> = args.dirs.iter().map(PathBuf::as_path).collect();
    let place = match (&args.out, dirs.as_slice()) {
        (Some(file), _) => file.clone(),
        (None, [dir]) => dir.join(giveway_record::REPORT),
        (None, _) => PathBuf::from(giveway_record::REPORT),
    };
    let frontend = Terminal { quiet: false };
    if let Err((sentence, outcome)) = write_report(&dirs, &place, args.force, &frontend) {
        show::sentence(&sentence);
        return Ok(outcome);
    }
    writeln!(out, "{}", place.display())?;
    Ok(Outcome::Done)
}

//! `giveway report`: the report of one run folder, or of several side by side.

use std::io::Write;
use std::path::{Path, PathBuf};

use giveway_runner::Outcome;
use giveway_runner::report::{write_page, write_report};
use giveway_sweep::{Data, Manifest, page, usual_metric};

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::terminal;

/// Writes the report of a run folder, or of several side by side. For two recordings of `giveway live`, it
/// also prints what changed from the first one to the second.
///
/// The report is one HTML file with findings, charts, tables, the scenario and the provenance of the results.
/// It opens in any browser, without a network, and can be printed. `giveway run --out DIR` and `giveway
/// compare --out DIR` write it automatically; this command writes it again, to another file, or for several
/// folders together.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders of `run --out` or `compare --out`, or the folder of one `sweep`
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// File to write [default: report.html in the folder; for several folders, report.html in the current
    /// folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Metric of the report of a sweep; may be repeated [default: the metric of the sentences of `giveway
    /// sweep`]
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Replace the file, even if it is not a report
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway report runs/quickstart
  giveway report before after --out comparison.html
  giveway report sweeps/quickstart --metric fct_p95_s --metric goodput_bps

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
    if let Some(sweep) = dirs.iter().find(|dir| Manifest::is_in(dir)) {
        if dirs.len() > 1 {
            return Err(CliError::Usage(format!("{} is a sweep, which has its own report", sweep.display())));
        }
        write_page(&of_sweep(sweep, &args.metric)?, &place, args.force, &frontend)?;
        writeln!(out, "{}", place.display())?;
        return Ok(Outcome::Done);
    }
    if !args.metric.is_empty() {
        return Err(CliError::Usage("--metric is for the report of a sweep".to_owned()));
    }
    for sentence in write_report(&dirs, &place, args.force, &frontend)? {
        write!(out, "{}", terminal::point(&sentence))?;
    }
    writeln!(out, "{}", place.display())?;
    Ok(Outcome::Done)
}

/// The report of a sweep.
fn of_sweep(dir: &Path, metrics: &[String]) -> Result<String, CliError> {
    let metrics = if metrics.is_empty() { vec![usual_metric(dir)?] } else { metrics.to_vec() };
    let data: Vec<Data> = metrics.iter().map(|metric| Data::read(dir, metric)).collect::<Result<_, _>>()?;
    Ok(page(&data).html())
}

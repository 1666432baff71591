//! `giveway replay-check`: replays operation traces and compares the results.

use std::io::{BufReader, Write};
use std::path::PathBuf;

use giveway_files::input;
use giveway_replay::{Close, Section, Totals, Verdict};

use crate::error::CliError;
use crate::{Outcome, show};

/// Replays operation traces, and checks that disciplines decide as recorded.
///
/// A trace contains every call of a discipline and its results, as `giveway run --trace-port` and `giveway
/// live --trace` write it. Each discipline is built again from its spec and called again. Departures, drops
/// and marks must be equal, packet by packet; the first difference is printed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Trace files
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  giveway run scenarios/quickstart.toml --short --trace-port 'home->isp=home.trace'
  giveway replay-check home-*.trace

Exit codes: 0 all results are equal (as far as the traces go), 1 a difference or a damaged trace, 2 not a trace.";

/// Runs `giveway replay-check`.
pub fn replay_check(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let mut outcome = Outcome::Done;
    let mut sections = 0;
    let mut all = Totals::default();
    for file in &args.files {
        let name = file.display();
        let opened = match input::open_given(file) {
            Ok(opened) => opened,
            Err(error) => {
                show::message(&format!("cannot read {name}: {error}"));
                outcome = outcome.max(Outcome::Wrong);
                continue;
            }
        };
        let checked = match giveway_replay::check(BufReader::with_capacity(1 << 16, opened)) {
            Ok(checked) => checked,
            Err(error) => {
                show::message(&format!("{name} {error}"));
                outcome = outcome.max(Outcome::Wrong);
                continue;
            }
        };
        for section in &checked.sections {
            writeln!(out, "{name}: {}", line(section))?;
            sections += 1;
            all.operations += section.totals.operations;
            all.arrived += section.totals.arrived;
        }
        if let Some(error) = &checked.damage {
            writeln!(out, "{name}: {error}; checked up to that position")?;
        } else if !checked.whole {
            writeln!(out, "{name}: has no end, as if the program was killed; checked to its last operation")?;
        } else if checked.sections.is_empty() {
            writeln!(out, "{name}: has no operations")?;
        }
        if !checked.equal() || checked.damage.is_some() {
            outcome = outcome.max(Outcome::Failed);
        }
    }
    if sections > 1 {
        let Totals { operations, arrived, .. } = all;
        let verdict = if outcome == Outcome::Done { ": all equal" } else { "" };
        writeln!(out, "{sections} disciplines, {operations} operations, {arrived} packets{verdict}")?;
    }
    Ok(outcome)
}

/// Formats the verdict on one discipline as a line.
fn line(section: &Section) -> String {
    let Section { name, spec, rate, totals, close, verdict } = section;
    let Totals { operations, arrived, sent, dropped, marked } = totals;
    let verdict = match verdict {
        Verdict::Equal => "equal".to_owned(),
        Verdict::Different(difference) => format!("different: {difference}"),
        Verdict::Unbuildable(why) => format!("cannot be built: {why}"),
    };
    let end = match close {
        Some(Close::Whole) => "",
        Some(Close::Overrun) => "; cut off, because the writer fell behind",
        Some(Close::Early) => "; closed before the discipline ended",
        None => "; its end is missing",
    };
    format!(
        "{name}, {spec} at {rate}: {verdict} ({operations} operations: {arrived} packets arrived, {sent} sent, {dropped} dropped, \
         {marked} marked{end})"
    )
}

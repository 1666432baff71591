//! `giveway demo`: the first minute, without a file of one's own.

use std::io::Write;
use std::path::{Path, PathBuf};

use giveway_runner::Outcome;
use giveway_scenario::{Draft, Scenario};
use giveway_trials::processors;

use crate::error::CliError;
use crate::frontend::Terminal;
use crate::open::{self, Shown};
use crate::run::{print, session};
use crate::{show, terminal};

/// Shows in a minute what Giveway does: a home uplink with four disciplines.
///
/// It simulates a home whose uplink carries a backup, web pages and a call, prints a table and what it shows
/// in sentences, and opens the report. The folder also contains the scenario, to begin your own with.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the results and the report. Results that it already has are not computed again
    #[arg(long, value_name = "DIR", default_value = "giveway-demo")]
    out: PathBuf,
    /// Write into the folder whatever it contains. Each removed file is named; files that Giveway does not
    /// write stay
    #[arg(long)]
    force: bool,
    /// Do not open the report
    #[arg(long)]
    no_open: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway demo
  giveway demo --no-open --out /tmp/demo    # on a machine without a screen

Exit codes: 0 success, 1 a run failed, 2 the folder has other contents, 130 interrupted.";

/// The scenario of the README.
const SCENARIO: &str = include_str!("../../../scenarios/quickstart.toml");
/// Its name in results.
const NAME: &str = "demo";

/// The end of the output: what to do next.
const NEXT: &str = "\
Next:
  giveway compare CAPTURE --rate 10mbit    # the same for the traffic of your own link
  giveway init mine.toml                   # a scenario of your own, with comments
  giveway evaluate efd                     # the card of a discipline, in 65 scenarios
  giveway doctor                           # what else works on this machine
";

/// Runs `giveway demo`.
pub fn demo(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let scenario: Scenario =
        Draft::parse(SCENARIO, "").finish().expect("a test reads the scenario of the demo");
    let frontend = Terminal { quiet: args.quiet };
    let session = session(processors(), &frontend).replacing(args.force);
    let results = match session.run(&scenario, NAME, Some(&args.out), &|_| None) {
        Ok(results) => results,
        Err(outcome) => return Ok(outcome),
    };
    writeln!(out, "{}\n", scenario.description.trim())?;
    print(&scenario, NAME, &results, out)?;
    if let Some(report) = &results.report {
        writeln!(out)?;
        shown(report, args.no_open, out)?;
        writeln!(out, "\n{NEXT}")?;
    }
    Ok(results.outcome)
}

/// Opens the report, or says where it is.
fn shown(report: &Path, no_open: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let place = report.display();
    if no_open || !terminal::styles() {
        writeln!(out, "The report is {place}")?;
        return Ok(());
    }
    match open::open(report) {
        Shown::Opened => writeln!(out, "The report {place} opens in your browser")?,
        Shown::NoScreen => writeln!(out, "The report is {place}: open it in a browser")?,
        Shown::Failed(why) => {
            show::message(&format!("the report cannot be opened here ({why})"));
            writeln!(out, "The report is {place}: open it in a browser")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_of_the_demo_compares_disciplines() {
        let scenario = Draft::parse(SCENARIO, "").finish().unwrap();
        assert!(scenario.compared().len() > 2 && !scenario.description.is_empty());
    }
}

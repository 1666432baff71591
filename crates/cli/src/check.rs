//! `giveway check`: checks scenarios without running them.

use std::io::Write;
use std::path::{Path, PathBuf};

use giveway_record::chain;
use giveway_scenario::{Backend, Diagnostic, Origin, Scenario, Severity};
use serde_json::{Value, json};

use crate::Outcome;
use crate::error::CliError;
use crate::scenario_args::ScenarioArgs;

/// Checks scenarios without running them.
///
/// Prints every mistake with its line and a correction, and warns of configurations that lead to misleading
/// results.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print one JSON array instead of text: an object for each file, with all its errors and warnings
    #[arg(long, conflicts_with = "all_errors")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway check scenarios/quickstart.toml
  giveway check scenarios/*.toml
  giveway check scenarios/quickstart.toml --set 'disciplines=[\"fifo\", \"fq_codel\"]'
  giveway check scenarios/*.toml --json | jq '.[].errors[]'

Exit codes: 0 success, 2 a scenario is invalid.";

/// Runs `giveway check`.
pub fn check(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let mut outcome = Outcome::Done;
    let mut objects = Vec::new();
    for file in &args.files {
        match args.scenario.read(file) {
            read if args.json => {
                objects.push(object(file, &read));
                outcome = outcome.max(read.err().map_or(Outcome::Done, |error| error.outcome()));
            }
            Ok(scenario) => {
                args.scenario.warn(&scenario);
                writeln!(out, "{}: ok: {}", file.display(), summary(&scenario))?;
                for offered in offered(&scenario) {
                    writeln!(out, "  {offered}")?;
                }
            }
            // The other files are checked, too.
            Err(error) => {
                error.show();
                outcome = outcome.max(error.outcome());
            }
        }
    }
    if args.json {
        writeln!(out, "{}", Value::from(objects))?;
    }
    Ok(outcome)
}

/// A file for programs.
fn object(file: &Path, read: &Result<Scenario, CliError>) -> Value {
    let none: &[Diagnostic] = &[];
    let (origin, all) = match read {
        Ok(scenario) => (Some(scenario.origin()), scenario.warnings.as_slice()),
        Err(CliError::Scenario(error, _)) => (Some(&error.origin), error.diagnostics.as_slice()),
        Err(_) => (None, none),
    };
    let of = |severity: Severity| -> Vec<Value> {
        let some = all.iter().filter(|each| each.severity == severity);
        some.filter_map(|each| Some(message(origin?, each))).collect()
    };
    let mut errors = of(Severity::Error);
    // A file that cannot be read has no lines.
    if let (Err(error), None) = (read, origin) {
        errors.push(json!({
            "file": file.display().to_string(), "flag": null, "line": null, "column": null,
            "message": chain(error), "label": null, "help": null,
        }));
    }
    json!({
        "file": file.display().to_string(),
        "ok": read.is_ok(),
        "summary": read.as_ref().ok().map(summary),
        "runs": read.as_ref().ok().map(|scenario| scenario.trials().len()),
        "errors": errors,
        "warnings": of(Severity::Warning),
    })
}

/// An error or a warning for programs. A place in a flag of the command line names the flag instead of a
/// file, and its column counts from the beginning of the flag's text.
fn message(origin: &Origin, diagnostic: &Diagnostic) -> Value {
    let place = origin.place(&diagnostic.span);
    json!({
        "file": (!place.flag).then_some(place.name),
        "flag": place.flag.then(|| format!("{} {}", place.name, place.text)),
        "line": (!place.flag).then_some(place.line),
        "column": place.column,
        "message": diagnostic.message,
        "label": (!diagnostic.label.is_empty()).then_some(&*diagnostic.label),
        "help": diagnostic.help,
    })
}

/// The load of each traffic with an empirical distribution of sizes, as a sentence.
fn offered(scenario: &Scenario) -> impl Iterator<Item = String> + '_ {
    let traffic = match &scenario.backend {
        Backend::Network(network) => network.traffic.as_slice(),
        Backend::Switch(_) | Backend::Live(_) => &[],
    };
    traffic.iter().filter_map(|stream| {
        stream.offered.as_ref().map(|offered| format!("traffic \"{}\": {offered}", stream.name))
    })
}

fn summary(scenario: &Scenario) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let parts: Vec<String> = match &scenario.backend {
        Backend::Network(network) => vec![
            count(network.nodes.len(), "node"),
            count(network.ports.len(), "port"),
            count(network.disciplines.len(), "discipline"),
        ],
        Backend::Switch(crossbar) => vec![
            format!("a switch of {0} x {0} ports", crossbar.ports),
            count(crossbar.arbiters.len(), "arbiter"),
        ],
        Backend::Live(live) => vec![
            format!("a test bed of {} and {}", count(live.near.len(), "host"), live.far.len()),
            count(live.compared.len(), "discipline"),
        ],
    };
    let duration = match &scenario.backend {
        Backend::Network(_) | Backend::Live(_) => scenario.duration.to_string(),
        Backend::Switch(crossbar) => format!("{} slots", crossbar.slots),
    };
    format!("{}, {} of {}", parts.join(", "), count(scenario.trials().len(), "run"), duration)
}

//! `giveway schema`: prints the JSON Schema of scenario files.

use std::io::Write;

use crate::Outcome;
use crate::error::CliError;

/// Prints the JSON Schema of scenario files.
///
/// Editors use it to complete and check scenarios. With taplo (the TOML extension of many editors), write
/// "#:schema scenario.schema.json" in the first line of a scenario.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  giveway schema > scenario.schema.json")]
pub struct Args {}

/// Runs `giveway schema`.
pub fn schema(_: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    writeln!(out, "{:#}", giveway_scenario::schema().to_value())?;
    Ok(Outcome::Done)
}

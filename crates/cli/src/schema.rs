//! `giveway schema`: the JSON Schema of scenario files.

use std::io::{self, Write};

use crate::Outcome;

/// Prints the JSON Schema of scenario files.
///
/// Editors complete and check scenarios by it: with taplo, put "#:schema scenario.schema.json" in the first line.
#[derive(clap::Args)]
#[command(after_help = "Example: giveway schema > scenario.schema.json")]
pub struct Args {}

/// Does it.
pub fn schema(_: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    writeln!(out, "{:#}", giveway_scenario::schema().to_value())?;
    Ok(Outcome::Done)
}

//! `giveway explain`: what one thing is, why it works, and what its parameters are.

use std::io::{self, Write};

use qdisc::units::nearest;
use schemars::{Schema, schema_for};

use crate::terminal::{bold, width};
use crate::{Outcome, markdown, parameters, show};

/// Explains a discipline, a congestion control or a source of traffic.
///
/// Shows how it works, where it departs from its paper, what it costs, its references, and its parameters with units
/// and defaults. "units" and "tcp" are explained too.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  giveway explain fifo\n  giveway explain cubic\n  giveway explain units")]
pub struct Args {
    /// Its name, as giveway list shows it
    name: String,
}

const UNITS: &str = include_str!("units.md");

const TCP: &str = "\
How TCP behaves: the keys of `[tcp]`, and of a `tcp` table beside the parameters of traffic. The defaults are those of the
RFCs; where they leave a choice, what Linux does.";

/// Does it.
pub fn explain(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let Some((page, schema)) = find(&args.name) else {
        let names = names();
        let near = nearest(&args.name, names.iter().copied());
        let help = near.map_or("see giveway list".to_owned(), |near| format!("did you mean \"{near}\"?"));
        show::sentence(&format!("there is nothing called \"{}\"; {help}", args.name));
        return Ok(Outcome::Wrong);
    };
    let width = width().min(100);
    write!(out, "{}", markdown::render(&page, width))?;
    if let Some(schema) = schema {
        let table = parameters::render(&schema, width);
        if !table.is_empty() {
            write!(out, "\n{}\n{table}", bold("Parameters"))?;
        }
    }
    Ok(Outcome::Done)
}

/// What there is to say about a name: a page, and parameters if it has any.
fn find(name: &str) -> Option<(String, Option<Schema>)> {
    if let Some(entry) = disciplines::ALL.iter().find(|entry| entry.name == name) {
        return Some((entry.page(), Some((entry.schema)())));
    }
    if let Some(entry) = sim::tcp::CONTROLLERS.iter().find(|entry| entry.name == name) {
        return Some((header(entry.source), None));
    }
    if let Some(entry) = sim::SOURCES.iter().find(|entry| entry.name == name) {
        return Some((header(entry.source), Some((entry.schema)())));
    }
    match name {
        "units" => Some((UNITS.to_owned(), None)),
        "tcp" => Some((TCP.to_owned(), Some(schema_for!(sim::TcpConfig)))),
        _ => None,
    }
}

fn names() -> Vec<&'static str> {
    let disciplines = disciplines::ALL.iter().map(|entry| entry.name);
    let congestion = sim::tcp::CONTROLLERS.iter().map(|entry| entry.name);
    let traffic = sim::SOURCES.iter().map(|entry| entry.name);
    disciplines.chain(congestion).chain(traffic).chain(["units", "tcp"]).collect()
}

/// The header of a source file.
fn header(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

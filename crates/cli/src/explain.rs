//! `giveway explain`: what one thing is, why it works, and what its parameters are.

use std::io::{self, Write};

use giveway_qdisc::units::nearest;
use giveway_switch::options::Options;
use schemars::{Schema, schema_for};

use crate::registries::{self, What};
use crate::terminal::{bold, width};
use crate::{Outcome, markdown, parameters, show};

/// Explains a discipline, a congestion control, a source of traffic, a scheduler of a switch, or its traffic.
///
/// Shows how it works, where it departs from its paper, what it costs, its references, and its parameters with units
/// and defaults. "units" and "tcp" are explained too. Where a name means something on a network and on a switch, as fifo
/// and onoff do, both are explained, one after the other.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  giveway explain fifo\n  giveway explain cubic\n  giveway explain islip\n  giveway explain units"
)]
pub struct Args {
    /// Its name, as giveway list shows it
    name: String,
}

const UNITS: &str = include_str!("units.md");

const TCP: &str = "\
How TCP behaves: the keys of `[tcp]`, and of a `tcp` table beside the parameters of traffic. The defaults are those of the
RFCs; where they leave a choice, what Linux does.";

/// What there is to say about something.
struct Page {
    /// What kind of thing it is, with its article.
    one: &'static str,
    /// Markdown.
    text: String,
    /// Parameters under their headings.
    parameters: Vec<(&'static str, Schema)>,
}

/// Does it.
pub fn explain(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let pages = find(&args.name);
    if pages.is_empty() {
        let registries = registries::all();
        let names = registries.iter().flat_map(|registry| &registry.things).map(|thing| thing.name);
        let near = nearest(&args.name, names.chain(["units", "tcp"]));
        let help = near.map_or("see giveway list".to_owned(), |near| format!("did you mean \"{near}\"?"));
        show::sentence(&format!("there is nothing called \"{}\"; {help}", args.name));
        return Ok(Outcome::Wrong);
    }
    let width = width().min(100);
    for (at, page) in pages.iter().enumerate() {
        if pages.len() > 1 {
            let gap = if at > 0 { "\n\n" } else { "" };
            writeln!(out, "{gap}{}\n", bold(&format!("{}, {}", args.name, page.one)))?;
        }
        write!(out, "{}", markdown::render(&page.text, width))?;
        for (title, schema) in &page.parameters {
            let table = parameters::render(schema, width);
            if !table.is_empty() {
                write!(out, "\n{}\n{table}", bold(title))?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// All that has this name.
fn find(name: &str) -> Vec<Page> {
    let mut pages = Vec::new();
    for registry in registries::all() {
        let Some(thing) = registry.things.iter().find(|thing| thing.name == name) else { continue };
        let parameters = match (thing.schema.map(|schema| schema()), registry.what) {
            (None, _) => Vec::new(),
            (Some(schema), What::Schedulers) => {
                let options = schema_for!(Options);
                let own = without(schema, &options);
                vec![("Parameters", own), ("What every scheduler can be told", options)]
            }
            (Some(schema), _) => vec![("Parameters", schema)],
        };
        pages.push(Page { one: registry.one, text: thing.page(), parameters });
    }
    let alone = |text: &str, parameters| vec![Page { one: "", text: text.to_owned(), parameters }];
    match name {
        "units" => alone(UNITS, Vec::new()),
        "tcp" => alone(TCP, vec![("Parameters", schema_for!(giveway_sim::TcpConfig))]),
        _ => pages,
    }
}

/// A schema without the properties that another one has.
fn without(schema: Schema, others: &Schema) -> Schema {
    let mut schema = schema.to_value();
    if let (Some(own), Some(others)) = (
        schema.get_mut("properties").and_then(|properties| properties.as_object_mut()),
        others.get("properties").and_then(|properties| properties.as_object()),
    ) {
        own.retain(|name, _| !others.contains_key(name));
    }
    schema.try_into().expect("a schema is an object")
}

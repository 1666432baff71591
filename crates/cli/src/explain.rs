//! `giveway explain`: principles, cost, references and parameters of a discipline or another name of `giveway
//! list`.

use std::io::Write;

use giveway_qdisc::units::nearest;
use giveway_switch::options::Options;
use schemars::{Schema, schema_for};

use crate::error::CliError;
use crate::registries::{self, RegistryKind};
use crate::terminal::{bold, width};
use crate::{Outcome, markdown, parameters};

/// Explains a discipline, a congestion control, a source of traffic, an arbiter of a switch, or the traffic
/// of a switch.
///
/// Prints its principles, its deviations from the paper, its cost, its references, and its parameters with
/// units and defaults. Names that exist on a network and on a switch, such as fifo and onoff, get both
/// explanations.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A name of `giveway list`, or units, or tcp
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  giveway explain fifo
  giveway explain cubic
  giveway explain islip
  giveway explain units    # the units of times, rates and sizes
  giveway explain tcp      # the parameters of TCP";

const UNITS: &str = include_str!("units.md");

const TCP: &str = "\
The behaviour of TCP: the keys of `[tcp]`, and of a `tcp` table next to the parameters of traffic. The defaults are
the ones of a current Linux.";

const QUIC: &str = "\
The behaviour of QUIC: the keys of `[quic]`, and of a `quic` table beside the parameters of traffic. They concern `quic`
traffic, and `web` with `transport = \"quic\"`. The defaults come from RFC 9000 (transport) and RFC 9002 (loss detection
and congestion control). `ack_every` and `reordering` are requests of draft-ietf-quic-ack-frequency.";

/// The explanation of a name.
struct Page {
    /// Name of its kind, with the article.
    one: &'static str,
    /// Its text, in Markdown.
    text: String,
    /// Its parameters, with a heading for each group.
    parameters: Vec<(&'static str, Schema)>,
}

/// Runs `giveway explain`.
pub fn explain(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let pages = find(&args.name);
    if pages.is_empty() {
        let registries = registries::all();
        let names = registries.iter().flat_map(|registry| &registry.things).map(|thing| thing.name);
        let closest = nearest(&args.name, names.chain(["units", "tcp"]));
        let help = closest
            .map_or("giveway list shows all names".to_owned(), |near| format!("did you mean \"{near}\"?"));
        return Err(CliError::Usage(format!("unknown name \"{}\"; {help}", args.name)));
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

/// The explanations of everything with this name.
fn find(name: &str) -> Vec<Page> {
    let mut pages = Vec::new();
    for registry in registries::all() {
        let Some(thing) = registry.things.iter().find(|thing| thing.name == name) else { continue };
        let parameters = match (thing.schema.map(|schema| schema()), registry.kind) {
            (None, _) => Vec::new(),
            (Some(schema), RegistryKind::Arbiters) => {
                let options = schema_for!(Options);
                let own = without(schema, &options);
                vec![("Parameters", own), ("Parameters of every arbiter", options)]
            }
            (Some(schema), _) => vec![("Parameters", schema)],
        };
        pages.push(Page { one: registry.one, text: thing.page(), parameters });
    }
    let alone = |text: &str, parameters| vec![Page { one: "", text: text.to_owned(), parameters }];
    match name {
        "units" => alone(UNITS, Vec::new()),
        "tcp" => alone(TCP, vec![("Parameters", schema_for!(giveway_sim::TcpConfig))]),
        "quic" => {
            pages.push(Page {
                one: "the protocol",
                text: QUIC.to_owned(),
                parameters: vec![("Parameters", schema_for!(giveway_sim::QuicConfig))],
            });
            pages
        }
        _ => pages,
    }
}

/// A schema without the properties of another one.
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

//! The page of the book about all metrics.

use std::fmt::Write as _;

use super::definitions::{Definition, METRICS, Of, Unit};

const INTRODUCTION: &str = "\
# Metrics

These are the numbers of a run in the tables of the terminal and the report, in `--json`, `summary.parquet` and
`metrics.parquet`. This page is generated from the table that the program uses.

The *measurement interval* begins after the warm-up (`warmup`) and ends with the run, or before its cooldown (`cooldown`). It
includes its first moment, but not its last. A rate counts events within the interval. *Edges* describes the treatment of
events that begin before the interval or end after it, and *Missing* the condition for a null.

If several ports are measured, each metric also exists for each of them: `at.PORT.METRIC`, with the flows whose route
crosses that port. Routes are those of the network with all links up.
";

/// The page of the book about all of them, as Markdown.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let parts = [
        (
            Of::Flows,
            "Flows",
            "Metrics of all flows. Goodput counts the flows whose route crosses the bottleneck, the first measured port.",
        ),
        (Of::Ports, "Ports", "Metrics of the measured ports. The *bottleneck* is the first of them."),
        (
            Of::Source,
            "Groups of sources",
            "Names begin with `src.NAME.`. Entries of `[[traffic]]` with the same name are a group.",
        ),
        (
            Of::Class,
            "Classes",
            "Names begin with `class.PATH.`. PATH has the names of the classes above and that of the class itself: `homes/home1`.",
        ),
        (Of::Switch, "Switch", "Metrics of scenarios with `backend = \"switch\"`, in slots of a link."),
    ];
    for (of, title, about) in parts {
        let _ = write!(page, "\n## {title}\n\n{about}\n");
        for definition in METRICS.iter().filter(|definition| definition.of == of) {
            let names: Vec<String> = definition.names.iter().map(|name| format!("`{name}`")).collect();
            let unit = match definition.unit {
                Unit::Share => "0 to 1".to_owned(),
                Unit::Number => "a number".to_owned(),
                unit => unit.symbol().to_owned(),
            };
            let Definition { what, edges, missing, .. } = definition;
            let names = names.join(", ");
            let _ =
                write!(page, "\n{names} — {unit}\n\n> {what}\n>\n> *Edges:* {edges} *Missing:* {missing}\n");
        }
    }
    page
}

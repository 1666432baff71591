//! The page of the book about all metrics.

use std::fmt::Write as _;

use super::definitions::{Better, Definition, METRICS, Subject, Unit};

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
            Subject::Flows,
            "Flows",
            "Metrics of all flows. Goodput counts the flows whose route crosses the bottleneck, the first measured port.",
        ),
        (Subject::Ports, "Ports", "Metrics of the measured ports. The *bottleneck* is the first of them."),
        (
            Subject::Source,
            "Groups of sources",
            "Names begin with `src.NAME.`. Entries of `[[traffic]]` with the same name are a group.",
        ),
        (
            Subject::Class,
            "Classes",
            "Names begin with `class.PATH.`. PATH has the names of the classes above and that of the class itself: `homes/home1`.",
        ),
        (Subject::Switch, "Switch", "Metrics of scenarios with `backend = \"switch\"`, in slots of a link."),
    ];
    for (subject, title, about) in parts {
        let _ = write!(page, "\n## {title}\n\n{about}\n");
        for definition in METRICS.iter().filter(|definition| definition.subject == subject) {
            let names: Vec<String> = definition.names.iter().map(|name| format!("`{name}`")).collect();
            let unit = match definition.unit {
                Unit::Share | Unit::Index => "0 to 1".to_owned(),
                Unit::Number => "a number".to_owned(),
                unit => unit.symbol().to_owned(),
            };
            let Definition { description, edges, missing, .. } = definition;
            let better = match definition.better {
                Better::High => " *Better:* high.",
                Better::Low => " *Better:* low.",
                Better::Neither => "",
            };
            let names = names.join(", ");
            let _ = write!(
                page,
                "\n{names} — {unit}\n\n> {description}\n>\n> *Edges:* {edges} *Missing:* {missing}{better}\n"
            );
        }
    }
    page
}

//! The page of the book about all metrics.

use std::fmt::Write as _;

use super::definitions::{Definition, METRICS, Of, Unit};

const INTRODUCTION: &str = "\
# Metrics

The numbers of a run: those of the tables on the terminal and in the report, of `--json`, of `summary.parquet` and of
`metrics.parquet`. This page is generated from the table that the program itself uses.

The *measurement interval* begins after the warm-up (`warmup`) and ends with the run, or before its cool-down (`cooldown`). Its
first moment belongs to it, its last does not. A rate counts what happens within the interval. Each metric says what it does
with what began before the interval or ends after it (*Edges*), and when it is null (*Missing*).

Where several ports are measured, each metric is there for each of them, too: `at.PORT.METRIC`, with the flows whose route
crosses that port. Routes are those of the network with all links up.
";

/// The page of the book about all of them, as Markdown.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let parts = [
        (
            Of::Flows,
            "Flows",
            "Of all flows; goodput of those whose route crosses the bottleneck, the first measured port.",
        ),
        (Of::Ports, "Ports", "Of the measured ports; where it says *bottleneck*, of the first of them."),
        (
            Of::Source,
            "Groups of sources",
            "Their names begin with `src.NAME.`: entries of `[[traffic]]` that share a name are a group.",
        ),
        (Of::Switch, "Switch", "Of scenarios with `backend = \"switch\"`, in slots of a link."),
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

//! `[sweep]`: keys of the scenario that `giveway sweep` varies.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, wrong_type};
use crate::file::Part;
use crate::tree::{Node, Table, Value};

/// The keys of `[sweep]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SweepKeys {
    /// The varied keys, each with its values: a list, "1..8", "lin(LOW,HIGH,N)" or "log(LOW,HIGH,N)". A key
    /// is a path such as "link.0.rate", or "qdisc.NAME" for a parameter of the compared disciplines.
    #[schemars(with = "Part")]
    pub over: IgnoredAny,
    /// The points: grid, random:N, lhs:N, sobol:N or saltelli:N. Default: grid.
    pub design: Option<String>,
    /// The precision at which seeds end, as in "fct_p99 within 5 %". Default: all seeds run.
    pub until: Option<String>,
}

/// The sweep that a scenario asks for. The crate `sweep` reads its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The varied keys with their values, as in `link.0.rate=1mbit,10mbit`.
    pub over: Vec<String>,
    /// The design.
    pub design: Option<String>,
    /// The precision at which seeds end.
    pub until: Option<String>,
}

/// Reads `[sweep]`. The default is that nothing varies.
pub(crate) fn read(reading: &mut Reading, root: &Table) -> Sweep {
    const EXAMPLE: &str = "over = { \"link.0.rate\" = [\"1mbit\", \"10mbit\"] }";
    let Some((table, keys)) = reading.section::<SweepKeys>(root, "sweep", EXAMPLE) else {
        return Sweep::default();
    };
    let mut over = Vec::new();
    match table.get("over") {
        None => {}
        Some(Node { value: Value::Table(axes), .. }) => flatten(reading, "", axes, &mut over),
        Some(node) => {
            let wrong = wrong_type(node, "over: expected a table of keys with their values");
            reading.report(wrong.help(format!("write {EXAMPLE}")));
        }
    }
    Sweep { over, design: keys.design, until: keys.until }
}

/// Adds the axes of a table. A key without quotes, such as `link.0.rate`, is a table of tables in TOML.
fn flatten(reading: &mut Reading, path: &str, table: &Table, over: &mut Vec<String>) {
    for entry in &table.entries {
        let key = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        match &entry.node.value {
            Value::Table(inner) => flatten(reading, &key, inner, over),
            Value::List(items) => {
                let texts: Option<Vec<String>> = items.iter().map(text).collect();
                match texts {
                    Some(texts) if !texts.is_empty() => over.push(format!("{key}={}", texts.join(","))),
                    _ => {
                        let wrong = Diagnostic::error(
                            entry.node.span.clone(),
                            format!("{key}: expected a list of numbers and strings"),
                        );
                        reading.report(wrong.help("write for example [\"1mbit\", \"10mbit\"]"));
                    }
                }
            }
            Value::Text(values) => over.push(format!("{key}={values}")),
            _ => over.extend(text(&entry.node).map(|value| format!("{key}={value}"))),
        }
    }
}

/// Formats a value in the syntax of `--over`; `None` for tables, lists and dates.
fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) if text.contains(',') => Some(format!("\"{text}\"")),
        Value::Text(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

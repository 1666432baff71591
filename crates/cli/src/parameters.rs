//! Tables of parameters for the terminal.

use giveway_spec::parameters::{Default, Parameter, parameters};
use schemars::Schema;

use crate::markdown::wrap;

/// Largest length of a description of values that stands next to the name. A longer one is below the name.
const MAX_BESIDE: usize = 40;

/// Renders the parameters of a schema; empty if it has none.
pub fn render(schema: &Schema, width: usize) -> String {
    let parameters = parameters(&schema.clone().to_value());
    let widest = |text: &dyn Fn(&Parameter) -> usize| parameters.iter().map(text).max().unwrap_or(0);
    let name_width = widest(&|parameter| parameter.name.len());
    let long = |takes: &str| takes.chars().count() > MAX_BESIDE;
    let beside = |takes: &str| if long(takes) { "a choice".to_owned() } else { takes.to_owned() };
    let takes_width = widest(&|parameter| beside(&plain(&parameter.takes)).chars().count());
    let indent = " ".repeat(name_width + 4);
    let mut out = String::new();
    for Parameter { name, takes, default, meaning, choices } in &parameters {
        let default = match default {
            Default::Required => "required".to_owned(),
            Default::Value(value) => format!("default {value}"),
            Default::None | Default::Described => String::new(),
        };
        let takes = plain(takes);
        let head = format!("  {name:name_width$}  {:takes_width$}  {default}", beside(&takes));
        out.push_str(head.trim_end());
        out.push('\n');
        out.push_str(&wrap(&plain(meaning), width, &indent, &indent));
        if long(&takes) {
            out.push_str(&wrap(&takes, width, &indent, &indent));
        }
        for choice in choices {
            out.push_str(&wrap(&plain(choice), width, &indent, &format!("{indent}  ")));
        }
    }
    out
}

/// Removes the backquotes of code from Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

//! A table of parameters in Markdown.

use giveway_spec::parameters::{Default, Parameter, parameters};
use serde_json::Value;

/// Name, values, default and meaning: one row for each parameter of a schema.
pub fn table(schema: &Value) -> String {
    let rows: Vec<String> = parameters(schema).iter().map(row).collect();
    if rows.is_empty() {
        return "None.\n".to_owned();
    }
    format!("| name | takes | default | meaning |\n| --- | --- | --- | --- |\n{}", rows.concat())
}

fn row(parameter: &Parameter) -> String {
    let Parameter { name, takes, default, meaning, choices } = parameter;
    let default = match default {
        Default::Required => "required".to_owned(),
        Default::Value(value) => format!("`{value}`"),
        Default::None => "none".to_owned(),
        Default::Described => String::new(),
    };
    let choices: String = choices.iter().map(|choice| format!(" {}", cell(choice))).collect();
    format!("| `{name}` | {takes} | {default} | {}{choices} |\n", cell(meaning))
}

/// A text for the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_values_and_the_meaning_of_each_choice() {
        let schema = serde_json::json!({
            "required": ["rate"],
            "properties": {
                "rate": { "type": "string", "format": "rate", "description": "How\n\nfast." },
                "drop": { "$ref": "#/$defs/Victim", "default": "tail", "description": "Which goes." },
            },
            "$defs": { "Victim": { "oneOf": [
                { "const": "tail", "description": "The newest." },
                { "const": "head", "description": "The oldest." },
            ]}},
        });
        let expected = "\
| name | takes | default | meaning |
| --- | --- | --- | --- |
| `rate` | a rate, `\"10 Mbit/s\"` | required | How fast. |
| `drop` | `\"tail\"`, `\"head\"` | `\"tail\"` | Which goes. `\"tail\"`: The newest. `\"head\"`: The oldest. |
";
        assert_eq!(table(&schema), expected);
    }
}

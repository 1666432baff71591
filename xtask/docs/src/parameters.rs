//! A table of parameters from the JSON Schema of a configuration.

use serde_json::Value;

/// Name, what is written, default, meaning: one row per parameter.
pub fn table(schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let rows: Vec<String> = properties.map(|(name, property)| row(name, property, schema)).collect();
    if rows.is_empty() {
        return "None.\n".to_owned();
    }
    format!("| name | takes | default | meaning |\n| --- | --- | --- | --- |\n{}", rows.concat())
}

fn row(name: &str, property: &Value, schema: &Value) -> String {
    let required = schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
    let meaning = property["description"].as_str().unwrap_or_default();
    let default = match &property["default"] {
        _ if required => "must be given".to_owned(),
        // What follows from elsewhere is told in words.
        Value::Null if meaning.contains("Default: ") => String::new(),
        Value::Null => "none".to_owned(),
        Value::String(text) => format!("`\"{text}\"`"),
        other => format!("`{other}`"),
    };
    let takes = takes(property, schema);
    let choices = choices(resolved(property, schema), schema);
    format!("| `{name}` | {takes} | {default} | {}{choices} |\n", one_line(meaning))
}

/// A table in a list is shown with its keys when it has so few.
const MOST_KEYS: usize = 6;

/// What kind of value it is, in words.
fn takes(property: &Value, schema: &Value) -> String {
    match property["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
        Some("Discipline") => return "a discipline, `\"fifo limit 100p\"`".to_owned(),
        Some("Arbiter") => return "an arbiter, `\"islip iterations 4\"`".to_owned(),
        _ => {}
    }
    let property = resolved(property, schema);
    if let Value::Bool(only) = property["const"] {
        return format!("`{only}`");
    }
    let format = property["format"].as_str().unwrap_or_default();
    if let Some(options) = property["anyOf"].as_array()
        && format.is_empty()
    {
        let options = options.iter().filter(|option| option["type"] != "null");
        let mut options: Vec<String> = options.map(|option| takes(option, schema)).collect();
        options.dedup();
        return options.join(" or ");
    }
    let names = names(property).into_iter().map(|name| format!("`\"{name}\"`"));
    let forms = forms(property, schema).map(|(form, _)| form);
    let listed: Vec<String> = names.chain(forms).collect();
    if !listed.is_empty() {
        return listed.join(", ");
    }
    let kind = match &property["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        other => other.as_str(),
    };
    let words = match (kind.unwrap_or_default(), format) {
        (_, "span") => "a time, `\"5 ms\"`",
        (_, "length") => "a time, `\"5 ms\"`, or slots, `\"1000 slots\"`",
        (_, "rate") => "a rate, `\"10 Mbit/s\"`",
        (_, "bytes") => "bytes, `\"1500b\"`",
        (_, "packets") => "packets, `\"300p\"`",
        (_, "limit") => "packets or bytes, `\"300p\"`",
        (_, "share") => "a share, `\"1 %\"`",
        ("boolean", _) => "`true` or `false`",
        ("integer", _) => "a whole number",
        ("number", _) => "a number",
        ("array", _) => {
            let item = resolved(&property["items"], schema);
            return match item["properties"].as_object() {
                Some(keys) if keys.len() <= MOST_KEYS => format!("a list: `{}`", value_of(item, schema)),
                _ => format!("a list: {}", takes(&property["items"], schema)),
            };
        }
        ("object", _) => "a table",
        ("string", _) => "text",
        _ => "a table",
    };
    words.to_owned()
}

/// The meaning of each choice, where choices have one.
fn choices(property: &Value, schema: &Value) -> String {
    let options = property["oneOf"].as_array().into_iter().flatten().map(|option| resolved(option, schema));
    let told = options.filter_map(|option| {
        let (name, meaning) = (option["const"].as_str()?, option["description"].as_str()?);
        Some(format!(" `\"{name}\"`: {}", one_line(meaning)))
    });
    let forms = forms(property, schema).filter(|(_, meaning)| !meaning.is_empty());
    told.chain(forms.map(|(form, meaning)| format!(" {form}: {}", one_line(meaning)))).collect()
}

/// Choices that carry a value, as `{ hotspot = ... }`, with their meanings.
fn forms<'a>(property: &'a Value, schema: &'a Value) -> impl Iterator<Item = (String, &'a str)> + use<'a> {
    let options = property["oneOf"].as_array().into_iter().flatten();
    options.filter_map(|option| {
        let (name, value) = option["properties"].as_object().filter(|one| one.len() == 1)?.iter().next()?;
        let value = value_of(resolved(value, schema), schema);
        Some((format!("`{{ {name} = {value} }}`"), option["description"].as_str().unwrap_or_default()))
    })
}

/// A value as it stands in a form: what it looks like rather than what it is.
fn value_of(property: &Value, schema: &Value) -> String {
    if let Some(fields) = property["properties"].as_object() {
        let fields: Vec<String> = fields.keys().map(|name| format!("{name} = ...")).collect();
        return format!("{{ {} }}", fields.join(", "));
    }
    match property["type"].as_str() {
        Some("array") => format!("[{}, ...]", value_of(resolved(&property["items"], schema), schema)),
        _ => "...".to_owned(),
    }
}

/// The names among which one is chosen.
fn names(property: &Value) -> Vec<&str> {
    let listed = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let told =
        property["oneOf"].as_array().into_iter().flatten().filter_map(|option| option["const"].as_str());
    listed.chain(told).collect()
}

/// Follows a reference to a definition of the same schema.
fn resolved<'a>(property: &'a Value, schema: &'a Value) -> &'a Value {
    match property["$ref"].as_str() {
        Some(target) => schema.pointer(target.trim_start_matches('#')).unwrap_or(property),
        None => property,
    }
}

/// Fits a table's trial.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_is_taken_and_what_each_choice_means() {
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
| `rate` | a rate, `\"10 Mbit/s\"` | must be given | How fast. |
| `drop` | `\"tail\"`, `\"head\"` | `\"tail\"` | Which goes. `\"tail\"`: The newest. `\"head\"`: The oldest. |
";
        assert_eq!(table(&schema), expected);
    }
    #[test]
    fn choices_that_carry_a_value_show_it() {
        let schema = serde_json::json!({ "properties": { "sizes": { "oneOf": [
            { "const": "any" },
            { "properties": { "fixed": { "type": "integer" } }, "description": "All alike." },
            { "properties": { "mix": { "type": "array", "items": { "$ref": "#/$defs/Part" } } } },
        ] } }, "$defs": { "Part": { "properties": { "cells": {}, "share": {} } } } });
        let takes = takes(&schema["properties"]["sizes"], &schema);
        assert_eq!(takes, "`\"any\"`, `{ fixed = ... }`, `{ mix = [{ cells = ..., share = ... }, ...] }`");
        assert!(table(&schema).contains(" `{ fixed = ... }`: All alike."));
    }
}

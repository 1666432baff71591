//! The parameters of a configuration in words, from its JSON Schema. `giveway explain` and the book print the
//! same words.

use serde_json::Value;

/// A parameter in words. Code stands between backticks, as in Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in a scenario and on the command line.
    pub name: String,
    /// The values that it accepts, with an example: "a rate, `\"10 Mbit/s\"`".
    pub takes: String,
    /// Value if the parameter is not given.
    pub default: Default,
    /// Its description, in one line.
    pub meaning: String,
    /// The meaning of each choice, where choices have one: "`\"tail\"`: The newest packet."
    pub choices: Vec<String>,
}

/// The default of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Default {
    /// No default: the parameter must be given.
    Required,
    /// The value, as TOML writes it.
    Value(String),
    /// The parameter is off or absent.
    None,
    /// The description states it in words, since it follows from other parameters.
    Described,
}

/// The parameters of a configuration, in the order of its schema. The parameters of a record follow it, with
/// its name in front: `classes.rate`.
///
/// A property with `"x-hidden": true` is left out. It exists for an experiment of a paper, not for users, but
/// specs may set it.
pub fn parameters(schema: &Value) -> Vec<Parameter> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let shown = properties.filter(|(_, property)| property["x-hidden"] != true);
    shown
        .flat_map(|(name, property)| {
            let inside = record(property, schema)
                .into_iter()
                .flatten()
                .map(|(inner, property)| parameter(&format!("{name}.{inner}"), property, schema));
            std::iter::once(parameter(name, property, schema)).chain(inside.collect::<Vec<_>>())
        })
        .collect()
}

/// The parameters of the records of a list, if they are too many to be shown with it.
fn record<'a>(property: &'a Value, schema: &'a Value) -> Option<&'a serde_json::Map<String, Value>> {
    let items = resolved(&property["items"], schema);
    items["properties"].as_object().filter(|keys| keys.len() > MAX_KEYS)
}

fn parameter(name: &str, property: &Value, schema: &Value) -> Parameter {
    let required = schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
    let description = property["description"].as_str().unwrap_or_default();
    let default = match &property["default"] {
        _ if required => Default::Required,
        Value::Null if description.contains("Default: ") => Default::Described,
        Value::Null => Default::None,
        Value::String(text) => Default::Value(format!("\"{text}\"")),
        other => Default::Value(other.to_string()),
    };
    Parameter {
        name: name.to_owned(),
        takes: takes(property, schema),
        default,
        meaning: one_line(description),
        choices: choices(resolved(property, schema), schema),
    }
}

/// Largest number of keys with which a table in a list is shown.
const MAX_KEYS: usize = 6;

/// The values that a property accepts, in words.
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
        (_, "depth") => "a time or packets, `\"1 ms\"` or `\"20p\"`",
        (_, "share") => "a share, `\"1 %\"`",
        ("boolean", _) => "`true` or `false`",
        ("integer", _) => "a whole number",
        ("number", _) => "a number",
        ("array", _) => {
            let item = resolved(&property["items"], schema);
            return match item["properties"].as_object() {
                Some(keys) if keys.len() <= MAX_KEYS => format!("a list: `{}`", value_of(item, schema)),
                Some(_) => "a list of tables, with these keys".to_owned(),
                _ => format!("a list: {}", takes(&property["items"], schema)),
            };
        }
        ("object", _) => "a table",
        ("string", _) => "a string",
        _ => "a table",
    };
    words.to_owned()
}

/// The meaning of each choice, where choices have one.
fn choices(property: &Value, schema: &Value) -> Vec<String> {
    let options = property["oneOf"].as_array().into_iter().flatten().map(|option| resolved(option, schema));
    let named = options.filter_map(|option| {
        let (name, meaning) = (option["const"].as_str()?, option["description"].as_str()?);
        Some(format!("`\"{name}\"`: {}", one_line(meaning)))
    });
    let forms = forms(property, schema).filter(|(_, meaning)| !meaning.is_empty());
    named.chain(forms.map(|(form, meaning)| format!("{form}: {}", one_line(meaning)))).collect()
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

/// The value in a form: its structure, with dots for values.
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

/// The names of the choices.
fn names(property: &Value) -> Vec<&str> {
    let listed = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let named =
        property["oneOf"].as_array().into_iter().flatten().filter_map(|option| option["const"].as_str());
    listed.chain(named).collect()
}

/// Follows a reference to a definition of the same schema.
fn resolved<'a>(property: &'a Value, schema: &'a Value) -> &'a Value {
    match property["$ref"].as_str() {
        Some(target) => schema.pointer(target.trim_start_matches('#')).unwrap_or(property),
        None => property,
    }
}

/// A description without line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_values_a_default_and_the_meaning_of_each_choice() {
        let schema = serde_json::json!({
            "required": ["rate"],
            "properties": {
                "rate": { "type": "string", "format": "rate", "description": "Rate of\n\nthe link." },
                "drop": { "$ref": "#/$defs/Victim", "default": "tail", "description": "Packet to drop." },
            },
            "$defs": { "Victim": { "oneOf": [
                { "const": "tail", "description": "The newest." },
                { "const": "head", "description": "The oldest." },
            ]}},
        });
        let found = parameters(&schema);
        // The order of a schema's keys depends on how `serde_json` was built.
        let named = |name| found.iter().find(|one| one.name == name).expect("the schema has it");
        let (drop, rate) = (named("drop"), named("rate"));
        assert_eq!((&*rate.name, &*rate.takes), ("rate", "a rate, `\"10 Mbit/s\"`"));
        assert_eq!((&rate.default, &*rate.meaning), (&Default::Required, "Rate of the link."));
        assert_eq!((&*drop.name, &*drop.takes), ("drop", "`\"tail\"`, `\"head\"`"));
        assert_eq!(drop.default, Default::Value("\"tail\"".to_owned()));
        assert_eq!(drop.choices, ["`\"tail\"`: The newest.", "`\"head\"`: The oldest."]);
    }

    #[test]
    fn choices_that_carry_a_value_show_it() {
        let schema = serde_json::json!({ "properties": { "sizes": { "oneOf": [
            { "const": "any" },
            { "properties": { "fixed": { "type": "integer" } }, "description": "All alike." },
            { "properties": { "mix": { "type": "array", "items": { "$ref": "#/$defs/Part" } } } },
        ] } }, "$defs": { "Part": { "properties": { "cells": {}, "share": {} } } } });
        let [sizes] = &parameters(&schema)[..] else { panic!("there is one parameter") };
        assert_eq!(
            sizes.takes,
            "`\"any\"`, `{ fixed = ... }`, `{ mix = [{ cells = ..., share = ... }, ...] }`"
        );
        assert_eq!(sizes.choices, ["`{ fixed = ... }`: All alike."]);
    }
}

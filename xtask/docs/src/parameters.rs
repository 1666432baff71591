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

/// What kind of value it is, in words.
fn takes(property: &Value, schema: &Value) -> String {
    if property["$ref"].as_str().is_some_and(|target| target.ends_with("/Discipline")) {
        return "a discipline, `\"fifo limit 100p\"`".to_owned();
    }
    let property = resolved(property, schema);
    if let Value::Bool(only) = property["const"] {
        return format!("`{only}`");
    }
    let format = property["format"].as_str().unwrap_or_default();
    if let Some(options) = property["anyOf"].as_array()
        && format.is_empty()
    {
        let options =
            options.iter().filter(|option| option["type"] != "null").map(|option| takes(option, schema));
        return options.collect::<Vec<_>>().join(" or ");
    }
    let names = names(property);
    if !names.is_empty() {
        return names.iter().map(|name| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ");
    }
    let kind = match &property["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        other => other.as_str(),
    };
    let words = match (kind.unwrap_or_default(), format) {
        (_, "span") => "a time, `\"5 ms\"`",
        (_, "rate") => "a rate, `\"10 Mbit/s\"`",
        (_, "bytes") => "bytes, `\"1500b\"`",
        (_, "packets") => "packets, `\"300p\"`",
        (_, "limit") => "packets or bytes, `\"300p\"`",
        (_, "share") => "a share, `\"1 %\"`",
        ("boolean", _) => "`true` or `false`",
        ("integer", _) => "a whole number",
        ("number", _) => "a number",
        ("array", _) => return format!("a list: {}", takes(&property["items"], schema)),
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
    told.collect()
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

/// Fits a table's cell.
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
}

//! Parameters as a table, from their JSON Schema.

use schemars::Schema;
use serde_json::Value;

use crate::markdown::wrap;

/// What is longer than this does not fit beside a name.
const MOST_KIND: usize = 40;

/// What is known about a parameter.
struct Parameter {
    name: String,
    kind: String,
    default: Option<String>,
    description: String,
}

/// Renders the parameters of a schema; empty when it has none.
pub fn render(schema: &Schema, width: usize) -> String {
    let schema = schema.clone().to_value();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let parameters: Vec<Parameter> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, property)| Parameter {
            name: name.clone(),
            kind: kind(property, &schema),
            default: match property.get("default") {
                Some(Value::Null) | None if required.contains(&Value::from(name.as_str())) => {
                    Some("required".into())
                }
                Some(Value::Null) | None => None,
                Some(Value::String(text)) => Some(format!("default {text}")),
                Some(other) => Some(format!("default {other}")),
            },
            description: property["description"].as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    let widest = |text: &dyn Fn(&Parameter) -> usize| parameters.iter().map(text).max().unwrap_or(0);
    let name_width = widest(&|parameter| parameter.name.len());
    let long = |kind: &str| kind.chars().count() > MOST_KIND;
    let beside = |kind: &str| if long(kind) { "choice".to_owned() } else { kind.to_owned() };
    let kind_width = widest(&|parameter| beside(&parameter.kind).chars().count());
    let indent = " ".repeat(name_width + 4);
    let mut out = String::new();
    for Parameter { name, kind, default, description } in &parameters {
        let default = default.as_deref().unwrap_or_default();
        let head = format!("  {name:name_width$}  {:kind_width$}  {default}", beside(kind));
        out.push_str(head.trim_end());
        out.push('\n');
        out.push_str(&wrap(description, width, &indent, &indent));
        if long(kind) {
            out.push_str(&wrap(kind, width, &indent, &indent));
        }
    }
    out
}

/// What kind of value it takes, in words.
fn kind(property: &Value, root: &Value) -> String {
    if let Some(target) = property.get("$ref").and_then(Value::as_str) {
        if target.ends_with("/Discipline") {
            return "discipline".into();
        }
        if target.ends_with("/Arbiter") {
            return "arbiter".into();
        }
        return root
            .pointer(target.trim_start_matches('#'))
            .map_or_else(String::new, |inner| kind(inner, root));
    }
    let named = match property.get("format").and_then(Value::as_str) {
        Some("span") => Some("time"),
        Some("rate") => Some("rate"),
        Some("bytes") => Some("size"),
        Some("packets") => Some("packets"),
        Some("limit") => Some("packets or size"),
        Some("share") => Some("share"),
        Some("length") => Some("time or slots"),
        _ => None,
    };
    if let Some(named) = named {
        return named.into();
    }
    let choices = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.filter_map(|choice| choice.get("const").unwrap_or(choice).as_str().map(str::to_owned)).collect()
    };
    for key in ["enum", "oneOf"] {
        let mut names = property.get(key).map(choices).unwrap_or_default();
        names.extend(property.get(key).into_iter().flat_map(forms));
        if !names.is_empty() {
            return names.join(" | ");
        }
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = property.get(key).and_then(Value::as_array) {
            let mut kinds: Vec<String> = options.iter().map(|option| kind(option, root)).collect();
            kinds.retain(|kind| !kind.is_empty());
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    let types = match &property["type"] {
        Value::Array(several) => several.iter().find_map(|one| one.as_str().filter(|one| *one != "null")),
        one => one.as_str(),
    };
    match types {
        Some("boolean") => "switch".into(),
        Some("integer") => "count".into(),
        Some("number") => "number".into(),
        Some("array") => format!("list of {}", kind(&property["items"], root)),
        Some("object") => "table".into(),
        Some("string") => "text".into(),
        _ => String::new(),
    }
}

/// Choices that carry a value: they are tables with one key.
fn forms(options: &Value) -> Vec<String> {
    let tables =
        options.as_array().into_iter().flatten().filter_map(|option| option["properties"].as_object());
    tables
        .filter(|one| one.len() == 1)
        .flat_map(|one| one.keys())
        .map(|name| format!("{{ {name} = ... }}"))
        .collect()
}

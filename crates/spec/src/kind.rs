//! Values of parameters: their kinds, from a schema, and the parser of a single word.

use giveway_qdisc::units::nearest;
use serde_json::Value;

use crate::SpecError;
use crate::error::listed;
use crate::word::Word;

/// Kind of the values of a parameter, from its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Switch,
    Integer,
    /// A whole number that may be negative.
    Signed,
    Number,
    /// A spec of the same catalogue.
    Spec,
    List,
    /// Several parameters, in parentheses.
    Record,
    Choice(Vec<String>),
    /// A quantity by its format, or other text.
    Text(String),
}

impl Kind {
    /// Kind of a schema without references to definitions. `refers` is true for references to the catalogue
    /// itself.
    pub fn of(schema: &Value, refers: &dyn Fn(&str) -> bool) -> Kind {
        if schema.get("$ref").and_then(Value::as_str).is_some_and(refers) {
            return Kind::Spec;
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            return Kind::Choice(choices.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        }
        if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
            let names = choices.iter().filter_map(|choice| choice.get("const")?.as_str());
            return Kind::Choice(names.map(str::to_owned).collect());
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        match types.iter().find(|name| **name != "null") {
            Some(&"boolean") => Kind::Switch,
            Some(&"integer") if format.starts_with("int") => Kind::Signed,
            Some(&"integer") => Kind::Integer,
            Some(&"number") => Kind::Number,
            Some(&"array") => Kind::List,
            Some(&"object") if schema.get("properties").is_some() => Kind::Record,
            _ => Kind::Text(format.to_owned()),
        }
    }

    /// Parses a word as the value of the parameter `name`, with the unit of a number without one. The caller
    /// handles switches and children.
    pub fn scalar(&self, word: &Word<'_>, name: &str, unit: Option<&str>) -> Result<Value, SpecError> {
        let wrong =
            |message: String, help: Option<String>| SpecError { span: word.span.clone(), message, help };
        match self {
            Kind::Integer => word.text.parse::<u64>().map(Value::from).map_err(|_| {
                wrong(
                    format!("{name}: \"{}\" is not a whole number", word.text),
                    Some(format!("write for example \"{name} 1024\"")),
                )
            }),
            Kind::Signed => word.text.parse::<i64>().map(Value::from).map_err(|_| {
                wrong(
                    format!("{name}: \"{}\" is not a whole number", word.text),
                    Some(format!("write for example \"{name} -4\"")),
                )
            }),
            Kind::Number => match word.text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::from(number)),
                _ => Err(wrong(
                    format!("{name}: \"{}\" is not a number", word.text),
                    Some(format!("write for example \"{name} 0.5\"")),
                )),
            },
            Kind::Choice(choices) if choices.iter().any(|choice| choice == word.text) => {
                Ok(Value::from(word.text))
            }
            Kind::Choice(choices) => Err(wrong(
                format!("{name}: unknown choice \"{}\"", word.text),
                Some(match nearest(word.text, choices.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("there are {}", listed(choices.iter().map(String::as_str))),
                }),
            )),
            Kind::List => Err(wrong(
                format!("{name}: expected a list"),
                Some(format!("write it in brackets: \"{name} [... ...]\"")),
            )),
            Kind::Text(format) => {
                let bare = word.text.bytes().all(|b| b.is_ascii_digit());
                let text = format!("{}{}", word.text, unit.filter(|_| bare).unwrap_or_default());
                // Parse it here, so that the error has the position of the word.
                let read = match format.as_str() {
                    "span" => text.parse::<giveway_qdisc::Span>().err(),
                    "rate" => text.parse::<giveway_qdisc::Rate>().err(),
                    "bytes" => text.parse::<giveway_qdisc::Bytes>().err(),
                    "packets" => text.parse::<giveway_qdisc::Packets>().err(),
                    "limit" => text.parse::<giveway_qdisc::Limit>().err(),
                    "depth" => text.parse::<giveway_qdisc::Depth>().err(),
                    "share" => text.parse::<giveway_qdisc::Share>().err(),
                    _ => None,
                };
                match read {
                    Some(error) => Err(wrong(format!("{name}: {error}"), None)),
                    None => Ok(Value::from(text)),
                }
            }
            Kind::Switch | Kind::Spec | Kind::Record => unreachable!("the caller handles these"),
        }
    }
}

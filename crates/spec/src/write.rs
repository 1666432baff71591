//! Writing: the name, and the parameters that differ from their defaults.

use std::fmt;

use serde_json::{Map, Value};

use crate::scope::Scope;
use crate::{Catalogue, SpecType};

impl<S: SpecType> Catalogue<S> {
    /// Writes a spec: the name, and the parameters that differ from their defaults.
    ///
    /// # Errors
    /// If the formatter fails.
    ///
    /// # Panics
    /// If its name is not in the catalogue.
    pub fn write(&self, spec: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(spec.name())?;
        let entry = self.entry(spec.name()).unwrap_or_else(|(message, _)| panic!("{message}"));
        let defaults = entry.default().parameters();
        let Value::Object(parameters) = spec.parameters() else { return Ok(()) };
        for (name, value) in parameters {
            if defaults.get(&name) != Some(&value) {
                f.write_str(&self.scope(entry).written(&name, &value))?;
            }
        }
        Ok(())
    }
}

impl Scope<'_> {
    /// A parameter with its value, after a space; nothing for a parameter without a value.
    fn written(self, name: &str, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::Bool(true) => format!(" {name}"),
            Value::Bool(false) => format!(" no{name}"),
            Value::String(text) if self.is_spec(name) => format!(" {name} ({text})"),
            Value::String(text) if self.stands_alone(name) => format!(" {text}"),
            Value::String(text) => format!(" {name} {text}"),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.item(name, item)).collect();
                format!(" {name} [{}]", items.join(" "))
            }
            Value::Object(record) => format!(" {name} {}", self.record_written(self.property(name), record)),
            other => format!(" {name} {}", plain(other)),
        }
    }

    /// An item of a list.
    fn item(self, name: &str, item: &Value) -> String {
        match item {
            Value::String(text) if text.contains(' ') || self.is_spec(name) => format!("({text})"),
            Value::String(text) => text.clone(),
            Value::Object(record) => {
                self.record_written(self.property(name).map(|list| self.items(list)), record)
            }
            other => plain(other),
        }
    }

    /// A record: in parentheses, its parameters that differ from their defaults.
    fn record_written(self, schema: Option<&Value>, record: &Map<String, Value>) -> String {
        let inside = Scope { table: schema.map_or(&Value::Null, |schema| self.resolved(schema)), ..self };
        let differs = |name: &str, value: &Value| {
            inside.property(name).and_then(|property| property.get("default")) != Some(value)
        };
        let written = record.iter().filter(|(name, value)| differs(name, value));
        let written: String = written.map(|(name, value)| inside.written(name, value)).collect();
        format!("({})", written.trim_start())
    }
}

/// A value in the syntax of specs: numbers without an exponent, which shares and quantities do not accept.
fn plain(value: &Value) -> String {
    let text = value.to_string();
    match value.as_f64() {
        Some(number) if text.contains('e') => number.to_string(),
        _ => text,
    }
}

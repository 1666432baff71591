//! Writing: the name, and the parameters that differ from their defaults.

use std::fmt;

use serde_json::Value;

use crate::{Catalogue, SpecType};

impl<S: SpecType> Catalogue<S> {
    /// Writes a spec: the name, and the parameters that differ from their defaults.
    ///
    /// # Errors
    /// Those of the formatter.
    ///
    /// # Panics
    /// If its name is not in the catalogue.
    pub fn write(&self, spec: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(spec.name())?;
        let entry = self.entry(spec.name()).unwrap_or_else(|(message, _)| panic!("{message}"));
        let defaults = entry.default().parameters();
        let Value::Object(parameters) = spec.parameters() else { return Ok(()) };
        for (name, value) in parameters {
            if defaults.get(&name) == Some(&value) {
                continue;
            }
            match value {
                Value::Bool(true) => write!(f, " {name}")?,
                Value::Bool(false) => write!(f, " no{name}")?,
                Value::String(text) if self.is_spec(entry, &name) => write!(f, " {name} ({text})")?,
                Value::String(text) if self.stands_alone(entry, &name) => write!(f, " {text}")?,
                Value::String(text) => write!(f, " {name} {text}")?,
                Value::Array(items) => {
                    write!(f, " {name} [")?;
                    for (i, item) in items.iter().enumerate() {
                        let gap = if i == 0 { "" } else { " " };
                        match item {
                            Value::String(text) if text.contains(' ') || self.is_spec(entry, &name) => {
                                write!(f, "{gap}({text})")?;
                            }
                            Value::String(text) => write!(f, "{gap}{text}")?,
                            other => write!(f, "{gap}{}", plain(other))?,
                        }
                    }
                    f.write_str("]")?;
                }
                Value::Null => {}
                other => write!(f, " {name} {}", plain(&other))?,
            }
        }
        Ok(())
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

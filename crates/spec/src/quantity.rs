//! Parameters as numbers in basic units, for tables.

use giveway_qdisc::{Bytes, Depth, Limit, Packets, Quantity, Rate, Share, Span};
use serde_json::Value;

use crate::kind::Kind;
use crate::{Catalogue, SpecType};

impl<S: SpecType> Catalogue<S> {
    /// All parameters of a spec, defaults included. Parameters of a child have the name of its parameter as a
    /// prefix: `child.limit`. Parameters without a value are left out.
    ///
    /// # Panics
    /// If its name is not in the catalogue.
    pub fn quantities(&self, spec: &S) -> Vec<(String, Quantity)> {
        let entry = self.entry(spec.name()).unwrap_or_else(|(message, _)| panic!("{message}"));
        let Value::Object(parameters) = spec.parameters() else { return Vec::new() };
        let scope = self.scope(entry);
        let mut all = Vec::new();
        for (name, value) in parameters {
            let kind = scope.kind_of(&name);
            match &value {
                Value::Null => {}
                Value::String(text) if scope.is_spec(&name) => {
                    all.push((name.clone(), Quantity::Text(text.clone())));
                    if let Ok(inside) = text.parse::<S>() {
                        let inside = self.quantities(&inside).into_iter();
                        all.extend(inside.map(|(inner, quantity)| (format!("{name}.{inner}"), quantity)));
                    }
                }
                value => all.push((name, quantity(kind.as_ref(), value))),
            }
        }
        all
    }
}

fn quantity(kind: Option<&Kind>, value: &Value) -> Quantity {
    match value {
        Value::Bool(on) => Quantity::Number(f64::from(u8::from(*on)), "1"),
        Value::Number(number) => match number.as_f64() {
            Some(number) => Quantity::Number(number, "1"),
            None => Quantity::Text(number.to_string()),
        },
        Value::String(text) => {
            let format = if let Some(Kind::Text(format)) = kind { format.as_str() } else { "" };
            measured(format, text).unwrap_or_else(|| Quantity::Text(text.clone()))
        }
        other => Quantity::Text(other.to_string()),
    }
}

/// A text of one of the formats of quantities; `None` for any other.
fn measured(format: &str, text: &str) -> Option<Quantity> {
    let (number, unit) = match format {
        "span" => (text.parse::<Span>().ok()?.as_s(), "s"),
        "rate" => (text.parse::<Rate>().ok()?.as_bit() as f64, "bit/s"),
        "bytes" => (text.parse::<Bytes>().ok()?.0 as f64, "B"),
        "packets" => (text.parse::<Packets>().ok()?.0 as f64, "packets"),
        "limit" => match text.parse::<Limit>().ok()? {
            Limit::Packets(packets) => (packets as f64, "packets"),
            Limit::Bytes(bytes) => (bytes as f64, "B"),
        },
        "depth" => match text.parse::<Depth>().ok()? {
            Depth::Time(span) => (span.as_s(), "s"),
            Depth::Packets(packets) => (packets as f64, "packets"),
        },
        "share" => (text.parse::<Share>().ok()?.get(), "1"),
        _ => return None,
    };
    Some(Quantity::Number(number, unit))
}

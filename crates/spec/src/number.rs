//! Parameters whose values are numbers, and specs with other numbers, for experiments that vary parameters.

use giveway_qdisc::{Bytes, Depth, Limit, Packets, Rate, Share, Span};
use serde_json::Value;

use crate::kind::Kind;
use crate::{Catalogue, SpecType};

/// The significant digits of a number that is not written by hand.
const DIGITS: i32 = 4;

/// A parameter of a spec whose value is a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The name. A parameter of a child has the name of its parameter as a prefix: `child.limit`.
    pub name: String,
    /// The value in basic units: seconds, bit/s, bytes, packets, or without a unit.
    pub value: f64,
    /// The value as a spec writes it.
    pub text: String,
    /// True if the default is this kind of number, so that the parameter is not off by default.
    pub has_default: bool,
    form: Form,
}

/// The form of a number in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Time,
    Rate,
    Bytes,
    Packets,
    Share,
    Whole,
    Signed,
    Real,
}

impl Number {
    /// True if the number is a rate in bit/s.
    pub fn is_rate(&self) -> bool {
        self.form == Form::Rate
    }

    /// [`at`](Number::at), or the reason why there is no such value.
    fn value_at(&self, value: f64) -> Result<Value, String> {
        self.at(value).ok_or_else(|| format!("{} cannot be {value}", self.name))
    }

    /// The nearest value that the parameter can have with four significant digits; `None` if it can have
    /// none, as a negative length or a share above one.
    fn at(&self, value: f64) -> Option<Value> {
        let value = rounded(value);
        let whole = || (0.0..u64::MAX as f64).contains(&value).then(|| libm::round(value) as u64);
        Some(match self.form {
            Form::Time => {
                // Round the picoseconds as well: a time is written in the largest unit that keeps it whole.
                let span =
                    (value >= 0.0).then(|| Span::from_ps(rounded(libm::round(value * 1e12)) as u64))?;
                Value::from(span.to_string())
            }
            Form::Rate => Value::from(Rate::bit(whole()?).to_string()),
            Form::Bytes => Value::from(Bytes(whole()?).to_string()),
            Form::Packets => Value::from(Packets(whole()?).to_string()),
            Form::Share => Value::from(Share::new(value)?.get()),
            Form::Whole => Value::from(whole()?),
            Form::Signed => Value::from(libm::round(value) as i64),
            Form::Real => Value::from(Some(value).filter(|value| value.is_finite())?),
        })
    }
}

/// A number with four significant digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let places = DIGITS - 1 - libm::floor(libm::log10(value.abs())) as i32;
    let power = libm::pow(10.0, f64::from(places.abs()));
    if places >= 0 { libm::round(value * power) / power } else { libm::round(value / power) * power }
}

impl<S: SpecType> Catalogue<S> {
    /// The parameters of a spec whose values are numbers, defaults included. Parameters without a value,
    /// lists and records are left out.
    ///
    /// # Panics
    /// If its name is not in the catalogue.
    pub fn numbers(&self, spec: &S) -> Vec<Number> {
        let entry = self.entry(spec.name()).unwrap_or_else(|(message, _)| panic!("{message}"));
        let Value::Object(parameters) = spec.parameters() else { return Vec::new() };
        let defaults = entry.default().parameters();
        let scope = self.scope(entry);
        let mut all = Vec::new();
        for (name, value) in parameters {
            match &value {
                Value::String(text) if scope.is_spec(&name) => {
                    let inside = text.parse::<S>().map(|child| self.numbers(&child)).unwrap_or_default();
                    all.extend(
                        inside
                            .into_iter()
                            .map(|inner| Number { name: format!("{name}.{}", inner.name), ..inner }),
                    );
                }
                value => {
                    let found = scope.kind_of(&name).and_then(|kind| read(&kind, value));
                    let has_default = defaults.get(&name).is_some_and(|default| !default.is_null());
                    all.extend(found.map(|(form, number, text)| Number {
                        name,
                        value: number,
                        text,
                        has_default,
                        form,
                    }));
                }
            }
        }
        all
    }

    /// A spec with another value of a parameter: the nearest one that the parameter can have with four
    /// significant digits.
    ///
    /// # Errors
    /// The reason why the parameter cannot have such a value.
    ///
    /// # Panics
    /// If the name of the spec is not in the catalogue.
    pub fn with_number(&self, spec: &S, number: &Number, value: f64) -> Result<S, String> {
        self.with_value(spec, &number.name, number.value_at(value)?)
    }

    /// A spec with other values of several of its own parameters, without parameters of a child. It takes
    /// about as long as one value.
    ///
    /// # Errors
    /// As [`with_number`](Catalogue::with_number).
    ///
    /// # Panics
    /// If the name of the spec is not in the catalogue.
    pub fn with_numbers(&self, spec: &S, values: &[(&Number, f64)]) -> Result<S, String> {
        let entry = self.entry(spec.name()).unwrap_or_else(|(message, _)| panic!("{message}"));
        let mut parameters = spec.parameters();
        for (number, value) in values {
            parameters[number.name.as_str()] = number.value_at(*value)?;
        }
        (entry.from_json)(parameters).map_err(|error| error.to_string())
    }

    fn with_value(&self, spec: &S, name: &str, value: Value) -> Result<S, String> {
        let entry = self.entry(spec.name()).unwrap_or_else(|(message, _)| panic!("{message}"));
        let mut parameters = spec.parameters();
        let value = match name.split_once('.') {
            None => value,
            Some((child, inner)) => {
                let text =
                    parameters[child].as_str().ok_or_else(|| format!("there is nothing in {child}"))?;
                let child: S = text.parse().map_err(|error: crate::SpecError| error.to_string())?;
                Value::from(self.with_value(&child, inner, value)?.to_string())
            }
        };
        let outer = name.split_once('.').map_or(name, |(child, _)| child);
        parameters[outer] = value;
        (entry.from_json)(parameters).map_err(|error| error.to_string())
    }
}

/// The form of a value, its number, and its text; `None` if it is not a number.
fn read(kind: &Kind, value: &Value) -> Option<(Form, f64, String)> {
    let (form, number) = match (kind, value) {
        (Kind::Integer, Value::Number(number)) => (Form::Whole, number.as_f64()?),
        (Kind::Signed, Value::Number(number)) => (Form::Signed, number.as_f64()?),
        (Kind::Number, Value::Number(number)) => (Form::Real, number.as_f64()?),
        (Kind::Text(format), Value::Number(number)) if format == "share" => (Form::Share, number.as_f64()?),
        (Kind::Text(format), Value::String(text)) => match format.as_str() {
            "span" => (Form::Time, text.parse::<Span>().ok()?.as_s()),
            "rate" => (Form::Rate, text.parse::<Rate>().ok()?.as_bit() as f64),
            "bytes" => (Form::Bytes, text.parse::<Bytes>().ok()?.0 as f64),
            "packets" => (Form::Packets, text.parse::<Packets>().ok()?.0 as f64),
            "limit" => match text.parse().ok()? {
                Limit::Packets(packets) => (Form::Packets, packets as f64),
                Limit::Bytes(bytes) => (Form::Bytes, bytes as f64),
            },
            "depth" => match text.parse().ok()? {
                Depth::Time(span) => (Form::Time, span.as_s()),
                Depth::Packets(packets) => (Form::Packets, packets as f64),
            },
            _ => return None,
        },
        _ => return None,
    };
    let text = value.as_str().map_or_else(|| number.to_string(), str::to_owned);
    Some((form, number, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (value, expected) in [(819.24, 819.2), (26_843_545.6, 26_840_000.0), (0.000_123_456, 0.000_123_5)]
        {
            assert!((rounded(value) - expected).abs() < 1e-9 * expected, "{value}: {}", rounded(value));
        }
        assert_eq!(rounded(0.0), 0.0);
    }
}

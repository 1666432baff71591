//! A varied key with its values: `link.0.rate=1mbit,10mbit`, `traffic.up.flows=1..8`,
//! `qdisc.threshold=log(5p,200p,6)`.

use std::str::FromStr;

use crate::value::{Scale, Value};

/// The beginning of keys that stand for a parameter of every compared discipline that has it.
const QDISC: &str = "qdisc.";

/// A key that a sweep varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The key, a path as for `--set`; or `qdisc.NAME` for a parameter of the compared disciplines.
    pub key: String,
    /// The values.
    pub values: Values,
    /// The values as they were written.
    written: String,
}

/// The values of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// These, in this order.
    List(Vec<Value>),
    /// All whole numbers from the first to the last, with a unit.
    Whole(i64, i64, String),
    /// Every number between two ends, uniform in the number or in its logarithm.
    Continuous(Scale, Spacing),
}

/// The spacing of values between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences.
    Linear,
    /// Equal ratios.
    Logarithmic,
}

/// A wrong axis. The message names what is wrong, and a form that is right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--over {text}: {wrong}; write for example {example}")]
pub struct AxisError {
    text: String,
    wrong: String,
    example: &'static str,
}

impl Axis {
    /// The parameter of the disciplines that this axis varies, if it is not a key of the scenario.
    pub fn parameter(&self) -> Option<&str> {
        self.key.strip_prefix(QDISC)
    }

    /// Adds a unit to all values, which must be numbers without one.
    pub(crate) fn with_unit(&self, unit: &str) -> Result<Axis, AxisError> {
        let with = |number: &str| format!("{}{unit}", number.trim());
        let written = match self.written.split_once('(') {
            Some((spacing, inner)) => {
                // The third number is that of the values.
                let parts: Vec<String> = inner
                    .trim_end_matches(')')
                    .split(',')
                    .enumerate()
                    .map(|(place, part)| if place < 2 { with(part) } else { part.trim().to_owned() })
                    .collect();
                format!("{spacing}({})", parts.join(","))
            }
            None if self.written.contains("..") => with(&self.written),
            None => self.written.split(',').map(with).collect::<Vec<_>>().join(","),
        };
        format!("{}={written}", self.key).parse()
    }

    /// The number of values; `None` if there is no end of them.
    pub fn levels(&self) -> Option<u64> {
        match &self.values {
            Values::List(values) => Some(values.len() as u64),
            Values::Whole(first, last, _) => Some((last - first) as u64 + 1),
            Values::Continuous(..) => None,
        }
    }

    /// The value with this number.
    ///
    /// # Panics
    /// If the axis has no such value.
    pub fn level(&self, number: u64) -> Value {
        match &self.values {
            Values::List(values) => values[number as usize].clone(),
            Values::Whole(first, _, unit) => Value::of(&format!("{}{unit}", first + number as i64)),
            Values::Continuous(..) => panic!("a continuous axis has no levels"),
        }
    }

    /// The value at a share of the axis, 0 to 1 without 1.
    pub fn at(&self, share: f64) -> Value {
        match (&self.values, self.levels()) {
            (Values::Continuous(scale, spacing), _) => scale.value(between(scale, *spacing, share)),
            (_, Some(levels)) => self.level(((share * levels as f64) as u64).min(levels - 1)),
            (_, None) => unreachable!("only a continuous axis has no levels"),
        }
    }

    /// Values that are tried before anything runs: all, or the ends and the middle of many.
    pub fn samples(&self) -> Vec<Value> {
        const MAX: u64 = 50;
        match self.levels() {
            Some(levels @ ..=MAX) => (0..levels).map(|number| self.level(number)).collect(),
            Some(levels) => [0, levels / 2, levels - 1].map(|number| self.level(number)).to_vec(),
            None => [0.0, 0.5, 1.0].map(|share| self.at(share)).to_vec(),
        }
    }

    /// The unit of the values; `None` if some are texts, or if they have different units.
    pub fn unit(&self) -> Option<&'static str> {
        let mut units = self.samples().into_iter().map(|value| value.number().map(|(_, unit)| unit));
        let first = units.next()??;
        units.all(|unit| unit == Some(first)).then_some(first)
    }
}

/// The number at a share of the way between the ends of a scale.
fn between(scale: &Scale, spacing: Spacing, share: f64) -> f64 {
    let (low, high) = scale.ends();
    match spacing {
        Spacing::Linear => low + share * (high - low),
        Spacing::Logarithmic => low * libm::pow(high / low, share),
    }
}

impl std::fmt::Display for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.written)
    }
}

impl FromStr for Axis {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Axis, AxisError> {
        let wrong = |wrong: String, example| AxisError { text: text.to_owned(), wrong, example };
        const LIST: &str = "--over link.0.rate=1mbit,10mbit";
        let Some((key, written)) = text.split_once('=') else {
            return Err(wrong("it needs a key and values".to_owned(), LIST));
        };
        let (key, written) = (key.trim().to_owned(), written.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) {
            return Err(wrong("the key is incomplete".to_owned(), LIST));
        }
        let values = values(written).map_err(|(message, example)| wrong(message, example))?;
        Ok(Axis { key, values, written: written.to_owned() })
    }
}

/// A message, and an example of the right form.
type Wrong = (String, &'static str);

fn values(text: &str) -> Result<Values, Wrong> {
    const SPACED: &str = "--over qdisc.threshold=log(5p,200p,6)";
    for (name, spacing) in [("lin", Spacing::Linear), ("log", Spacing::Logarithmic)] {
        let inner = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
        if let Some(inner) = inner {
            return spaced(inner, spacing).map_err(|message| (message, SPACED));
        }
    }
    if let Some((first, last)) = text.split_once("..") {
        return whole(first, last).map_err(|message| (message, "--over traffic.up.flows=1..8"));
    }
    let values: Vec<Value> = split(text).into_iter().map(Value::of).collect();
    if values.iter().any(|value| value.text.is_empty()) {
        return Err(("a value is empty".to_owned(), "--over link.0.rate=1mbit,10mbit"));
    }
    for (place, value) in values.iter().enumerate() {
        if values[..place].iter().any(|other| other.quantity == value.quantity) {
            return Err((format!("{} is listed twice", value.text), "--over link.0.rate=1mbit,10mbit"));
        }
    }
    Ok(Values::List(values))
}

/// The values of `lin(...)` and `log(...)`.
fn spaced(inner: &str, spacing: Spacing) -> Result<Values, String> {
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let (low, high, count) = match parts.as_slice() {
        [low, high] => (low, high, None),
        [low, high, count] => (low, high, Some(*count)),
        _ => return Err("it needs two ends, and a number of values unless these are drawn".to_owned()),
    };
    let scale = Scale::between(low, high)?;
    if spacing == Spacing::Logarithmic && scale.ends().0 <= 0.0 {
        return Err(format!("a logarithmic axis must start above 0, not at {low}"));
    }
    let Some(count) = count else { return Ok(Values::Continuous(scale, spacing)) };
    let count: u64 = count.parse().map_err(|_| format!("{count} is not a number of values"))?;
    if !(2..=100_000).contains(&count) {
        return Err(format!("{count} values: at least 2 and at most 100000 are possible"));
    }
    let step = |number: u64| number as f64 / (count - 1) as f64;
    let mut values: Vec<Value> = Vec::new();
    for number in 0..count {
        let value = scale.value(between(&scale, spacing, step(number)));
        // Rounding to whole packets may give a value twice.
        if values.last().is_none_or(|last| last.quantity != value.quantity) {
            values.push(value);
        }
    }
    Ok(Values::List(values))
}

/// The values of `FIRST..LAST`.
fn whole(first: &str, last: &str) -> Result<Values, String> {
    let parsed = |text: &str| -> Result<(i64, String), String> {
        let text = text.trim();
        let end = text.char_indices().find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')));
        let (digits, unit) = text.split_at(end.map_or(text.len(), |(at, _)| at));
        let number = digits.parse().map_err(|_| format!("{text:?} is not a whole number"))?;
        Ok((number, unit.trim().to_owned()))
    };
    let ((from, unit), (to, other)) = (parsed(first)?, parsed(last)?);
    let unit = match (unit.is_empty(), other.is_empty()) {
        (true, _) => other,
        (false, true) => unit,
        (false, false) if unit == other => unit,
        (false, false) => return Err(format!("{first} and {last} have different units")),
    };
    if from >= to {
        return Err(format!("{from} is not below {to}"));
    }
    Ok(Values::Whole(from, to, unit))
}

/// The parts between commas, of which those in brackets, braces, parentheses and quotes do not count.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0i32, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' | '(' if !quoted => depth += 1,
            ']' | '}' | ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &str) -> Vec<String> {
        let axis: Axis = axis.parse().unwrap();
        (0..axis.levels().unwrap()).map(|number| axis.level(number).text).collect()
    }

    #[test]
    fn lists_ranges_and_spacings() {
        assert_eq!(texts("link.0.rate=1mbit, 10mbit"), ["1mbit", "10mbit"]);
        assert_eq!(texts("traffic.up.flows=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(texts("qdisc.limit=8..10p"), ["8p", "9p", "10p"]);
        assert_eq!(texts("a=lin(0,1,5)"), ["0", "0.25", "0.5", "0.75", "1"]);
        assert_eq!(texts("qdisc.threshold=log(5p,200p,6)"), ["5p", "10p", "22p", "46p", "96p", "200p"]);
        assert_eq!(texts("link.0.delay=lin(1ms,2ms,3)"), ["1ms", "1.5ms", "2ms"]);
        assert_eq!(texts("disciplines=[\"fifo\",\"efd\"],[\"pie\"]"), ["[\"fifo\",\"efd\"]", "[\"pie\"]"]);
        // Neighbours that round to one number of packets are one value.
        assert_eq!(texts("qdisc.threshold=log(1p,3p,9)"), ["1p", "2p", "3p"]);
    }

    #[test]
    fn numbers_get_a_unit() {
        for (without, with) in [
            ("a=1,20", "a=1p,20p"),
            ("a=1..8", "a=1..8p"),
            ("a=log(5, 200, 6)", "a=log(5p,200p,6)"),
            ("a=lin(5,200)", "a=lin(5p,200p)"),
        ] {
            assert_eq!(without.parse::<Axis>().unwrap().with_unit("p").unwrap(), with.parse().unwrap());
        }
    }

    #[test]
    fn a_continuous_axis_has_no_levels_and_values_at_shares() {
        let axis: Axis = "link.0.rate=log(1mbit,100mbit)".parse().unwrap();
        assert_eq!(axis.levels(), None);
        assert_eq!(axis.at(0.5).text, "10mbit");
        assert_eq!(axis.unit(), Some("bit/s"));
        let list: Axis = "tcp.congestion=cubic,bbr".parse().unwrap();
        assert_eq!(
            (list.at(0.0).text, list.at(0.49).text, list.at(0.5).text, list.at(0.999).text),
            ("cubic".into(), "cubic".into(), "bbr".into(), "bbr".into())
        );
        assert_eq!(list.unit(), None);
    }

    #[test]
    fn wrong_axes_say_what_to_write() {
        for (text, part) in [
            ("link.0.rate", "needs a key and values"),
            ("=1", "key is incomplete"),
            ("a..b=1", "key is incomplete"),
            ("a=1,,2", "a value is empty"),
            ("a=", "a value is empty"),
            ("a=1,2,1", "1 is listed twice"),
            ("a=1mbit,1000kbit", "1000kbit is listed twice"),
            ("a=8..1", "8 is not below 1"),
            ("a=1..x", "\"x\" is not a whole number"),
            ("a=1p..9kb", "different units"),
            ("a=log(0,1,3)", "must start above 0, not at 0"),
            ("a=lin(1,2,1)", "at least 2"),
            ("a=lin(1,2,x)", "x is not a number of values"),
            ("a=lin(1)", "needs two ends"),
            ("a=lin(2,1,3)", "2 is not below 1"),
        ] {
            let error = text.parse::<Axis>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("write for example --over"), "{text}: {error}");
        }
    }
}

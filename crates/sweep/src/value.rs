//! A value of a varied key: the text that the scenario gets, and the number that results show.

use std::str::FromStr;

use giveway_qdisc::{Limit, Quantity, Rate, Share, Span};

/// A value of a varied key.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The value as a scenario has it.
    pub text: String,
    /// The value in its basic unit, or the text if it is not a number.
    pub quantity: Quantity,
}

impl Value {
    /// The value that a text stands for.
    pub fn of(text: &str) -> Value {
        let text = text.trim();
        Value { text: text.to_owned(), quantity: quantity(text) }
    }

    /// The number, and its unit.
    pub fn number(&self) -> Option<(f64, &'static str)> {
        match self.quantity {
            Quantity::Number(number, unit) => Some((number, unit)),
            Quantity::Text(_) => None,
        }
    }
}

/// The quantity of a text. The key is not known here, so the unit decides: `10mbit` is a rate and `10ms` a
/// time.
fn quantity(text: &str) -> Quantity {
    let bare = text.trim_matches('"').trim();
    match bare {
        "true" => return Quantity::Number(1.0, "1"),
        "false" => return Quantity::Number(0.0, "1"),
        _ => {}
    }
    if let Ok(number) = f64::from_str(bare)
        && number.is_finite()
    {
        return Quantity::Number(number, "1");
    }
    if let Ok(rate) = Rate::from_str(bare) {
        return Quantity::Number(rate.as_bit() as f64, "bit/s");
    }
    if let Ok(time) = Span::from_str(bare) {
        return Quantity::Number(time.as_s(), "s");
    }
    match Limit::from_str(bare) {
        Ok(Limit::Packets(count)) => return Quantity::Number(count as f64, "packets"),
        Ok(Limit::Bytes(bytes)) => return Quantity::Number(bytes as f64, "B"),
        Err(_) => {}
    }
    match Share::from_str(bare) {
        Ok(share) => Quantity::Number(share.get(), "1"),
        Err(_) => Quantity::Text(bare.to_owned()),
    }
}

/// The scale between two ends of an interval, for values between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The lower end, in the basic unit.
    low: f64,
    /// The upper end.
    high: f64,
    /// The basic units in one unit of the text.
    factor: f64,
    /// The unit of the text.
    suffix: String,
    /// True if values are whole numbers.
    whole: bool,
}

impl Scale {
    /// The scale from `low` to `high`. The error says what is wrong.
    pub fn between(low: &str, high: &str) -> Result<Scale, String> {
        let (from, to) = (Value::of(low), Value::of(high));
        let (Some((from, unit)), Some((to, other))) = (from.number(), to.number()) else {
            return Err(format!("{low} and {high} are not both numbers"));
        };
        if unit != other {
            return Err(format!("{low} and {high} have different units"));
        }
        if from >= to {
            return Err(format!("{low} is not below {high}"));
        }
        let split = low.trim().find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)));
        let (digits, suffix) = low.trim().split_at(split.unwrap_or(low.trim().len()));
        let digits: f64 = digits.parse().map_err(|_| format!("{low} does not begin with a number"))?;
        // Zero has no factor of its own: the upper end has the same unit then.
        let factor = if digits == 0.0 { basic(suffix) } else { from / digits };
        let whole = matches!(unit, "packets" | "B") && factor == 1.0;
        Ok(Scale { low: from, high: to, factor, suffix: suffix.trim().to_owned(), whole })
    }

    /// The ends, in the basic unit.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The value of a number in the basic unit, with four digits.
    pub fn value(&self, number: f64) -> Value {
        let scaled = number / self.factor;
        let text = if self.whole { format!("{:.0}", scaled) } else { four_digits(scaled) };
        Value::of(&format!("{text}{}", self.suffix))
    }
}

/// The basic units in one of a unit.
fn basic(suffix: &str) -> f64 {
    Value::of(&format!("1{suffix}")).number().map_or(1.0, |(number, _)| number)
}

/// A number with four significant digits, without an exponent.
fn four_digits(number: f64) -> String {
    let magnitude = if number == 0.0 { 0.0 } else { libm::floor(libm::log10(number.abs())) };
    let decimals = (3.0 - magnitude).clamp(0.0, 12.0) as usize;
    let unit = libm::pow(10.0, (magnitude - 3.0).max(0.0));
    let text = format!("{:.*}", decimals, libm::round(number / unit) * unit);
    // Values between have three decimals only if these matter.
    match text.contains('.') {
        true => format!("{:.*}", decimals, number).trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_decides_what_a_text_is() {
        let number = |text: &str| Value::of(text).number();
        assert_eq!(number("10mbit"), Some((10e6, "bit/s")));
        assert_eq!(number(" 20ms"), Some((0.02, "s")));
        assert_eq!(number("5p"), Some((5.0, "packets")));
        assert_eq!(number("64kb"), Some((65_536.0, "B")));
        assert_eq!(number("0.3"), Some((0.3, "1")));
        assert_eq!(number("2%"), Some((0.02, "1")));
        assert_eq!(number("true"), Some((1.0, "1")));
        assert_eq!(number("cubic"), None);
        assert_eq!(Value::of("\"cubic\"").quantity, Quantity::Text("cubic".to_owned()));
    }

    #[test]
    fn values_between_keep_the_unit_of_the_lower_end() {
        let scale = Scale::between("500kbit", "10mbit").unwrap();
        assert_eq!(scale.value(1_234_567.0).text, "1235kbit");
        assert_eq!(Scale::between("5p", "200p").unwrap().value(10.46).text, "10p");
        assert_eq!(Scale::between("0ms", "20ms").unwrap().value(0.0033333).text, "3.333ms");
        assert_eq!(Scale::between("0.5", "3").unwrap().value(1.5).text, "1.5");
        assert!(Scale::between("1ms", "1mbit").unwrap_err().contains("different units"));
        assert!(Scale::between("9ms", "9ms").unwrap_err().contains("not below"));
        assert!(Scale::between("a", "9ms").unwrap_err().contains("not both numbers"));
    }

    #[test]
    fn four_digits_have_no_exponent() {
        for (number, text) in [
            (0.0, "0"),
            (12345.6, "12350"),
            (0.000123456, "0.0001235"),
            (1.0, "1"),
            (-2.50004, "-2.5"),
            (99999.0, "100000"),
        ] {
            assert_eq!(four_digits(number), text);
        }
    }
}

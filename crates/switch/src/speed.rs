//! The speedup of the fabric over the links, as a ratio of integers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Slots of the fabric per slot of a link: 1 to 16, written `1.176`, `2` or `147/125`.
///
/// Times are integers: a slot of a link has [`slot_ticks`](Speedup::slot_ticks) ticks, one of the fabric
/// [`fabric_ticks`](Speedup::fabric_ticks).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speedup {
    links: u32,
    fabric: u32,
}

/// Largest numerator. Larger ones would make ticks too short for long runs.
const MAX_TERM: u64 = 100_000;
/// Largest speedup.
const MAX: u64 = 16;

impl Speedup {
    /// No speedup.
    pub const ONE: Speedup = Speedup { links: 1, fabric: 1 };
    /// Two slots of the fabric per slot of a link.
    pub const TWO: Speedup = Speedup { links: 2, fabric: 1 };

    /// The ratio `over`/`under`. `None` if it is below 1 or above 16, or if its reduced terms exceed 100,000.
    pub fn new(over: u64, under: u64) -> Option<Speedup> {
        let divisor = gcd(over, under);
        if divisor == 0 {
            return None;
        }
        let (links, fabric) = (over / divisor, under / divisor);
        let fits = links >= fabric && links <= MAX * fabric && links <= MAX_TERM;
        fits.then_some(Speedup { links: links as u32, fabric: fabric as u32 })
    }

    /// Ticks of a slot of a link.
    #[inline]
    pub fn slot_ticks(self) -> u64 {
        u64::from(self.links)
    }
    /// Ticks of a slot of the fabric.
    #[inline]
    pub fn fabric_ticks(self) -> u64 {
        u64::from(self.fabric)
    }
    /// The ratio as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.links) / f64::from(self.fabric)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Speedup {
    /// Writes a decimal where that is exact, otherwise a ratio.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = self.as_f64().to_string();
        if decimal.parse() == Ok(*self) {
            f.write_str(&decimal)
        } else {
            write!(f, "{}/{}", self.links, self.fabric)
        }
    }
}

/// The reason why a text is not a speedup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeedupError(String);

impl fmt::Display for SpeedupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for SpeedupError {}

impl FromStr for Speedup {
    type Err = SpeedupError;
    fn from_str(text: &str) -> Result<Speedup, SpeedupError> {
        let text = text.trim();
        let terms = match text.split_once('/') {
            Some((over, under)) => over.trim().parse().ok().zip(under.trim().parse().ok()),
            None => decimal(text),
        };
        let Some((over, under)) = terms else {
            let message =
                format!("\"{text}\" is not a speedup: write for example \"1.176\", \"2\" or \"147/125\"");
            return Err(SpeedupError(message));
        };
        Speedup::new(over, under).ok_or_else(|| {
            let why = if over < under {
                "below 1 the fabric could not keep up with a single link"
            } else {
                "it must lie between 1 and 16, with at most five digits"
            };
            SpeedupError(format!("a speedup of {text}: {why}"))
        })
    }
}

/// Parses a decimal number as a ratio.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 9 || whole.len() > 9 {
        return None;
    }
    let under = 10u64.pow(part.len() as u32);
    let part: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    Some((whole.parse::<u64>().ok()? * under + part, under))
}

impl Serialize for Speedup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Speedup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Speedup, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Speedup;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a speedup such as 1.176, 2 or \"147/125\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Speedup, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Speedup, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Speedup, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Speedup, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Speedup {
    fn schema_name() -> Cow<'static, str> {
        "Speedup".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number"],
            "format": "speedup",
            "description": "slots of the fabric per slot of a link, from 1 to 16: 1.176, 2 or \"147/125\""
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_exact() {
        let speedup: Speedup = "1.176".parse().unwrap();
        assert_eq!((speedup.slot_ticks(), speedup.fabric_ticks()), (147, 125));
        assert_eq!(speedup, "147/125".parse().unwrap());
        assert_eq!(speedup.to_string(), "1.176");
        assert_eq!("4/3".parse::<Speedup>().unwrap().to_string(), "4/3");
        assert_eq!("1.0".parse::<Speedup>(), Ok(Speedup::ONE));
        assert_eq!(serde_json::from_str::<Speedup>("1.5").unwrap().to_string(), "1.5");
        assert_eq!(serde_json::from_str::<Speedup>("2").unwrap().to_string(), "2");
    }

    #[test]
    fn other_texts_are_refused_with_a_reason() {
        let refused = |text: &str| text.parse::<Speedup>().unwrap_err().to_string();
        assert!(refused("0.9").contains("below 1"));
        assert!(refused("17").contains("between 1 and 16"));
        assert!(refused("1.1234567").contains("at most five digits"));
        for text in ["", "fast", "-2", "1/0", "1e3", ".", "2x", "/"] {
            assert!(refused(text).contains("speedup"), "{text}");
        }
    }
}

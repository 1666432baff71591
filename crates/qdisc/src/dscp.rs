//! The differentiated services code point of a packet.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::units::nearest;

/// A differentiated services code point (RFC 2474), 0 to 63. Written as its number or its name: `EF`, `CS1`,
/// `AF41`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

/// Code points with a name: RFC 2474 section 4.2.2 (CS), RFC 2597 section 6 (AF), RFC 3246 (EF), RFC 5865
/// (VA) and RFC 8622 (LE).
const NAMES: [(&str, u8); 23] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

impl Dscp {
    /// The number of code points.
    pub const COUNT: usize = 64;

    /// The code point with this number; `None` above 63.
    pub const fn new(number: u8) -> Option<Dscp> {
        if (number as usize) < Dscp::COUNT { Some(Dscp(number)) } else { None }
    }

    /// The code point in the former type of service (IPv4) or traffic class (IPv6): its upper six bits.
    pub const fn of_service(field: u8) -> Dscp {
        Dscp(field >> 2)
    }

    /// Its number, 0 to 63.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Dscp {
    /// Writes its name, or its number if it has none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A text that is not a code point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DscpError(String);

impl fmt::Display for DscpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for DscpError {}

impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Dscp, DscpError> {
        let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = text.parse().ok().and_then(Dscp::new);
        named.map(|(_, code)| Dscp(*code)).or(number).ok_or_else(|| {
            let near = nearest(text, NAMES.iter().map(|(name, _)| *name));
            let help = near
                .map_or("write a number from 0 to 63, or a name such as \"EF\"".to_owned(), |near| {
                    format!("did you mean \"{near}\"?")
                });
            DscpError(format!("\"{text}\" is not a DSCP: {help}"))
        })
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dscp, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Dscp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a DSCP such as \"EF\" or 46")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dscp, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Dscp, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Dscp, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

impl JsonSchema for Dscp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dscp".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "format": "dscp", "anyOf": [
            { "type": "string" },
            { "type": "integer", "minimum": 0, "maximum": 63 }
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_by_name_or_number() {
        for number in 0..64 {
            let dscp = Dscp::new(number).unwrap();
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            assert_eq!(number.to_string().parse(), Ok(dscp));
            assert_eq!(Dscp::of_service(number << 2 | 3), dscp);
        }
        assert_eq!("ef".parse(), Ok(Dscp(46)));
        assert_eq!(Dscp(34).to_string(), "AF41");
        assert_eq!(serde_json::from_str::<Dscp>("8").unwrap(), serde_json::from_str("\"CS1\"").unwrap());
        let error = |text: &str| text.parse::<Dscp>().unwrap_err().to_string();
        assert_eq!(error("AF44"), "\"AF44\" is not a DSCP: did you mean \"AF41\"?");
        assert_eq!(
            error("64"),
            "\"64\" is not a DSCP: write a number from 0 to 63, or a name such as \"EF\""
        );
    }
}

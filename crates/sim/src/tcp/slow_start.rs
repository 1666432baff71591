//! The choice of the rule that ends the first slow start. `hystart.rs` has the rules.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The rule that ends the first slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HyStartRule {
    /// None: slow start ends with a loss or a mark.
    #[default]
    Off,
    /// HyStart++, RFC 9406.
    Plus,
    /// HyStart as Linux has it, for its cubic.
    Classic,
}

impl Serialize for HyStartRule {
    /// `false`, `true`, or "classic".
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HyStartRule::Off => serializer.serialize_bool(false),
            HyStartRule::Plus => serializer.serialize_bool(true),
            HyStartRule::Classic => serializer.serialize_str("classic"),
        }
    }
}

impl<'de> Deserialize<'de> for HyStartRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HyStartRule, D::Error> {
        struct Rule;
        impl serde::de::Visitor<'_> for Rule {
            type Value = HyStartRule;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("false, true (HyStart++, RFC 9406) or \"classic\" (HyStart of Linux)")
            }
            fn visit_bool<E>(self, on: bool) -> Result<HyStartRule, E> {
                Ok(if on { HyStartRule::Plus } else { HyStartRule::Off })
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<HyStartRule, E> {
                match text {
                    "classic" => Ok(HyStartRule::Classic),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(Rule)
    }
}

impl JsonSchema for HyStartRule {
    fn schema_name() -> Cow<'static, str> {
        "HyStartRule".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [false, true, "classic"] })
    }
    fn inline_schema() -> bool {
        true
    }
}

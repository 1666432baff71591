//! The keys of a scenario file, whatever its host. From these types come the reading, the schema and the help.
//!
//! Keys that are parts of their own are read where they belong, with their places; those of one host only stand with that
//! host.

use std::fmt;

use giveway_qdisc::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};

/// The top level, as far as it is the same on every host.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Top {
    /// One line: what it is about.
    pub title: Option<String>,
    /// What it shows, and what to look at.
    pub description: Option<String>,
    /// Where it runs. Default: network.
    #[schemars(with = "Host")]
    pub host: IgnoredAny,
    /// How long it lasts, in simulated time; on a switch also in slots.
    pub duration: Option<Length>,
    /// The first part, which is not measured. Default: 0 s.
    pub warmup: Option<Length>,
    /// The last part, which is not measured: what began before can come to its end in it. On a network only. Default: 0 s.
    pub cooldown: Option<Length>,
    /// How many runs, with seeds 1, 2, ...; or the seeds themselves. Default: 1.
    #[schemars(with = "Seeds")]
    pub seeds: IgnoredAny,
    /// What is compared, on the same arrivals. On a network disciplines, each of which takes its turn at the links that say
    /// qdisc = "compare"; on a switch schedulers.
    #[schemars(with = "Disciplines")]
    pub disciplines: IgnoredAny,
}

/// Stands for a part whose schema is put in later.
#[derive(JsonSchema)]
pub(crate) struct Part {}

/// Where a scenario runs.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Host {
    /// Packet-level simulation of a network.
    Network,
    /// Slot-level simulation of an input-queued switch.
    Switch,
    /// A test bed on this machine: real TCP over network namespaces, by giveway testbed.
    Live,
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Seeds {
    /// So many seeds: 1, 2, ...
    Count(u32),
    /// These seeds.
    List(Vec<u32>),
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Disciplines {
    One(giveway_disciplines::Spec),
    Several(Vec<giveway_disciplines::Spec>),
    Scheduler(giveway_switch::Spec),
    Schedulers(Vec<giveway_switch::Spec>),
}

/// How a quick check runs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Short {
    /// Default: 5 s, or 50,000 slots of a switch, or the scenario's own if that is less.
    pub duration: Option<Length>,
    /// Default: as large a part as in the scenario.
    pub warmup: Option<Length>,
    /// Default: as large a part as in the scenario.
    pub cooldown: Option<Length>,
    /// How many seeds. Default: 1.
    pub seeds: Option<u32>,
}

/// How long something lasts: a time, or a number of slots of a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Time(Span),
    Slots(u64),
}

impl Length {
    /// In time, where a slot lasts so long; `None` where there are no slots, or the time is longer than can be counted.
    pub fn span(self, slot: Option<Span>) -> Option<Span> {
        match (self, slot) {
            (Length::Time(span), _) => Some(span),
            (Length::Slots(slots), Some(slot)) => slot.as_ps().checked_mul(slots).map(Span::from_ps),
            (Length::Slots(_), None) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Length;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time with its unit, such as \"5ms\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Length, E> {
                let count = text.trim().strip_suffix("slots").or_else(|| text.trim().strip_suffix("slot"));
                match count.map(|count| count.trim().replace('_', "").parse::<u64>()) {
                    Some(Ok(slots)) => Ok(Length::Slots(slots)),
                    Some(Err(_)) => Err(E::custom(format!(
                        "\"{text}\" is no number of slots: write for example \"100000 slots\""
                    ))),
                    None => text.parse().map(Length::Time).map_err(E::custom),
                }
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl JsonSchema for Length {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Length".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "length", "pattern": r"^([0-9.]+ ?(ps|ns|us|ms|s|sec|min|h)|[0-9_]+ ?slots?)$" })
    }
}

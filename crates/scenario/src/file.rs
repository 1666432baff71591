//! The keys of a scenario file that all backends share. The parser, the schema and the help are derived from
//! these types.
//!
//! Tables and lists are read by other modules, which need the places of their values. The keys of one backend
//! are in the module of that backend.

use std::fmt;
use std::path::Path;

use giveway_qdisc::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};

use crate::tree::Table;

/// The arguments of the reader of a backend.
#[derive(Clone, Copy)]
pub(crate) struct ScenarioFile<'a> {
    /// The whole file.
    pub root: &'a Table,
    /// The keys at its top that all backends share.
    pub top: &'a Top,
    /// The folder that file names are relative to.
    pub folder: &'a Path,
}

/// The keys at the top of a file that all backends share.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Top {
    /// The title of the scenario, in one line.
    pub title: Option<String>,
    /// The purpose of the scenario, and the expected results.
    pub description: Option<String>,
    /// The backend that runs the scenario. Default: network.
    #[schemars(with = "BackendName")]
    pub backend: IgnoredAny,
    /// The length of a run in simulated time. On a switch it can be a number of slots.
    pub duration: Option<Length>,
    /// The first part of a run, which is not measured. Default: 0 s.
    pub warmup: Option<Length>,
    /// The last part of a run, which is not measured, so that earlier transfers can complete. Only on a
    /// network. Default: 0 s.
    pub cooldown: Option<Length>,
    /// The number of seeds (1, 2, ...), or a list of seeds. Each discipline runs once with each seed.
    /// Default: 1.
    #[schemars(with = "Seeds")]
    pub seeds: IgnoredAny,
    /// The disciplines to compare, with the same workload. On a network each of them runs in turn at the
    /// links with qdisc = "compare". On a switch they are arbiters.
    #[schemars(with = "Disciplines")]
    pub disciplines: IgnoredAny,
    /// Keys that giveway sweep varies, each with its values. Other commands ignore it.
    #[schemars(with = "Part")]
    pub sweep: IgnoredAny,
}

/// A placeholder for a part whose schema is inserted later.
#[derive(JsonSchema)]
pub(crate) struct Part {}

/// The name of a backend.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum BackendName {
    /// Packet-level simulation of a network.
    Network,
    /// Slot-level simulation of an input-queued switch.
    Switch,
    /// A test bed on this machine, which giveway testbed runs: real TCP over network namespaces.
    Live,
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Seeds {
    /// The number of seeds: 1, 2, ...
    Count(u32),
    /// A list of seeds.
    List(Vec<u32>),
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Disciplines {
    One(giveway_disciplines::Spec),
    Several(Vec<giveway_disciplines::Spec>),
    Arbiter(giveway_switch::Spec),
    Arbiters(Vec<giveway_switch::Spec>),
}

/// The times of a quick check.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Short {
    /// The length of a run in a quick check. Default: 5 s, or 50,000 slots of a switch, but at most the
    /// duration of the scenario.
    pub duration: Option<Length>,
    /// The warm-up of a quick check. Default: in proportion to the length of the run.
    pub warmup: Option<Length>,
    /// The cooldown of a quick check. Default: in proportion to the length of the run.
    pub cooldown: Option<Length>,
    /// The number of seeds of a quick check. Default: 1.
    pub seeds: Option<u32>,
}

/// A length of time: a time with its unit, or a number of slots of a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// A time.
    Time(Span),
    /// A number of slots.
    Slots(u64),
}

impl Length {
    /// The length as a time, with `slot` as the length of a slot. `None` if it is a number of slots and there
    /// are no slots, or if it is too long for the clock.
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
                        "\"{text}\" is not a number of slots: write for example \"100000 slots\""
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

//! The keys of a link that varies.

use giveway_qdisc::{Bytes, Rate, Share, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

/// A constant value, or a table that describes how it varies. `K` has the keys of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Varied<T, K> {
    /// A constant.
    Constant(T),
    /// A table, which is read for itself.
    Table(std::marker::PhantomData<K>),
}

impl<T: Copy, K> Varied<T, K> {
    /// The constant.
    pub fn constant(&self) -> Option<T> {
        match self {
            Varied::Constant(value) => Some(*value),
            Varied::Table(_) => None,
        }
    }
}

impl<'de, T: DeserializeOwned, K> Deserialize<'de> for Varied<T, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Varied<T, K>, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Object(_) => Ok(Varied::Table(std::marker::PhantomData)),
            // The text of the error has the type and the expectation, which the message is made from.
            constant => T::deserialize(constant).map(Varied::Constant).map_err(D::Error::custom),
        }
    }
}

impl<T: JsonSchema, K: JsonSchema> JsonSchema for Varied<T, K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Or{}", T::schema_name(), K::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<K>();
        json_schema!({ "anyOf": [T::json_schema(generator), table] })
    }
}

/// A rate that varies.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct VaryingRate {
    /// A file in the format of mahimahi: a line for each packet of 1,500 bytes that may leave, with its time
    /// in milliseconds.
    pub trace: Option<String>,
    /// A CSV file with a time and a rate in each row; without units in seconds and bit/s.
    pub csv: Option<String>,
    /// Times and rates. Each rate stays until the next time.
    pub steps: Option<Vec<(Span, Rate)>>,
    /// Times and rates, between which the rate changes linearly.
    pub ramp: Option<Vec<(Span, Rate)>>,
    /// If true, it starts again at its last time. Default: true for trace, otherwise false.
    pub r#loop: Option<bool>,
    /// A model: lte, wifi, satellite, cable or diurnal.
    pub model: Option<String>,
    /// The mean rate of lte and cable.
    pub mean: Option<Rate>,
    /// The ratio of the highest to the lowest rate of lte. Default: 20.
    pub spread: Option<f64>,
    /// The mean time for which the rate of lte or wifi stays. Default: 200 ms.
    pub hold: Option<Span>,
    /// The highest rate of wifi, satellite and diurnal.
    pub high: Option<Rate>,
    /// The lowest rate of satellite and diurnal.
    pub low: Option<Rate>,
    /// The interval of the hand-overs of satellite, by default 15 s, or of the grants of cable, by default
    /// 2 ms.
    pub every: Option<Span>,
    /// The length of a day of diurnal. Default: 24 h.
    pub period: Option<Span>,
    /// The number that selects the trace of a model. Default: 1.
    pub seed: Option<u64>,
}

/// A delay that varies.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct VaryingDelay {
    /// A CSV file with a time and a delay in each row; without units in seconds.
    pub csv: Option<String>,
    /// Times and delays. Each delay stays until the next time.
    pub steps: Option<Vec<(Span, Span)>>,
    /// Times and delays, between which the delay changes linearly.
    pub ramp: Option<Vec<(Span, Span)>>,
    /// If true, it starts again at its last time. Default: false.
    pub r#loop: Option<bool>,
    /// A model: satellite.
    pub model: Option<String>,
    /// The highest delay of satellite.
    pub high: Option<Span>,
    /// The lowest delay of satellite.
    pub low: Option<Span>,
    /// The interval of the hand-overs of satellite. Default: 15 s.
    pub every: Option<Span>,
    /// The number that selects the trace of a model. Default: 1.
    pub seed: Option<u64>,
}

/// A loss that comes in bursts.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BurstyLoss {
    /// A model: gemodel, of Gilbert and Elliott, or handover.
    pub model: Option<String>,
    /// The probability that the good state of gemodel ends, before each packet.
    pub p: Option<Share>,
    /// The probability that the bad state of gemodel ends. Default: 1 - p.
    pub r: Option<Share>,
    /// The probability of a loss in the bad state of gemodel. Default: 100%.
    #[serde(rename = "1-h")]
    pub bad: Option<Share>,
    /// The probability of a loss in the good state of gemodel. Default: 0%.
    #[serde(rename = "1-k")]
    pub good: Option<Share>,
    /// The interval of the hand-overs of handover. Default: 15 s.
    pub every: Option<Span>,
    /// The length of the seam at each hand-over. Default: 100 ms.
    pub lasts: Option<Span>,
    /// The probability of a loss in the seam. Default: 100%.
    pub percent: Option<Share>,
}

/// Packets that arrive late.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ReorderKeys {
    /// The share of the packets.
    pub percent: Share,
    /// The number of packets that overtake each of them on a busy link. Default: 1.
    #[serde(default = "one")]
    pub distance: u32,
}

fn one() -> u32 {
    1
}

/// A policer.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct PoliceKeys {
    /// The rate at which its bucket fills.
    pub rate: Rate,
    /// The size of its bucket.
    pub burst: Bytes,
}

//! The keys of a scenario file, whatever its host. From these types come the reading, the schema and the help.
//!
//! Keys that are parts of their own are read where they belong, with their places; those of one host only stand with that
//! host.

use qdisc::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

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
    /// How long it lasts, in simulated time.
    pub duration: Option<Span>,
    /// The first part, which is not measured. Default: 0 s.
    pub warmup: Option<Span>,
    /// How many runs, with seeds 1, 2, ...; or the seeds themselves. Default: 1.
    #[schemars(with = "Seeds")]
    pub seeds: IgnoredAny,
    /// The disciplines that are compared, on the same arrivals: each takes its turn at the links that say
    /// qdisc = "compare".
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
    One(disciplines::Spec),
    Several(Vec<disciplines::Spec>),
}

/// How a quick check runs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Short {
    /// Default: 5 s, or the scenario's own if that is less.
    pub duration: Option<Span>,
    /// Default: as large a part as in the scenario.
    pub warmup: Option<Span>,
    /// How many seeds. Default: 1.
    pub seeds: Option<u32>,
}

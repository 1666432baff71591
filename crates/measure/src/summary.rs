//! The summary of a run: named metrics and a fingerprint.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fingerprint::Fingerprint;

/// Named metrics, in a fixed order. `None`: could not be measured. What each name means stands in [`METRICS`](crate::METRICS).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Vec<(String, Option<f64>)>);

/// What one run comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Of everything that happened at the measured ports, and to the flows.
    pub fingerprint: Fingerprint,
    /// How many events the host worked off; zero until the host fills it in.
    pub events: u64,
    /// The metrics.
    pub metrics: Metrics,
}

impl Metrics {
    /// Adds a metric. What is not a finite number is missing.
    pub fn push(&mut self, name: impl Into<String>, value: Option<f64>) {
        self.0.push((name.into(), value.filter(|v| v.is_finite())));
    }

    /// A metric's value; `None` when it is missing or not known by this name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.entry(name).flatten()
    }

    /// A metric's value: the outer `None` when there is no metric of this name, the inner when it is missing.
    pub fn entry(&self, name: &str) -> Option<Option<f64>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl Summary {
    /// Data packets that the bottleneck sent in the whole run.
    pub fn bottleneck_packets(&self) -> Option<u64> {
        self.metrics.value("bottleneck_packets").map(|packets| packets as u64)
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Metrics, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = Metrics;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metrics: names with a number or null each")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((name, value)) = map.next_entry::<String, Option<f64>>()? {
                    metrics.push(name, value);
                }
                Ok(metrics)
            }
        }
        deserializer.deserialize_map(Named)
    }
}

/// What a metric is worth in a run whose summary does not name it. Reasons for dropping are named only where they
/// occurred, so there the answer is none at all; anything else is missing.
pub fn unnamed(name: &str) -> Option<f64> {
    name.starts_with("drops_").then_some(0.0)
}

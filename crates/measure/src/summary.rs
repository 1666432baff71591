//! The summary of a run: named metrics and a fingerprint.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fingerprint::Fingerprint;

/// MetricName metrics, in a fixed order. `None` for a metric that could not be measured.
/// [`METRICS`](crate::METRICS) defines each name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(Vec<(String, Option<f64>)>);

/// The results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The fingerprint of all events at the measured ports, and of all flows.
    pub fingerprint: Fingerprint,
    /// Number of events of the backend; zero until the caller sets it.
    pub events: u64,
    /// The metrics.
    pub metrics: Metrics,
}

impl Metrics {
    /// Adds a metric. A value that is not finite is stored as missing.
    pub fn push(&mut self, name: impl Into<String>, value: Option<f64>) {
        self.0.push((name.into(), value.filter(|v| v.is_finite())));
    }

    /// The value of a metric; `None` if it is missing or does not exist.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.entry(name).flatten()
    }

    /// The value of a metric. The outer `None` means that there is no such metric, the inner one that it is
    /// missing.
    pub fn entry(&self, name: &str) -> Option<Option<f64>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// All metrics, in order.
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
        struct MetricsVisitor;
        impl<'de> Visitor<'de> for MetricsVisitor {
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
        deserializer.deserialize_map(MetricsVisitor)
    }
}

/// The value of a metric that the summary of a run does not name. Drop reasons are named only if they
/// occurred, so their value is zero; other metrics are missing.
pub fn unnamed(name: &str) -> Option<f64> {
    name.starts_with("drops_").then_some(0.0)
}

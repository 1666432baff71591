//! The summary of a run: named metrics.
//!
//! ```text
//! definitions.rs   what each name means, its unit, what it does at the edges of the measurement interval
//! flows.rs         goodput, completion times, pages, calls
//! fairness.rs      Jain's index
//! ports.rs         sojourn times, backlog, losses, bursts
//! groups.rs        the same for each group of sources
//! ```

mod definitions;
mod fairness;
mod flows;
mod groups;
mod ports;

use std::fmt;

use giveway_qdisc::{Ending, FlowKind, FlowReport, PortId};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::definitions::{Definition, METRICS, Named, Of, Unit, named, page};
pub use self::fairness::jain;
pub use self::flows::responses;
pub(crate) use self::groups::hurst;
pub use self::ports::unnamed;
use crate::fingerprint::Fingerprint;
use crate::layout::Layout;
use crate::meter::Meter;
use crate::recorder::FlowTables;

/// Named metrics, in a fixed order. `None`: could not be measured. What each name means stands in [`METRICS`].
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

/// What the recorder run.
pub(crate) struct Observed<'a> {
    pub layout: &'a Layout,
    /// The first of the measured ports.
    pub bottleneck: Option<(PortId, &'a Meter)>,
    pub measured: Vec<&'a Meter>,
    pub flows: Vec<&'a FlowReport>,
    /// The flows that cross these ports.
    pub crossing: Vec<&'a FlowReport>,
    /// Of the bottleneck.
    pub flow_table: FlowTables,
}

/// The metrics of a run.
pub(crate) fn metrics(run: &Observed<'_>) -> Metrics {
    let mut out = Metrics::default();
    out.push("utilization", run.bottleneck.and_then(|(_, meter)| meter.utilization()));
    out.push("goodput_bps", flows::goodput_bps(run, run.crossing.iter().copied()));
    flows::completion_times(run, &mut out);
    flows::pages(run, &mut out);
    ports::sojourn_times(run, &mut out);
    ports::backlog(run, &mut out);
    ports::losses(run, &mut out);
    flows::stream_delays(run, &mut out);
    flows::voice(run, &mut out);
    out.push("jain", jain(&fairness::shares(run)));
    out.push("jain_large", jain(&fairness::rates_of_large(run)));
    out.push("flow_table_mean", run.flow_table.mean());
    out.push("flow_table_max", run.flow_table.most());
    out.push("flow_table_entry_bytes", run.flow_table.entry_bytes());
    out.push("flow_table_bytes", run.flow_table.bytes());
    ports::bursts(run, &mut out);
    out.push("bottleneck_packets", run.bottleneck.map(|(_, meter)| meter.data_packets as f64));
    groups::groups(run, &mut out);
    out
}

impl<'a> Observed<'a> {
    /// Transfers that started within the measurement interval.
    fn transfers(&self) -> impl Iterator<Item = &'a FlowReport> + '_ {
        self.flows().filter(|flow| self.begins(flow))
    }

    /// True for a transfer that started within the measurement interval.
    fn begins(&self, flow: &FlowReport) -> bool {
        flow.kind == FlowKind::Transfer && self.layout.measures(flow.start)
    }

    /// Those of them that completed.
    fn completed(&self) -> impl Iterator<Item = &'a FlowReport> + '_ {
        self.transfers().filter(|flow| flow.ending == Ending::Completed)
    }

    fn flows(&self) -> impl Iterator<Item = &'a FlowReport> {
        self.flows.iter().copied()
    }

    fn any_port(&self) -> bool {
        !self.measured.is_empty()
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

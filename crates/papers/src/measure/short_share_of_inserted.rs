use giveway_qdisc::FlowReport;
use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::transfers;
use super::unit::Unit;

/// The expected share of short flows in a flow table into which each packet enters its flow with a
/// probability. It is computed from the packets that each flow sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShortShareOfInserted {
    /// The probability with which a packet enters its flow into the table.
    pub probability: f64,
    /// Maximum number of packets of a short flow.
    pub to: u64,
}

impl Kind for ShortShareOfInserted {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let caught = |flow: &&FlowReport| 1.0 - libm::pow(1.0 - self.probability, flow.packets as f64);
        let short = |flow: &&FlowReport| flow.packets <= self.to;
        let all: f64 = transfers(run.record).map(|flow| caught(&flow)).sum();
        let short: f64 = transfers(run.record).filter(short).map(|flow| caught(&flow)).sum();
        (all > 0.0).then(|| short / all)
    }

    fn label(&self) -> String {
        format!("share of flows of up to {} packets in the table", self.to)
    }

    fn unit(&self) -> Unit {
        Unit::Share
    }
}

use giveway_qdisc::FlowKind;
use serde::Deserialize;

use super::kind::{Kind, Run};
use super::select::largest_transfers;

/// The number of retransmission timeouts of the largest transfers, or of all connections.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// The number of largest transfers that count; without it all connections do, endless ones too.
    #[serde(default)]
    pub largest: Option<usize>,
}

impl Kind for Timeouts {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let flows = match self.largest {
            Some(largest) => largest_transfers(run.record, largest),
            None => {
                let is_tcp = |kind| matches!(kind, FlowKind::Transfer | FlowKind::Endless);
                run.record.flows.iter().filter(|flow| is_tcp(flow.kind)).collect()
            }
        };
        flows.into_iter().map(|flow| flow.timeouts as f64).reduce(|a, b| a + b)
    }

    fn is_total(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        match self.largest {
            Some(largest) => format!("timeouts of the {largest} largest"),
            None => "timeouts".to_owned(),
        }
    }
}

//! The measured ports that the flows of a run cross.

use std::collections::{BTreeMap, BTreeSet};

use giveway_qdisc::{FlowReport, PortId};

use crate::layout::Layout;

/// The measured ports that the flows of a run cross.
pub(crate) struct Crossing {
    /// The crossed ports of each pair of nodes; `None` if they are unknown.
    ports: Option<BTreeMap<(u16, u16), Vec<PortId>>>,
}

impl Crossing {
    pub(crate) fn new(layout: &Layout, flows: &[FlowReport]) -> Crossing {
        let ports = layout.crossed.as_ref().map(|crossed| {
            let pairs: BTreeSet<(u16, u16)> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
            let pairs: Vec<(u16, u16)> = pairs.into_iter().collect();
            let ports = crossed.of(&pairs);
            pairs.into_iter().zip(ports).collect()
        });
        Crossing { ports }
    }

    pub(crate) fn any(&self, flow: &FlowReport) -> bool {
        self.ports.as_ref().is_none_or(|ports| !ports[&(flow.from, flow.to)].is_empty())
    }

    pub(crate) fn is_over(&self, port: PortId, flow: &FlowReport) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports[&(flow.from, flow.to)].contains(&port))
    }
}

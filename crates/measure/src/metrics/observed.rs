//! The recorded data of a run, from which its metrics are computed.

use giveway_qdisc::{ClassState, Ending, FlowKind, FlowReport, PortId};

use crate::flow_tables::FlowTables;
use crate::layout::Layout;
use crate::meter::Meter;

/// The recorded data of a run, restricted to some ports and flows.
pub(crate) struct Observed<'a> {
    pub layout: &'a Layout,
    /// The first of the measured ports.
    pub bottleneck: Option<(PortId, &'a Meter)>,
    pub measured: Vec<&'a Meter>,
    pub flows: Vec<&'a FlowReport>,
    /// The flows that cross these ports.
    pub crossing: Vec<&'a FlowReport>,
    /// The classes of the discipline at the bottleneck.
    pub classes: Vec<ClassState>,
    /// The flow table of the bottleneck.
    pub flow_table: FlowTables,
}

impl<'a> Observed<'a> {
    /// Transfers that started within the measurement interval.
    pub(super) fn transfers(&self) -> impl Iterator<Item = &'a FlowReport> + '_ {
        self.flows().filter(|flow| self.begins(flow))
    }

    /// True for a transfer that started within the measurement interval.
    pub(super) fn begins(&self, flow: &FlowReport) -> bool {
        flow.kind == FlowKind::Transfer && self.layout.measures(flow.start)
    }

    /// Transfers that started within the measurement interval and completed.
    pub(super) fn completed(&self) -> impl Iterator<Item = &'a FlowReport> + '_ {
        self.transfers().filter(|flow| flow.ending == Ending::Completed)
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &'a FlowReport> {
        self.flows.iter().copied()
    }

    pub(super) fn any_port(&self) -> bool {
        !self.measured.is_empty()
    }
}

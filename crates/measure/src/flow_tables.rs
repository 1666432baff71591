//! The state per flow of a discipline, over the samples of a run.

use giveway_qdisc::FlowTable;

/// The state per flow of a port's discipline, from its samples.
#[derive(Clone, Copy, Default)]
pub(crate) struct FlowTables {
    samples: u64,
    sum: f64,
    most: f64,
    entry_bytes: f64,
    bytes: f64,
}

impl FlowTables {
    /// Adds a sample.
    pub(crate) fn add(&mut self, table: &FlowTable) {
        self.samples += 1;
        self.sum += table.flows as f64;
        self.most = self.most.max(table.most as f64);
        self.entry_bytes = f64::from(table.entry_bytes);
        self.bytes = self.bytes.max(table.bytes as f64);
    }

    /// The mean number of flows over the samples.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / self.samples as f64)
    }
    /// The largest number of flows, also between samples.
    pub(crate) fn most(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.most)
    }
    /// The memory for one flow, bytes.
    pub(crate) fn entry_bytes(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.entry_bytes)
    }
    /// The largest memory for all flows, bytes.
    pub(crate) fn bytes(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.bytes)
    }
}

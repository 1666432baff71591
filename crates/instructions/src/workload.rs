//! One entry of the table.

/// A workload that has been prepared.
pub(crate) struct Workload {
    /// Name in the table.
    pub name: String,
    /// Runs it, and returns the number of packets.
    pub run: Box<dyn FnMut() -> u64>,
}

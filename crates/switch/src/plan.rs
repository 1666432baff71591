//! The plan of a run: the switch, its traffic, and the slots to simulate.

use std::path::PathBuf;

use giveway_qdisc::Streams;

use crate::registry::Spec;
use crate::traffic::TrafficSpec;

/// Permitted numbers of ports.
pub const PORTS: std::ops::RangeInclusive<usize> = 2..=1024;

/// Batches of the measurement interval, from which confidence intervals and the slope of the backlog are
/// computed.
pub const BATCHES: u64 = 20;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of inputs, and of outputs.
    pub ports: usize,
    /// The arbiter with its options.
    pub arbiter: Spec,
    /// The traffic at the inputs.
    pub traffic: TrafficSpec,
    /// Length of the run in slots of the links, warm-up included.
    pub slots: u64,
    /// Slots at the beginning that are not measured.
    pub warmup: u64,
    /// Source of random numbers. Arrivals do not depend on the arbiter.
    pub streams: Streams,
    /// Folder to which file names are relative; empty for the current folder.
    pub folder: PathBuf,
}

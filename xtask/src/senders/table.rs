//! The table `docs/senders.csv`: a row for each connection of each cell of `docs/senders-linux.csv`, with the
//! measurements of Linux and of the simulator.

use serde::{Deserialize, Serialize};

use crate::recorded::{Recorded, digits};

/// A connection. The values of the simulator are means over its seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionResult {
    pub cell: String,
    pub rate_mbit_s: f64,
    pub rtt_ms: f64,
    /// The queue of the bottleneck, as the page shows it.
    pub queue: String,
    pub control: String,
    #[serde(rename = "linux_goodput_mbit_s", serialize_with = "digits::<3, _>")]
    pub linux_goodput: f64,
    #[serde(rename = "goodput_mbit_s", serialize_with = "digits::<3, _>")]
    pub goodput: f64,
    /// Mean time from the arrival at the bottleneck to the end of the transmission, of all connections of
    /// the cell.
    #[serde(rename = "linux_queueing_ms", serialize_with = "digits::<3, _>")]
    pub linux_queueing: f64,
    #[serde(rename = "queueing_ms", serialize_with = "digits::<3, _>")]
    pub queueing: f64,
    /// Packets that the bottleneck dropped and marked, of all connections of the cell.
    #[serde(serialize_with = "digits::<0, _>")]
    pub linux_dropped: f64,
    #[serde(serialize_with = "digits::<1, _>")]
    pub dropped: f64,
    #[serde(serialize_with = "digits::<0, _>")]
    pub linux_marked: f64,
    #[serde(serialize_with = "digits::<1, _>")]
    pub marked: f64,
}

impl Recorded for ConnectionResult {
    const FILE: &'static str = "docs/senders.csv";
}

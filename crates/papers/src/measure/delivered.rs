use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::{ip_bytes, of_source};

/// The number of packets of a source that were delivered within the measurement interval: its bytes divided
/// by `bytes`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivered {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
    /// The bytes of a packet: the IP length of a datagram, the data of a TCP segment.
    pub bytes: u64,
}

impl Kind for Delivered {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let delivered = of_source(run.record, &self.source).map(|flow| ip_bytes(flow, flow.goodput_bytes));
        delivered.reduce(|a, b| a + b).map(|all| all / self.bytes as f64)
    }

    fn is_total(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        format!("packets of {} delivered", called(&self.source))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}

use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::called;
use super::select::{datagrams, ip_bytes};
use super::unit::Unit;

/// The number of bytes that a source of datagrams sent, as IP packets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfferedBytes {
    /// The name of the source, or the beginning of several names with a star.
    pub source: String,
}

impl Kind for OfferedBytes {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let streams = datagrams(run.record, Some(&self.source)).into_iter();
        streams.map(|flow| ip_bytes(flow, flow.bytes)).reduce(|a, b| a + b)
    }

    fn is_total(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        format!("bytes sent by {}", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Bytes
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}

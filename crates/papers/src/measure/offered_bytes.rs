use serde::Deserialize;

use super::select::{datagrams, ip_bytes};
use super::words::called;
use super::{Kind, Run, Unit};

/// Bytes that a source of datagrams sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfferedBytes {
    /// The name of the source, or the beginning of the names of several with a star.
    pub source: String,
}

impl Kind for OfferedBytes {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let streams = datagrams(run.record, Some(&self.source)).into_iter();
        streams.map(|flow| ip_bytes(flow, flow.bytes)).reduce(|a, b| a + b)
    }

    fn words(&self) -> String {
        format!("bytes sent by {}", called(&self.source))
    }

    fn unit(&self) -> Unit {
        Unit::Bytes
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}

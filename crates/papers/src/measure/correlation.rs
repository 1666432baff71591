use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::of;
use super::select::{datagrams, mean};

/// Pearson's correlation between the sent and the delivered bytes of streams of datagrams: of a source, or of
/// all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Correlation {
    /// The source, or all traffic.
    #[serde(default)]
    pub source: Option<String>,
}

impl Kind for Correlation {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let streams = datagrams(run.record, self.source.as_deref()).into_iter();
        let both: Vec<(f64, f64)> =
            streams.map(|flow| (flow.bytes as f64, flow.goodput_bytes as f64)).collect();
        pearson(&both)
    }

    fn label(&self) -> String {
        format!("correlation of sent and arrived{}", of(self.source.as_deref()))
    }

    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    fn is_signed(&self) -> bool {
        true
    }
}

/// Pearson's coefficient; not a number if one of them does not vary.
fn pearson(both: &[(f64, f64)]) -> Option<f64> {
    let (x, y) = (mean(both.iter().map(|(x, _)| *x))?, mean(both.iter().map(|(_, y)| *y))?);
    let sum = |of: fn((f64, f64)) -> f64| both.iter().map(|(a, b)| of((a - x, b - y))).sum::<f64>();
    Some(sum(|(a, b)| a * b) / (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt())
}

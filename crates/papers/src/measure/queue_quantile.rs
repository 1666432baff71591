use giveway_qdisc::Span;
use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::phrases::over;
use super::select::queue;
use super::unit::Unit;

/// A quantile of the bottleneck's backlog over time, packets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueQuantile {
    /// The quantile, 0 to 1.
    pub share: f64,
    /// Means over windows of this length count in place of samples.
    #[serde(default)]
    pub window: Option<Span>,
}

impl Kind for QueueQuantile {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let mut queue = queue(run.record, self.window);
        queue.sort_by(f64::total_cmp);
        let last = queue.len().checked_sub(1)?;
        Some(queue[(self.share * last as f64) as usize])
    }

    fn label(&self) -> String {
        format!("{:.0} % quantile of the queue{}", self.share * 100.0, over(self.window))
    }

    fn unit(&self) -> Unit {
        Unit::Packets
    }

    fn needs(&self) -> Needs {
        Needs { series: true, ..Needs::default() }
    }
}

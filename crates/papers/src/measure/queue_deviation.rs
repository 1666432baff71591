use giveway_qdisc::Span;
use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::phrases::over;
use super::select::{mean, queue};
use super::unit::Unit;

/// The standard deviation of the bottleneck's backlog over time, packets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueDeviation {
    /// Means over windows of this length count in place of samples.
    #[serde(default)]
    pub window: Option<Span>,
}

impl Kind for QueueDeviation {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let queue = queue(run.record, self.window);
        let middle = mean(queue.iter().copied())?;
        mean(queue.iter().map(|held| (held - middle) * (held - middle))).map(f64::sqrt)
    }

    fn label(&self) -> String {
        format!("deviation of the queue{}", over(self.window))
    }

    fn unit(&self) -> Unit {
        Unit::Packets
    }

    fn needs(&self) -> Needs {
        Needs { series: true, ..Needs::default() }
    }
}

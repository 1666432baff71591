use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::phrases::sizes_of;
use super::select::within;

/// Packets per fragment: the packets of flows, divided by the number of times that the flows became
/// backlogged. The range is of data packets, so that SYN and the like do not count.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PacketsPerFragment {
    /// Minimum number of packets of a flow that counts.
    #[serde(default)]
    pub from: u64,
    /// Maximum number of packets of a flow that counts; without it there is no limit.
    #[serde(default)]
    pub to: Option<u64>,
}

impl Kind for PacketsPerFragment {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        let episodes = run.record.episodes.iter();
        let flows = episodes.filter(|row| within(row.data_packets, self.from, self.to));
        let (packets, fragments) =
            flows.fold((0, 0), |(packets, fragments), row| (packets + row.packets, fragments + row.episodes));
        (fragments > 0).then(|| packets as f64 / fragments as f64)
    }

    fn label(&self) -> String {
        let sizes = sizes_of(None, self.from, self.to).replace("segments", "packets");
        format!("packets per fragment of {sizes}")
    }

    fn needs(&self) -> Needs {
        Needs { episodes: true, ..Needs::default() }
    }
}

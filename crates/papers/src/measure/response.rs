use serde::Deserialize;

use super::kind::{Kind, Run};
use super::phrases::sizes_of;
use super::select::{Unfinished, response};
use super::unit::Unit;

/// The mean completion time of transfers of these sizes, seconds. The pages or objects that `web` reports are
/// transfers, too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Response {
    /// The source, or all traffic.
    #[serde(default)]
    pub source: Option<String>,
    /// The smallest transfer that counts, segments.
    #[serde(default)]
    pub from: u64,
    /// The largest transfer that counts, segments; without it there is no limit.
    #[serde(default)]
    pub to: Option<u64>,
    /// The treatment of transfers that did not complete.
    #[serde(default)]
    pub unfinished: Unfinished,
}

impl Kind for Response {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        response(run.record, self.source.as_deref(), (self.from, self.to), self.unfinished)
    }

    fn label(&self) -> String {
        let aged = match self.unfinished {
            Unfinished::LeftOut => "",
            Unfinished::AtTheirAge => ", unfinished ones at their age",
        };
        format!("mean completion time of {}{aged}", sizes_of(self.source.as_deref(), self.from, self.to))
    }

    fn unit(&self) -> Unit {
        Unit::Seconds
    }

    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }
}

//! The metrics of a run.
//!
//! ```text
//! definitions.rs   each metric: its label, meaning, unit, and the treatment of the edges
//! named.rs         the parts of a name: port, source, metric; and its label
//! statistic.rs     the statistics in names: mean, quantiles
//! behind.rs        the number of values behind a quantile
//! page.rs          the page of the book
//! observed.rs      the recorded data from which metrics are computed
//! times.rs         the mean and the quantiles that a definition names
//! flows.rs         goodput, completion times, pages, calls
//! fairness.rs      Jain's index
//! ports.rs         sojourn times, backlog, losses, bursts
//! groups.rs        the same for each group of sources
//! classes.rs       the classes of the discipline at the bottleneck
//! ```

mod behind;
mod classes;
mod definitions;
mod fairness;
mod flows;
mod groups;
mod named;
mod observed;
mod page;
mod ports;
mod statistic;
mod times;

pub(crate) use self::behind::is_behind;
pub use self::behind::{behind, is_carried};
pub use self::definitions::{Better, Definition, Label, METRICS, Subject, Unit};
pub use self::fairness::jain;
pub use self::flows::responses;
pub(crate) use self::groups::hurst;
pub(crate) use self::named::size_class;
pub use self::named::{MetricName, better, completed, label, named, nearest, short_label};
pub(crate) use self::observed::Observed;
pub use self::page::page;
pub use self::statistic::Statistic;
use crate::summary::Metrics;

/// The metrics of a run.
pub(crate) fn metrics(run: &Observed<'_>) -> Metrics {
    let mut out = Metrics::default();
    out.push("utilization", run.bottleneck.and_then(|(_, meter)| meter.utilization()));
    out.push("goodput_bps", flows::goodput_bps(run, run.crossing.iter().copied()));
    flows::completion_times(run, &mut out);
    flows::pages(run, &mut out);
    ports::sojourn_times(run, &mut out);
    ports::backlog(run, &mut out);
    ports::losses(run, &mut out);
    flows::stream_delays(run, &mut out);
    flows::voice(run, &mut out);
    out.push("jain", jain(&fairness::shares(run)));
    out.push("jain_large", jain(&fairness::rates_of_large(run)));
    out.push("flow_table_mean", run.flow_table.mean());
    out.push("flow_table_max", run.flow_table.most());
    out.push("flow_table_entry_bytes", run.flow_table.entry_bytes());
    out.push("flow_table_bytes", run.flow_table.bytes());
    ports::bursts(run, &mut out);
    out.push("bottleneck_packets", run.bottleneck.map(|(_, meter)| meter.data_packets as f64));
    groups::groups(run, &mut out);
    classes::classes(run, &mut out);
    out
}

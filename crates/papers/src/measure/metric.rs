use serde::Deserialize;

use super::kind::{Kind, Needs, Run};
use super::unit::Unit;

/// A metric of the run's summary.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metric {
    /// The name of the metric in the output of `giveway run --json`.
    pub name: String,
}

impl Kind for Metric {
    fn of(&self, run: &Run<'_>) -> Option<f64> {
        run.record.summary.metrics.value(&self.name)
    }

    fn words(&self) -> String {
        match self.name.as_str() {
            "flow_table_mean" => "flows tracked, mean".to_owned(),
            "flow_table_max" => "flows tracked, most".to_owned(),
            "flows_completed" => "transfers completed".to_owned(),
            "utilization" => "utilization".to_owned(),
            "src.cbr.loss" => "loss of the stream".to_owned(),
            "src.ftp.retransmitted" => "retransmitted segments of the transfers".to_owned(),
            "src.ftp.goodput_bps" => "goodput of the transfers".to_owned(),
            "backlog_mean_bytes" | "backlog_mean_packets" => "queue, mean".to_owned(),
            "backlog_max_packets" => "queue, most".to_owned(),
            "flow_table_bytes" => "memory for flows, most".to_owned(),
            "goodput_bps" => "goodput of all".to_owned(),
            other => of_source(other).unwrap_or_else(|| other.to_owned()),
        }
    }

    fn unit(&self) -> Unit {
        match self.name.as_str() {
            name if ["utilization", "loss", "retransmitted"].iter().any(|end| name.ends_with(end)) => {
                Unit::Share
            }
            name => Unit::of_name(name),
        }
    }

    fn needs(&self) -> Needs {
        let bursts = ["run_length", "arrivals_", "hurst"].iter().any(|part| self.name.contains(part));
        Needs { bursts, ..Needs::default() }
    }
}

/// "loss of udp" for "src.udp.loss".
fn of_source(metric: &str) -> Option<String> {
    let (source, what) = metric.strip_prefix("src.")?.rsplit_once('.')?;
    let what = match what {
        "goodput_bps" => "goodput",
        "fct_p50_s" => "median flow completion time",
        "delay_p99_s" => "99th percentile of the delay",
        "retransmitted" => "share of retransmissions",
        "loss" => "loss",
        _ => return None,
    };
    Some(format!("{what} of {source}"))
}

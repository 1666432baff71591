//! The columns of the tables, in groups, in their order.

/// A title, and the metrics of its columns.
type Columns = (&'static str, &'static [&'static str]);

const RUNS: Columns = ("runs to a next hop", &["run_length_mean", "run_length_weighted"]);
const DISPERSION: Columns = ("IDC, 10 ms", &["arrivals_idc_10ms", "downstream_idc_10ms"]);
const PEAKEDNESS: Columns = ("peakedness", &["arrivals_peakedness", "downstream_peakedness"]);

/// Columns of a switch, in slots.
pub(super) const SWITCH: [Columns; 5] = [
    ("cells per slot", &["offered", "throughput"]),
    (
        "waiting",
        &[
            "wait_mean_slots",
            "short_wait_mean_slots",
            "short_wait_p99_slots",
            "long_wait_mean_slots",
            "long_wait_p99_slots",
        ],
    ),
    ("delay", &["delay_mean_slots", "through_mean_slots"]),
    ("outputs", &["output_blocked", "output_unmatched"]),
    ("backlog", &["backlog_cells"]),
];

/// The groups of columns of a table over all ports.
pub(super) const GROUPS: [Columns; 11] = [
    ("link", &["utilization", "goodput_bps", "jain"]),
    (COMPLETION_TIMES, &["fct_p50_s", "fct_p95_s", "fct_p99_s"]),
    ("page load", &["page_load_p50_s", "page_load_p95_s", "pages_incomplete"]),
    ("unfinished", &["flows_incomplete", "bytes_incomplete"]),
    ("calls", &["voice_delay_mean_s", "voice_delay_p99_s", "voice_loss"]),
    ("sojourn time", &["small_sojourn_p99_s", "sojourn_p50_s", "sojourn_p99_s"]),
    ("delay of a flow", &["flow_delay_p50_s", "flow_delay_p95_s"]),
    ("queue", &["backlog_mean_packets", "drops", "marks", "flow_table_mean"]),
    RUNS,
    DISPERSION,
    PEAKEDNESS,
];

/// The groups of columns of a table about one direction of a link, in the order of their importance to users.
pub(super) const DETAILED: [Columns; 10] = [
    (
        "page load",
        &["pages_completed", "page_load_p50_s", "page_load_p95_s", "page_load_p99_s", "pages_incomplete"],
    ),
    (COMPLETION_TIMES, &["flows_completed", "fct_p50_s", "fct_p95_s", "fct_p99_s", "flows_incomplete"]),
    ("calls", &["voice_packets", "voice_delay_mean_s", "voice_delay_p99_s", "voice_loss"]),
    (
        "sojourn time",
        &[
            "small_sojourn_packets",
            "small_sojourn_p50_s",
            "small_sojourn_p99_s",
            "sojourn_packets",
            "sojourn_p50_s",
            "sojourn_p99_s",
        ],
    ),
    ("link", &["utilization", "goodput_bps", "jain_large"]),
    ("queue", &["backlog_mean_packets", "drops", "marks"]),
    ("state", &["flow_table_mean", "flow_table_max", "flow_table_entry_bytes"]),
    RUNS,
    DISPERSION,
    PEAKEDNESS,
];

/// The group that the classes of sizes follow.
pub(super) const COMPLETION_TIMES: &str = "completion time";

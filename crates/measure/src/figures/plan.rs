//! The columns of the tables, in groups, in their order.

use std::borrow::Cow;

use super::kind::{Kind, RATE, SIZE, TIME};

/// A column: its heading, its metric, and the kind of its numbers.
pub(super) struct Column {
    pub title: Cow<'static, str>,
    pub metric: Cow<'static, str>,
    pub kind: Kind,
}

const fn column(title: &'static str, metric: &'static str, kind: Kind) -> Column {
    Column { title: Cow::Borrowed(title), metric: Cow::Borrowed(metric), kind }
}

const CALLS: (&str, &[Column]) = (
    "calls",
    &[
        column("mean", "voice_delay_mean_s", TIME),
        column("p99", "voice_delay_p99_s", TIME),
        column("lost", "voice_loss", Kind::Percent),
    ],
);

const CALLS_WITH_COUNT: (&str, &[Column]) = (
    "calls",
    &[
        column("n", "voice_packets", Kind::Number),
        column("mean", "voice_delay_mean_s", TIME),
        column("p99", "voice_delay_p99_s", TIME),
        column("lost", "voice_loss", Kind::Percent),
    ],
);

const RUNS: (&str, &[Column]) = (
    "runs to a next hop",
    &[
        column("mean", "run_length_mean", Kind::Count("pkts")),
        column("of a packet", "run_length_weighted", Kind::Count("pkts")),
    ],
);

const DISPERSION: (&str, &[Column]) = (
    "IDC, 10 ms",
    &[
        column("in", "arrivals_idc_10ms", Kind::Count("")),
        column("out", "downstream_idc_10ms", Kind::Count("")),
    ],
);

const PEAKEDNESS: (&str, &[Column]) = (
    "peakedness",
    &[
        column("in", "arrivals_peakedness", Kind::Count("")),
        column("out", "downstream_peakedness", Kind::Count("")),
    ],
);

/// Columns of a switch, in slots.
pub(super) const SWITCH: [(&str, &[Column]); 5] = [
    (
        "cells per slot",
        &[column("offered", "offered", Kind::Index), column("crossed", "throughput", Kind::Index)],
    ),
    (
        "waiting",
        &[
            column("mean", "wait_mean_slots", Kind::Count("slots")),
            column("short", "short_wait_mean_slots", Kind::Count("slots")),
            column("p99", "short_wait_p99_slots", Kind::Count("slots")),
            column("long", "long_wait_mean_slots", Kind::Count("slots")),
            column("p99", "long_wait_p99_slots", Kind::Count("slots")),
        ],
    ),
    (
        "delay",
        &[
            column("fabric", "delay_mean_slots", Kind::Count("slots")),
            column("with link", "through_mean_slots", Kind::Count("slots")),
        ],
    ),
    (
        "outputs",
        &[
            column("blocked", "output_blocked", Kind::Percent),
            column("unmatched", "output_unmatched", Kind::Percent),
        ],
    ),
    ("backlog", &[column("at the end", "backlog_cells", Kind::Count("cells"))]),
];

/// The groups of columns of a table over all ports.
pub(super) const GROUPS: [(&str, &[Column]); 11] = [
    (
        "link",
        &[
            column("used", "utilization", Kind::Percent),
            column("goodput", "goodput_bps", RATE),
            column("Jain", "jain", Kind::Index),
        ],
    ),
    (
        COMPLETION_TIMES,
        &[
            column("p50", "fct_p50_s", TIME),
            column("p95", "fct_p95_s", TIME),
            column("p99", "fct_p99_s", TIME),
        ],
    ),
    (
        "page load",
        &[
            column("p50", "page_load_p50_s", TIME),
            column("p95", "page_load_p95_s", TIME),
            column("not done", "pages_incomplete", Kind::Count("")),
        ],
    ),
    (
        "unfinished",
        &[column("", "flows_incomplete", Kind::Count("flows")), column("", "bytes_incomplete", SIZE)],
    ),
    CALLS,
    (
        "sojourn time",
        &[
            column("small p99", "small_sojourn_p99_s", TIME),
            column("p50", "sojourn_p50_s", TIME),
            column("p99", "sojourn_p99_s", TIME),
        ],
    ),
    (
        "delay of a flow",
        &[column("median", "flow_delay_p50_s", TIME), column("p95", "flow_delay_p95_s", TIME)],
    ),
    (
        "queue",
        &[
            column("mean", "backlog_mean_packets", Kind::Count("pkts")),
            column("drops", "drops", Kind::Count("")),
            column("marks", "marks", Kind::Count("")),
            column("table", "flow_table_mean", Kind::Count("flows")),
        ],
    ),
    RUNS,
    DISPERSION,
    PEAKEDNESS,
];

/// The groups of columns of a table about one direction of a link, in the order of their importance to users.
pub(super) const DETAILED: [(&str, &[Column]); 10] = [
    (
        "page load",
        &[
            column("n", "pages_completed", Kind::Number),
            column("p50", "page_load_p50_s", TIME),
            column("p95", "page_load_p95_s", TIME),
            column("p99", "page_load_p99_s", TIME),
            column("not done", "pages_incomplete", Kind::Count("")),
        ],
    ),
    (
        COMPLETION_TIMES,
        &[
            column("n", "flows_completed", Kind::Number),
            column("p50", "fct_p50_s", TIME),
            column("p95", "fct_p95_s", TIME),
            column("p99", "fct_p99_s", TIME),
            column("not done", "flows_incomplete", Kind::Count("")),
        ],
    ),
    CALLS_WITH_COUNT,
    (
        "sojourn time",
        &[
            column("small n", "small_sojourn_packets", Kind::Number),
            column("p50", "small_sojourn_p50_s", TIME),
            column("p99", "small_sojourn_p99_s", TIME),
            column("all n", "sojourn_packets", Kind::Number),
            column("p50", "sojourn_p50_s", TIME),
            column("p99", "sojourn_p99_s", TIME),
        ],
    ),
    (
        "link",
        &[
            column("used", "utilization", Kind::Percent),
            column("through", "goodput_bps", RATE),
            column("Jain", "jain_large", Kind::Index),
        ],
    ),
    (
        "queue",
        &[
            column("mean", "backlog_mean_packets", Kind::Count("pkts")),
            column("drops", "drops", Kind::Count("")),
            column("marks", "marks", Kind::Count("")),
        ],
    ),
    (
        "state",
        &[
            column("mean", "flow_table_mean", Kind::Count("flows")),
            column("most", "flow_table_max", Kind::Count("flows")),
            column("per flow", "flow_table_entry_bytes", SIZE),
        ],
    ),
    RUNS,
    DISPERSION,
    PEAKEDNESS,
];

/// The group that the classes of sizes follow.
pub(super) const COMPLETION_TIMES: &str = "completion time";

//! The tables of a run folder: every column with its unit and what it holds. The metadata of the files and the page of the
//! book are made from these lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};

/// A table of a run folder.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its file.
    pub file: &'static str,
    /// What a row is, and when there is such a table.
    pub about: &'static str,
    /// Its columns, without those of the run that tables at the top of a folder have in front.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values; empty where they are no quantities.
    pub unit: &'static str,
    /// True if the column may hold nulls.
    pub nullable: bool,
    /// What it holds.
    pub what: &'static str,
}

const fn column(name: &'static str, unit: &'static str, what: &'static str) -> Column {
    Column { name, unit, nullable: false, what }
}

const fn or_null(name: &'static str, unit: &'static str, what: &'static str) -> Column {
    Column { name, unit, nullable: true, what }
}

/// The columns of the run, in front of those of a table.
pub const OF_RUN: [Column; 2] = [
    column(
        "qdisc",
        "",
        "The discipline as Giveway writes it: parameters that have their defaults are left out.",
    ),
    column("seed", "", "The seed."),
];

pub(crate) const FLOWS: Table = Table {
    file: "flows.parquet",
    about: "A row for each flow: a transfer, a group of transfers such as a page, or a stream of datagrams.",
    columns: &[
        column("source", "", "The group of sources that it is of: the name of its traffic."),
        column("flow", "", "Its number: no other flow of the same group has it."),
        column("kind", "", "`transfer`, `group`, `endless` (a transfer without an end) or `datagrams`."),
        column("from", "", "The node that sends."),
        column("to", "", "The node that receives."),
        column("start_s", "s", "When the application asked for it; of datagrams when the first was sent."),
        column("in_interval", "", "Whether it started within the measurement interval."),
        column(
            "end_s",
            "s",
            "When the last byte reached the receiving application, when it was given up, or when the run ended; of datagrams when the \
             last one arrived.",
        ),
        or_null(
            "fct_s",
            "s",
            "Flow completion time, from start to end: of transfers and groups that completed.",
        ),
        column("ending", "", "`completed`, `aborted` or `unfinished`."),
        column(
            "bytes",
            "B",
            "Data bytes that the application wanted to send; of datagrams those that were sent within the measurement interval; of an \
             endless transfer those that were delivered.",
        ),
        column(
            "delivered_bytes",
            "B",
            "Data bytes that the receiving application got in the whole run, in order; of datagrams those of `bytes` that arrived.",
        ),
        column(
            "goodput_bytes",
            "B",
            "Data bytes that arrived within the measurement interval, in order or not, each counted once.",
        ),
        column(
            "sent_packets",
            "packets",
            "Data packets sent in the whole run, retransmissions included; of datagrams those that were sent within the measurement \
             interval and arrived or were lost before the run ended.",
        ),
        column("retransmitted_packets", "packets", "Retransmissions among them."),
        or_null(
            "lost_packets",
            "packets",
            "Datagrams among them that were lost; null for TCP, which does not know.",
        ),
        column("timeouts", "", "Retransmission timeouts."),
        or_null(
            "delay_mean_s",
            "s",
            "Mean one-way delay of the data packets that were sent within the measurement interval and arrived; null where there are \
             none, or where several transfers share a connection.",
        ),
        or_null("delay_p99_s", "s", "Their 99th percentile; of datagrams."),
        or_null("delay_max_s", "s", "The largest; of datagrams."),
        or_null(
            "pause_max_s",
            "s",
            "The longest time for which the receiving application got nothing more in order, between start and end; of transfers on a \
             connection of their own.",
        ),
        or_null("pause_sum_s", "s", "The sum of these times that were longer than half a second."),
    ],
};

pub(crate) const QUEUE: Table = Table {
    file: "queue.parquet",
    about: "A row for each sample of a port's backlog.",
    columns: &[
        column("time_s", "s", "When: after all that happened at that time."),
        column("port", "", "Where."),
        column(
            "backlog_packets",
            "packets",
            "Packets that are queued; the one that is being sent is not among them.",
        ),
        column("backlog_bytes", "B", "Their IP lengths."),
    ],
};

pub(crate) const GAUGES: Table = Table {
    file: "gauges.parquet",
    about: "A row for each gauge of a discipline at each sample.",
    columns: &[
        column("time_s", "s", "When."),
        column("port", "", "Where."),
        column("gauge", "", "Which: the page of each discipline names its own."),
        column("value", "", "Its value, in the unit of the gauge."),
    ],
};

pub(crate) const SOJOURN: Table = Table {
    file: "sojourn.parquet",
    about: "A row for each point of the distribution of sojourn times at a measured port: of packets whose transmission began within \
            the measurement interval.",
    columns: &[
        column("port", "", "Where."),
        column("packets", "", "Of which packets: `all`, or `small` ones (`small_packet` of the scenario)."),
        column("share", "1", "The part of these packets whose sojourn time is not longer."),
        column(
            "sojourn_s",
            "s",
            "Sojourn time: from arrival at the port to the beginning of the transmission.",
        ),
    ],
};

pub(crate) const SHARES: Table = Table {
    file: "shares.parquet",
    about: "A row for each source and each of about a hundred parts of the measurement interval, at each measured port.",
    columns: &[
        column("time_s", "s", "When the part begins."),
        column("duration_s", "s", "How long it is."),
        column("port", "", "Where."),
        column("source", "", "The group of sources."),
        column("bytes", "B", "IP bytes that the port began to send for it."),
    ],
};

pub(crate) const SENDERS: Table = Table {
    file: "senders.parquet",
    about: "A row for each sample of a TCP sender, where `record.senders` asks for it.",
    columns: &[
        column("time_s", "s", "When."),
        column("source", "", "The group of sources; with `flow` as in `flows.parquet`."),
        column("flow", "", "The number of the flow."),
        column("acked_bytes", "B", "Data bytes that were acknowledged, all in order."),
        column("cwnd_bytes", "B", "Congestion window."),
    ],
};

pub(crate) const EPISODES: Table = Table {
    file: "episodes.parquet",
    about: "A row for each flow at each measured port, where `record.episodes` asks for it: how often it became backlogged in the whole run.",
    columns: &[
        column("port", "", "Where."),
        column("flow_key", "", "The key of the flow's packets, hexadecimal: one direction of a connection."),
        column("packets", "packets", "Packets that came, those that were dropped included."),
        column("bytes", "B", "Their IP lengths."),
        column("data_packets", "packets", "Those of more than 64 bytes."),
        column("episodes", "", "How often a packet came while none of the flow was queued there."),
    ],
};

pub(crate) const BURSTS: Table = Table {
    file: "bursts.parquet",
    about: "A row for each node beyond the neighbour of each measured port, where `record.bursts` asks for it: how bursty the packets \
            are that go on there. Of packets that were sent within the measurement interval.",
    columns: &[
        column("port", "", "Where."),
        or_null("next_node", "", "The node that they go on to; null where they end at the neighbour."),
        column("packets", "packets", "How many they are."),
        column(
            "runs",
            "",
            "Their runs: packets that the port sent one after the other, with none between them that goes elsewhere.",
        ),
        column("run_longest_packets", "packets", "The longest run."),
        column(
            "run_weighted_packets",
            "packets",
            "Mean over the packets of the length of the run that each is in.",
        ),
        or_null(
            "idc_1ms",
            "1",
            "Variance over mean of the packets in windows of 1 ms; 1 for Poisson streams.",
        ),
        or_null("idc_10ms", "1", "The same for 10 ms."),
        or_null("idc_100ms", "1", "The same for 100 ms."),
        or_null("idc_1s", "1", "The same for 1 s."),
        or_null(
            "peakedness",
            "1",
            "Peakedness for exponential holding times of 10 ms on average; 1 for Poisson streams.",
        ),
    ],
};

pub(crate) const LINKS: Table = Table {
    file: "links.parquet",
    about: "A row for each port.",
    columns: &[
        column("port", "", "Where."),
        or_null("rate_bps", "bit/s", "The rate of its link."),
        or_null(
            "utilization",
            "1",
            "The part of the measurement interval for which its link was sending; of measured ports.",
        ),
        or_null(
            "arrived_packets",
            "packets",
            "What came in the whole run; of measured ports, and where the backend counts.",
        ),
        or_null("arrived_bytes", "B", "Their IP lengths."),
        or_null("sent_packets", "packets", "What was sent in the whole run; known as what came is."),
        or_null("sent_bytes", "B", "Their IP lengths."),
        column("dropped_packets", "packets", "What the discipline dropped in the whole run."),
        column("dropped_bytes", "B", "Their IP lengths."),
        column("marked_packets", "packets", "What was marked with Congestion Experienced in the whole run."),
        column("drops_overlimit", "packets", "Dropped in the whole run: the queue was full."),
        column("drops_pushout", "packets", "The queue was full, and this packet made room for another."),
        column("drops_early", "packets", "Dropped by an AQM before the queue was full."),
        column(
            "drops_congested",
            "packets",
            "Dropped because the link is congested and the flow has more than its share.",
        ),
        column("drops_flow_limit", "packets", "The flow has as many packets queued as it may have."),
        column("drops_too_large", "packets", "The packet does not fit at all."),
        column("drops_no_class", "packets", "No class takes it."),
        column("drops_policy", "packets", "A rule refuses it."),
        column("drops_reset", "packets", "The discipline was taken away with the packet in it."),
        column("drops_wire", "packets", "Lost on the link, after it was sent."),
        column("drops_unreachable", "packets", "There was no route."),
        or_null(
            "drops_overlimit_in_interval",
            "packets",
            "`drops_overlimit` within the measurement interval; of measured ports.",
        ),
        or_null("drops_pushout_in_interval", "packets", "`drops_pushout` within it."),
        or_null("drops_early_in_interval", "packets", "`drops_early` within it."),
        or_null("drops_congested_in_interval", "packets", "`drops_congested` within it."),
        or_null("drops_flow_limit_in_interval", "packets", "`drops_flow_limit` within it."),
        or_null("drops_too_large_in_interval", "packets", "`drops_too_large` within it."),
        or_null("drops_no_class_in_interval", "packets", "`drops_no_class` within it."),
        or_null("drops_policy_in_interval", "packets", "`drops_policy` within it."),
        or_null("drops_reset_in_interval", "packets", "`drops_reset` within it."),
        or_null("drops_wire_in_interval", "packets", "`drops_wire` within it."),
        or_null("drops_unreachable_in_interval", "packets", "`drops_unreachable` within it."),
    ],
};

pub(crate) const METRICS: Table = Table {
    file: "metrics.parquet",
    about: "A row for each metric of each run: the long form of `summary.parquet`. Metrics that are null are left out.",
    columns: &[
        column(
            "qdisc",
            "",
            "The discipline as Giveway writes it: parameters that have their defaults are left out.",
        ),
        column("seed", "", "The seed."),
        or_null("source", "", "The group of sources that it is of; null where it is of all."),
        or_null(
            "port",
            "",
            "The port that it is of, where several are measured; null where it is of all of them.",
        ),
        column("metric", "", "Its name, without source and port; [Metrics](metrics.md) says what each is."),
        column("value", "", "Its value."),
        column("unit", "", "The unit of the value; 1 where it has none."),
    ],
};

/// The columns of `summary.parquet` in front of the metrics; those of parameters follow `discipline`.
pub(crate) const SUMMARY: Table = Table {
    file: "summary.parquet",
    about: "A row for each run, with a column for each parameter that any of the disciplines has and for each metric that any of the \
            runs has. A parameter is called `param.NAME`, in its basic unit: packets, bytes, seconds, bit/s, or a number; what is not a \
            quantity is text.",
    columns: &[
        column(
            "qdisc",
            "",
            "The discipline as Giveway writes it: parameters that have their defaults are left out.",
        ),
        column("discipline", "", "The discipline as the scenario spells it."),
        column("seed", "", "The seed."),
        column("fingerprint", "", "The fingerprint of the run: equal runs have equal fingerprints."),
    ],
};

/// Every table, in the order of the book.
pub const TABLES: [Table; 11] =
    [SUMMARY, METRICS, FLOWS, QUEUE, GAUGES, SOJOURN, SHARES, LINKS, SENDERS, EPISODES, BURSTS];

impl Table {
    /// The table with these values, column by column.
    ///
    /// # Panics
    /// When there are not as many columns as the table has.
    pub(crate) fn batch(&self, values: Vec<ArrayRef>) -> Result<RecordBatch, ArrowError> {
        assert_eq!(values.len(), self.columns.len(), "{} has as many columns as are listed", self.file);
        let fields =
            self.columns.iter().zip(&values).map(|(column, values)| column.field(values.data_type()));
        RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<Field>>())), values)
    }
}

impl Column {
    /// The column as Parquet has it, with unit and description.
    pub(crate) fn field(&self, kind: &DataType) -> Field {
        described(Field::new(self.name, kind.clone(), self.nullable), self.unit, self.what)
    }
}

/// A field with its unit and what it holds, in the metadata of the file.
pub(crate) fn described(field: Field, unit: &str, what: &str) -> Field {
    let mut about = BTreeMap::from([("description".to_owned(), what.to_owned())]);
    if !unit.is_empty() {
        about.insert("unit".to_owned(), unit.to_owned());
    }
    field.with_metadata(about)
}

/// The page of the book about all of them, as Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Files of a run\n\n\
         The tables in a folder made with `--out`. Times are in seconds, sizes in bytes; what is missing is null. Each column carries \
         its unit and its description in the metadata of the file (`pyarrow.parquet.read_schema`, or `parquet_schema` of DuckDB). This \
         page is generated from the lists that the program itself uses.\n\n\
         Tables at the top of the folder hold all runs; those that are merged from single runs have in front:\n\n",
    );
    rows(&mut page, &OF_RUN);
    for table in TABLES {
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", table.file, table.about);
        rows(&mut page, table.columns);
    }
    page
}

fn rows(page: &mut String, columns: &[Column]) {
    page.push_str("| column | unit | what it holds |\n| --- | --- | --- |\n");
    for Column { name, unit, nullable, what } in columns {
        let maybe = if *nullable { " May be null." } else { "" };
        let _ = writeln!(page, "| `{name}` | {unit} | {what}{maybe} |");
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;
    use giveway_qdisc::DropReason;

    use super::*;

    /// The table of links is filled in the order of the reasons, so its columns must have that order, too.
    #[test]
    fn links_have_two_columns_for_each_reason_in_their_order() {
        let whole = DropReason::ALL.map(|why| format!("drops_{}", why.name()));
        let measured = DropReason::ALL.map(|why| format!("drops_{}_in_interval", why.name()));
        let names: Vec<&str> = LINKS.columns.iter().map(|column| column.name).collect();
        assert_eq!(names[names.len() - 2 * DropReason::ALL.len()..], [whole, measured].concat());
    }

    #[test]
    fn columns_carry_their_unit_and_what_they_hold() {
        let [time, port, gauge, value] = GAUGES.columns else { panic!("it has four columns") };
        let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["x"])) };
        let batch = GAUGES.batch(vec![text(), text(), text(), text()]).unwrap();
        for (column, field) in [time, port, gauge, value].into_iter().zip(batch.schema().fields()) {
            assert_eq!(field.name(), column.name);
            assert_eq!(field.metadata().get("description").map(String::as_str), Some(column.what));
            let unit = (!column.unit.is_empty()).then_some(column.unit);
            assert_eq!(field.metadata().get("unit").map(String::as_str), unit);
        }
    }
}

//! The tables of a run folder: every column with its unit and description. The metadata of the files and the
//! page of the book are generated from these lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};

/// A table of a run folder.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the file.
    pub file: &'static str,
    /// The meaning of a row, and the condition for the table.
    pub about: &'static str,
    /// Columns, without [`OF_RUN`], which precedes them in tables at the top of a folder.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// The unit of its values; empty for values that are not quantities.
    pub unit: &'static str,
    /// True if the column may hold nulls.
    pub nullable: bool,
    /// The description.
    pub description: &'static str,
}

const fn column(name: &'static str, unit: &'static str, description: &'static str) -> Column {
    Column { name, unit, nullable: false, description }
}

const fn or_null(name: &'static str, unit: &'static str, description: &'static str) -> Column {
    Column { name, unit, nullable: true, description }
}

const QDISC: Column =
    column("qdisc", "", "The specification of the discipline, without parameters that have their defaults.");
const SEED: Column = column("seed", "", "The seed.");
const FINGERPRINT: Column =
    column("fingerprint", "", "The fingerprint of this trial alone: equal trials have equal fingerprints.");
const PORT: Column = column("port", "", "The port.");
const SOURCE: Column = column("source", "", "The group of sources.");
const BEGIN: Column = column("time_s", "s", "Begin of the part.");
const LENGTH: Column = column("duration_s", "s", "Length of the part.");

/// The columns that identify a run, in front of a table's own.
pub const OF_RUN: [Column; 2] = [QDISC, SEED];

/// The columns of the links, followed by two for each reason of a drop.
macro_rules! links {
    ($($own:expr),*; $($reason:literal: $description:literal,)*) => {
        &[
            $($own,)*
            $(column(concat!("drops_", $reason), "packets", $description),)*
            $(or_null(
                concat!("drops_", $reason, "_in_interval"),
                "packets",
                concat!("`drops_", $reason, "` within the measurement interval; for measured ports."),
            ),)*
        ]
    };
}

pub(crate) const FLOWS: Table = Table {
    file: "flows.parquet",
    about: "A row for each flow: a transfer, a group of transfers such as a page, or a stream of datagrams.",
    columns: &[
        column("source", "", "The group of sources of the flow: the name of its traffic."),
        column("flow", "", "The number of the flow, unique within its group."),
        column("kind", "", "`transfer`, `group`, `endless` (a transfer without an end) or `datagrams`."),
        column("from", "", "The node that sends."),
        column("to", "", "The node that receives."),
        column("start_s", "s", "Time of the request of the application; for datagrams, of the first one."),
        column("in_interval", "", "True if the flow started within the measurement interval."),
        column(
            "end_s",
            "s",
            "Time at which the last byte reached the receiving application, the transfer was aborted, or the run ended; for datagrams, the \
             arrival of the last one.",
        ),
        or_null("fct_s", "s", "Flow completion time, from start to end, of completed transfers and groups."),
        column("ending", "", "`completed`, `aborted` or `unfinished`."),
        column(
            "bytes",
            "B",
            "Data bytes that the application wanted to send; for datagrams, those sent within the measurement interval; for an endless \
             transfer, those delivered.",
        ),
        column(
            "delivered_bytes",
            "B",
            "Data bytes that the receiving application received in order in the whole run; for datagrams, the part of `bytes` that arrived.",
        ),
        column(
            "goodput_bytes",
            "B",
            "Data bytes that arrived within the measurement interval, in order or not, each counted once.",
        ),
        column(
            "sent_packets",
            "packets",
            "Data packets sent in the whole run, including retransmissions; for datagrams, those that were sent within the measurement \
             interval and arrived or were lost before the run ended.",
        ),
        column("retransmitted_packets", "packets", "Retransmissions among them."),
        column("after_timeout_packets", "packets", "Retransmissions during the recovery from a timeout."),
        column("probe_packets", "packets", "Probes of a tail that may be lost (RFC 8985, section 7)."),
        column(
            "needless_packets",
            "packets",
            "Retransmissions that the receiver reported as needless (D-SACK).",
        ),
        or_null("lost_packets", "packets", "Lost datagrams among them; null for TCP."),
        column("timeouts", "", "Retransmission timeouts."),
        or_null(
            "delay_mean_s",
            "s",
            "Mean one-way delay of the data packets that were sent within the measurement interval and arrived; null if there are none, \
             or if several transfers share a connection.",
        ),
        or_null("delay_p99_s", "s", "99th percentile of the one-way delay of datagrams."),
        or_null("delay_max_s", "s", "Largest one-way delay of datagrams."),
        or_null(
            "pause_max_s",
            "s",
            "The longest time without data in order for the receiving application, between start and end, of transfers on a connection \
             of their own.",
        ),
        or_null("pause_sum_s", "s", "The sum of such times above half a second."),
    ],
};

pub(crate) const QUEUE: Table = Table {
    file: "queue.parquet",
    about: "A row for each sample of a measured port's backlog.",
    columns: &[
        column("time_s", "s", "Time of the sample, after all events of that time."),
        PORT,
        column("backlog_packets", "packets", "Queued packets, without the packet in transmission."),
        column("backlog_bytes", "B", "IP lengths of these packets."),
    ],
};

pub(crate) const GAUGES: Table = Table {
    file: "gauges.parquet",
    about: "A row for each gauge of a discipline at each sample.",
    columns: &[
        column("time_s", "s", "Time of the sample."),
        PORT,
        column("gauge", "", "Name of the gauge; the page of each discipline lists its gauges."),
        column("value", "", "Its value, in the unit of the gauge."),
    ],
};

pub(crate) const SOJOURN: Table = Table {
    file: "sojourn.parquet",
    about: "A row for each point of the distribution of sojourn times at a measured port, over the packets whose transmission began \
            within the measurement interval.",
    columns: &[
        PORT,
        column(
            "packets",
            "",
            "The packets: `all`, or `small` (`small_packet` of the scenario); of a switch also `large`, its long packets.",
        ),
        column("share", "1", "Share of these packets with at most this sojourn time."),
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
        BEGIN,
        LENGTH,
        PORT,
        SOURCE,
        column("bytes", "B", "IP bytes whose transmission for the source began in the part."),
    ],
};

pub(crate) const DELAYS: Table = Table {
    file: "delays.parquet",
    about: "A row for each source and each of the parts of `shares.parquet`, at each measured port: delays over time.",
    columns: &[
        BEGIN,
        LENGTH,
        PORT,
        SOURCE,
        column("sent_packets", "packets", "Packets of the source whose transmission began in the part."),
        or_null("sojourn_mean_s", "s", "Mean of their sojourn times at the port; null without packets."),
        or_null("sojourn_max_s", "s", "The largest of these times."),
        column(
            "received_packets",
            "packets",
            "Data packets of the source that crossed the port, and reached their receiver in the part. Copies of datagrams do not count; \
             retransmissions do.",
        ),
        or_null(
            "delay_mean_s",
            "s",
            "Mean of their one-way delays, from the sender to the receiver: exact for datagrams, and to the microsecond for TCP; null without \
             packets. A recording of a bridge has none.",
        ),
        or_null("delay_max_s", "s", "The largest of these delays."),
        or_null(
            "offered_bps",
            "bit/s",
            "Mean rate that the link offered in the part, if its rate varies; the same for all sources.",
        ),
    ],
};

pub(crate) const SENDERS: Table = Table {
    file: "senders.parquet",
    about: "A row for each sample of a TCP sender, if the scenario sets `record.senders`.",
    columns: &[
        column("time_s", "s", "Time of the sample."),
        column("source", "", "The group of sources; with `flow` as in `flows.parquet`."),
        column("flow", "", "The number of the flow."),
        column("acked_bytes", "B", "Data bytes acknowledged in order."),
        column("cwnd_bytes", "B", "Congestion window."),
        column("inflight_bytes", "B", "Data sent and not acknowledged in order."),
        or_null("rtt_s", "s", "Smoothed round-trip time; null before the first measurement."),
        or_null("pacing_bps", "bit/s", "Rate of the pacer; null without one."),
        or_null(
            "delivery_bps",
            "bit/s",
            "Latest sample of the delivery rate; null if the congestion control takes none.",
        ),
    ],
};

pub(crate) const EPISODES: Table = Table {
    file: "episodes.parquet",
    about: "A row for each flow at each measured port, if the scenario sets `record.episodes`: the episodes of the flow in the whole run.",
    columns: &[
        PORT,
        column("flow_key", "", "The key of the flow's packets, hexadecimal: one direction of a connection."),
        column("packets", "packets", "Packets that arrived, including dropped ones."),
        column("bytes", "B", "IP lengths of these packets."),
        column("data_packets", "packets", "Packets of more than 64 bytes among them."),
        column("episodes", "", "Number of arrivals while no packet of the flow was queued at the port."),
    ],
};

pub(crate) const BURSTS: Table = Table {
    file: "bursts.parquet",
    about: "A row for each next hop of each measured port, if the scenario sets `record.bursts`: burstiness of the packets that were sent \
            to it within the measurement interval.",
    columns: &[
        PORT,
        or_null(
            "next_node",
            "",
            "The node behind the neighbour; null for packets that end at the neighbour.",
        ),
        column("packets", "packets", "Number of packets."),
        column("runs", "", "Number of runs: consecutive packets of the port to the same next hop."),
        column("run_longest_packets", "packets", "The longest run."),
        column("run_weighted_packets", "packets", "Mean over the packets of the length of their run."),
        or_null(
            "idc_1ms",
            "1",
            "Variance over mean of the packets in windows of 1 ms; 1 for Poisson streams.",
        ),
        or_null("idc_10ms", "1", "Variance over mean in windows of 10 ms."),
        or_null("idc_100ms", "1", "Variance over mean in windows of 100 ms."),
        or_null("idc_1s", "1", "Variance over mean in windows of 1 s."),
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
    columns: links![
        PORT,
        or_null("rate_bps", "bit/s", "The rate of its link."),
        or_null(
            "utilization",
            "1",
            "Share of the measurement interval during which the link transmitted; for measured ports.",
        ),
        or_null(
            "arrived_packets",
            "packets",
            "Arrivals in the whole run; for measured ports, and if the backend counts them.",
        ),
        or_null("arrived_bytes", "B", "IP lengths of these packets."),
        or_null("sent_packets", "packets", "Packets sent in the whole run; null if the arrivals are."),
        or_null("sent_bytes", "B", "IP lengths of these packets."),
        column("dropped_packets", "packets", "Packets that the discipline dropped in the whole run."),
        column("dropped_bytes", "B", "IP lengths of these packets."),
        column("marked_packets", "packets", "Packets marked with Congestion Experienced in the whole run.");
        "overlimit": "Dropped in the whole run: the queue was full.",
        "pushout": "The queue was full, and this packet made room for another.",
        "early": "Dropped by an AQM before the queue was full.",
        "congested": "Dropped because the link is congested and the flow has more than its share.",
        "flow_limit": "The flow has reached its limit of queued packets.",
        "too_large": "The packet is larger than the queue.",
        "no_class": "No class accepts the packet.",
        "policy": "A rule refuses the packet.",
        "reset": "The discipline was removed while the packet was queued.",
        "wire": "Lost on the link, after it was sent.",
        "unreachable": "There was no route.",
    ],
};

pub(crate) const METRICS: Table = Table {
    file: "metrics.parquet",
    about: "A row for each metric of each run: the long form of `summary.parquet`. Metrics that are null are left out.",
    columns: &[
        QDISC,
        SEED,
        or_null("source", "", "The group of sources; null for metrics of all sources."),
        or_null("port", "", "The port, if several are measured; null for metrics of all ports."),
        or_null("class", "", "The class of the discipline; null for all other metrics."),
        column("metric", "", "Name, without source, port and class; [Metrics](metrics.md) defines each."),
        column("value", "", "The value."),
        column("unit", "", "The unit of the value; 1 if it has none."),
    ],
};

/// The columns of `summary.parquet` in front of the metrics; the columns of parameters follow `discipline`.
pub(crate) const SUMMARY: Table = Table {
    file: "summary.parquet",
    about: "A row for each run, with a column for each parameter that any of the disciplines has and for each metric that any of the \
            runs has. A parameter is called `param.NAME`, in its basic unit: packets, bytes, seconds, bit/s, or a number; other \
            parameters are text.",
    columns: &[
        QDISC,
        column("discipline", "", "The specification of the discipline as the scenario has it."),
        SEED,
        FINGERPRINT,
    ],
};

/// The columns of the data set of a sweep in front of the metrics; the columns of the varied parameters
/// follow `seed`.
pub(crate) const DATASET: Table = Table {
    file: "trials/*.parquet",
    about: "The trials of a sweep: a row for each, with a column for each key that the sweep varies and for each metric. A column of a key is \
            called after it, as in `link_0_rate_bps` for `link.0.rate`, and is in its basic unit.",
    columns: &[
        column("key", "", "The trial's content address: a hash of scenario, discipline, seed and version."),
        column("point", "", "The number of the point in the sweep."),
        column("discipline", "", "The discipline as the scenario has it, without what the sweep varies."),
        column("qdisc", "", "The discipline with the parameters that the sweep varies."),
        SEED,
        column("events", "", "The number of events of the simulation."),
        FINGERPRINT,
    ],
};

/// The column of the failed trials of a sweep after those that identify them.
pub(crate) const FAILED: Table = Table {
    file: "failed/*.parquet",
    about: "The failed trials of a sweep: the first columns of the data set, and the reason.",
    columns: &[column("reason", "", "The reason for which the trial failed.")],
};

/// Every table, in the order of the book.
pub const TABLES: [Table; 12] =
    [SUMMARY, METRICS, FLOWS, QUEUE, GAUGES, SOJOURN, SHARES, DELAYS, LINKS, SENDERS, EPISODES, BURSTS];

impl Table {
    /// The table with these values, column by column.
    ///
    /// # Panics
    /// If the number of values differs from the number of columns.
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
        described(Field::new(self.name, kind.clone(), self.nullable), self.unit, self.description)
    }
}

/// A field with its unit and description in the metadata of the file.
pub(crate) fn described(field: Field, unit: &str, description: &str) -> Field {
    let mut about = BTreeMap::from([("description".to_owned(), description.to_owned())]);
    if !unit.is_empty() {
        about.insert("unit".to_owned(), unit.to_owned());
    }
    field.with_metadata(about)
}

/// The page of the book about all tables, as Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Files of a run\n\n\
         The tables in a folder made with `--out`. Times are in seconds, sizes in bytes; a missing value is null. Each column has \
         its unit and its description in the metadata of the file (`pyarrow.parquet.read_schema`, or `parquet_schema` of DuckDB). This \
         page is generated from the lists that the program itself uses.\n\n\
         Tables at the top of the folder contain all runs. Those that are merged from single runs begin with these columns:\n\n",
    );
    rows(&mut page, &OF_RUN);
    let mut part = |table: Table| {
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", table.file, table.about);
        rows(&mut page, table.columns);
    };
    TABLES.into_iter().for_each(&mut part);
    [DATASET, FAILED].into_iter().for_each(&mut part);
    page
}

fn rows(page: &mut String, columns: &[Column]) {
    page.push_str("| column | unit | description |\n| --- | --- | --- |\n");
    for Column { name, unit, nullable, description } in columns {
        let maybe = if *nullable { " May be null." } else { "" };
        let _ = writeln!(page, "| `{name}` | {unit} | {description}{maybe} |");
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
            assert_eq!(field.metadata().get("description").map(String::as_str), Some(column.description));
            let unit = (!column.unit.is_empty()).then_some(column.unit);
            assert_eq!(field.metadata().get("unit").map(String::as_str), unit);
        }
    }
}

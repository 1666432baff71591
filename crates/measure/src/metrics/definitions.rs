//! The definition of each metric. The page of the book, the units in files and the tests use this table.

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A part of a whole, 0 to 1.
    Share,
    /// A number without a unit.
    Number,
    /// Bits per second.
    BitPerSecond,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Flows, or groups of them such as pages.
    Flows,
    /// Slots of a link of a switch.
    Slots,
    /// Cells of a switch.
    Cells,
}

impl Unit {
    /// The symbol in tables and files; "1" for numbers without a unit.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::Share | Unit::Number => "1",
            Unit::BitPerSecond => "bit/s",
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::Packets => "packets",
            Unit::Flows => "flows",
            Unit::Slots => "slots",
            Unit::Cells => "cells",
        }
    }
}

/// The subject of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// All flows of a run, or the flows that cross one of several measured ports.
    Flows,
    /// The measured ports, or the first of them.
    Ports,
    /// A group of sources. The metric has the prefix `src.NAME.`.
    Source,
    /// A class of the discipline at the bottleneck. The metric has the prefix `class.PATH.`, with the names
    /// of the classes above it and its own.
    Class,
    /// A run on a switch.
    Switch,
}

/// A metric, or several that differ in one word.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Names. `*` stands for a word that depends on the run: a size class, a drop reason, a number of cells.
    pub names: &'static [&'static str],
    /// The subject.
    pub of: Of,
    /// The unit of its values.
    pub unit: Unit,
    /// The meaning, in a sentence.
    pub what: &'static str,
    /// The treatment of events that begin before the measurement interval, or end after it.
    pub edges: &'static str,
    /// The condition for null, and the meaning of zero if that is not obvious.
    pub missing: &'static str,
}

const fn define(
    names: &'static [&'static str],
    of: Of,
    unit: Unit,
    what: &'static str,
    edges: &'static str,
    missing: &'static str,
) -> Definition {
    Definition { names, of, unit, what, edges, missing }
}

use Of::{Class, Flows, Ports, Source, Switch};

/// Every metric.
pub const METRICS: &[Definition] = &[
    define(
        &["utilization"],
        Ports,
        Unit::Share,
        "The share of the measurement interval during which the link of the bottleneck (the first measured port) transmitted.",
        "A packet that is on the link when the interval begins or ends counts for the time that lies within it.",
        "Null if the rate of the link is unknown.",
    ),
    define(
        &["goodput_bps"],
        Flows,
        Unit::BitPerSecond,
        "Data bits that arrived at receiving hosts within the measurement interval, divided by its length, for all flows whose route \
         crosses the bottleneck (the first measured port). Headers do not count. Duplicate data count once. Data out of order count \
         at their arrival.",
        "Data that were sent before the interval and arrive within it count; data that arrive after it do not.",
        "Null without flows.",
    ),
    define(
        &["flows_completed", "flows_incomplete", "flows_aborted"],
        Flows,
        Unit::Flows,
        "Number of transfers that started within the measurement interval and completed, were still open when the run ended, or were \
         aborted (including refused transfers).",
        "A transfer belongs to the interval in which it starts.",
        "Null if no transfer started within the interval.",
    ),
    define(
        &["bytes_incomplete"],
        Flows,
        Unit::Bytes,
        "Data bytes of the incomplete and aborted transfers that were not delivered when the run ended.",
        "As for the number of transfers.",
        "Null if no transfer started within the interval; 0 if all of them completed.",
    ),
    define(
        &["fct_mean_s", "fct_p50_s", "fct_p95_s", "fct_p99_s"],
        Flows,
        Unit::Seconds,
        "Flow completion time (FCT): from the request of the application for a transfer to the arrival of the last byte at the \
         receiving application. Mean and quantiles over the transfers that started within the measurement interval and completed.",
        "A transfer belongs to the interval in which it starts. It may complete after the interval, until the run ends.",
        "Null if no transfer completed.",
    ),
    define(
        &["flows_*_completed"],
        Flows,
        Unit::Flows,
        "Number of completed transfers of one size class, which is the number of values behind its quantiles.",
        "As for all transfers.",
        "Null if no transfer completed.",
    ),
    define(
        &["fct_*_mean_s", "fct_*_p50_s", "fct_*_p95_s", "fct_*_p99_s"],
        Flows,
        Unit::Seconds,
        "Flow completion time of the transfers of one size class. `le30kB` has transfers up to 30 kB that are in no smaller class, \
         `gt3MB` those above 3 MB. The size is the one that the application requested.",
        "As for all transfers.",
        "Null if no transfer of the class completed.",
    ),
    define(
        &["fct_aged_mean_s", "fct_aged_*_mean_s"],
        Flows,
        Unit::Seconds,
        "Mean flow completion time over all transfers that started within the measurement interval. A transfer that did not complete \
         counts with its age at the end of the run, so that a discipline that starves transfers looks worse and not better.",
        "As for all transfers. The age of a transfer that did not complete is that at the end of the run, not of the interval.",
        "Null if no transfer (of the class) started within the interval.",
    ),
    define(
        &["page_load_mean_s", "page_load_p50_s", "page_load_p95_s", "page_load_p99_s"],
        Flows,
        Unit::Seconds,
        "Page load time: flow completion time of groups of transfers, such as a page with all its objects.",
        "A page belongs to the interval in which it starts.",
        "Null if no page completed.",
    ),
    define(
        &["pages_completed", "pages_incomplete"],
        Flows,
        Unit::Flows,
        "Number of pages that started within the measurement interval and completed, or did not complete.",
        "A page belongs to the interval in which it starts.",
        "Null if there were no pages.",
    ),
    define(
        &["sojourn_mean_s", "sojourn_p50_s", "sojourn_p95_s", "sojourn_p99_s"],
        Ports,
        Unit::Seconds,
        "Sojourn time: from the arrival of a packet at a measured port to the beginning of its transmission, for the packets that were \
         sent from all measured ports. Quantiles are at most 0.1 % above the exact ones, and at most the largest time.",
        "A packet belongs to the interval in which its transmission begins. Time before the interval counts, too.",
        "Null if no packet was sent within the interval.",
    ),
    define(
        &["small_sojourn_mean_s", "small_sojourn_p50_s", "small_sojourn_p95_s", "small_sojourn_p99_s"],
        Ports,
        Unit::Seconds,
        "Sojourn time of small packets: up to 256 bytes, unless the scenario sets another limit.",
        "As for all packets.",
        "Null if no small packet was sent within the interval.",
    ),
    define(
        &["sojourn_packets", "small_sojourn_packets"],
        Ports,
        Unit::Packets,
        "Number of packets behind the sojourn times: all, and the small ones.",
        "As for the sojourn times.",
        "Null without a measured port.",
    ),
    define(
        &["sojourn_saturated"],
        Ports,
        Unit::Packets,
        "Number of sojourn times above 73 minutes, the longest time that quantiles distinguish.",
        "As for all packets.",
        "Null without a measured port.",
    ),
    define(
        &["backlog_mean_packets", "backlog_max_packets"],
        Ports,
        Unit::Packets,
        "Backlog of the bottleneck in packets, without the packet in transmission: the exact time average over the measurement \
         interval, and the maximum.",
        "Each backlog counts for its duration within the interval.",
        "Null without a measured port.",
    ),
    define(
        &["backlog_mean_bytes"],
        Ports,
        Unit::Bytes,
        "Time average of the backlog of the bottleneck in bytes of IP packets.",
        "As for packets.",
        "Null without a measured port.",
    ),
    define(
        &["drops", "marks"],
        Ports,
        Unit::Packets,
        "Packets that the disciplines of the measured ports dropped, and packets that they marked (Congestion Experienced).",
        "A packet counts at the time of its drop or mark.",
        "Null without a measured port.",
    ),
    define(
        &["drops_*"],
        Ports,
        Unit::Packets,
        "Packets lost at the measured ports for one reason. `drops_wire` and `drops_unreachable` are not among `drops`: the packet was \
         lost on the link, or there was no route.",
        "A packet counts at the time of its loss.",
        "Listed only if it occurred; otherwise it is 0.",
    ),
    define(
        &["jain"],
        Flows,
        Unit::Share,
        "Jain's index of fairness: 1 for equal shares, 1/n if one of n flows has everything. The flows are the endless transfers that \
         lasted through the whole measurement interval, and their shares are the data bytes that arrived within it. If there are fewer \
         than two of them, the flows are the streams of datagrams, and the share of each is its data bytes that arrived within the \
         interval, divided by its max-min fair share of all that arrived. The fair share of a stream that sends less than an equal \
         part is what it sends; if all streams send more, the index is that of their rates.",
        "The demand of a stream is what it sent within the interval, and its share is what arrived within it.",
        "Null for fewer than two flows, or if nothing arrived.",
    ),
    define(
        &["jain_large"],
        Flows,
        Unit::Share,
        "Jain's index of the mean rates of the transfers of at least 100 kB that started within the measurement interval: delivered \
         bytes over the time from start to end.",
        "A transfer belongs to the interval in which it starts. Its rate is that of its whole life, which for an incomplete transfer \
         ends with the run.",
        "Null for fewer than two such transfers.",
    ),
    define(
        &["flow_delay_p50_s", "flow_delay_p95_s"],
        Flows,
        Unit::Seconds,
        "Median and 95th percentile, over streams of datagrams, of the mean one-way delay of each.",
        "Datagrams count that were sent within the measurement interval and arrived before the run ended.",
        "Null for fewer than two such streams.",
    ),
    define(
        &["voice_delay_mean_s", "voice_delay_p99_s"],
        Flows,
        Unit::Seconds,
        "One-way delay of the streams that look like calls (for at least a second of the interval 10 to 120 datagrams a second, of at \
         most 272 data bytes on average): the mean over the streams of their mean delays, and the largest of their 99th percentiles.",
        "Datagrams count that were sent within the measurement interval and arrived before the run ended.",
        "Null if no stream looks like a call.",
    ),
    define(
        &["voice_packets"],
        Flows,
        Unit::Packets,
        "Number of datagrams that arrived of the stream with the fewest, of the streams that look like calls: the number of values \
         behind the 99th percentile of its delay.",
        "As for the delay of these streams.",
        "Null if no stream looks like a call.",
    ),
    define(
        &["voice_loss"],
        Flows,
        Unit::Share,
        "Lost datagrams over sent datagrams of the streams that look like calls.",
        "Datagrams count that were sent within the measurement interval, except those that are on their way when the run ends.",
        "Null if no stream looks like a call.",
    ),
    define(
        &["flow_table_mean", "flow_table_max"],
        Ports,
        Unit::Flows,
        "Flows for which the discipline of the bottleneck keeps state: mean of the samples, and maximum.",
        "The mean is over the samples within the measurement interval. The maximum is that of the run until the last sample.",
        "Null without samples, or if the discipline keeps no state per flow.",
    ),
    define(
        &["flow_table_entry_bytes", "flow_table_bytes"],
        Ports,
        Unit::Bytes,
        "Memory that the state of one flow takes, and the most that the whole table took.",
        "As for the number of flows.",
        "Null without samples, or if the discipline keeps no state per flow.",
    ),
    define(
        &["run_length_mean", "run_length_weighted", "run_length_longest"],
        Ports,
        Unit::Packets,
        "If bursts are measured: length of runs, which are consecutive packets of the bottleneck to the same next hop. Mean over the \
         runs, mean over the packets of the length of their run, and maximum.",
        "Packets count whose transmission began within the measurement interval; runs are cut at its ends.",
        "Null if no packet was sent.",
    ),
    define(
        &[
            "arrivals_idc_1ms",
            "arrivals_idc_10ms",
            "arrivals_idc_100ms",
            "arrivals_idc_1s",
            "arrivals_peakedness",
        ],
        Ports,
        Unit::Number,
        "If bursts are measured: index of dispersion for counts of the arrivals at the bottleneck, dropped packets included, which is \
         the variance over the mean of their number in windows of this length; and peakedness for exponential holding times with a \
         mean of 10 ms. Both are 1 for Poisson arrivals.",
        "Windows count that are within the measurement interval.",
        "Null if fewer than two windows fit.",
    ),
    define(
        &[
            "downstream_idc_1ms",
            "downstream_idc_10ms",
            "downstream_idc_100ms",
            "downstream_idc_1s",
            "downstream_peakedness",
        ],
        Ports,
        Unit::Number,
        "If bursts are measured: index of dispersion and peakedness of the departures from the bottleneck, separately for each next hop; \
         mean over the packets.",
        "Windows count that are within the measurement interval.",
        "Null if fewer than two windows fit.",
    ),
    define(
        &["bottleneck_packets"],
        Ports,
        Unit::Packets,
        "Packets of more than 64 bytes that the bottleneck sent in the whole run, including the warm-up. The processor time of a run is \
         given per such packet.",
        "The whole run counts.",
        "Null without a measured port.",
    ),
    define(
        &["kernel.*"],
        Ports,
        Unit::Number,
        "A counter of a discipline of Giveway that ran in the Linux kernel.",
        "The growth of the counter within the measurement interval.",
        "Listed only for runs in the kernel.",
    ),
    define(
        &["goodput_bps"],
        Source,
        Unit::BitPerSecond,
        "Goodput of one group of sources, for all routes.",
        "As for all flows.",
        "Null if the group has no flows.",
    ),
    define(
        &["fct_mean_s", "fct_p50_s"],
        Source,
        Unit::Seconds,
        "Flow completion time of the transfers of the group.",
        "As for all flows.",
        "Null if no transfer completed.",
    ),
    define(
        &["fct_aged_mean_s"],
        Source,
        Unit::Seconds,
        "Mean flow completion time, in which transfers that did not complete count with their age at the end of the run.",
        "As for all flows.",
        "Null if no transfer of the group started within the interval.",
    ),
    define(
        &["flows_completed", "flows_incomplete", "flows_aborted"],
        Source,
        Unit::Flows,
        "Number of transfers of the group that started within the measurement interval, by their ending.",
        "As for all flows.",
        "Null if no transfer of the group started within the interval.",
    ),
    define(
        &["completed_share"],
        Source,
        Unit::Share,
        "Share of completed transfers among those of the group that started within the measurement interval.",
        "As for all flows.",
        "Null if no transfer of the group started within the interval.",
    ),
    define(
        &["jain"],
        Source,
        Unit::Share,
        "Jain's index within the group. In a group with transfers, the share of each is its data bytes per second that arrived during \
         its time within the measurement interval. In a group of streams of datagrams, it is what arrived over the max-min fair share, \
         as for all flows.",
        "A transfer counts from its start to its end, as far as that is within the interval. A refused transfer does not count.",
        "Null for fewer than two flows, or if nothing arrived.",
    ),
    define(
        &["delay_p50_s", "delay_p95_s", "delay_p99_s"],
        Source,
        Unit::Seconds,
        "Quantiles of the one-way delay of datagrams: the largest median, 95th and 99th percentile among the streams of the group.",
        "Datagrams count that were sent within the measurement interval and arrived before the run ended.",
        "Null without such a stream.",
    ),
    define(
        &["loss"],
        Source,
        Unit::Share,
        "Lost datagrams over sent datagrams of the streams of the group.",
        "Datagrams count that were sent within the measurement interval, except those that are on their way when the run ends.",
        "Null if no datagram was sent.",
    ),
    define(
        &["retransmitted"],
        Source,
        Unit::Share,
        "Retransmissions over data packets sent, for the transfers of the group that overlap the measurement interval.",
        "The whole life of each transfer counts, also before and after the interval.",
        "Null without such transfers, and on a test bed, where retransmissions of the kernel's TCP are not known.",
    ),
    define(
        &["retransmitted_after_timeout", "retransmitted_by_probe", "retransmitted_needlessly"],
        Source,
        Unit::Share,
        "Retransmissions by cause over data packets sent: those during the recovery from a timeout, and probes of a tail that may be \
         lost; all others are of fast recovery. Retransmissions are needless if the receiver reports that it had the data already.",
        "As for all retransmissions.",
        "As for all retransmissions. Probes and needless retransmissions are zero without `tail_probe` and `dsack`.",
    ),
    define(
        &["drops"],
        Source,
        Unit::Packets,
        "Packets of the group that the disciplines of the measured ports dropped.",
        "A packet counts at the time of its drop.",
        "Null without a measured port.",
    ),
    define(
        &["hurst", "hurst_rs", "hurst_variance", "hurst_wavelet"],
        Source,
        Unit::Number,
        "If bursts are measured: Hurst parameter of the packets that the hosts of the group emitted in each 10 ms, acknowledgements \
         included. The median of three estimates, and the estimates: rescaled range, variance-time, Haar wavelet.",
        "Windows of 10 ms count that are within the measurement interval.",
        "Null for intervals below 81.92 s, or if no packet was emitted.",
    ),
    define(
        &["rate_bps", "ceil_bps"],
        Class,
        Unit::BitPerSecond,
        "The rate that the class is guaranteed, and the rate that it cannot exceed.",
        "Constants.",
        "Missing if the class has no such rate.",
    ),
    define(
        &["throughput_bps"],
        Class,
        Unit::BitPerSecond,
        "Bits of the IP packets that the class sent within the measurement interval, divided by its length; for a class with classes \
         below, their sum.",
        "A packet counts when it leaves the queue.",
        "Never null.",
    ),
    define(
        &["borrowed"],
        Class,
        Unit::Share,
        "The share of the sent bytes that were charged to a class above, because the class had used up its own rate.",
        "As for the throughput.",
        "Null if the class sent nothing.",
    ),
    define(
        &["drop_share"],
        Class,
        Unit::Share,
        "The share of the packets that the class dropped, of those that it dropped or sent.",
        "Packets that were dropped or sent within the measurement interval count.",
        "Null if there were none.",
    ),
    define(
        &["wait_mean_s"],
        Class,
        Unit::Seconds,
        "The mean sojourn time of the packets that the class sent.",
        "As for the throughput.",
        "Null if the class sent nothing.",
    ),
    define(
        &["wait_max_s"],
        Class,
        Unit::Seconds,
        "The longest sojourn time of a packet that the class sent.",
        "Packets of the whole run count, also those before the measurement interval.",
        "Null if the class sent nothing.",
    ),
    define(
        &["offered", "throughput"],
        Switch,
        Unit::Share,
        "Cells that arrived, and that crossed the fabric, per slot and port.",
        "Slots within the measurement interval count.",
        "Never null.",
    ),
    define(
        &[
            "wait_mean_slots",
            "wait_p50_slots",
            "wait_p95_slots",
            "wait_p99_slots",
            "wait_max_slots",
            "wait_ci_slots",
            "short_wait_*_slots",
            "long_wait_*_slots",
        ],
        Switch,
        Unit::Slots,
        "Wait: from the arrival of a packet to the end of its crossing, minus the time of a crossing without interruptions. For all, \
         for short and for long packets. `ci` is half of the 95 % interval of the mean, from the means of 20 batches.",
        "A packet belongs to the interval in which its last cell crosses.",
        "Null if no such packet crossed; `ci` is null if fewer than two batches have such packets.",
    ),
    define(
        &[
            "delay_mean_slots",
            "delay_p50_slots",
            "delay_p95_slots",
            "delay_p99_slots",
            "delay_max_slots",
            "delay_ci_slots",
            "short_delay_*_slots",
            "long_delay_*_slots",
        ],
        Switch,
        Unit::Slots,
        "Delay: from the arrival of a packet to the end of its crossing.",
        "A packet belongs to the interval in which its last cell crosses.",
        "As for the wait.",
    ),
    define(
        &[
            "through_mean_slots",
            "through_p50_slots",
            "through_p95_slots",
            "through_p99_slots",
            "through_max_slots",
            "through_ci_slots",
            "short_through_*_slots",
            "long_through_*_slots",
        ],
        Switch,
        Unit::Slots,
        "Time through the switch: from the arrival of a packet to the departure of its last cell on the output link.",
        "A packet belongs to the interval in which its last cell leaves.",
        "As for the wait.",
    ),
    define(
        &["cells_*_wait_mean_slots", "cells_*_through_mean_slots"],
        Switch,
        Unit::Slots,
        "Means over the packets with one number of cells, if there are at most 16 sizes.",
        "As for all packets.",
        "Null if no such packet crossed.",
    ),
    define(
        &["short_packets", "long_packets"],
        Switch,
        Unit::Packets,
        "Number of short and of long packets that crossed.",
        "A packet belongs to the interval in which its last cell crosses.",
        "Never null.",
    ),
    define(
        &["output_short", "output_long", "output_blocked", "output_held", "output_unmatched", "output_idle"],
        Switch,
        Unit::Share,
        "Use of the slots of the outputs: a cell of a short packet arrived; a cell of a long packet arrived; the output was connected to \
         an input that sent a short packet elsewhere; a short packet took one of the two ports of a new match; cells for the output \
         were queued, but it was not matched; no cell for the output was queued.",
        "Slots within the measurement interval count.",
        "Never null. They sum to 1.",
    ),
    define(
        &["queue_max_cells", "input_max_cells", "output_max_cells", "backlog_cells"],
        Switch,
        Unit::Cells,
        "The largest number of cells in one queue of an input, at one input, and at one output; and the cells in the switch at the end.",
        "The largest value within the measurement interval, including its beginning.",
        "Never null.",
    ),
    define(
        &["short_max_packets", "output_short_max_packets"],
        Switch,
        Unit::Packets,
        "The largest number of packets in one queue for short packets, after arrivals and before service; and the largest number of \
         short packets at one output.",
        "The largest value within the measurement interval, including its beginning.",
        "Never null.",
    ),
    define(
        &["backlog_slope"],
        Switch,
        Unit::Number,
        "Growth of the backlog in cells per slot and port.",
        "The batches of the measurement interval count.",
        "Null if the run is too short.",
    ),
    define(
        &["stable"],
        Switch,
        Unit::Number,
        "1 if the backlog does not grow, 0 if it grows.",
        "The batches of the measurement interval count.",
        "Null if the run is too short.",
    ),
];

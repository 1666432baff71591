//! The definition of each metric. Sentences, tables, charts, files and pages about metrics use this table.

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A part of a whole, 0 to 1, shown in percent.
    Share,
    /// An index or a load, 0 to 1, shown as it is.
    Index,
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
            Unit::Share | Unit::Index | Unit::Number => "1",
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
pub enum Subject {
    /// All flows of a run, or the flows that cross one of several measured ports.
    Flows,
    /// The measured ports, or the first of them.
    Ports,
    /// A group of sources. The metric starts with the prefix `src.NAME.`.
    Source,
    /// A class of the discipline at the bottleneck. The metric starts with the prefix `class.PATH.`, with the
    /// names of the classes above it and its own.
    Class,
    /// A run on a switch.
    Switch,
}

/// The direction in which a value is better for those who use the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A high value is better.
    High,
    /// A low value is better.
    Low,
    /// Neither: the value describes the load, the configuration or the traffic.
    Neither,
}

/// The texts about a metric, in which `*` stands for the same word as in its name. The statistic, such as the
/// 99th percentile, is added to both from the name.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The noun in sentences and titles, in the singular.
    pub noun: &'static str,
    /// The heading of a column. Empty if the statistic is enough, under the title of a group of columns.
    pub short: &'static str,
}

const fn label(noun: &'static str, short: &'static str) -> Label {
    Label { noun, short }
}

/// A metric, or several that differ in one word.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Names. `*` stands for a word that depends on the run: a size class, a drop reason, a number of cells.
    /// A quantile is computed if its name is here.
    pub names: &'static [&'static str],
    /// One label for all names, or one for each.
    pub labels: &'static [Label],
    /// The subject.
    pub subject: Subject,
    /// The unit of its values.
    pub unit: Unit,
    /// The direction in which a value is better.
    pub better: Better,
    /// The meaning, in a sentence.
    pub description: &'static str,
    /// The treatment of events that start before the measurement interval, or end after it.
    pub edges: &'static str,
    /// The condition for null, and the meaning of zero if that is not obvious.
    pub missing: &'static str,
}

use Subject::{Class, Flows, Ports, Source, Switch};

/// Every metric.
pub const METRICS: &[Definition] = &[
    Definition {
        names: &["utilization"],
        labels: &[label("utilization", "used")],
        subject: Ports,
        unit: Unit::Share,
        better: Better::High,
        description: "The share of the measurement interval during which the link of the bottleneck (the first measured port) transmitted.",
        edges: "A packet that is on the link when the interval begins or ends counts for the time that lies within it.",
        missing: "Null if the rate of the link is unknown.",
    },
    Definition {
        names: &["goodput_bps"],
        labels: &[label("goodput", "goodput")],
        subject: Flows,
        unit: Unit::BitPerSecond,
        better: Better::High,
        description: "Data bits that arrived at receiving hosts within the measurement interval, divided by its length, for all flows whose route \
         crosses the bottleneck (the first measured port). Headers do not count. Duplicate data count once. Data out of order count \
         at their arrival.",
        edges: "Data that were sent before the interval and arrive within it count; data that arrive after it do not.",
        missing: "Null without flows.",
    },
    Definition {
        names: &["flows_completed"],
        labels: &[label("completed transfers", "n")],
        subject: Flows,
        unit: Unit::Flows,
        better: Better::High,
        description: "Number of transfers that started within the measurement interval and completed before the run ended.",
        edges: "A transfer belongs to the interval in which it starts.",
        missing: "Null if no transfer started within the interval.",
    },
    Definition {
        names: &["flows_incomplete"],
        labels: &[label("unfinished transfers", "unfinished")],
        subject: Flows,
        unit: Unit::Flows,
        better: Better::Low,
        description: "Number of transfers that started within the measurement interval and were still open when the run ended.",
        edges: "A transfer belongs to the interval in which it starts.",
        missing: "Null if no transfer started within the interval.",
    },
    Definition {
        names: &["flows_aborted"],
        labels: &[label("aborted transfers", "aborted")],
        subject: Flows,
        unit: Unit::Flows,
        better: Better::Low,
        description: "Number of transfers that started within the measurement interval and were aborted, refused ones included.",
        edges: "A transfer belongs to the interval in which it starts.",
        missing: "Null if no transfer started within the interval.",
    },
    Definition {
        names: &["bytes_incomplete"],
        labels: &[label("bytes of unfinished transfers", "unfinished")],
        subject: Flows,
        unit: Unit::Bytes,
        better: Better::Low,
        description: "Data bytes of the incomplete and aborted transfers that were not delivered when the run ended.",
        edges: "As for the number of transfers.",
        missing: "Null if no transfer started within the interval; 0 if all of them completed.",
    },
    Definition {
        names: &["fct_mean_s", "fct_p50_s", "fct_p95_s", "fct_p99_s"],
        labels: &[label("flow completion time", "")],
        subject: Flows,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Flow completion time (FCT): from the request of the application for a transfer to the arrival of the last byte at the \
         receiving application. Mean and quantiles over the transfers that started within the measurement interval and completed.",
        edges: "A transfer belongs to the interval in which it starts. It may complete after the interval, until the run ends.",
        missing: "Null if no transfer completed.",
    },
    Definition {
        names: &["flows_*_completed"],
        labels: &[label("completed transfers *", "n")],
        subject: Flows,
        unit: Unit::Flows,
        better: Better::High,
        description: "Number of completed transfers of one size class, which is the number of values behind its quantiles.",
        edges: "As for all transfers.",
        missing: "Null if no transfer completed.",
    },
    Definition {
        names: &["fct_*_mean_s", "fct_*_p50_s", "fct_*_p95_s", "fct_*_p99_s"],
        labels: &[label("completion time of transfers *", "")],
        subject: Flows,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Flow completion time of the transfers of one size class. `le30kB` has transfers up to 30 kB that are in no smaller class, \
         `gt3MB` those above 3 MB. The size is the one that the application requested.",
        edges: "As for all transfers.",
        missing: "Null if no transfer of the class completed.",
    },
    Definition {
        names: &["fct_aged_mean_s", "fct_aged_*_mean_s"],
        labels: &[
            label("flow completion time with unfinished transfers", "aged"),
            label("completion time with unfinished transfers *", "aged"),
        ],
        subject: Flows,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Mean flow completion time over all transfers that started within the measurement interval. A transfer that did not complete \
         counts with its age at the end of the run, so that a discipline that starves transfers looks worse and not better.",
        edges: "As for all transfers. The age of a transfer that did not complete is that at the end of the run, not of the interval.",
        missing: "Null if no transfer (of the class) started within the interval.",
    },
    Definition {
        names: &["page_load_mean_s", "page_load_p50_s", "page_load_p95_s", "page_load_p99_s"],
        labels: &[label("page load time", "")],
        subject: Flows,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Page load time: flow completion time of groups of transfers, such as a page with all its objects.",
        edges: "A page belongs to the interval in which it starts.",
        missing: "Null if no page completed.",
    },
    Definition {
        names: &["pages_completed"],
        labels: &[label("completed pages", "n")],
        subject: Flows,
        unit: Unit::Flows,
        better: Better::High,
        description: "Number of pages that started within the measurement interval and completed.",
        edges: "A page belongs to the interval in which it starts.",
        missing: "Null if there were no pages.",
    },
    Definition {
        names: &["pages_incomplete"],
        labels: &[label("unfinished pages", "unfinished")],
        subject: Flows,
        unit: Unit::Flows,
        better: Better::Low,
        description: "Number of pages that started within the measurement interval and did not complete.",
        edges: "A page belongs to the interval in which it starts.",
        missing: "Null if there were no pages.",
    },
    Definition {
        names: &["sojourn_mean_s", "sojourn_p50_s", "sojourn_p95_s", "sojourn_p99_s"],
        labels: &[label("sojourn time of packets", "")],
        subject: Ports,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Sojourn time: from the arrival of a packet at a measured port to the beginning of its transmission, for the packets that were \
         sent from all measured ports. Quantiles are at most 0.1 % above the exact ones, and at most the largest time.",
        edges: "A packet belongs to the interval in which its transmission begins. Time before the interval counts, too.",
        missing: "Null if no packet was sent within the interval.",
    },
    Definition {
        names: &["small_sojourn_mean_s", "small_sojourn_p50_s", "small_sojourn_p95_s", "small_sojourn_p99_s"],
        labels: &[label("sojourn time of small packets", "small")],
        subject: Ports,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Sojourn time of small packets: up to 256 bytes, unless the scenario sets another limit.",
        edges: "As for all packets.",
        missing: "Null if no small packet was sent within the interval.",
    },
    Definition {
        names: &["sojourn_packets", "small_sojourn_packets"],
        labels: &[
            label("packets with a sojourn time", "all n"),
            label("small packets with a sojourn time", "small n"),
        ],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Neither,
        description: "Number of packets behind the sojourn times: all, and the small ones.",
        edges: "As for the sojourn times.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["sojourn_saturated"],
        labels: &[label("sojourn times above 73 minutes", "saturated")],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Neither,
        description: "Number of sojourn times above 73 minutes, the longest time that quantiles distinguish.",
        edges: "As for all packets.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["backlog_mean_packets", "backlog_max_packets"],
        labels: &[label("backlog in packets", "")],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Low,
        description: "Backlog of the bottleneck in packets, without the packet in transmission: the exact time average over the measurement \
         interval, and the maximum.",
        edges: "Each backlog counts for its duration within the interval.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["backlog_mean_bytes"],
        labels: &[label("backlog in bytes", "mean")],
        subject: Ports,
        unit: Unit::Bytes,
        better: Better::Low,
        description: "Time average of the backlog of the bottleneck in bytes of IP packets.",
        edges: "As for packets.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["drops"],
        labels: &[label("drops", "drops")],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Low,
        description: "Packets that the disciplines of the measured ports dropped.",
        edges: "A packet counts at the time of its drop.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["marks"],
        labels: &[label("marks", "marks")],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Neither,
        description: "Packets that the disciplines of the measured ports marked (Congestion Experienced).",
        edges: "A packet counts at the time of its mark.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["drops_*"],
        labels: &[label("drops (*)", "drops")],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Low,
        description: "Packets lost at the measured ports for one reason. `drops_wire` and `drops_unreachable` are not among `drops`: the packet was \
         lost on the link, or there was no route.",
        edges: "A packet counts at the time of its loss.",
        missing: "Listed only if it occurred; otherwise it is 0.",
    },
    Definition {
        names: &["jain"],
        labels: &[label("fairness (Jain's index)", "Jain")],
        subject: Flows,
        unit: Unit::Index,
        better: Better::High,
        description: "Jain's index of fairness: 1 for equal shares, 1/n if one of n flows has everything. The flows are the endless transfers that \
         lasted through the whole measurement interval, and their shares are the data bytes that arrived within it. If there are fewer \
         than two of them, the flows are the streams of datagrams, and the share of each is its data bytes that arrived within the \
         interval, divided by its max-min fair share of all that arrived. The fair share of a stream that sends less than an equal \
         part is what it sends; if all streams send more, the index is that of their rates.",
        edges: "The demand of a stream is what it sent within the interval, and its share is what arrived within it.",
        missing: "Null for fewer than two flows, or if nothing arrived.",
    },
    Definition {
        names: &["jain_large"],
        labels: &[label("fairness of large transfers (Jain's index)", "Jain")],
        subject: Flows,
        unit: Unit::Index,
        better: Better::High,
        description: "Jain's index of the mean rates of the transfers of at least 100 kB that started within the measurement interval: delivered \
         bytes over the time from start to end.",
        edges: "A transfer belongs to the interval in which it starts. Its rate is that of its whole life, which for an incomplete transfer \
         ends with the run.",
        missing: "Null for fewer than two such transfers.",
    },
    Definition {
        names: &["flow_delay_p50_s", "flow_delay_p95_s"],
        labels: &[label("mean delay of a stream", "")],
        subject: Flows,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Median and 95th percentile, over streams of datagrams, of the mean one-way delay of each.",
        edges: "Datagrams count that were sent within the measurement interval and arrived before the run ended.",
        missing: "Null for fewer than two such streams.",
    },
    Definition {
        names: &["voice_delay_mean_s", "voice_delay_p99_s"],
        labels: &[label("delay of calls", "")],
        subject: Flows,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "One-way delay of the streams that look like calls (for at least a second of the interval 10 to 120 datagrams a second, of at \
         most 272 data bytes on average): the mean over the streams of their mean delays, and the largest of their 99th percentiles.",
        edges: "Datagrams count that were sent within the measurement interval and arrived before the run ended.",
        missing: "Null if no stream looks like a call.",
    },
    Definition {
        names: &["voice_packets"],
        labels: &[label("packets of a call", "n")],
        subject: Flows,
        unit: Unit::Packets,
        better: Better::Neither,
        description: "Number of datagrams that arrived of the stream with the fewest, of the streams that look like calls: the number of values \
         behind the 99th percentile of its delay.",
        edges: "As for the delay of these streams.",
        missing: "Null if no stream looks like a call.",
    },
    Definition {
        names: &["voice_loss"],
        labels: &[label("packet loss of calls", "lost")],
        subject: Flows,
        unit: Unit::Share,
        better: Better::Low,
        description: "Lost datagrams over sent datagrams of the streams that look like calls.",
        edges: "Datagrams count that were sent within the measurement interval, except those that are on their way when the run ends.",
        missing: "Null if no stream looks like a call.",
    },
    Definition {
        names: &["flow_table_mean", "flow_table_max"],
        labels: &[label("number of tracked flows", "table")],
        subject: Ports,
        unit: Unit::Flows,
        better: Better::Neither,
        description: "Flows for which the discipline of the bottleneck keeps state: mean of the samples, and maximum.",
        edges: "The mean is over the samples within the measurement interval. The maximum is that of the run until the last sample.",
        missing: "Null without samples, or if the discipline keeps no state per flow.",
    },
    Definition {
        names: &["flow_table_entry_bytes", "flow_table_bytes"],
        labels: &[
            label("memory of a tracked flow", "per flow"),
            label("maximum memory of the flow table", "table"),
        ],
        subject: Ports,
        unit: Unit::Bytes,
        better: Better::Low,
        description: "Memory that the state of one flow takes, and the most that the whole table took.",
        edges: "As for the number of flows.",
        missing: "Null without samples, or if the discipline keeps no state per flow.",
    },
    Definition {
        names: &["run_length_mean", "run_length_weighted", "run_length_longest"],
        labels: &[
            label("run length", ""),
            label("run length of a packet", "of a packet"),
            label("run length", ""),
        ],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Low,
        description: "If bursts are measured: length of runs, which are consecutive packets of the bottleneck to the same next hop. Mean over the \
         runs, mean over the packets of the length of their run, and maximum.",
        edges: "Packets count whose transmission began within the measurement interval; runs are cut at its ends.",
        missing: "Null if no packet was sent.",
    },
    Definition {
        names: &[
            "arrivals_idc_1ms",
            "arrivals_idc_10ms",
            "arrivals_idc_100ms",
            "arrivals_idc_1s",
            "arrivals_peakedness",
        ],
        labels: &[
            label("dispersion of the arrivals in 1 ms", "in"),
            label("dispersion of the arrivals in 10 ms", "in"),
            label("dispersion of the arrivals in 100 ms", "in"),
            label("dispersion of the arrivals in 1 s", "in"),
            label("peakedness of the arrivals", "in"),
        ],
        subject: Ports,
        unit: Unit::Number,
        better: Better::Low,
        description: "If bursts are measured: index of dispersion for counts of the arrivals at the bottleneck, dropped packets included, which is \
         the variance over the mean of their number in windows of this length; and peakedness for exponential holding times with a \
         mean of 10 ms. Both are 1 for Poisson arrivals.",
        edges: "Windows count that are within the measurement interval.",
        missing: "Null if fewer than two windows fit.",
    },
    Definition {
        names: &[
            "downstream_idc_1ms",
            "downstream_idc_10ms",
            "downstream_idc_100ms",
            "downstream_idc_1s",
            "downstream_peakedness",
        ],
        labels: &[
            label("dispersion of the departures in 1 ms", "out"),
            label("dispersion of the departures in 10 ms", "out"),
            label("dispersion of the departures in 100 ms", "out"),
            label("dispersion of the departures in 1 s", "out"),
            label("peakedness of the departures", "out"),
        ],
        subject: Ports,
        unit: Unit::Number,
        better: Better::Low,
        description: "If bursts are measured: index of dispersion and peakedness of the departures from the bottleneck, separately for each next hop; \
         mean over the packets.",
        edges: "Windows count that are within the measurement interval.",
        missing: "Null if fewer than two windows fit.",
    },
    Definition {
        names: &["bottleneck_packets"],
        labels: &[label("packets of the bottleneck", "packets")],
        subject: Ports,
        unit: Unit::Packets,
        better: Better::Neither,
        description: "Packets of more than 64 bytes that the bottleneck sent in the whole run, including the warm-up. The processor time of a run is \
         given per such packet.",
        edges: "The whole run counts.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["kernel.*"],
        labels: &[label("counter * of the kernel's discipline", "counter")],
        subject: Ports,
        unit: Unit::Number,
        better: Better::Neither,
        description: "A counter of a discipline of Giveway that ran in the Linux kernel.",
        edges: "The growth of the counter within the measurement interval.",
        missing: "Listed only for runs in the kernel.",
    },
    Definition {
        names: &["goodput_bps"],
        labels: &[label("goodput", "goodput")],
        subject: Source,
        unit: Unit::BitPerSecond,
        better: Better::High,
        description: "Goodput of one group of sources, for all routes.",
        edges: "As for all flows.",
        missing: "Null if the group has no flows.",
    },
    Definition {
        names: &["fct_mean_s", "fct_p50_s"],
        labels: &[label("flow completion time", "")],
        subject: Source,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Flow completion time of the transfers of the group.",
        edges: "As for all flows.",
        missing: "Null if no transfer completed.",
    },
    Definition {
        names: &["fct_aged_mean_s"],
        labels: &[label("flow completion time with unfinished transfers", "aged")],
        subject: Source,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Mean flow completion time, in which transfers that did not complete count with their age at the end of the run.",
        edges: "As for all flows.",
        missing: "Null if no transfer of the group started within the interval.",
    },
    Definition {
        names: &["flows_completed"],
        labels: &[label("completed transfers", "n")],
        subject: Source,
        unit: Unit::Flows,
        better: Better::High,
        description: "Number of transfers of the group that started within the measurement interval and completed before the run ended.",
        edges: "As for all flows.",
        missing: "Null if no transfer of the group started within the interval.",
    },
    Definition {
        names: &["flows_incomplete"],
        labels: &[label("unfinished transfers", "unfinished")],
        subject: Source,
        unit: Unit::Flows,
        better: Better::Low,
        description: "Number of transfers of the group that started within the measurement interval and were still open when the run ended.",
        edges: "As for all flows.",
        missing: "Null if no transfer of the group started within the interval.",
    },
    Definition {
        names: &["flows_aborted"],
        labels: &[label("aborted transfers", "aborted")],
        subject: Source,
        unit: Unit::Flows,
        better: Better::Low,
        description: "Number of transfers of the group that started within the measurement interval and were aborted, refused ones included.",
        edges: "As for all flows.",
        missing: "Null if no transfer of the group started within the interval.",
    },
    Definition {
        names: &["completed_share"],
        labels: &[label("share of completed transfers", "completed")],
        subject: Source,
        unit: Unit::Share,
        better: Better::High,
        description: "Share of completed transfers among the transfers of the group that started within the measurement interval.",
        edges: "As for all flows.",
        missing: "Null if no transfer of the group started within the interval.",
    },
    Definition {
        names: &["jain"],
        labels: &[label("fairness (Jain's index)", "Jain")],
        subject: Source,
        unit: Unit::Index,
        better: Better::High,
        description: "Jain's index within the group. In a group with transfers, the share of each is its data bytes per second that arrived during \
         its time within the measurement interval. In a group of streams of datagrams, it is what arrived over the max-min fair share, \
         as for all flows.",
        edges: "A transfer counts from its start to its end, as far as that is within the interval. A refused transfer does not count.",
        missing: "Null for fewer than two flows, or if nothing arrived.",
    },
    Definition {
        names: &["lead"],
        labels: &[label("lead of the first of two flows", "lead")],
        subject: Source,
        unit: Unit::Number,
        better: Better::Neither,
        description: "In a group of two flows, the share of the first in the data that both received, minus the share of the second: -1 to 1. If it has \
         another sign with another seed, the winner is a matter of chance.",
        edges: "As for goodput.",
        missing: "Null for a group of fewer or more flows, or if nothing arrived.",
    },
    Definition {
        names: &["delay_p50_s", "delay_p95_s", "delay_p99_s"],
        labels: &[label("delay", "")],
        subject: Source,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "Quantiles of the one-way delay of datagrams: the largest median, 95th and 99th percentile among the streams of the group.",
        edges: "Datagrams count that were sent within the measurement interval and arrived before the run ended.",
        missing: "Null without such a stream.",
    },
    Definition {
        names: &["loss"],
        labels: &[label("packet loss", "lost")],
        subject: Source,
        unit: Unit::Share,
        better: Better::Low,
        description: "Lost datagrams over sent datagrams of the streams of the group.",
        edges: "Datagrams count that were sent within the measurement interval, except those that are on their way when the run ends.",
        missing: "Null if no datagram was sent.",
    },
    Definition {
        names: &["retransmitted"],
        labels: &[label("share of retransmissions", "again")],
        subject: Source,
        unit: Unit::Share,
        better: Better::Low,
        description: "Retransmissions over data packets sent, for the transfers of the group that overlap the measurement interval.",
        edges: "The whole life of each transfer counts, also before and after the interval.",
        missing: "Null without such transfers, and on a test bed, where retransmissions of the kernel's TCP are not known.",
    },
    Definition {
        names: &["retransmitted_after_timeout", "retransmitted_by_probe", "retransmitted_needlessly"],
        labels: &[
            label("share of retransmissions after a timeout", "timeout"),
            label("share of retransmissions by a probe", "probe"),
            label("share of needless retransmissions", "needless"),
        ],
        subject: Source,
        unit: Unit::Share,
        better: Better::Low,
        description: "Retransmissions by cause over data packets sent: those during the recovery from a timeout, and probes of a tail that may be \
         lost; all others are of fast recovery. Retransmissions are needless if the receiver reports that it had the data already.",
        edges: "As for all retransmissions.",
        missing: "As for all retransmissions. Probes and needless retransmissions are zero without `tail_probe` and `dsack`.",
    },
    Definition {
        names: &["drops"],
        labels: &[label("drops", "drops")],
        subject: Source,
        unit: Unit::Packets,
        better: Better::Low,
        description: "Packets of the group that the disciplines of the measured ports dropped.",
        edges: "A packet counts at the time of its drop.",
        missing: "Null without a measured port.",
    },
    Definition {
        names: &["hurst", "hurst_rs", "hurst_variance", "hurst_wavelet"],
        labels: &[
            label("Hurst parameter", "Hurst"),
            label("Hurst parameter by rescaled range", "rescaled range"),
            label("Hurst parameter by variance and time", "variance-time"),
            label("Hurst parameter by wavelets", "wavelet"),
        ],
        subject: Source,
        unit: Unit::Number,
        better: Better::Neither,
        description: "If bursts are measured: Hurst parameter of the packets that the hosts of the group emitted in each 10 ms, acknowledgements \
         included. The median of three estimates, and the estimates: rescaled range, variance-time, Haar wavelet.",
        edges: "Windows of 10 ms count that are within the measurement interval.",
        missing: "Null for intervals below 81.92 s, or if no packet was emitted.",
    },
    Definition {
        names: &["rate_bps", "ceil_bps"],
        labels: &[label("guaranteed rate", "rate"), label("ceiling of the rate", "ceil")],
        subject: Class,
        unit: Unit::BitPerSecond,
        better: Better::Neither,
        description: "The rate that the class is guaranteed, and the rate that it cannot exceed.",
        edges: "Constants.",
        missing: "Missing if the class has no such rate.",
    },
    Definition {
        names: &["throughput_bps"],
        labels: &[label("throughput", "sent")],
        subject: Class,
        unit: Unit::BitPerSecond,
        better: Better::High,
        description: "Bits of the IP packets that the class sent within the measurement interval, divided by its length; for a class with classes \
         below, their sum.",
        edges: "A packet counts when it leaves the queue.",
        missing: "Never null.",
    },
    Definition {
        names: &["borrowed"],
        labels: &[label("borrowed share", "borrowed")],
        subject: Class,
        unit: Unit::Share,
        better: Better::Neither,
        description: "The share of the sent bytes that were charged to a class above, because the class had used up its own rate.",
        edges: "As for the throughput.",
        missing: "Null if the class sent nothing.",
    },
    Definition {
        names: &["drop_share"],
        labels: &[label("share of dropped packets", "drops")],
        subject: Class,
        unit: Unit::Share,
        better: Better::Low,
        description: "The share of the packets that the class dropped, of those that it dropped or sent.",
        edges: "Packets that were dropped or sent within the measurement interval count.",
        missing: "Null if there were none.",
    },
    Definition {
        names: &["wait_mean_s"],
        labels: &[label("wait", "mean wait")],
        subject: Class,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "The mean sojourn time of the packets that the class sent.",
        edges: "As for the throughput.",
        missing: "Null if the class sent nothing.",
    },
    Definition {
        names: &["wait_max_s"],
        labels: &[label("wait", "longest")],
        subject: Class,
        unit: Unit::Seconds,
        better: Better::Low,
        description: "The longest sojourn time of a packet that the class sent.",
        edges: "Packets of the whole run count, also those before the measurement interval.",
        missing: "Null if the class sent nothing.",
    },
    Definition {
        names: &["offered"],
        labels: &[label("offered load", "offered")],
        subject: Switch,
        unit: Unit::Index,
        better: Better::Neither,
        description: "Cells that arrived, per slot and port.",
        edges: "Slots within the measurement interval count.",
        missing: "Never null.",
    },
    Definition {
        names: &["throughput"],
        labels: &[label("throughput", "crossed")],
        subject: Switch,
        unit: Unit::Index,
        better: Better::High,
        description: "Cells that crossed the fabric, per slot and port.",
        edges: "Slots within the measurement interval count.",
        missing: "Never null.",
    },
    Definition {
        names: &[
            "wait_mean_slots",
            "wait_p50_slots",
            "wait_p95_slots",
            "wait_p99_slots",
            "wait_max_slots",
            "wait_ci_slots",
        ],
        labels: &[label("wait", "")],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "Wait: from the arrival of a packet to the end of its crossing, minus the time of a crossing without interruptions. \
         `ci` is half of the 95 % interval of the mean, from the means of 20 batches.",
        edges: "A packet belongs to the interval in which its last cell crosses.",
        missing: "Null if no such packet crossed; `ci` is null if fewer than two batches have such packets.",
    },
    Definition {
        names: &["short_wait_*_slots", "long_wait_*_slots"],
        labels: &[label("wait of short packets", "short"), label("wait of long packets", "long")],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "The wait of short and of long packets. `*` stands for the statistics of all packets.",
        edges: "As for all packets.",
        missing: "As for all packets.",
    },
    Definition {
        names: &[
            "delay_mean_slots",
            "delay_p50_slots",
            "delay_p95_slots",
            "delay_p99_slots",
            "delay_max_slots",
            "delay_ci_slots",
        ],
        labels: &[label("delay through the fabric", "fabric")],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "Delay: from the arrival of a packet to the end of its crossing.",
        edges: "A packet belongs to the interval in which its last cell crosses.",
        missing: "As for the wait.",
    },
    Definition {
        names: &["short_delay_*_slots", "long_delay_*_slots"],
        labels: &[
            label("delay through the fabric of short packets", "short"),
            label("delay through the fabric of long packets", "long"),
        ],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "The delay of short and of long packets. `*` stands for the statistics of all packets.",
        edges: "As for all packets.",
        missing: "As for all packets.",
    },
    Definition {
        names: &[
            "through_mean_slots",
            "through_p50_slots",
            "through_p95_slots",
            "through_p99_slots",
            "through_max_slots",
            "through_ci_slots",
        ],
        labels: &[label("time through the switch", "with link")],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "Time through the switch: from the arrival of a packet to the departure of its last cell on the output link.",
        edges: "A packet belongs to the interval in which its last cell leaves.",
        missing: "As for the wait.",
    },
    Definition {
        names: &["short_through_*_slots", "long_through_*_slots"],
        labels: &[
            label("time through the switch of short packets", "short"),
            label("time through the switch of long packets", "long"),
        ],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "The time through the switch of short and of long packets. `*` stands for the statistics of all packets.",
        edges: "As for all packets.",
        missing: "As for all packets.",
    },
    Definition {
        names: &["cells_*_wait_mean_slots", "cells_*_through_mean_slots"],
        labels: &[
            label("wait of packets of * cells", "wait"),
            label("time through the switch of packets of * cells", "with link"),
        ],
        subject: Switch,
        unit: Unit::Slots,
        better: Better::Low,
        description: "Means over the packets with one number of cells, if there are at most 16 sizes.",
        edges: "As for all packets.",
        missing: "Null if no such packet crossed.",
    },
    Definition {
        names: &["short_packets", "long_packets"],
        labels: &[label("short packets", "short"), label("long packets", "long")],
        subject: Switch,
        unit: Unit::Packets,
        better: Better::Neither,
        description: "Number of short and of long packets that crossed.",
        edges: "A packet belongs to the interval in which its last cell crosses.",
        missing: "Never null.",
    },
    Definition {
        names: &[
            "output_short",
            "output_long",
            "output_blocked",
            "output_held",
            "output_unmatched",
            "output_idle",
        ],
        labels: &[
            label("share of slots with a short packet", "short"),
            label("share of slots with a long packet", "long"),
            label("share of blocked slots", "blocked"),
            label("share of held slots", "held"),
            label("share of unmatched slots", "unmatched"),
            label("share of idle slots", "idle"),
        ],
        subject: Switch,
        unit: Unit::Share,
        better: Better::Neither,
        description: "Use of the slots of the outputs: a cell of a short packet arrived; a cell of a long packet arrived; the output was connected to \
         an input that sent a short packet elsewhere; a short packet took one of the two ports of a new match; cells for the output \
         were queued, but it was not matched; no cell for the output was queued.",
        edges: "Slots within the measurement interval count.",
        missing: "Never null. They sum to 1.",
    },
    Definition {
        names: &["queue_max_cells", "input_max_cells", "output_max_cells"],
        labels: &[
            label("backlog of a queue", "queue"),
            label("backlog of an input", "input"),
            label("backlog of an output", "output"),
        ],
        subject: Switch,
        unit: Unit::Cells,
        better: Better::Low,
        description: "The largest number of cells in one queue of an input, at one input, and at one output.",
        edges: "The largest value within the measurement interval, including its beginning.",
        missing: "Never null.",
    },
    Definition {
        names: &["backlog_cells"],
        labels: &[label("backlog at the end", "at the end")],
        subject: Switch,
        unit: Unit::Cells,
        better: Better::Low,
        description: "The cells in the switch at the end.",
        edges: "The end of the run counts.",
        missing: "Never null.",
    },
    Definition {
        names: &["short_max_packets", "output_short_max_packets"],
        labels: &[
            label("number of short packets in a queue", "queue"),
            label("number of short packets at an output", "output"),
        ],
        subject: Switch,
        unit: Unit::Packets,
        better: Better::Low,
        description: "The largest number of packets in one queue for short packets, after arrivals and before service; and the largest number of \
         short packets at one output.",
        edges: "The largest value within the measurement interval, including its beginning.",
        missing: "Never null.",
    },
    Definition {
        names: &["backlog_slope"],
        labels: &[label("growth of the backlog", "growth")],
        subject: Switch,
        unit: Unit::Number,
        better: Better::Low,
        description: "Growth of the backlog in cells per slot and port.",
        edges: "The batches of the measurement interval count.",
        missing: "Null if the run is too short.",
    },
    Definition {
        names: &["stable"],
        labels: &[label("stability", "stable")],
        subject: Switch,
        unit: Unit::Number,
        better: Better::High,
        description: "1 if the backlog does not grow, 0 if it grows.",
        edges: "The batches of the measurement interval count.",
        missing: "Null if the run is too short.",
    },
];

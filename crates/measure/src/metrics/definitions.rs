//! What each metric means. One table: the page of the book, the units in files and the tests follow it.

/// What a number counts, or the unit that it is in.
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
    /// How it is written in tables and files; "1" where there is none, as in the metadata of scientific files.
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

/// Of what a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// All flows of a run, or of those that cross one of several measured ports.
    Flows,
    /// The measured ports, or the first of them.
    Ports,
    /// A group of sources: its name is `src.NAME.` and this.
    Source,
    /// A run on a switch.
    Switch,
}

/// A metric, or several that differ in one word.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its names. `*` stands for a word that depends on the run: a class of sizes, a reason, a number of cells.
    pub names: &'static [&'static str],
    /// Of what it is.
    pub of: Of,
    /// The unit of its values.
    pub unit: Unit,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// What it does with what began before the measurement interval, or ends after it.
    pub edges: &'static str,
    /// When it is null; what zero means where that is not obvious.
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

use Of::{Flows, Ports, Source, Switch};

/// Every metric.
pub const METRICS: &[Definition] = &[
    define(
        &["utilization"],
        Ports,
        Unit::Share,
        "The part of the measurement interval for which the link of the bottleneck, the first measured port, was sending.",
        "A packet that is on the link when the interval begins or ends counts for the time that lies within it.",
        "Null where the rate of the link is not known.",
    ),
    define(
        &["goodput_bps"],
        Flows,
        Unit::BitPerSecond,
        "Data bits that arrived at receiving hosts within the measurement interval, over its length: of all flows whose route crosses \
         the bottleneck, the first measured port. Headers do not count; data that arrive twice count once; data that arrive out of order count when they \
         arrive.",
        "What was sent before the interval and arrives in it counts; what arrives after it does not.",
        "Null where there are no flows.",
    ),
    define(
        &["flows_completed", "flows_incomplete", "flows_aborted"],
        Flows,
        Unit::Flows,
        "How many transfers started within the measurement interval and completed, were still open when the run ended, or were given \
         up (refused ones, too).",
        "A transfer belongs to the interval in which it starts, whenever it ends.",
        "Null where no transfer started within the interval.",
    ),
    define(
        &["bytes_incomplete"],
        Flows,
        Unit::Bytes,
        "Data bytes that the incomplete and the aborted of these transfers had still to deliver when the run ended.",
        "As for the number of transfers.",
        "Null where no transfer started within the interval; 0 where all of them completed.",
    ),
    define(
        &["fct_mean_s", "fct_p50_s", "fct_p95_s", "fct_p99_s"],
        Flows,
        Unit::Seconds,
        "Flow completion time: from when the application asked for a transfer to when the last byte reached the receiving \
         application. Mean and quantiles over the transfers that started within the measurement interval and completed.",
        "A transfer belongs to the interval in which it starts; it may complete after its end, as long as the run lasts.",
        "Null where none of them completed.",
    ),
    define(
        &["fct_*_mean_s", "fct_*_p50_s", "fct_*_p95_s", "fct_*_p99_s"],
        Flows,
        Unit::Seconds,
        "The same of transfers of one class of sizes: `le30kB` are those of at most 30 kB that are in no smaller class, `gt3MB` those \
         of more than 3 MB. The size is what the application asked for.",
        "As for all transfers.",
        "Null where none of the class completed.",
    ),
    define(
        &["fct_aged_mean_s", "fct_aged_*_mean_s"],
        Flows,
        Unit::Seconds,
        "Mean over all transfers that started within the measurement interval of the time from their start to their completion, or, \
         of those that did not complete, to the end of the run. Whoever starves transfers looks worse by it, not better.",
        "As for all transfers; the age of one that did not complete ends with the run, not with the interval.",
        "Null where no transfer (of the class) started within the interval.",
    ),
    define(
        &["page_load_mean_s", "page_load_p50_s", "page_load_p95_s", "page_load_p99_s"],
        Flows,
        Unit::Seconds,
        "Page load time: flow completion time of groups of transfers, such as a page with all its objects.",
        "A page belongs to the interval in which it starts.",
        "Null where no page completed.",
    ),
    define(
        &["pages_completed", "pages_incomplete"],
        Flows,
        Unit::Flows,
        "How many pages started within the measurement interval and completed, or did not.",
        "A page belongs to the interval in which it starts.",
        "Null where there were none.",
    ),
    define(
        &["sojourn_mean_s", "sojourn_p50_s", "sojourn_p95_s", "sojourn_p99_s"],
        Ports,
        Unit::Seconds,
        "Sojourn time: how long a packet was at a measured port, from its arrival to when its transmission began. Of packets that were \
         sent, from all measured ports. Quantiles are at most 0.1 % above the exact ones, and never above the largest.",
        "A packet belongs to the interval in which its transmission begins; the time before the interval counts, too.",
        "Null where no packet was sent within the interval.",
    ),
    define(
        &["small_sojourn_mean_s", "small_sojourn_p50_s", "small_sojourn_p95_s", "small_sojourn_p99_s"],
        Ports,
        Unit::Seconds,
        "The same of small packets: of at most 256 bytes, where the scenario does not say otherwise.",
        "As for all packets.",
        "Null where no small packet was sent within the interval.",
    ),
    define(
        &["sojourn_saturated"],
        Ports,
        Unit::Packets,
        "How many of the sojourn times were longer than 73 minutes, the longest that quantiles tell apart.",
        "As for all packets.",
        "Null where nothing is measured at a port.",
    ),
    define(
        &["backlog_mean_packets", "backlog_max_packets"],
        Ports,
        Unit::Packets,
        "Packets at the bottleneck that are not being sent: average over the time of the measurement interval, exact; and the most \
         that were there for any length of time.",
        "Each level counts for the time within the interval for which it stood.",
        "Null where nothing is measured at a port.",
    ),
    define(
        &["backlog_mean_bytes"],
        Ports,
        Unit::Bytes,
        "The same average of their IP lengths.",
        "As for packets.",
        "Null where nothing is measured at a port.",
    ),
    define(
        &["drops", "marks"],
        Ports,
        Unit::Packets,
        "Packets that the disciplines of the measured ports dropped, and marked with Congestion Experienced.",
        "At the time of the drop or the mark.",
        "Null where nothing is measured at a port.",
    ),
    define(
        &["drops_*"],
        Ports,
        Unit::Packets,
        "Packets lost at the measured ports for one reason. `drops_wire` and `drops_unreachable` are not among `drops`: the packet was \
         lost on the link, or there was no route.",
        "At the time of the loss.",
        "Named only where it occurred: elsewhere it is 0.",
    ),
    define(
        &["jain"],
        Flows,
        Unit::Share,
        "Jain's index of fairness: 1 where all are treated alike, 1/n where one of n has everything. Of endless transfers that lasted \
         through the whole measurement interval: of their data bytes that arrived within it. Where there are fewer than two of them, \
         of streams of datagrams: of the data bytes of each that arrived within the interval over its max-min fair share of all that \
         arrived. The fair share of a stream that sends less than an equal part is what it sends; so where all streams send more than \
         that, the index is that of their rates.",
        "What a stream sent within the interval is what it asks for; what arrived within it is what it got.",
        "Null where there are fewer than two flows to compare, or nothing arrived.",
    ),
    define(
        &["jain_large"],
        Flows,
        Unit::Share,
        "Jain's index of the mean rates of the transfers of at least 100 kB that started within the measurement interval: delivered \
         bytes over the time from start to end.",
        "A transfer belongs to the interval in which it starts; its rate is over its whole life, and where it did not complete until \
         the run ended.",
        "Null where there are fewer than two.",
    ),
    define(
        &["flow_delay_p50_s", "flow_delay_p95_s"],
        Flows,
        Unit::Seconds,
        "Median and 95th percentile, over streams of datagrams, of the mean one-way delay of each.",
        "Of datagrams that were sent within the measurement interval and arrived before the run ended.",
        "Null where there are fewer than two such streams.",
    ),
    define(
        &["voice_delay_mean_s", "voice_delay_p99_s"],
        Flows,
        Unit::Seconds,
        "One-way delay of the streams that look like calls (for at least a second of the interval 10 to 120 datagrams a second, of at \
         most 272 data bytes on average): the mean over the streams of their mean delays, and the largest of their 99th percentiles.",
        "Of datagrams that were sent within the measurement interval and arrived before the run ended.",
        "Null where no stream looks like a call.",
    ),
    define(
        &["voice_loss"],
        Flows,
        Unit::Share,
        "Lost over sent datagrams of these streams.",
        "Of datagrams that were sent within the measurement interval; those that are still on their way when the run ends do not count.",
        "Null where no stream looks like a call.",
    ),
    define(
        &["flow_table_mean", "flow_table_max"],
        Ports,
        Unit::Flows,
        "Flows that the bottleneck's discipline keeps state for: mean of the samples, and the most that there were.",
        "The mean is that of the samples within the measurement interval; the most is that of the run until the last of them.",
        "Null where there is no sample, or the discipline keeps no state of flows.",
    ),
    define(
        &["flow_table_entry_bytes", "flow_table_bytes"],
        Ports,
        Unit::Bytes,
        "Memory that the state of one flow takes, and the most that the whole table took.",
        "As for the number of flows.",
        "Null where there is no sample, or the discipline keeps no state of flows.",
    ),
    define(
        &["run_length_mean", "run_length_weighted", "run_length_longest"],
        Ports,
        Unit::Packets,
        "Where bursts are measured: packets that the bottleneck sent one after the other to the same node beyond its neighbour. Mean \
         over the runs, mean over the packets of the run that each is in, and the longest.",
        "Of packets whose transmission began within the measurement interval; runs are cut at its ends.",
        "Null where nothing was sent.",
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
        "Where bursts are measured: index of dispersion for counts of the packets that came to the bottleneck, dropped or not, which \
         is variance over mean of their number in windows of this length; and peakedness for exponential holding times of 10 ms on \
         average. Both are 1 for Poisson arrivals.",
        "Of windows that lie within the measurement interval.",
        "Null where fewer than two windows fit.",
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
        "The same of the packets that the bottleneck sent, for each node beyond its neighbour by itself; mean over the packets.",
        "Of windows that lie within the measurement interval.",
        "Null where fewer than two windows fit.",
    ),
    define(
        &["bottleneck_packets"],
        Ports,
        Unit::Packets,
        "Packets of more than 64 bytes that the bottleneck sent in the whole run, warm-up included: what the cost of a run is counted in.",
        "The whole run.",
        "Null where nothing is measured at a port.",
    ),
    define(
        &["kernel.*"],
        Ports,
        Unit::Number,
        "Where a discipline of Giveway ran in the Linux kernel: what it counts under this name.",
        "By how much the count grew within the measurement interval.",
        "Named only where it ran there.",
    ),
    define(
        &["goodput_bps"],
        Source,
        Unit::BitPerSecond,
        "Goodput of one group of sources, whatever the routes of its flows.",
        "As for all flows.",
        "Null where the group has no flows.",
    ),
    define(
        &["fct_mean_s", "fct_p50_s"],
        Source,
        Unit::Seconds,
        "Flow completion time of the transfers of the group.",
        "As for all flows.",
        "Null where none completed.",
    ),
    define(
        &["fct_aged_mean_s"],
        Source,
        Unit::Seconds,
        "Flow completion time with those that did not complete at their age at the end of the run.",
        "As for all flows.",
        "Null where no transfer of the group started within the interval.",
    ),
    define(
        &["flows_completed", "flows_incomplete", "flows_aborted"],
        Source,
        Unit::Flows,
        "How the transfers of the group ended that started within the measurement interval.",
        "As for all flows.",
        "Null where no transfer of the group started within the interval.",
    ),
    define(
        &["completed_share"],
        Source,
        Unit::Share,
        "The completed among all transfers of the group that started within the measurement interval.",
        "As for all flows.",
        "Null where no transfer of the group started within the interval.",
    ),
    define(
        &["jain"],
        Source,
        Unit::Share,
        "Jain's index within the group. Of a group with transfers: of the data bytes per second that arrived of each while it was there \
         within the measurement interval. Of a group of streams of datagrams: of what arrived of each over its max-min fair share, as \
         for all flows.",
        "A transfer is there from its start to its end, a refused one never; the part of its time within the interval counts.",
        "Null where there are fewer than two flows to compare, or nothing arrived.",
    ),
    define(
        &["delay_p99_s"],
        Source,
        Unit::Seconds,
        "The largest of the 99th percentiles of one-way delay of the group's streams of datagrams.",
        "Of datagrams that were sent within the measurement interval and arrived before the run ended.",
        "Null where there is no such stream.",
    ),
    define(
        &["loss"],
        Source,
        Unit::Share,
        "Lost over sent datagrams of the group's streams.",
        "Of datagrams that were sent within the measurement interval; those that are still on their way when the run ends do not count.",
        "Null where none were sent.",
    ),
    define(
        &["retransmitted"],
        Source,
        Unit::Share,
        "Retransmissions over data packets sent, of the group's transfers that were there within the measurement interval.",
        "Over the whole life of each of them, also before and after the interval.",
        "Null where there are no such transfers, and on a test bed, where the kernel's TCP counts for itself.",
    ),
    define(
        &["drops"],
        Source,
        Unit::Packets,
        "Packets of the group that the disciplines of the measured ports dropped.",
        "At the time of the drop.",
        "Null where nothing is measured at a port.",
    ),
    define(
        &["hurst", "hurst_rs", "hurst_variance", "hurst_wavelet"],
        Source,
        Unit::Number,
        "Where bursts are measured: Hurst parameter of the packets that the group's ends emitted in each 10 ms, acknowledgements \
         included. The median of three estimates, and the three: rescaled range, variance-time, Haar wavelet.",
        "Of the windows of 10 ms that lie within the measurement interval.",
        "Null for intervals below 81.92 s, or when nothing was emitted.",
    ),
    define(
        &["offered", "throughput"],
        Switch,
        Unit::Share,
        "Cells that arrived, and that crossed the fabric, per slot and port.",
        "Of slots within the measurement interval.",
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
        "Wait: from the arrival of a packet to the end of its crossing, less what the crossing takes alone. Of all packets, of short \
         and of long ones. `ci` is half of the 95 % interval of the mean, from the means of 20 batches.",
        "A packet belongs to the interval in which its last cell crosses.",
        "Null where no such packet crossed; `ci` where fewer than two batches have any.",
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
        "As for waits.",
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
        "Time through the switch: from the arrival of a packet to when its last cell has left on the output link.",
        "A packet belongs to the interval in which it has left.",
        "As for waits.",
    ),
    define(
        &["cells_*_wait_mean_slots", "cells_*_through_mean_slots"],
        Switch,
        Unit::Slots,
        "The means of packets of one number of cells, where there are at most 16 sizes.",
        "As for all packets.",
        "Null where no such packet crossed.",
    ),
    define(
        &["short_packets", "long_packets"],
        Switch,
        Unit::Packets,
        "How many short and long packets crossed.",
        "A packet belongs to the interval in which its last cell crosses.",
        "Never null.",
    ),
    define(
        &["output_short", "output_long", "output_blocked", "output_held", "output_unmatched", "output_idle"],
        Switch,
        Unit::Share,
        "Where the slots of the outputs went: a cell of a short packet came; a cell of a long one; the output was connected with an \
         input that sent a short packet elsewhere; one of both ports of a new match was taken by a short packet; there was something \
         for it and it was not matched; there was nothing for it.",
        "Of slots within the measurement interval.",
        "Never null. They sum to 1.",
    ),
    define(
        &["queue_max_cells", "input_max_cells", "output_max_cells", "backlog_cells"],
        Switch,
        Unit::Cells,
        "The most cells in one queue of an input, at one input, and at one output; and the cells in the switch at the end.",
        "The most within the measurement interval, what was there when it began included.",
        "Never null.",
    ),
    define(
        &["short_max_packets", "output_short_max_packets"],
        Switch,
        Unit::Packets,
        "The most packets in one queue for short packets, after arrivals and before service; and the most short packets at one output.",
        "The most within the measurement interval, what was there when it began included.",
        "Never null.",
    ),
    define(
        &["backlog_slope"],
        Switch,
        Unit::Number,
        "By how many cells per slot and port the backlog grows.",
        "Over the batches of the measurement interval.",
        "Null where the run is too short to tell.",
    ),
    define(
        &["stable"],
        Switch,
        Unit::Number,
        "1 where the backlog does not grow, 0 where it does.",
        "Over the batches of the measurement interval.",
        "Null where the run is too short to tell.",
    ),
];

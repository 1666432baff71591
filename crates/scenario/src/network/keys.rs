//! The keys of a scenario on a network.

use giveway_qdisc::{Bytes, Dscp, Rate, Share, Span};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::varying_keys::{BurstyLoss, PoliceKeys, ReorderKeys, Varied, VaryingDelay, VaryingRate};
use crate::file::Part;

/// The tables of a scenario on a network.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Parts {
    /// The TCP parameters of all traffic. An entry of traffic can have others.
    #[schemars(with = "Part")]
    pub tcp: IgnoredAny,
    /// The QUIC parameters of all traffic. An entry of traffic can have others.
    #[schemars(with = "Part")]
    pub quic: IgnoredAny,
    /// The choice among equally short paths. Default: flow if there is a topology, otherwise first.
    pub routes: Option<RoutesKey>,
    /// The topologies. Each writes links between nodes with systematic names.
    #[schemars(with = "Part")]
    pub topology: IgnoredAny,
    /// The timing of machines, which are perfectly on time by default. "measured" is the timing of a virtual
    /// machine, and the name of a CSV file stands for another one; a table has each part. With a measured
    /// timing, sources and receivers wake up late, received segments are joined, and TCP sends up to 64 KiB
    /// back to back.
    #[schemars(with = "Part")]
    pub timing: IgnoredAny,
    /// The moments that are accidents: "sampled" draws them under each seed, "exact" repeats them. Default:
    /// "sampled".
    pub phase: Option<PhaseKey>,
    /// The media that links share, such as the channel of a Wi-Fi network. A link names its medium.
    #[schemars(with = "Part")]
    pub medium: IgnoredAny,
    /// Senders of which every pair shares its own link. The table contains the keys of these links.
    #[schemars(with = "Part")]
    pub contest: IgnoredAny,
    /// The links. They also define the nodes, by their names.
    #[schemars(with = "Part")]
    pub link: IgnoredAny,
    /// The traffic sources. A switch uses one source for all inputs.
    #[schemars(with = "Part")]
    pub traffic: IgnoredAny,
    /// The measured ports, the sampling interval and optional measurements.
    #[schemars(with = "Part")]
    pub record: IgnoredAny,
    /// The times and the seeds of a quick check (--short).
    #[schemars(with = "Part")]
    pub short: IgnoredAny,
}

/// The choice among equally short paths.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RoutesKey {
    /// The path whose first link is written first.
    First,
    /// A path by a hash of the flow, so that all packets of a flow take the same path.
    Flow,
    /// A path by a hash of each packet, so that packets of a flow can overtake each other.
    Packet,
}

/// The moments that are accidents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PhaseKey {
    /// Under each seed, traffic starts up to a round trip later than written, and hosts take up to a
    /// microsecond for each packet that they receive.
    #[default]
    Sampled,
    /// Traffic starts as written, and hosts take no time.
    Exact,
}

/// The keys of all scenarios on a network that are not tables.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PlainKeys {
    /// The choice among equally short paths.
    pub routes: Option<RoutesKey>,
    /// The moments that are accidents.
    pub phase: Option<PhaseKey>,
}

/// The keys that all kinds of topology share.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TopologyKeys {
    /// The kind of topology.
    #[schemars(with = "Option<String>")]
    pub kind: IgnoredAny,
    /// The text before all names of its nodes, so that a scenario can have several topologies. Default: none.
    pub prefix: Option<String>,
    /// The discipline of the ports of switches. "compare" stands for each of the compared disciplines in
    /// turn. Default: "fifo limit 1000p".
    #[schemars(with = "Part")]
    pub qdisc: IgnoredAny,
    /// The discipline of the ports of hosts; "compare" as with qdisc. Default: "fifo limit 1000p".
    #[schemars(with = "Part")]
    pub host_qdisc: IgnoredAny,
    /// The largest packet, as its IP length. Default: 1500b.
    pub mtu: Option<Bytes>,
}

/// A name, or a list of names.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

/// The keys of a link that name its nodes.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct EndKeys {
    /// The first node of the link. "s[1-10]" is a range of ten nodes with a link each; "[1-5]" are the nodes
    /// 1 to 5.
    pub from: Option<String>,
    /// The second node of the link. A range pairs one by one with a range of the same length in from.
    pub to: Option<String>,
    /// The keys that differ in the reverse direction, or false for a link without one.
    #[schemars(with = "Part")]
    pub back: IgnoredAny,
}

/// The keys of one direction of a link.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct DirectionKeys {
    /// The rate of the link, or a table that says how it varies.
    pub rate: Option<Varied<Rate, VaryingRate>>,
    /// The propagation delay, or a table that says how it varies.
    pub delay: Option<Varied<Span, VaryingDelay>>,
    /// The discipline of the link. "compare" stands for each of the compared disciplines in turn. Default:
    /// "fifo limit 1000p".
    #[schemars(with = "Part")]
    pub qdisc: IgnoredAny,
    /// The probability that a packet is lost on the wire, independently of others, or a table with a model of
    /// loss. Default: 0.
    pub loss: Option<Varied<Share, BurstyLoss>>,
    /// The largest extra delay of a packet. The delays are uniform between 0 and this value, and packets stay
    /// in order. Default: 0 s.
    pub jitter: Option<Span>,
    /// The cost of the link in routing. Packets take the path with the lowest total cost. Default: 1.
    pub cost: Option<u32>,
    /// The largest packet, as its IP length. Default: 1500b.
    pub mtu: Option<Bytes>,
    /// The times at which the link is down. Its queue is kept, and new packets take another path. Default:
    /// none.
    pub outages: Option<Vec<Outage>>,
    /// If true, packets overtake each other by their jitter, or when the delay falls. Default: false.
    pub unordered: Option<bool>,
    /// The packets that arrive late, so that others overtake them. Default: none.
    pub reorder: Option<ReorderKeys>,
    /// The probability that a packet arrives twice. Default: 0.
    pub duplicate: Option<Share>,
    /// The probability that a packet arrives damaged. The far end of the link discards it. Default: 0.
    pub corrupt: Option<Share>,
    /// A policer in front of the queue: a token bucket that drops what exceeds it. Default: none.
    pub police: Option<PoliceKeys>,
    /// Of so many pure TCP acknowledgements of a connection in a row, the link sends at least one. It leaves
    /// the others out if a later one waits in the queue. Default: all are sent.
    pub thin_acks: Option<u32>,
    /// The lateness of the thread or timer that takes packets from the queue: the longest of uniform delays,
    /// such as "50us", the name of a machine, "virtual-machine", or a CSV file. Default: none.
    pub dispatch_jitter: Option<String>,
    /// The name of the medium that it shares with other links. Default: none.
    pub medium: Option<String>,
    /// Disciplines that stand at this link in place of compared ones, as in { "cake" = "cake bandwidth
    /// 2mbit" }: a parameter that follows from the rate, or another discipline in one direction. Default:
    /// none.
    #[schemars(with = "Option<std::collections::BTreeMap<String, String>>")]
    pub in_place_of: IgnoredAny,
}

/// The timing of machines, part by part. A lateness is the longest of uniform delays, such as "50us", the
/// name of a machine, "virtual-machine", or a file that `giveway testbed --measure-timing` has written.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TimingKeys {
    /// The lateness of sources of traffic. Default: none.
    pub senders: Option<String>,
    /// The lateness of hosts that receive packets. Default: none.
    pub receivers: Option<String>,
    /// The dispatch_jitter of the links that compare disciplines. Default: none.
    pub links: Option<String>,
    /// The time by which the interrupt of a received packet waits for further packets. Default: 0 s.
    pub coalesce: Option<Span>,
    /// Generic receive offload. If true, the segments of a connection that are handled together are
    /// acknowledged once. Default: false.
    pub gro: Option<bool>,
}

/// The keys of a medium that links share. One link at a time sends a burst of packets, which all arrive at
/// its end. The defaults come from 802.11n at 5 GHz.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct MediumKeys {
    /// The name of the medium, which links write.
    pub name: Option<String>,
    /// The time for which the medium must be free before a backoff counts. Default: 43 us.
    pub access: Option<Span>,
    /// The largest backoff of a node; backoffs are uniform between 0 and this value. Default: 135 us.
    pub backoff: Option<Span>,
    /// The time that a burst takes in addition to its packets, for preamble and acknowledgement. Default: 84
    /// us.
    pub overhead: Option<Span>,
    /// The maximum number of bytes in a burst. Default: 65535b.
    pub burst_bytes: Option<Bytes>,
    /// The longest transmission time of a burst. Default: 4 ms.
    pub burst_time: Option<Span>,
    /// The maximum number of packets in a burst. Default: 64.
    pub burst_packets: Option<u32>,
    /// The choice among the links of a node. Default: "turns".
    pub airtime: Option<AirtimeKey>,
}

/// The choice among the links of a node that share a medium.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AirtimeKey {
    /// The links take turns, a burst each, so that a slow link has most of the time.
    Turns,
    /// Each link gets the same time.
    Fair,
}

/// A time for which a link is down.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outage {
    /// The start of the outage.
    pub at: Span,
    /// The length of the outage.
    pub lasts: Span,
}

/// The keys that all kinds of traffic share.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TrafficKeys {
    /// The kind of source; giveway list traffic shows all.
    #[schemars(with = "Option<String>")]
    pub kind: IgnoredAny,
    /// The name in tables, which also selects the random streams. Entries with the same name are measured
    /// together. Default: the kind.
    pub name: Option<String>,
    /// The node that sends, or several: "s[1-10]", "[1-5]".
    pub from: Option<String>,
    /// The node that receives, or several. Ranges of the same length pair one by one; a single node pairs
    /// with a whole range.
    pub to: Option<String>,
    /// The nodes among which the source draws its pairs, such as "h[1-16]". It takes the place of from and to
    /// for permutation and all_to_all.
    pub hosts: Option<String>,
    /// If true, every sender sends to every receiver. Otherwise senders and receivers are paired. Default:
    /// false.
    pub every_pair: bool,
    /// The start of the traffic. Default: 0 s.
    pub start: Option<Span>,
    /// The time after which no new transfer or packet starts. Default: the end of the run.
    pub stop: Option<Span>,
    /// The class of the packets, for disciplines such as prio; 0 is the most urgent. Default: 0.
    pub class: Option<u16>,
    /// The DSCP of the packets, for disciplines such as cake: a name such as "EF" or "CS1", or a number.
    /// Default: 0.
    pub dscp: Option<Dscp>,
    /// The reserved rate of each flow, for disciplines with reservations. Default: none.
    pub reserved: Option<Rate>,
    /// The TCP keys that differ from \[tcp\].
    #[schemars(with = "Part")]
    pub tcp: IgnoredAny,
    /// The QUIC keys that differ from \[quic\].
    #[schemars(with = "Part")]
    pub quic: IgnoredAny,
}

/// The keys of the measurements.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RecordKeys {
    /// The measured port or ports, such as "home->isp". Default: those with qdisc = "compare"; all ports if
    /// there are none.
    #[schemars(with = "Names")]
    pub port: IgnoredAny,
    /// The sampling interval of queues and senders. Default: a thousandth of the duration, at least 1 ms and
    /// at most 1 s.
    pub sample: Option<Span>,
    /// The upper ends of the size classes of transfers, for which flow completion times are shown. Default:
    /// 30 kB, 300 kB and 3 MB.
    pub size_classes: Option<Vec<Bytes>>,
    /// The largest length of a small packet. Default: 256b.
    pub small_packet: Option<Bytes>,
    /// If true, the windows and round-trip times of senders are sampled, too. Default: false.
    pub senders: bool,
    /// If true, the backlogged periods of each flow at the measured ports are counted. Default: false.
    pub episodes: bool,
    /// If true, burstiness is measured: of each source, at the measured ports, and towards each next hop.
    /// Default: false.
    pub bursts: bool,
}

//! The keys of a scenario on a network.

use giveway_qdisc::{Bytes, Rate, Share, Span};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::file::Part;

/// The parts of the file, beside the keys at its top.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Parts {
    /// How TCP behaves throughout.
    #[schemars(with = "Part")]
    pub tcp: IgnoredAny,
    /// Links. Nodes come into being by being named.
    #[schemars(with = "Part")]
    pub link: IgnoredAny,
    /// Who sends what, and when; on a switch one table, for all inputs.
    #[schemars(with = "Part")]
    pub traffic: IgnoredAny,
    /// What is measured.
    #[schemars(with = "Part")]
    pub record: IgnoredAny,
    /// How a quick check of this scenario runs.
    #[schemars(with = "Part")]
    pub short: IgnoredAny,
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

/// Between which nodes a link lies.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Ends {
    /// The node that it begins at; "s[1-10]" are ten nodes with a link each, "[1-5]" are the nodes 1 to 5.
    pub from: Option<String>,
    /// The node that it leads to; a range here pairs with a range there.
    pub to: Option<String>,
    /// The other direction: what differs there, or false where there is none.
    #[schemars(with = "Part")]
    pub back: IgnoredAny,
}

/// One direction of a link.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Way {
    /// How fast it sends.
    pub rate: Option<Rate>,
    /// How long a packet is on the wire.
    pub delay: Option<Span>,
    /// The discipline in front of it, or "compare": the one whose turn it is. Default: "fifo limit 1000p".
    #[schemars(with = "Part")]
    pub qdisc: IgnoredAny,
    /// Share of the packets that are lost on the wire, each independently. Default: 0.
    pub loss: Option<Share>,
    /// Extra delay of each packet, drawn evenly between zero and this; order is kept. Default: 0 s.
    pub jitter: Option<Span>,
    /// What it costs when routes are chosen; the path with the smallest sum is taken. Default: 1.
    pub cost: Option<u32>,
    /// The largest packet, IP length. Default: 1500b.
    pub mtu: Option<Bytes>,
    /// When it is down: what waits for it stays, and packets that come later go around it. Default: never.
    pub outages: Option<Vec<Outage>>,
}

/// A time for which a link is down.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outage {
    /// When it goes down.
    pub at: Span,
    /// For how long.
    pub lasts: Span,
}

/// What every kind of traffic has; its own parameters stand beside.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Common {
    /// Which source, see giveway list traffic.
    #[schemars(with = "Option<String>")]
    pub kind: IgnoredAny,
    /// What it is called in tables; its random numbers depend on it. Entries that share a name are measured together.
    /// Default: the kind.
    pub name: Option<String>,
    /// The node that sends, or several: "s[1-10]", "[1-5]".
    pub from: Option<String>,
    /// The node that receives; a range here pairs with a range there, one node serves a whole range.
    pub to: Option<String>,
    /// Whether every sender has every receiver, instead of pairs of the two ranges in their order. Default: false.
    pub every_pair: bool,
    /// When it begins. Default: 0 s.
    pub start: Option<Span>,
    /// When it begins nothing new any more. Default: the end of the run.
    pub stop: Option<Span>,
    /// The class of its packets, 0 the most urgent; prio and its kin sort by it. Default: 0.
    pub class: Option<u16>,
    /// The rate that is reserved for each of its flows, for disciplines that know reservations. Default: none.
    pub reserved: Option<Rate>,
    /// How its TCP behaves, where that differs from the file's \[tcp\].
    #[schemars(with = "Part")]
    pub tcp: IgnoredAny,
}

/// What is measured.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Record {
    /// The measured port or ports, such as "home->isp". Default: those with qdisc = "compare".
    #[schemars(with = "Names")]
    pub port: IgnoredAny,
    /// How often queues and senders are sampled. Default: a thousandth of the duration, within 1 ms and 1 s.
    pub sample: Option<Span>,
    /// Upper ends of the classes of transfer sizes that completion times are told for.
    pub size_classes: Option<Vec<Bytes>>,
    /// Packets up to this length count as small. Default: 256b.
    pub small_packet: Option<Bytes>,
    /// Whether windows and round trips of senders are sampled too. Default: false.
    pub senders: bool,
    /// Whether is counted how often each flow became backlogged at the measured ports. Default: false.
    pub episodes: bool,
    /// Whether is measured how bursty the traffic of each source is, that at the measured ports, and what goes on from
    /// them to each link beyond. Default: false.
    pub bursts: bool,
}

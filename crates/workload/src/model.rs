//! Connections and trains, as they are simulated. Times are in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::datagrams::Datagrams;

/// What the applications of a capture did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// From the first packet to the last, ns.
    pub span: u64,
    /// TCP connections, by their start.
    pub connections: Vec<Connection>,
    /// Everything else, by its start.
    pub trains: Vec<Train>,
}

/// Which way something crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the local side outwards.
    Up,
    /// Towards the local side.
    Down,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Who connected.
    Client,
    /// Who accepted.
    Server,
}

/// A TCP connection: what its two applications did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// When the client's first packet passed the link, ns after the first packet of the capture. For a connection that
    /// was open already: when its first packet was seen.
    pub start: u64,
    /// Which way the client's data go.
    pub way: Way,
    /// Round-trip time between the hosts without queues, ns; none where it was never measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<u64>,
    /// What it is counted under: a service by its port.
    pub group: String,
    /// Whether the capture saw it begin.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub begun: bool,
    /// Whether the capture saw it end.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub ended: bool,
    /// What the applications wrote, in the order of their first bytes.
    pub writes: Vec<Write>,
    /// The writes parted into requests with their responses, in order; their numbers of writes add up.
    pub exchanges: Vec<Exchange>,
}

/// What an application writes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Who writes.
    pub side: Side,
    /// How much; at least one byte.
    pub bytes: u64,
    /// What it waits for.
    pub cue: Cue,
    /// How long it thinks then, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause: u64,
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cue {
    /// So many bytes of the other side, since the connection began, have arrived. With 0: the connection stands.
    Peer(u64),
    /// The writer knows that all that it wrote before has arrived.
    Own,
}

/// A request with its response, or one of the two alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// How many writes it has.
    pub writes: u32,
    /// How long it took in the capture, ns: from its first byte, or from the beginning of the connection for the first,
    /// to its last byte.
    pub took: u64,
    /// Which page it is a part of, for web traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// Whether the capture shows all of it: not where it began before or was cut off.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub whole: bool,
}

/// Packets of one flow that is not TCP, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// When its first packet was seen, ns after the first packet of the capture.
    pub start: u64,
    /// Which way it goes.
    pub way: Way,
    /// What it is counted under.
    pub group: String,
    /// For each packet the time since the one before it, ns, and its IP length, bytes.
    pub packets: Datagrams,
}

impl Connection {
    /// Bytes that this side wrote.
    pub fn bytes(&self, side: Side) -> u64 {
        Write::sum(&self.writes, side)
    }

    /// Bytes that crossed the link this way, without headers.
    pub fn bytes_on(&self, way: Way) -> u64 {
        self.bytes(if way == self.way { Side::Client } else { Side::Server })
    }

    /// Its exchanges, each with its writes.
    pub fn parts(&self) -> impl Iterator<Item = (&Exchange, &[Write])> {
        let mut rest = &self.writes[..];
        self.exchanges.iter().map(move |exchange| {
            let (mine, others) = rest.split_at(exchange.writes as usize);
            rest = others;
            (exchange, mine)
        })
    }
}

impl Write {
    /// Bytes that this side wrote among these.
    pub fn sum(writes: &[Write], side: Side) -> u64 {
        // A file may say anything.
        let bytes = writes.iter().filter(|write| write.side == side).map(|write| write.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

impl Workload {
    /// The round trip of connections of which nothing is known, ns.
    pub const UNKNOWN_RTT: u64 = 30_000_000;
    /// The longest time in a workload, ns: 200 days. The clock of a run counts 213.
    pub const LONGEST: u64 = 200 * 86_400_000_000_000;
    /// The most bytes that one side of a connection writes: 1 PiB.
    pub const MOST_BYTES: u64 = 1 << 50;

    /// The median round trip of its connections, ns; none where none was measured.
    pub fn rtt(&self) -> Option<u64> {
        let mut rtts: Vec<u64> = self.connections.iter().filter_map(|connection| connection.rtt).collect();
        rtts.sort_unstable();
        rtts.get(rtts.len() / 2).copied()
    }
}

impl Train {
    /// Bytes of its packets.
    pub fn bytes(&self) -> u64 {
        self.packets.iter().map(|(_, bytes)| u64::from(bytes)).sum()
    }

    /// From its first packet to its last, ns.
    pub fn span(&self) -> u64 {
        self.packets.iter().skip(1).fold(0, |sum, (gap, _)| sum.saturating_add(gap))
    }

    /// Whether it looks like a call: at least a second of small packets (300 bytes on average at most) at an even pace
    /// between 10 and 120 a second. Voice codecs send every 10 to 60 ms.
    pub fn is_voice_like(&self) -> bool {
        let (count, span) = (self.packets.len() as u64, self.span());
        if count < 50 || span < 1_000_000_000 || self.bytes() > 300 * count {
            return false;
        }
        let per_second = (count - 1) as f64 / (span as f64 / 1e9);
        let mean = span as f64 / (count - 1) as f64;
        let gaps = || self.packets.iter().skip(1).map(|(gap, _)| gap as f64);
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / (count - 1) as f64;
        (10.0..=120.0).contains(&per_second) && variance.sqrt() < 0.5 * mean
    }
}

impl Side {
    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl Way {
    /// The other one.
    pub fn other(self) -> Way {
        match self {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        }
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Up => "up",
            Way::Down => "down",
        }
    }
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_true(value: &bool) -> bool {
    *value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

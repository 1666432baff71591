//! The model: connections and packet trains. Times are in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::datagrams::Datagrams;

/// The workload of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Time from the first packet to the last, ns.
    pub span: u64,
    /// TCP and QUIC connections, sorted by their start.
    pub connections: Vec<Connection>,
    /// Packet trains, sorted by their start.
    pub trains: Vec<Train>,
}

/// A direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Upstream: from the local side to the far side.
    Up,
    /// Downstream: from the far side to the local side.
    Down,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The end that connected.
    Client,
    /// The end that accepted.
    Server,
}

/// A TCP or QUIC connection: the behaviour of its two applications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// True for QUIC, whose data units are a guess. In a file the name of the line tells.
    #[serde(skip)]
    pub quic: bool,
    /// Time at which the client's first packet passed the link, ns after the first packet of the capture. For
    /// a connection that was open already: when its first packet was seen.
    pub start: u64,
    /// The progress of another connection after which it starts, whenever that is, instead of at `start`: a
    /// page opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// Direction of the data of the client.
    #[serde(rename = "way")]
    pub direction: Direction,
    /// Round-trip time between the hosts without queueing delay, ns; `None` if it was never measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<u64>,
    /// Group of the connection in reports: the service of the port.
    pub group: String,
    /// True if the capture has its beginning.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub begun: bool,
    /// True if the capture has its end.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub ended: bool,
    /// Application data units of both sides, in the order of their first bytes.
    #[serde(rename = "writes")]
    pub adus: Vec<Adu>,
    /// The epochs, in order. Their numbers of ADUs add up to the length of `adus`.
    #[serde(rename = "exchanges")]
    pub epochs: Vec<Epoch>,
}

/// An application data unit (ADU): the data that an application writes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adu {
    /// The side that writes.
    pub side: Side,
    /// Number of bytes, at least one.
    pub bytes: u64,
    /// The event that the application waits for.
    #[serde(rename = "cue")]
    pub trigger: Trigger,
    /// Think time: from that event to the write, ns. The likeliest value if `between` is given.
    #[serde(rename = "pause", default, skip_serializing_if = "is_zero")]
    pub think_time: u64,
    /// The least and the greatest think time that the capture allows, ns; `None` if it shows the think time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(u64, u64)>,
    /// The progress of another connection for which the write waits, too: a page uses a connection that was
    /// open already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
}

/// The progress of another connection, for which the client of a connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The other connection: its place among the connections of the workload, from 0.
    pub connection: usize,
    /// Number of bytes of its server that have arrived at its client. With 0: it has started.
    pub bytes: u64,
    /// Think time: from that event to the reaction of the client, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause: u64,
}

/// The event that an application waits for before it writes an [`Adu`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// This many bytes of the other side have arrived since the connection started. With 0: the connection is
    /// established.
    Peer(u64),
    /// All data that the side wrote before is acknowledged.
    Own,
}

/// An epoch: a request with its response, or one of the two alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Number of ADUs.
    #[serde(rename = "writes")]
    pub adus: u32,
    /// Duration in the capture, ns: from its first byte, or from the beginning of the connection for the
    /// first epoch, to its last byte.
    pub took: u64,
    /// Number of the page that it belongs to, for web traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// True if the capture has all of it: false if it started before the capture or was cut off by its end.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub whole: bool,
}

/// A packet train: the packets of one flow that is not TCP, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Time of its first packet, ns after the first packet of the capture.
    pub start: u64,
    /// Direction of its packets.
    #[serde(rename = "way")]
    pub direction: Direction,
    /// Group of the train in reports.
    pub group: String,
    /// Time since the packet before, ns, and IP length, bytes, of each packet.
    pub packets: Datagrams,
}

impl Connection {
    /// Number of bytes that a side writes.
    pub fn bytes(&self, side: Side) -> u64 {
        Adu::sum(&self.adus, side)
    }

    /// Number of bytes that cross the link in a direction, without headers.
    pub fn bytes_on(&self, direction: Direction) -> u64 {
        self.bytes(if direction == self.direction { Side::Client } else { Side::Server })
    }

    /// The connections for whose progress this one waits.
    pub(crate) fn waits_for(&self) -> impl Iterator<Item = usize> + '_ {
        let writes = self.adus.iter().filter_map(|adu| adu.after);
        self.after.into_iter().chain(writes).map(|after| after.connection)
    }

    /// The progress of other connections for which this one waits.
    pub(crate) fn afters_mut(&mut self) -> impl Iterator<Item = &mut After> {
        self.after.iter_mut().chain(self.adus.iter_mut().filter_map(|adu| adu.after.as_mut()))
    }

    /// The epochs, each with its ADUs.
    pub fn epochs_with_adus(&self) -> impl Iterator<Item = (&Epoch, &[Adu])> {
        let mut rest = &self.adus[..];
        self.epochs.iter().map(move |epoch| {
            let (mine, others) = rest.split_at(epoch.adus as usize);
            rest = others;
            (epoch, mine)
        })
    }
}

impl Adu {
    /// An ADU that waits for nothing but its trigger, for a time that is known.
    pub fn new(side: Side, bytes: u64, trigger: Trigger, think_time: u64) -> Adu {
        Adu { side, bytes, trigger, think_time, between: None, after: None }
    }

    /// Number of bytes of a side in a list of ADUs.
    pub fn sum(adus: &[Adu], side: Side) -> u64 {
        // Saturating, because the numbers of a file are not checked yet.
        let bytes = adus.iter().filter(|adu| adu.side == side).map(|adu| adu.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

impl Workload {
    /// Default round-trip time of connections if none was measured, ns.
    pub const UNKNOWN_RTT: u64 = 30_000_000;
    /// The longest time in a workload, ns: 200 days. The clock of a run ends at 213 days.
    pub const LONGEST: u64 = 200 * 86_400_000_000_000;
    /// Largest number of bytes that one side of a connection writes: 1 PiB.
    pub const MAX_BYTES: u64 = 1 << 50;

    /// The median round-trip time of the connections, ns; `None` if none was measured.
    pub fn rtt(&self) -> Option<u64> {
        let mut rtts: Vec<u64> = self.connections.iter().filter_map(|connection| connection.rtt).collect();
        rtts.sort_unstable();
        rtts.get(rtts.len() / 2).copied()
    }
}

impl Train {
    /// Total IP length of the packets, bytes.
    pub fn bytes(&self) -> u64 {
        self.packets.iter().map(|(_, bytes)| u64::from(bytes)).sum()
    }

    /// Time from the first packet to the last, ns.
    pub fn span(&self) -> u64 {
        self.packets.iter().skip(1).fold(0, |sum, (gap, _)| sum.saturating_add(gap))
    }
}

impl Side {
    /// The other side.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl Direction {
    /// The other direction.
    pub fn other(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }

    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_true(value: &bool) -> bool {
    *value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

//! A snapshot of one direction of a bridge. JSON, metrics, terminal view and summary are functions of it.

use giveway_qdisc::{Rate, Share, Span};
use giveway_wire::fragment::Size;

use crate::status::Status;

/// A snapshot of one direction: its names, its configuration and its [`Status`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Incoming interface.
    pub from: String,
    /// Outgoing interface; the queue is in front of it.
    pub to: String,
    /// Direction of the bridge.
    pub direction: Direction,
    /// Spec of the discipline with its parameters.
    pub spec: String,
    /// Name of the discipline.
    pub kind: String,
    /// Handle that distinguishes the discipline from earlier ones of the port, as `tc` writes it: "1:".
    pub handle: String,
    /// Backend that runs the discipline.
    pub backend: Backend,
    /// Configuration of what stands before and behind the discipline.
    pub settings: Settings,
    /// Counters and state.
    pub status: Status,
    /// Reservations, if the direction keeps any.
    pub reservations: Option<Reservations>,
}

/// A direction of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From `--in` to `--out`.
    #[default]
    Forward,
    /// From `--out` to `--in`.
    Reverse,
}

impl Direction {
    /// Both directions, in the order of output.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// Name in all outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

/// Backend that runs the discipline. It determines which counters exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// This program, which sees every frame: all counters exist.
    #[default]
    Program,
    /// A qdisc of the kernel. It counts packets and bytes that arrived, were sent and were dropped, drops by
    /// reason, the backlog and its gauges; all other counters are zero.
    Kernel,
}

/// Configuration of link emulation and fragmentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Delay behind the link.
    pub delay: Span,
    /// Jitter behind the link.
    pub jitter: Span,
    /// Share of frames that are lost behind the link.
    pub loss: Share,
    /// Size into which frames are cut; `None` to cut none.
    pub fragment: Option<Size>,
    /// True to join incoming fragments.
    pub reassemble: bool,
}

/// State of the reservations of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// Rate that may be reserved.
    pub capacity: Rate,
    /// Rate that is reserved.
    pub reserved: Rate,
    /// Number of reservations, including future ones.
    pub flows: u64,
    /// The share of clients without a key.
    pub open: OpenShare,
    /// Control packets and reservations, by outcome.
    pub messages: Vec<(&'static str, u64)>,
    /// Malformed control packets, by reason.
    pub malformed: Vec<(&'static str, u64)>,
}

/// The share of the reservations that all clients without a key have together. Their link addresses can be
/// forged, so one machine may hold all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenShare {
    /// Rate that they may reserve.
    pub capacity: Rate,
    /// Rate that they have reserved.
    pub reserved: Rate,
    /// Number of their reservations, including future ones.
    pub flows: u64,
    /// Number of their link addresses.
    pub owners: u64,
}

impl Reservations {
    /// Counters of all control packets: by outcome, then by reason.
    pub fn all_messages(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.messages.iter().chain(&self.malformed).copied()
    }
}

//! A snapshot of one direction of a live bridge.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use giveway_qdisc::{Backlog, DropReason, FiveTuple, FlowKey, Rate};

use crate::delays::Quantiles;

/// A snapshot of one direction. Counters begin at the start and never wrap: 2^64 bytes at 100 Gbit/s are 46 years.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Incoming interface.
    pub from: String,
    /// Outgoing interface; the queue is in front of it.
    pub to: String,
    /// Direction of the bridge.
    pub direction: Direction,
    /// Spec of the discipline with its parameters.
    pub spelling: String,
    /// Name of the discipline.
    pub kind: String,
    /// Handle that distinguishes the discipline from earlier ones of the port, as `tc` writes it: "1:".
    pub handle: String,
    /// Rate of the shaper.
    pub rate: Rate,
    /// Time since the start.
    pub uptime: Duration,
    /// True if the direction has failed and bypasses the discipline.
    pub plain_forwarding: bool,

    /// Packets that were offered to the port.
    pub arrived: Backlog,
    /// Packets that were sent.
    pub sent: Backlog,
    /// Packets that were dropped, by reason.
    pub dropped: Drops,
    /// Packets that were marked (ECN); they were also sent.
    pub marked: Backlog,
    /// Current backlog.
    pub held: Backlog,
    /// Packets that the link emulation lost (`--loss`).
    pub line_lost: Backlog,
    /// Frames that the kernel dropped because the receive ring was full; they do not count as arrived.
    pub ring_drops: u64,
    /// Number of stalls: the thread was so late that transmission time was lost.
    pub stalls: u64,
    /// Fragmentation and reassembly, if configured.
    pub fragments: Option<Fragments>,

    /// Sojourn times since the start.
    pub sojourn: Quantiles,
    /// Delays between due and actual transmission since the start.
    pub lateness: Quantiles,
    /// The last whole second.
    pub recent: Recent,

    /// Gauges of the discipline, by name.
    pub gauges: Vec<(String, f64)>,
    /// Reservations, if the direction keeps any.
    pub reservations: Option<Reservations>,
}

/// State of the reservations of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// Rate that may be reserved.
    pub capacity: Rate,
    /// Rate that is reserved.
    pub reserved: Rate,
    /// Number of reservations, those of the future included.
    pub flows: u64,
    /// Control packets by outcome.
    pub messages: Vec<(&'static str, u64)>,
}

/// Counters of fragmentation and reassembly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Frames that were cut.
    pub cut: u64,
    /// Fragments that they were cut into.
    pub pieces: u64,
    /// Fragments that were not offered to the discipline because it had dropped another one of the frame.
    pub spared: u64,
    /// Frames that are too long but passed whole.
    pub whole: u64,
    /// Incoming fragments that became part of frames.
    pub joined: u64,
    /// Frames that were joined.
    pub frames: u64,
    /// Incoming fragments that were lost, by reason.
    pub lost: Vec<(&'static str, u64)>,
}

/// Counters of the last whole second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recent {
    /// Offered to the port.
    pub arrived: Backlog,
    /// Sent.
    pub sent: Backlog,
    /// Sojourn times.
    pub sojourn: Quantiles,
    /// Delays between due and actual transmission.
    pub lateness: Quantiles,
    /// Largest flows, the largest first.
    pub flows: Vec<Flow>,
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

    /// Name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

/// Counters of drops, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    by_reason: [Backlog; DropReason::ALL.len()],
}

impl Drops {
    /// Counts a packet.
    #[inline]
    pub fn add(&mut self, why: DropReason, bytes: u32) {
        self.by_reason[why as usize].add(bytes);
    }
    /// Sets the counter of a reason.
    pub fn set(&mut self, why: DropReason, all: Backlog) {
        self.by_reason[why as usize] = all;
    }
    /// The counter of a reason.
    pub fn of(&self, why: DropReason) -> Backlog {
        self.by_reason[why as usize]
    }
    /// All reasons, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, Backlog)> + '_ {
        DropReason::ALL.iter().map(|why| (*why, self.of(*why)))
    }
    /// The sum over all reasons.
    pub fn total(&self) -> Backlog {
        self.by_reason.iter().fold(Backlog::ZERO, |sum, some| sum.plus(*some))
    }
}

/// A flow and what it sent in the last second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Key of the flow.
    pub key: FlowKey,
    /// Text that identifies the flow: [`tuple_text`] if it is IP.
    pub text: String,
    /// Packets and bytes sent, without the uncertainty of [`crate::TopFlows`].
    pub sent: Backlog,
}

/// Formats a flow: `tcp 10.0.0.1:443 > 10.0.0.2:50000`, `udp [fe80::1]:53 > [fe80::2]:1024`, `proto 47 10.0.0.1 > 10.0.0.2`.
pub fn tuple_text(tuple: &FiveTuple) -> String {
    const PORTS: [(u8, &str); 5] = [(6, "tcp"), (17, "udp"), (33, "dccp"), (132, "sctp"), (136, "udplite")];
    let mut text = String::new();
    let named = PORTS.iter().find(|(number, _)| *number == tuple.protocol);
    match (named, tuple.protocol) {
        (Some((_, name)), _) => text.push_str(name),
        (None, 1) => text.push_str("icmp"),
        (None, 58) => text.push_str("icmpv6"),
        (None, number) => write!(text, "proto {number}").expect("a text takes everything"),
    }
    for (before, address, port) in [(" ", tuple.from, tuple.from_port), (" > ", tuple.to, tuple.to_port)] {
        text.push_str(before);
        let address = Ipv6Addr::from(address);
        let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
        let written = match (address, named.is_some()) {
            (address, false) => write!(text, "{address}"),
            (IpAddr::V4(address), true) => write!(text, "{address}:{port}"),
            (IpAddr::V6(address), true) => write!(text, "[{address}]:{port}"),
        };
        written.expect("a text takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_for_people() {
        let four = |last| {
            let mut address = [0; 16];
            address[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, last]);
            address
        };
        let six = |last| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last).octets();
        let text = |from, to, protocol| {
            tuple_text(&FiveTuple { from, to, from_port: 443, to_port: 50_000, protocol })
        };
        assert_eq!(text(four(1), four(2), 6), "tcp 10.0.0.1:443 > 10.0.0.2:50000");
        assert_eq!(text(six(1), six(2), 17), "udp [fe80::1]:443 > [fe80::2]:50000");
        assert_eq!(text(four(1), four(2), 47), "proto 47 10.0.0.1 > 10.0.0.2");
        assert_eq!(text(six(1), six(2), 58), "icmpv6 fe80::1 > fe80::2");
    }

    #[test]
    fn drops_have_their_reasons() {
        let mut drops = Drops::default();
        drops.add(DropReason::Overlimit, 1500);
        drops.add(DropReason::Congested, 100);
        drops.add(DropReason::Congested, 60);
        assert_eq!(drops.of(DropReason::Congested), Backlog { packets: 2, bytes: 160 });
        assert_eq!(drops.total(), Backlog { packets: 3, bytes: 1660 });
        let some: Vec<_> = drops.iter().filter(|(_, count)| count.packets > 0).map(|(why, _)| why).collect();
        assert_eq!(some, [DropReason::Overlimit, DropReason::Congested]);
    }
}

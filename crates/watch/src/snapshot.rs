//! One direction of a live port at one moment.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use qdisc::{Backlog, DropReason, FiveTuple, FlowKey, Rate};

use crate::delays::Quantiles;

/// What there is to be seen of one direction. Counts are since the start and never wrap: 2^64 bytes at 100 Gbit/s are 46 years.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The interface at which packets come.
    pub from: String,
    /// The interface at which they leave, with the queue in front of it.
    pub to: String,
    /// Which direction of the bridge it is.
    pub direction: Direction,
    /// The discipline with its parameters, as it would be typed.
    pub spelling: String,
    /// The discipline's name alone.
    pub kind: String,
    /// What distinguishes it from earlier disciplines of the same port, as `tc` writes handles: "1:".
    pub handle: String,
    /// The shaped rate.
    pub rate: Rate,
    /// Since the start.
    pub uptime: Duration,
    /// Whether the discipline is bypassed, since something went wrong.
    pub plain_forwarding: bool,

    /// Offered to the port.
    pub arrived: Backlog,
    /// Sent.
    pub sent: Backlog,
    /// Dropped, by reason.
    pub dropped: Drops,
    /// Marked; these were sent, too.
    pub marked: Backlog,
    /// Held now.
    pub held: Backlog,
    /// Lost on the line behind the port, on purpose (`--loss`).
    pub line_lost: Backlog,
    /// Frames that the kernel had no room for in the ring: lost before they were counted as arrived.
    pub ring_drops: u64,
    /// How often the port was found stuck.
    pub stalls: u64,
    /// What became of frames in pieces, where there are any.
    pub fragments: Option<Fragments>,

    /// How long packets waited in the queue, since the start.
    pub sojourn: Quantiles,
    /// How much later than the shaper said packets were sent, since the start.
    pub lateness: Quantiles,
    /// What happened in the last whole second.
    pub recent: Recent,

    /// Inner state of the discipline, by name.
    pub gauges: Vec<(String, f64)>,
    /// Reservations, where they are kept.
    pub reservations: Option<Reservations>,
}

/// How the reservations of a direction stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// What may be reserved.
    pub capacity: Rate,
    /// What is.
    pub reserved: Rate,
    /// How many flows have a reservation, those of the future included.
    pub flows: u64,
    /// How many control packets had which outcome, by name.
    pub messages: Vec<(&'static str, u64)>,
}

/// Frames in pieces, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Frames that were cut.
    pub cut: u64,
    /// Fragments that they were cut into.
    pub pieces: u64,
    /// Those of them that were not offered to the discipline, because it had dropped one of the same frame.
    pub spared: u64,
    /// Frames that are too long and passed whole.
    pub whole: u64,
    /// Fragments that came and became part of frames.
    pub joined: u64,
    /// Frames that they became.
    pub frames: u64,
    /// Fragments that came and became no part of a frame, by reason.
    pub lost: Vec<(&'static str, u64)>,
}

/// What happened in the last whole second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recent {
    /// Offered to the port.
    pub arrived: Backlog,
    /// Sent.
    pub sent: Backlog,
    /// How long packets waited in the queue.
    pub sojourn: Quantiles,
    /// How much later than the shaper said packets were sent.
    pub lateness: Quantiles,
    /// The flows that sent most, in that order.
    pub flows: Vec<Flow>,
}

/// Which direction of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From `--in` to `--out`.
    #[default]
    Forward,
    /// From `--out` to `--in`.
    Reverse,
}

impl Direction {
    /// Both, in the order in which they are shown.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

/// Counts per reason of a drop.
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
    /// Says how many there were for a reason, where somebody else counts.
    pub fn set(&mut self, why: DropReason, all: Backlog) {
        self.by_reason[why as usize] = all;
    }
    /// Those for this reason.
    pub fn of(&self, why: DropReason) -> Backlog {
        self.by_reason[why as usize]
    }
    /// All reasons, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, Backlog)> + '_ {
        DropReason::ALL.iter().map(|why| (*why, self.of(*why)))
    }
    /// All of them together.
    pub fn total(&self) -> Backlog {
        self.by_reason.iter().fold(Backlog::ZERO, |sum, some| sum.plus(*some))
    }
}

/// A flow and what it sent in the last second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The flow.
    pub key: FlowKey,
    /// Who it is, for people: [`tuple_text`], or whatever is known.
    pub text: String,
    /// What it sent; what [`crate::TopFlows`] is not sure of is not counted.
    pub sent: Backlog,
}

/// A flow for people: `tcp 10.0.0.1:443 > 10.0.0.2:50000`, `udp [fe80::1]:53 > [fe80::2]:1024`, `proto 47 10.0.0.1 > 10.0.0.2`.
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

//! Counters and state of one direction of a bridge.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

use giveway_qdisc::{Backlog, ClassState, DropReason, FiveTuple, FlowKey, PortCounters, Rate, Span};
use giveway_wire::fragment::{Counts, Size};

use crate::delays::Quantiles;

/// Counters and state of one direction at one time. Counters begin at the start and are never reset; they
/// never wrap, since 2^64 bytes at 100 Gbit/s are 46 years.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Time since the start.
    pub uptime: Span,
    /// Rate of the link.
    pub rate: Rate,
    /// Packets that the port counted: arrived, sent, dropped, marked.
    pub counters: PortCounters,
    /// Backlog of the discipline.
    pub backlog: Backlog,
    /// Frames that the link emulation delays at the moment.
    pub in_flight: u64,
    /// Packets that the discipline dropped, by reason.
    pub dropped: Drops,
    /// Frames that were lost outside the discipline.
    pub losses: Losses,
    /// Sojourn times: since the start, and in the last whole second.
    pub sojourn: [Quantiles; 2],
    /// Delays between due and actual transmission: since the start, and in the last whole second.
    pub lateness: [Quantiles; 2],
    /// Number of stalls: the thread was so late that transmission time of the link was lost.
    pub stalls: u64,
    /// Transmission time that stalls lost, in total.
    pub stalled: Span,
    /// Longest stall.
    pub longest_stall: Span,
    /// Checksums that senders left to their network card and that were completed here.
    pub checksums: u64,
    /// Bytes and packets that were sent in the last whole second.
    pub last_second: Backlog,
    /// Largest flows of the last whole second, the largest first.
    pub top: Vec<TopFlow>,
    /// Gauges of the discipline, by name.
    pub gauges: Vec<(Cow<'static, str>, f64)>,
    /// Classes of the discipline, each before those below it, as of the last second; the first thousand of
    /// more.
    pub classes: Vec<ClassState>,
    /// Number of changes of rate, discipline, fragmentation or link emulation.
    pub changes: u64,
    /// Fragmentation and reassembly.
    pub fragments: Fragments,
    /// Replaced disciplines that are not empty yet.
    pub leaving: usize,
    /// Buffers of the pool: free now, fewest ever free, all.
    pub buffers: [u32; 3],
    /// Number of times that one of the two interfaces went down.
    pub downs: u64,
    /// Receive calls that returned frames. Arrivals divided by this is the mean batch size.
    pub receives: u64,
    /// Send calls.
    pub sends: u64,
    /// Reason why the direction has failed and forwards plainly; `None` while it shapes.
    pub plain: Option<String>,
    /// Frames that were forwarded plainly.
    pub plain_frames: u64,
    /// Scheduling class of the thread, or the qdisc in the kernel, in words.
    pub scheduling: String,
}

/// Frames that were lost outside the discipline, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Frames that the kernel dropped because the receive ring was full; they do not count as arrived.
    pub ring: u64,
    /// Frames for which the pool had no free buffer.
    pub no_buffer: u64,
    /// Frames longer than the outgoing interface accepts.
    pub too_long: u64,
    /// Frames that the outgoing interface refused, or that were due while it was down.
    pub unsent: u64,
    /// Frames that the link emulation lost, as configured.
    pub emulated: u64,
}

impl Losses {
    /// The counters with the names that users read.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("ring", self.ring),
            ("no_buffer", self.no_buffer),
            ("too_long", self.too_long),
            ("unsent", self.unsent),
            ("link_emulation", self.emulated),
        ]
    }
}

/// Configuration and counters of fragmentation and reassembly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Size into which frames are cut; `None` if none is cut.
    pub size: Option<Size>,
    /// True if incoming fragments are joined.
    pub joins: bool,
    /// Frames that were cut.
    pub cut: u64,
    /// Fragments that they were cut into.
    pub pieces: u64,
    /// Fragments that were not offered to the discipline because it had dropped another one of the frame.
    pub spared: u64,
    /// Frames longer than the size that passed whole, because they are not IP or need more than 127
    /// fragments.
    pub whole: u64,
    /// Counters of incoming fragments.
    pub joined: Counts,
    /// Fragments that wait for other fragments of their frame.
    pub waiting: u64,
}

impl Fragments {
    /// True if fragmentation or reassembly is configured, or was before.
    pub fn is_used(&self) -> bool {
        *self != Fragments::default()
    }
}

/// A flow among the largest ones of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopFlow {
    /// Key of the flow.
    pub flow: FlowKey,
    /// Addresses and ports; `None` if the flow is not IP.
    pub tuple: Option<FiveTuple>,
    /// Packets and bytes that arrived, without the uncertainty of [`crate::TopFlows`].
    pub arrived: Backlog,
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
    pub fn set(&mut self, why: DropReason, count: Backlog) {
        self.by_reason[why as usize] = count;
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

/// Formats a flow: `tcp 10.0.0.1:443 > 10.0.0.2:50000`, `udp [fe80::1]:53 > [fe80::2]:1024`, `proto 47
/// 10.0.0.1 > 10.0.0.2`.
pub fn tuple_text(tuple: &FiveTuple) -> String {
    const PORTS: [(u8, &str); 5] = [(6, "tcp"), (17, "udp"), (33, "dccp"), (132, "sctp"), (136, "udplite")];
    let mut text = String::new();
    let named = PORTS.iter().find(|(number, _)| *number == tuple.protocol);
    match (named, tuple.protocol) {
        (Some((_, name)), _) => text.push_str(name),
        (None, 1) => text.push_str("icmp"),
        (None, 58) => text.push_str("icmpv6"),
        (None, number) => write!(text, "proto {number}").expect("writing to a String cannot fail"),
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
        written.expect("writing to a String cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_formatted() {
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

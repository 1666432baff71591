//! The contract of a queue discipline.

use std::sync::Arc;

use crate::cx::Cx;
use crate::packet::Packet;
use crate::rng::Streams;
use crate::units::{Bytes, Limit, Rate, Span, Time};

/// A queue discipline: which packet leaves next, and which is dropped.
///
/// It knows no clock, no timer and no host. Time comes with each call and never goes back; a periodic update is
/// replayed at the start of the next call. The packet on the wire is not in the queue: it counts toward neither
/// limit nor table.
pub trait Qdisc<P> {
    /// Takes the packet: keeps it, or gives it (or another that it holds) to [`Cx::drop`].
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>);

    /// What may leave now, or when to ask again.
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P>;

    /// Packets and bytes held, children included.
    fn backlog(&self) -> Backlog;

    /// Gives every held packet to [`Cx::drop`] with [`DropReason::Reset`](crate::DropReason::Reset) and forgets its past.
    fn reset(&mut self, cx: &mut Cx<'_, P>);

    /// The state that it keeps per flow, children included. Sampled now and then, never per packet.
    fn flow_table(&self) -> FlowTable {
        FlowTable::NONE
    }

    /// Other inner state that is worth plotting, by name. Sampled now and then, never per packet.
    fn gauges(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// How much state is kept per flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// How many flows there is state for, now.
    pub flows: u64,
    /// The most that there ever was, since the discipline was built.
    pub most: u64,
    /// What the state of one flow takes, in bytes, the room that its table must leave free included; packets are not.
    pub entry_bytes: u32,
    /// What all of it takes in memory, in bytes, used or not.
    pub bytes: u64,
}

impl FlowTable {
    /// No state per flow.
    pub const NONE: FlowTable = FlowTable { flows: 0, most: 0, entry_bytes: 0, bytes: 0 };

    /// Its numbers by name, as outputs list them beside the gauges of a discipline.
    pub fn named(&self) -> [(&'static str, f64); 4] {
        [
            ("flow_table", self.flows as f64),
            ("flow_table_most", self.most as f64),
            ("flow_table_entry_bytes", f64::from(self.entry_bytes)),
            ("flow_table_bytes", self.bytes as f64),
        ]
    }

    /// Two tables together. The most of the sum is at most the sum of the most.
    pub fn plus(self, other: FlowTable) -> FlowTable {
        FlowTable {
            flows: self.flows + other.flows,
            most: self.most + other.most,
            entry_bytes: self.entry_bytes.max(other.entry_bytes),
            bytes: self.bytes + other.bytes,
        }
    }
}

/// The answer to "what may leave now?".
#[must_use]
#[derive(Debug)]
pub enum Next<P> {
    /// This packet.
    Packet(Packet<P>),
    /// Nothing yet, although packets are held: ask again at this time, which lies in the future. An arrival may
    /// change the answer, so ask after each arrival too.
    At(Time),
    /// Nothing is held.
    Empty,
}

impl<P> Next<P> {
    /// The packet, if there is one.
    pub fn packet(self) -> Option<Packet<P>> {
        match self {
            Next::Packet(pkt) => Some(pkt),
            Next::At(_) | Next::Empty => None,
        }
    }
}

/// How much is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Backlog {
    /// Nothing.
    pub const ZERO: Backlog = Backlog { packets: 0, bytes: 0 };

    /// Counts a packet in.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
    /// Counts a packet out.
    #[inline]
    pub fn sub(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
    /// Both together.
    pub fn plus(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl<P, Q: Qdisc<P> + ?Sized> Qdisc<P> for Box<Q> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        (**self).enqueue(pkt, cx)
    }
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        (**self).dequeue(cx)
    }
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        (**self).reset(cx)
    }
    fn flow_table(&self) -> FlowTable {
        (**self).flow_table()
    }
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        (**self).gauges(visit)
    }
}

/// What a discipline may know about the place where it is put, when it is built.
#[derive(Clone, Debug)]
pub struct LinkContext {
    /// The rate of the link behind it.
    pub rate: Rate,
    /// The largest packet on that link, IP length.
    pub mtu: Bytes,
    /// Where its random numbers come from: a stream of its own.
    pub streams: Streams,
    /// The links beyond that one, as far as the host knows them.
    pub onward: Onward,
}

/// The links beyond a link: what a discipline that looks ahead shares by. Links that are not known have no rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Onward {
    /// Where the link leads: the neighbour.
    pub neighbour: u16,
    /// Between which nodes there are links, and how fast they are; sorted.
    links: Arc<[((u16, u16), Rate)]>,
}

impl Onward {
    /// What lies beyond a link to `neighbour`: links by the nodes between which they are. Of several between the same
    /// nodes the first counts. They may be all links of a network.
    pub fn new(neighbour: u16, links: impl IntoIterator<Item = ((u16, u16), Rate)>) -> Onward {
        let mut links: Vec<((u16, u16), Rate)> = links.into_iter().collect();
        links.sort_by_key(|(ends, _)| *ends);
        links.dedup_by_key(|(ends, _)| *ends);
        Onward { neighbour, links: links.into() }
    }

    /// The same links, beyond a link to another neighbour.
    pub fn beyond(&self, neighbour: u16) -> Onward {
        Onward { neighbour, links: Arc::clone(&self.links) }
    }

    /// All links: between which nodes, sorted, and how fast.
    pub fn links(&self) -> &[((u16, u16), Rate)] {
        &self.links
    }

    /// How fast the link between two nodes is, if it is known.
    pub fn rate(&self, from: u16, to: u16) -> Option<Rate> {
        let at = self.links.binary_search_by_key(&(from, to), |(ends, _)| *ends).ok()?;
        Some(self.links[at].1)
    }
}

impl LinkContext {
    /// A link of `rate` with an MTU of 1,500 bytes.
    pub fn new(rate: Rate, streams: Streams) -> LinkContext {
        LinkContext { rate, mtu: Bytes(1500), streams, onward: Onward::default() }
    }

    /// The site of a child: the same link, other random numbers.
    pub fn child(&self, name: &str) -> LinkContext {
        LinkContext { streams: self.streams.within(name), ..self.clone() }
    }
}

/// What a discipline promises beyond the contract, so that the contract suite can hold it to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Packets of one flow leave in the order in which they came.
    pub keeps_flow_order: bool,
    /// A packet leaves whenever one is held. False for shapers.
    pub work_conserving: bool,
    /// What is held never exceeds this after a call; `None` when the discipline has several limits of its own.
    pub limit: Option<Limit>,
    /// What a flow may rely on, whatever others send.
    pub guarantee: Guarantee,
}

impl Properties {
    /// Keeps order within flows, keeps the link busy, holds at most `limit`, and guarantees no flow anything.
    pub fn plain(limit: Limit) -> Properties {
        Properties {
            keeps_flow_order: true,
            work_conserving: true,
            limit: Some(limit),
            guarantee: Guarantee::Nothing,
        }
    }

    /// The same with a guarantee.
    pub fn with(self, guarantee: Guarantee) -> Properties {
        Properties { guarantee, ..self }
    }
}

/// What a flow may rely on, whatever others send, as long as none of its packets is dropped: of which kind the discipline is among
/// latency-rate servers (Stiliadis and Varma 1998). The crate `theory` turns it into bounds on delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Nothing.
    Nothing,
    /// Its reserved rate, from one packet of its own at that rate and one of anyone's on the link on: a rate-proportional server.
    Reserved,
    /// The same, and the width of a slot later.
    ReservedInSlots(Span),
    /// Its reserved rate, from one packet of everyone on, and the time of a class.
    ReservedInClasses(Span),
    /// Its reserved rate, among flows that are grouped by what a packet of this length takes at their rates.
    ReservedInGroups(Bytes),
    /// A turn in every round, of as many bytes as its class has.
    Turns,
}

/// Why a configuration cannot be built: which parameter, what is wrong with it, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The parameter's name, as it is written in the configuration.
    pub parameter: &'static str,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl Invalid {
    /// `parameter` is wrong, as `message` says.
    pub fn new(parameter: &'static str, message: impl Into<String>) -> Invalid {
        Invalid { parameter, message: message.into() }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.parameter, self.message)
    }
}
impl std::error::Error for Invalid {}

/// Refuses a limit that could never hold a packet of full size.
pub fn check_limit(parameter: &'static str, limit: Limit, mtu: Bytes) -> Result<(), Invalid> {
    match limit {
        Limit::Packets(0) => Err(Invalid::new(parameter, "0 packets hold nothing: write at least \"1p\"")),
        Limit::Bytes(bytes) if bytes < mtu.0 => Err(Invalid::new(
            parameter,
            format!("{limit} cannot hold one packet of {} bytes: write at least \"{}b\"", mtu.0, mtu.0),
        )),
        Limit::Packets(most) if most > MOST_PACKETS => {
            let message = format!("{limit} are more than memory holds: write \"{MOST_PACKETS}p\" at most");
            Err(Invalid::new(parameter, message))
        }
        Limit::Bytes(most) if most > MOST_BYTES => Err(Invalid::new(
            parameter,
            format!("{limit} are more than memory holds: write \"{}gb\" at most", MOST_BYTES >> 30),
        )),
        Limit::Packets(_) | Limit::Bytes(_) => Ok(()),
    }
}

/// The largest limit in packets. Each takes more than a hundred bytes of a discipline, without its data: two gigabytes.
pub const MOST_PACKETS: u64 = 1 << 24;
/// The largest limit in bytes: more than a second at 400 Gbit/s.
const MOST_BYTES: u64 = 64 << 30;

//! Think times: what a response took, without the path, its queues, delayed acknowledgements and losses.
//!
//! # Principles
//! - The time from a request to its response at the capture point consists of the path to the host and back,
//!   the queues at that time, and the think time. The path is the smallest round trip between the hosts. The
//!   other two are known within bounds.
//! - *Queues*: other data in the same direction at the same time waited for as long. Their round trips
//!   without the path are the waits; the waits of the nearest data, sent before and after the request, bound
//!   its wait.
//! - *Acknowledgements*: a host that thinks for longer than it may delay an acknowledgement sends one first.
//!   So a response that carries the acknowledgement has at most that think time. One that comes after an
//!   acknowledgement has at least the time between the two: both crossed the same queues.
//! - *Losses*: if the request was retransmitted, it is not known which of the two was answered, unless an
//!   acknowledgement says when it had arrived.
//! - *Lengths*: a long packet is not a late one. The rate of the link is the capture's rate in its
//!   busiest seconds where a sender keeps a queue, and otherwise the one of full packets in a row.
//! - Between its bounds, the likeliest think time is the smallest one that the same service shows elsewhere.
//!   A service that shows none is taken to answer as soon as the bounds allow.
//!
//! # Limitations
//! - A response whose first packets were all lost before the capture point looks late.
//! - Under a discipline with a queue for each flow, other data wait for longer than a request. The least
//!   think time is then too small, and the greatest one is right.

use std::collections::BTreeMap;

use crate::model::{Connection, Direction, Side, Trigger};

/// Largest round trip to a host that is taken as the capture point itself, ns.
pub(crate) const AT_HOST: u64 = 1_000_000;

/// Largest delay of an acknowledgement on most systems, ns.
pub(crate) const DELAYED_ACK: u64 = 40_000_000;
/// Largest time from a request to data whose wait is compared, ns.
const NEAR: u64 = 250_000_000;
/// Number of the nearest waits, before and after.
const NEAREST: usize = 3;
/// A think time within so much is known, ns.
const KNOWN: u64 = 1_000_000;
/// A wait of a sender that keeps a queue, ns, and the number of its measured waits from which that is known.
const QUEUED: u64 = 10_000_000;
const ENOUGH: u64 = 20;
/// IP length of the packets that measure the path, bytes.
const SHORT: u32 = 60;
/// Maximum number of round trips that are kept.
const MAX: usize = 1 << 21;

/// The packets that show the think time of a data unit.
#[derive(Clone, Copy, Debug)]
pub struct Reaction {
    /// Time at which the last packet passed that the sender waited for.
    pub event: u64,
    /// Time at which its acknowledgement passed, if that was before the reaction.
    pub acked: Option<u64>,
    /// True if the reaction carries the acknowledgement.
    pub carries_ack: bool,
    /// True if data were retransmitted before the reaction.
    pub repeated: bool,
    /// IP length of the last packet that the sender waited for, bytes.
    pub asked: u32,
    /// IP length of the first packet of the reaction, bytes.
    pub first: u32,
}

impl Reaction {
    /// A reaction to a packet of the handshake.
    pub fn to_handshake(event: u64) -> Reaction {
        Reaction { event, acked: None, carries_ack: false, repeated: false, asked: SHORT, first: 0 }
    }
}

/// A measured round trip: when data passed the capture point, and the time until their acknowledgement, ns.
#[derive(Clone, Copy)]
pub(crate) struct RoundTrip {
    /// The side of the data.
    pub side: Side,
    pub sent: u64,
    pub took: u64,
    /// IP length of their packet, bytes.
    pub length: u32,
    /// Bytes of that side up to the end of the data.
    pub end: u64,
}

impl RoundTrip {
    /// A round trip of the handshake.
    pub fn of_handshake(side: Side, sent: u64, took: u64) -> RoundTrip {
        RoundTrip { side, sent, took, length: SHORT, end: 0 }
    }
}

/// The measured round trips of all flows. If there are too many, every second one is kept.
#[derive(Default)]
pub(crate) struct Measured {
    /// Each with the index of its flow.
    kept: Vec<(u32, RoundTrip)>,
    every: u32,
    skipped: u32,
}

impl Measured {
    pub fn add(&mut self, flow: u32, trip: RoundTrip) {
        self.skipped += 1;
        if self.skipped < self.every {
            return;
        }
        self.skipped = 0;
        if self.kept.len() == MAX {
            let mut number = 0..;
            self.kept.retain(|_| number.next().is_some_and(|number: usize| number.is_multiple_of(2)));
            self.every = (2 * self.every).max(2);
        }
        self.kept.push((flow, trip));
    }
}

/// The waits in queues, by the direction of the data.
pub(crate) struct Waits {
    /// Times at which data passed, their waits, ns, and the IP length of their packet, bytes.
    of: [Vec<(u64, u64, u32)>; 2],
    /// The fastest sender in each direction that keeps a queue, bit/s; 0 if there is none.
    pub full: [u64; 2],
}

/// The waits of the data of a sender.
struct Sender {
    direction: Direction,
    count: u64,
    queued: u64,
    /// Times of the first and the last acknowledgement, and the bytes between them.
    since: u64,
    until: u64,
    bytes: (u64, u64),
}

impl Sender {
    /// Its rate, bit/s.
    fn rate(&self) -> u64 {
        let bytes = self.bytes.1.saturating_sub(self.bytes.0);
        let bits = 8e9 * bytes as f64 / self.until.saturating_sub(self.since).max(1) as f64;
        bits as u64
    }
}

impl Waits {
    /// The waits of these round trips; `path` is the direction of the data of a side of a flow, and the
    /// path that they cross, if they have them.
    pub fn new(trips: Measured, path: impl Fn(u32, Side) -> Option<(Direction, u64)>) -> Waits {
        let mut of = [Vec::new(), Vec::new()];
        let mut senders: BTreeMap<(u32, Side), Sender> = BTreeMap::new();
        for (flow, trip) in &trips.kept {
            let Some((direction, path)) = path(*flow, trip.side) else { continue };
            let wait = trip.took.saturating_sub(path);
            of[direction as usize].push((trip.sent, wait, trip.length));
            if trip.end == 0 {
                continue; // the handshake, which is not the data of a queue
            }
            let (since, bytes) = (trip.sent + trip.took, (trip.end, trip.end));
            let new = Sender { direction, count: 0, queued: 0, since, until: since, bytes };
            let sender = senders.entry((*flow, trip.side)).or_insert(new);
            sender.count += 1;
            sender.queued += u64::from(wait >= QUEUED);
            (sender.until, sender.bytes.1) = (trip.sent + trip.took, trip.end);
        }
        of.iter_mut().for_each(|waits| waits.sort_unstable());
        let mut full = [0; 2];
        for sender in
            senders.values().filter(|sender| sender.count >= ENOUGH && 2 * sender.queued >= sender.count)
        {
            let fastest = &mut full[sender.direction as usize];
            *fastest = sender.rate().max(*fastest);
        }
        Waits { of, full }
    }

    /// The least and the greatest wait of the nearest data, if a byte takes so long, ns.
    fn near(&self, direction: Direction, at: u64, byte: f64) -> Option<(u64, u64)> {
        let waits = &self.of[direction as usize];
        let here = waits.partition_point(|(sent, ..)| *sent < at);
        let nearest = &waits[here.saturating_sub(NEAREST)..(here + NEAREST).min(waits.len())];
        let near = nearest.iter().filter(|(sent, ..)| sent.abs_diff(at) <= NEAR);
        let near = near.map(|(_, wait, length)| wait.saturating_sub(longer(*length, byte)));
        near.clone().min().zip(near.max())
    }
}

/// The think times of a workload, with their bounds.
#[derive(Default)]
pub(crate) struct Thinking {
    found: Vec<Found>,
}

/// An end of connections: its address and the port of the server.
pub(crate) type Service = ([u8; 16], u16, Side);

struct Found {
    /// Index of the connection and of the ADU.
    place: (usize, usize),
    service: Service,
    least: u64,
    most: u64,
}

/// The path of a connection, as its think times need it.
pub(crate) struct Route<'a> {
    /// Direction of the data that an end waits for.
    pub direction: Direction,
    /// Smallest round trip to that end, ns; `None` if it was never measured.
    pub path: Option<u64>,
    pub waits: &'a Waits,
    /// Time for a byte in each direction, ns; 0 if it is not known.
    pub byte: [f64; 2],
}

impl Thinking {
    /// Adds the think time of a data unit whose first byte passed at `first`.
    pub fn add(
        &mut self,
        place: (usize, usize),
        service: Service,
        reaction: &Reaction,
        first: u64,
        route: &Route<'_>,
    ) {
        let (least, most) = route.bounds(reaction, first);
        self.found.push(Found { place, service, least, most });
    }

    /// Sets the think times of the connections.
    pub fn resolve(self, connections: &mut [Connection]) -> Unknown {
        let mut usual: BTreeMap<Service, u64> = BTreeMap::new();
        for found in self.found.iter().filter(|found| found.is_known()) {
            let least = usual.entry(found.service).or_insert(found.least);
            *least = found.least.min(*least);
        }
        let mut unknown = Unknown::default();
        for found in &self.found {
            let (connection, adu) = found.place;
            let adu = &mut connections[connection].adus[adu];
            let Found { least, most, .. } = *found;
            adu.think_time = usual.get(&found.service).copied().unwrap_or(0).clamp(least, most);
            adu.between = (!found.is_known()).then_some((least, most));
            if adu.side == Side::Server && adu.trigger != Trigger::Peer(0) {
                unknown.responses += 1;
                if !found.is_known() {
                    unknown.count += 1;
                    unknown.least = unknown.least.saturating_add(least);
                    unknown.most = unknown.most.saturating_add(most);
                }
            }
        }
        unknown
    }
}

/// Responses of servers, and those whose think time a capture does not show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unknown {
    /// Number of responses.
    pub responses: u64,
    /// Number of those whose think time is not known.
    pub count: u64,
    /// Sum of the least think times of these, ns.
    pub least: u64,
    /// Sum of the greatest think times of these, ns.
    pub most: u64,
}

impl Found {
    fn is_known(&self) -> bool {
        self.most - self.least <= KNOWN
    }
}

impl Route<'_> {
    /// The least and the greatest think time.
    fn bounds(&self, reaction: &Reaction, first: u64) -> (u64, u64) {
        let late = first.saturating_sub(reaction.event).saturating_sub(self.path.unwrap_or(0));
        if self.path.is_some_and(|path| path < AT_HOST) {
            return (late, late); // no queue, and the packets that the host has seen
        }
        let [there, back] = [self.direction, self.direction.other()].map(|way| self.byte[way as usize]);
        let back = longer(reaction.first, back);
        let late = late.saturating_sub(longer(reaction.asked, there).saturating_add(back));
        let after_ack = reaction.acked.map(|acked| first.saturating_sub(acked).saturating_sub(back));
        let delayed = match after_ack {
            Some(after) => after.saturating_add(DELAYED_ACK),
            None if reaction.carries_ack => DELAYED_ACK,
            None => u64::MAX,
        };
        let (least, most) = (after_ack.unwrap_or(0), late.min(delayed));
        // An acknowledgement shows which of two requests arrived.
        let near = self
            .waits
            .near(self.direction, reaction.event, there)
            .filter(|_| !reaction.repeated && self.path.is_some());
        let Some((short, long)) = near else { return (least.min(most), most) };
        let (by_waits, until) = (late.saturating_sub(long).max(least), late.saturating_sub(short));
        // If even the longest wait does not explain the delay, the waits tell nothing about this one.
        if by_waits > most { (least.min(most), most) } else { (by_waits, most.min(until).max(by_waits)) }
    }
}

/// The time that a packet takes for being longer than those that measure the path, ns.
fn longer(length: u32, byte: f64) -> u64 {
    (f64::from(length.saturating_sub(SHORT)) * byte) as u64
}

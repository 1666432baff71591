//! Hosts that are not perfectly on time.
//!
//! Without these parameters hosts act at once. A deterministic simulation then repeats the same coincidences
//! throughout a run: its flows lock to each other's phases. Real hosts wake up late, each time by another
//! delay, and handle packets in batches.
//!
//! - A source of traffic wakes up late by [`Timing::senders`]. What it sends then belongs to the times that
//!   it had asked for, so that no rate falls. Timers of connections are not late: the kernel has them.
//! - The packets that reach the hosts of a node are handled together. The first one asks for an interrupt,
//!   which comes after the time of [`Timing::coalesce`]; a thread then wakes up late by
//!   [`Timing::receivers`]. It handles all packets that have arrived by then.
//! - With [`Timing::gro`] the segments of a connection that are handled together, and are in order, count as
//!   one: they are acknowledged once. A connection's segments are looked for among the next 64 packets.
//!
//! - With [`Timing::handling`] a host takes a moment for each packet of a connection that it receives: a time
//!   that is drawn evenly between zero and this one, or a tenth of the time that a full packet takes on the
//!   link if that is shorter. Packets stay in order. An answer, and what an acknowledgement lets out, then
//!   meets the queues at another moment under each seed, and no rate changes.
//!
//! A link has [`giveway_links::Impairments::dispatch_jitter`], and a sender the bursts of
//! [`TcpConfig::gso`](crate::TcpConfig::gso).

use std::collections::VecDeque;

use giveway_links::{Lateness, Waker};
use giveway_qdisc::{Rate, Rng, Span, Streams, Time};

use crate::event_queue::{Class, EventQueue, Owner, Rank, Timer};
use crate::packets::{Number, Packets};
use crate::segment::Segment;

/// The timing of hosts. By default they act at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// The lateness of sources of traffic.
    pub senders: Option<Lateness>,
    /// The lateness of threads that receive packets.
    pub receivers: Option<Lateness>,
    /// The time by which an interrupt waits for further packets.
    pub coalesce: Span,
    /// Generic receive offload: segments that are handled together are acknowledged once.
    pub gro: bool,
    /// The longest time that a host takes for a received packet of a connection; zero takes none.
    pub handling: Span,
}

impl Timing {
    /// True if received packets are not handled at once.
    fn delays_packets(&self) -> bool {
        self.receivers.is_some() || !self.coalesce.is_zero()
    }
}

/// The wake-ups of a source that is late.
#[derive(Debug)]
pub(crate) struct LateSource {
    waker: Waker,
    /// The time that the source has asked for.
    due: Time,
    /// The time at which it wakes up.
    at: Time,
}

impl LateSource {
    /// A source that has not asked for a wake-up.
    pub fn new(lateness: Lateness, rng: Rng) -> LateSource {
        LateSource { waker: Waker::new(lateness, rng), due: Time::NEVER, at: Time::NEVER }
    }

    /// The time that it has asked for.
    pub fn due(&self) -> Time {
        self.due
    }

    /// It asks for a wake-up at `due`. Returns the time at which it wakes up.
    pub fn asks(&mut self, due: Time, now: Time) -> Time {
        if due != self.due {
            self.due = due;
            self.at = if due == Time::NEVER { due } else { self.waker.handles(due).max(now) };
        }
        self.at
    }
}

/// The time that the hosts at the end of a link take for each packet that they receive.
pub(crate) struct Handling {
    /// The longest time, picoseconds.
    most: u64,
    rng: Rng,
    /// The last packet arrived, and was handled.
    last: (Time, Time),
}

impl Handling {
    /// The hosts behind a link of this rate, whose wire has these streams.
    pub fn new(most: Span, rate: Rate, wire: &Streams) -> Handling {
        /// The length of a full packet.
        const FULL: u64 = 1500;
        let most = most.min(rate.time_for(FULL).scale(1, 10)).as_ps();
        Handling { most, rng: wire.within("handling").rng(), last: (Time::ZERO, Time::ZERO) }
    }

    /// The time at which the hosts have handled a packet that arrives at `at`.
    #[inline]
    pub fn handles(&mut self, at: Time) -> Time {
        let mut done = at + Span::from_ps(self.rng.below(self.most + 1));
        // A packet that the wire has delayed does not hold up those that overtake it.
        if at >= self.last.0 {
            done = done.max(self.last.1);
            self.last = (at, done);
        }
        done
    }
}

/// Packets that have reached hosts and are not handled yet.
pub(crate) struct Inbox {
    timing: Timing,
    nodes: Vec<Node>,
}

struct Node {
    timer: Timer,
    rng: Rng,
    waiting: VecDeque<Number>,
}

/// Number of packets among which a segment looks for the next one of its connection.
const LOOK_AHEAD: usize = 64;

impl Inbox {
    /// The empty inbox of each of `nodes` nodes; `None` if packets are handled at once.
    pub fn new(
        timing: &Timing,
        nodes: usize,
        streams: &Streams,
        queue: &mut EventQueue,
    ) -> Option<Box<Inbox>> {
        if !timing.delays_packets() {
            return None;
        }
        let inbox = |number: u16| {
            let own = streams.within("host").within(&number.to_string());
            Node {
                timer: queue.add(Owner::Host(number), Rank::of(Class::Packet, &own)),
                rng: own.rng(),
                waiting: VecDeque::new(),
            }
        };
        let nodes = (0..nodes as u16).map(inbox).collect();
        Some(Box::new(Inbox { timing: timing.clone(), nodes }))
    }

    /// Adds a packet that reaches a host at `node`.
    pub fn add(&mut self, node: u16, pkt: Number, now: Time, queue: &mut EventQueue) {
        let inbox = &mut self.nodes[usize::from(node)];
        if inbox.waiting.is_empty() {
            let late = self.timing.receivers.as_ref().map_or(Span::ZERO, |late| late.draw(&mut inbox.rng));
            queue.set(inbox.timer, now + self.timing.coalesce + late);
        }
        inbox.waiting.push_back(pkt);
    }

    /// Takes the next packet of a node whose thread is awake. True if it counts as one with a later one.
    pub fn next(&mut self, node: u16, packets: &Packets, queue: &mut EventQueue) -> Option<(Number, bool)> {
        let inbox = &mut self.nodes[usize::from(node)];
        let pkt = inbox.waiting.pop_front()?;
        if inbox.waiting.is_empty() {
            queue.set(inbox.timer, Time::NEVER);
            return Some((pkt, false));
        }
        let segment = &packets.get(pkt).payload;
        let is_joined = self.timing.gro
            && inbox
                .waiting
                .iter()
                .take(LOOK_AHEAD)
                .any(|other| is_same_direction(segment, &packets.get(*other).payload));
        Some((pkt, is_joined))
    }

    /// All packets that are not handled.
    pub fn left(&self) -> impl Iterator<Item = Number> + '_ {
        self.nodes.iter().flat_map(|node| node.waiting.iter().copied())
    }
}

/// True if both are segments with data of one direction of a connection.
fn is_same_direction(one: &Segment, other: &Segment) -> bool {
    let has_data = |segment: &Segment| segment.len > 0 && !segment.has(Segment::DATAGRAM);
    has_data(one)
        && has_data(other)
        && (one.conn, one.serial) == (other.conn, other.serial)
        && one.has(Segment::REPLY) == other.has(Segment::REPLY)
}

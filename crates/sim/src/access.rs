//! Access links: the delay between a node and the hosts that do not sit at it
//! ([`Net::host`](crate::Net::host)).
//!
//! An access link adds a delay and no queue. All access links share one timer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use giveway_qdisc::hash::mix;
use giveway_qdisc::{List, Packet, Slots, Streams, Time};

use crate::event_queue::{Class, EventQueue, Owner, Rank, Timer};
use crate::segment::Segment;

/// Packets on access links. Hosts have different delays, so that packets do not leave in the order in
/// which they came, and are sorted by time.
pub(crate) struct AccessLinks {
    /// Arrival time of each packet, and its index in `packets`. At equal times the order of flows is drawn
    /// from their keys and the time, as for all [events](crate::event_queue). Packets of one flow are ordered
    /// by `count`, so that they keep their order.
    order: BinaryHeap<Reverse<(Time, u64, u64, u32)>>,
    /// Packets, each with the node of its access link.
    packets: Slots<(u16, Packet<Segment>)>,
    all: List,
    /// Number of packets that have entered an access link so far.
    count: u64,
    timer: Timer,
}

impl AccessLinks {
    /// Access links without packets.
    pub fn new(streams: &Streams, queue: &mut EventQueue) -> AccessLinks {
        AccessLinks {
            order: BinaryHeap::new(),
            packets: Slots::with_capacity(16),
            all: List::default(),
            count: 0,
            timer: queue.add(Owner::Access, Rank::of(Class::Packet, &streams.within("access"))),
        }
    }

    /// Adds a packet that enters the access link of a node, in either direction, and leaves it at `at`.
    pub fn add(&mut self, at: Time, pkt: (u16, Packet<Segment>), queue: &mut EventQueue) {
        let drawn = mix(pkt.1.meta.flow.0, at.as_ps());
        let slot = self.packets.push_back(&mut self.all, pkt);
        self.order.push(Reverse((at, drawn, self.count, slot.index())));
        self.count += 1;
        self.schedule(queue);
    }

    /// The next packet that has left its access link by `now`, with the node of that link.
    pub fn pop(&mut self, now: Time) -> Option<(u16, Packet<Segment>)> {
        let Reverse((at, _, _, index)) = self.order.peek()?;
        if *at > now {
            return None;
        }
        let slot = self.packets.place(*index).expect("each entry of the order has its packet");
        self.order.pop();
        Some(self.packets.remove(&mut self.all, slot))
    }

    /// Sets the timer to the time at which the next packet leaves its access link.
    pub fn schedule(&self, queue: &mut EventQueue) {
        let first = self.order.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        queue.set(self.timer, first);
    }
}

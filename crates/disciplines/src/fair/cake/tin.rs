//! A tin: its queues in turns (DRR++), its virtual clock, and its counters.

use giveway_qdisc::blocks::cobalt::{Cobalt, Law};
use giveway_qdisc::{Backlog, List, Rng, Span, Time};

use super::choices::Isolation;
use super::classes::Class;
use super::ring::{Links, Ring};
use super::sets::{Hosts, PLACES, Tags};
use super::shaper::averaged;

/// The list in which a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Set {
    /// None: the queue is free.
    #[default]
    Free,
    /// New: it has not used up its first quantum.
    Sparse,
    /// Old, but it was empty when its first quantum was used up.
    SparseWaiting,
    /// Old: it has a backlog.
    Bulk,
    /// Decaying: it is empty, and its COBALT is not at rest.
    Decaying,
}

/// One queue, in its own cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Flow {
    pub queue: List,
    pub state: Cobalt,
    /// Bytes queued.
    pub bytes: u32,
    /// Bytes on the link that it may still send in this turn.
    pub deficit: i32,
    /// Source and destination of the packet that made it active.
    hosts: (u16, u16),
    /// Places of these hosts, while it is a bulk flow.
    places: (u16, u16),
    pub set: Set,
}

const _: () = assert!(size_of::<Flow>() == 64);

/// Bytes of a turn of a tin with the whole rate, without shaping.
const TURN: u64 = 1024;

/// Counters of `tc -s qdisc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub packets: u64,
    pub bytes: u64,
    pub drops: u64,
    pub marks: u64,
    /// Redundant acknowledgements that were dropped.
    pub acks: u64,
    /// Packets of a flow in another place of its set than its own.
    pub indirect: u64,
    /// Packets that made a flow known.
    pub misses: u64,
    /// Packets whose set was full, so that they share a queue.
    pub collisions: u64,
    /// Peak, average and sparse sojourn times, in picoseconds.
    pub peak: u64,
    pub average: u64,
    pub sparse: u64,
    /// Longest packet on the link.
    pub longest: u32,
}

impl Counters {
    /// Records the sojourn time and the length of a packet that leaves.
    #[inline]
    pub fn on_departure(&mut self, sojourn: Span, bytes: u32) {
        let sojourn = sojourn.as_ps();
        let Counters { peak, average, sparse, longest, .. } = self;
        *average = averaged(*average, sojourn, 8);
        // Written so that each shift is a constant.
        *peak = if sojourn > *peak { averaged(*peak, sojourn, 2) } else { averaged(*peak, sojourn, 8) };
        *sparse =
            if sojourn < *sparse { averaged(*sparse, sojourn, 2) } else { averaged(*sparse, sojourn, 8) };
        *longest = bytes.max(*longest);
    }
}

/// A virtual clock: the time of the next packet of a tin at its threshold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock(pub Time);

impl Clock {
    /// Advances by a packet that takes `lasts` at the whole rate, of which the threshold is a share.
    #[inline]
    pub fn advance(&mut self, (part, whole): (u64, u64), lasts: Span, now: Time) {
        if lasts.is_zero() {
            return;
        }
        let own = if part == whole { lasts } else { lasts.scale(whole, part) };
        // Below the threshold the clock is behind, and catches up packet by packet. A tin that uses what
        // others leave is one packet ahead at most, so it has its threshold as soon as they return.
        self.0 = if self.0 < now { self.0 + own } else { self.0.max(now + own) };
    }
}

/// Settings of a tin that follow from the rate.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    pub law: Law,
    /// Sojourn time above which there is congestion.
    pub above: Span,
    /// Time of a packet of the MTU at the threshold.
    pub packet: Span,
    /// Bytes of a turn of a flow.
    pub quantum: i32,
}

/// A tin.
pub struct Tin {
    pub class: Class,
    pub tuning: Tuning,
    /// A fixed number, so that a place is compared with a constant.
    pub flows: Box<[Flow; PLACES]>,
    /// The flow at each place.
    pub tags: Tags,
    links: Links,
    new: Ring,
    old: Ring,
    decaying: Ring,
    sources: Hosts,
    destinations: Hosts,
    /// Virtual clock of the threshold.
    pub clock: Clock,
    /// Bytes that the tin may send in its turn, without shaping.
    pub credit: i64,
    /// Bytes of a turn, without shaping.
    pub turn: i64,
    pub backlog: Backlog,
    pub sparse_flows: u32,
    pub bulk_flows: u32,
    pub decaying_flows: u32,
    /// Flows for which BLUE drops.
    pub unresponsive_flows: u32,
    /// Largest number of queues that were not free.
    pub most_flows: u32,
    pub counters: Counters,
}

impl Tin {
    pub fn new(class: Class, tuning: Tuning) -> Tin {
        Tin {
            class,
            tuning,
            flows: Box::new([Flow::default(); PLACES]),
            tags: Tags::new(),
            links: Links::new(),
            new: Ring::EMPTY,
            old: Ring::EMPTY,
            decaying: Ring::EMPTY,
            sources: Hosts::new(),
            destinations: Hosts::new(),
            clock: Clock::default(),
            credit: 0,
            turn: (TURN * class.share.0 / class.share.1) as i64,
            backlog: Backlog::ZERO,
            sparse_flows: 0,
            bulk_flows: 0,
            decaying_flows: 0,
            unresponsive_flows: 0,
            most_flows: 0,
            counters: Counters::default(),
        }
    }

    /// Number of queues that are not free.
    #[inline]
    pub fn flows_in_use(&self) -> u32 {
        self.sparse_flows + self.bulk_flows + self.decaying_flows
    }

    /// Memory of a tin for its flows and hosts.
    pub const BYTES: usize = PLACES
        * (size_of::<Flow>() + size_of::<u32>() + size_of::<(u16, u16)>() + 2 * size_of::<(u16, u16)>());

    /// The queue of a flow with this hash.
    #[inline]
    pub fn queue_of(&mut self, hash: u64) -> usize {
        let (own, tag) = ((hash >> 32) as usize % PLACES, hash as u32);
        if self.tags.at(own) == tag {
            return own;
        }
        // A remainder, so that the caller needs no check.
        self.search(own, tag) % PLACES
    }

    #[inline(never)]
    fn search(&mut self, own: usize, tag: u32) -> usize {
        if let Some(place) = self.tags.find(own, tag) {
            self.counters.indirect += 1;
            return place;
        }
        match self.tags.free(own) {
            Some(place) => {
                self.counters.misses += 1;
                self.tags.put(place, tag);
                place
            }
            None => {
                self.counters.collisions += 1;
                own
            }
        }
    }

    /// A packet is appended to a queue.
    #[inline]
    pub fn arrives(&mut self, flow: usize, hosts: (u16, u16), isolation: Isolation, rng: &mut Rng) {
        let set = self.flows[flow].set;
        if !matches!(set, Set::Sparse | Set::Bulk) {
            self.begins(flow, hosts, isolation, rng);
        }
    }

    /// A queue that has had no backlog has one.
    #[inline(never)]
    fn begins(&mut self, flow: usize, hosts: (u16, u16), isolation: Isolation, rng: &mut Rng) {
        if self.flows[flow].set == Set::SparseWaiting {
            return self.becomes_bulk(flow, isolation);
        }
        if self.flows[flow].set == Set::Decaying {
            self.decaying_flows -= 1;
            self.decaying.remove(&mut self.links, flow);
        }
        self.tags.set_taken(flow);
        self.flows[flow].set = Set::Sparse;
        self.flows[flow].hosts = hosts;
        self.sparse_flows += 1;
        self.most_flows = self.most_flows.max(self.flows_in_use());
        self.new.push(&mut self.links, flow);
        let load = self.load_of(hosts, isolation);
        self.flows[flow].deficit = self.quantum(load, rng);
    }

    /// True if a queue has its turn: the new and the old ones. They may be empty.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// The queue whose turn it is, new ones first. Those whose credits are used up end their turns.
    ///
    /// # Panics
    /// If no queue is waiting.
    #[inline(always)]
    pub fn whose_turn(&mut self, isolation: Isolation, rng: &mut Rng) -> usize {
        loop {
            let flow = self.new.first().or_else(|| self.old.first());
            let flow = flow.expect("a tin that is chosen has queues in turns");
            if self.flows[flow].deficit > 0 {
                return flow;
            }
            self.end_turn(flow, isolation, rng);
        }
    }

    /// The credits of the queue whose turn it is are used up: it gets a quantum and goes to the end of the
    /// old queues.
    #[inline(always)]
    fn end_turn(&mut self, flow: usize, isolation: Isolation, rng: &mut Rng) {
        if self.flows[flow].set == Set::Sparse {
            self.becomes_old(flow, isolation);
        } else {
            self.old.rotate(&mut self.links);
        }
        let load = if self.flows[flow].set == Set::Bulk { self.load_at(flow, isolation) } else { 1 };
        self.flows[flow].deficit += self.quantum(load, rng);
    }

    /// The first of the new queues goes to the end of the old ones.
    #[inline(never)]
    fn becomes_old(&mut self, flow: usize, isolation: Isolation) {
        self.new.pop(&mut self.links);
        if self.flows[flow].queue.is_empty() {
            self.flows[flow].set = Set::SparseWaiting;
        } else {
            self.becomes_bulk(flow, isolation);
        }
        self.old.push(&mut self.links, flow);
    }

    /// The queue whose turn it is is empty. It leaves the turns, and decays until its COBALT is at rest.
    #[inline]
    pub fn on_empty(&mut self, flow: usize, isolation: Isolation, now: Time) {
        let ring = if self.flows[flow].set == Set::Sparse { &mut self.new } else { &mut self.old };
        ring.pop(&mut self.links);
        match self.flows[flow].set {
            Set::Bulk => {
                self.bulk_flows -= 1;
                let (source, destination) = self.flows[flow].places;
                if isolation.counts_sources() {
                    self.sources.leave(source);
                }
                if isolation.counts_destinations() {
                    self.destinations.leave(destination);
                }
            }
            _ => self.sparse_flows -= 1,
        }
        if self.steps_down(flow, now) {
            self.flows[flow].set = Set::Decaying;
            self.decaying_flows += 1;
            self.decaying.push(&mut self.links, flow);
        }
    }

    /// Lets the first decaying queue rest.
    #[inline]
    pub fn let_one_rest(&mut self, now: Time) {
        if let Some(flow) = self.decaying.first() {
            if self.flows[flow].state.waits(now) || self.steps_down(flow, now) {
                self.decaying.rotate(&mut self.links);
            } else {
                self.decaying.pop(&mut self.links);
                self.decaying_flows -= 1;
            }
        }
    }

    /// Steps the COBALT of an empty queue down. True if it is not at rest yet, and decays; otherwise the
    /// queue is free.
    #[inline(never)]
    fn steps_down(&mut self, flow: usize, now: Time) -> bool {
        let Flow { state, set, .. } = &mut self.flows[flow];
        self.unresponsive_flows -= u32::from(state.on_empty(&self.tuning.law, now));
        if state.is_at_rest(now) {
            *set = Set::Free;
            self.tags.set_free(flow);
        }
        *set != Set::Free
    }

    fn becomes_bulk(&mut self, flow: usize, isolation: Isolation) {
        self.sparse_flows -= 1;
        self.bulk_flows += 1;
        self.flows[flow].set = Set::Bulk;
        let (source, destination) = self.flows[flow].hosts;
        if isolation.counts_sources() {
            self.flows[flow].places.0 = self.sources.join(source);
        }
        if isolation.counts_destinations() {
            self.flows[flow].places.1 = self.destinations.join(destination);
        }
    }

    /// The number of flows among which the hosts of a bulk flow divide their share.
    #[inline]
    fn load_at(&self, flow: usize, isolation: Isolation) -> u16 {
        let (source, destination) = self.flows[flow].places;
        self.load(isolation, || self.sources.at(source), || self.destinations.at(destination))
    }

    /// The number of flows among which these hosts divide their share.
    #[inline]
    fn load_of(&self, hosts: (u16, u16), isolation: Isolation) -> u16 {
        self.load(isolation, || self.sources.of(hosts.0), || self.destinations.of(hosts.1))
    }

    /// The larger number of flows of the two hosts. If all bulk flows have a host in common, that is the same
    /// for each of them, so nothing is divided.
    #[inline]
    fn load(&self, isolation: Isolation, source: impl Fn() -> u16, destination: impl Fn() -> u16) -> u16 {
        let mut load = 1;
        if isolation.counts_sources() {
            if self.sources.is_single() {
                return 1;
            }
            load = load.max(source());
        }
        if isolation.counts_destinations() {
            if self.destinations.is_single() {
                return 1;
            }
            load = load.max(destination());
        }
        load
    }

    /// The quantum, divided by the load.
    #[inline]
    fn quantum(&self, load: u16, rng: &mut Rng) -> i32 {
        if load <= 1 { self.tuning.quantum } else { self.part_of_quantum(load, rng) }
    }

    /// A part of the quantum. What is less than a byte is drawn.
    #[inline(never)]
    fn part_of_quantum(&self, load: u16, rng: &mut Rng) -> i32 {
        let scaled = (self.tuning.quantum as u64) << 16;
        ((scaled / u64::from(load) + (rng.word() >> 48)) >> 16) as i32
    }

    /// Sojourn time above which there is congestion.
    #[inline]
    pub fn above(&self, ingress: bool) -> Span {
        if ingress {
            // On the way in, each backlogged flow has two packets in front of the bottleneck.
            self.tuning.above.max(self.tuning.packet * (2 * u64::from(self.bulk_flows)))
        } else {
            self.tuning.above
        }
    }

    /// Advances the virtual clock by a packet that takes `lasts` at the whole rate.
    #[inline]
    pub fn advance(&mut self, lasts: Span, now: Time) {
        self.clock.advance(self.class.share, lasts, now);
    }

    /// Forgets everything but the settings. The queues must be empty.
    pub fn reset(&mut self) {
        *self = Tin { most_flows: self.most_flows, ..Tin::new(self.class, self.tuning) };
    }
}

impl Isolation {
    /// True if each flow has a queue.
    #[inline]
    pub fn has_queues_of_flows(self) -> bool {
        !matches!(self, Isolation::Flowblind | Isolation::Srchost | Isolation::Dsthost | Isolation::Hosts)
    }

    /// True if sources get equal shares.
    #[inline]
    fn counts_sources(self) -> bool {
        matches!(self, Isolation::DualSrchost | Isolation::TripleIsolate)
    }

    /// True if destinations get equal shares.
    #[inline]
    fn counts_destinations(self) -> bool {
        matches!(self, Isolation::DualDsthost | Isolation::TripleIsolate)
    }
}

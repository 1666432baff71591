//! A tin: its queues in turns (DRR++), its virtual clock, and its counters.

use giveway_qdisc::blocks::cobalt::{Cobalt, Law};
use giveway_qdisc::{Backlog, List, Meta, Rng, Span, Time};

use super::classes::Class;
use super::sets::{Hosts, PLACES, ways};
use super::shaper::averaged;
use super::words::Isolation;

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

/// One queue, in a cache line of its own.
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

/// Queues in order, linked by their neighbours.
#[derive(Clone, Copy, Debug)]
struct Ring {
    head: u16,
    tail: u16,
}

const NONE: u16 = u16::MAX;
const EMPTY: Ring = Ring { head: NONE, tail: NONE };

/// Counters of `tc -s qdisc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub packets: u64,
    pub bytes: u64,
    pub drops: u64,
    pub marks: u64,
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
    pub flows: Box<[Flow]>,
    /// Hash of the flow at each place.
    tags: Box<[u32; PLACES]>,
    /// Neighbours of each queue in its list: before and after.
    links: Box<[(u16, u16); PLACES]>,
    new: Ring,
    old: Ring,
    decaying: Ring,
    sources: Hosts,
    destinations: Hosts,
    /// Virtual clock: the time of the next packet at the threshold.
    pub next: Time,
    /// Bytes that the tin may send in its turn, if nothing is shaped.
    pub credit: i64,
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
            flows: vec![Flow::default(); PLACES].into_boxed_slice(),
            tags: Box::new([0; PLACES]),
            links: Box::new([(NONE, NONE); PLACES]),
            new: EMPTY,
            old: EMPTY,
            decaying: EMPTY,
            sources: Hosts::new(),
            destinations: Hosts::new(),
            next: Time::ZERO,
            credit: 0,
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
        if self.tags[own] == tag && self.flows[own].set != Set::Free {
            return own;
        }
        self.search(own, tag)
    }

    #[inline(never)]
    fn search(&mut self, own: usize, tag: u32) -> usize {
        if let Some(place) = ways(own).find(|place| self.tags[*place] == tag) {
            self.counters.indirect += u64::from(place != own);
            return place;
        }
        match ways(own).find(|place| self.flows[*place].set == Set::Free) {
            Some(place) => {
                self.counters.misses += 1;
                self.tags[place] = tag;
                place
            }
            None => {
                self.counters.collisions += 1;
                own
            }
        }
    }

    /// A packet has been appended to a queue.
    #[inline]
    pub fn arrived(&mut self, flow: usize, meta: &Meta, isolation: Isolation, rng: &mut Rng) {
        match self.flows[flow].set {
            Set::Sparse | Set::Bulk => {}
            Set::SparseWaiting => self.becomes_bulk(flow, isolation),
            Set::Free | Set::Decaying => {
                if self.flows[flow].set == Set::Decaying {
                    self.decaying_flows -= 1;
                    self.unlink(flow);
                }
                self.flows[flow].set = Set::Sparse;
                self.flows[flow].hosts = (meta.from, meta.to);
                self.sparse_flows += 1;
                self.most_flows = self.most_flows.max(self.flows_in_use());
                push(&mut self.new, &mut self.links, flow);
                let load = self.load_of((meta.from, meta.to), isolation);
                self.flows[flow].deficit = self.quantum(load, rng);
            }
        }
    }

    /// True if a queue has its turn: the new and the old ones. They may be empty.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// The queue whose turn it is: new ones first.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let head = if self.new.head == NONE { self.old.head } else { self.new.head };
        (head != NONE).then_some(usize::from(head))
    }

    /// The credits of a queue are used up: it gets a quantum and goes to the end of the old queues.
    #[inline]
    pub fn end_turn(&mut self, flow: usize, isolation: Isolation, rng: &mut Rng) {
        self.unlink(flow);
        if self.flows[flow].set == Set::Sparse {
            if self.flows[flow].queue.is_empty() {
                self.flows[flow].set = Set::SparseWaiting;
            } else {
                self.becomes_bulk(flow, isolation);
            }
        }
        push(&mut self.old, &mut self.links, flow);
        let load = if self.flows[flow].set == Set::Bulk { self.load_at(flow, isolation) } else { 1 };
        self.flows[flow].deficit += self.quantum(load, rng);
    }

    /// A queue whose turn it is is empty. It leaves the turns, and decays until its COBALT is at rest.
    #[inline]
    pub fn emptied(&mut self, flow: usize, isolation: Isolation, now: Time) {
        self.unlink(flow);
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
        self.rests(flow, now);
    }

    /// Lets the first decaying queue rest.
    #[inline]
    pub fn let_one_rest(&mut self, now: Time) {
        if self.decaying.head != NONE {
            let flow = usize::from(self.decaying.head);
            self.unlink(flow);
            self.decaying_flows -= 1;
            self.rests(flow, now);
        }
    }

    /// Steps the COBALT of an empty queue down, and frees the queue or lets it decay.
    #[inline]
    fn rests(&mut self, flow: usize, now: Time) {
        let Flow { state, set, .. } = &mut self.flows[flow];
        self.unresponsive_flows -= u32::from(state.emptied(&self.tuning.law, now));
        if state.is_at_rest(now) {
            *set = Set::Free;
        } else {
            *set = Set::Decaying;
            self.decaying_flows += 1;
            push(&mut self.decaying, &mut self.links, flow);
        }
    }

    #[inline]
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

    /// The quantum, divided by the load. What is less than a byte is drawn.
    #[inline]
    fn quantum(&self, load: u16, rng: &mut Rng) -> i32 {
        match load {
            0 | 1 => self.tuning.quantum,
            load => {
                let scaled = (self.tuning.quantum as u64) << 16;
                ((scaled / u64::from(load) + (rng.word() >> 48)) >> 16) as i32
            }
        }
    }

    /// A packet leaves, or is charged although it was dropped.
    #[inline]
    pub fn charge(&mut self, flow: usize, bytes: u32, lasts: Span, now: Time) {
        self.flows[flow].deficit = self.flows[flow].deficit.saturating_sub_unsigned(bytes);
        self.credit -= i64::from(bytes);
        self.advance(lasts, now);
    }

    /// Advances the virtual clock by a packet that takes `lasts` at the whole rate.
    #[inline]
    pub fn advance(&mut self, lasts: Span, now: Time) {
        if lasts.is_zero() {
            return;
        }
        let (part, whole) = self.class.share;
        let own = if part == whole { lasts } else { lasts.scale(whole, part) };
        // Below the threshold the clock is behind, and catches up packet by packet. A tin that uses what
        // others leave is one packet ahead at most, so it has its threshold as soon as they return.
        self.next = if self.next < now { self.next + own } else { self.next.max(now + own) };
    }

    /// Records the sojourn time and the length of a packet that leaves.
    #[inline]
    pub fn sent(&mut self, sojourn: Span, bytes: u32) {
        let sojourn = sojourn.as_ps();
        let Counters { peak, average, sparse, longest, .. } = &mut self.counters;
        *average = averaged(*average, sojourn, 8);
        *peak = averaged(*peak, sojourn, if sojourn > *peak { 2 } else { 8 });
        *sparse = averaged(*sparse, sojourn, if sojourn < *sparse { 2 } else { 8 });
        *longest = bytes.max(*longest);
    }

    /// Forgets everything but the settings. The queues must be empty.
    pub fn reset(&mut self) {
        *self = Tin { most_flows: self.most_flows, ..Tin::new(self.class, self.tuning) };
    }

    #[inline]
    fn unlink(&mut self, flow: usize) {
        let ring = match self.flows[flow].set {
            Set::Sparse => &mut self.new,
            Set::SparseWaiting | Set::Bulk => &mut self.old,
            Set::Decaying => &mut self.decaying,
            Set::Free => return,
        };
        let (before, after) = self.links[flow];
        match before {
            NONE => ring.head = after,
            before => self.links[usize::from(before)].1 = after,
        }
        match after {
            NONE => ring.tail = before,
            after => self.links[usize::from(after)].0 = before,
        }
    }
}

#[inline]
fn push(ring: &mut Ring, links: &mut [(u16, u16); PLACES], flow: usize) {
    links[flow] = (ring.tail, NONE);
    match ring.tail {
        NONE => ring.head = flow as u16,
        tail => links[usize::from(tail)].1 = flow as u16,
    }
    ring.tail = flow as u16;
}

impl Isolation {
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

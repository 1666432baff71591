//! The flows of `fq`: of sockets, and forwarded by a router, and how long they are remembered.

use std::ops::{Index, IndexMut};

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{FlowKey, FlowTable, LinkContext, List, Meta, Place, Slots, Span, Time};

/// Time after which an idle flow is forgotten.
const AGE: Span = Span::s(3);
/// Largest number of idle flows.
const MAX_IDLE: usize = 65_536;

/// A flow, with packets or without.
#[derive(Debug)]
pub(super) struct Flow {
    key: Key,
    /// Its packets, by the times at which they may leave.
    pub queue: List,
    /// Bytes that it may still send in this turn.
    pub credit: i64,
    /// The band in which it takes its turns.
    pub band: u8,
    pub standing: Standing,
    /// End of its last pause.
    paused_until: Option<Time>,
    /// Time since which it is idle.
    since: Time,
}

/// Place of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Among the new flows of its band.
    New,
    /// Among the old flows of its band.
    Old,
    /// It has packets, and none may leave yet.
    Waiting,
    /// It has no packets, and is remembered.
    Idle,
}

/// Identity of a flow.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// The flow of a socket.
    Socket(FlowKey),
    /// The hash of flows without one.
    Orphan(FlowKey),
}

impl Flow {
    /// Time at which a packet may leave that may itself leave at `at`.
    #[inline]
    pub fn ready(&self, at: Time) -> Time {
        self.paused_until.map_or(at, |until| until.max(at))
    }

    /// Starts a pause. What the flow is late after the one before makes it shorter, down to half.
    #[inline]
    pub fn pause(&mut self, span: Span, now: Time) {
        let late = self.paused_until.map_or(Span::ZERO, |until| now.since(until));
        self.paused_until = Some(now + (span - late.min(span / 2)));
    }
}

/// All flows.
#[derive(Debug)]
pub(super) struct Flows {
    sockets: FlowMap<Place>,
    orphans: FlowMap<Place>,
    slots: Slots<Flow>,
    /// Idle flows, the longest idle one first.
    idle: List,
    mask: u64,
    /// Key of the hash, so that collisions differ from one instance to the next.
    perturbation: u64,
    initial_quantum: i64,
    /// Largest number of flows so far.
    most: u64,
}

impl Flows {
    pub fn new(mask: u32, initial_quantum: i64, context: &LinkContext) -> Flows {
        Flows {
            sockets: FlowMap::with_capacity(0),
            orphans: FlowMap::with_capacity(0),
            slots: Slots::with_capacity(0),
            idle: List::default(),
            mask: u64::from(mask),
            perturbation: context.streams.rng().word(),
            initial_quantum,
            most: 0,
        }
    }

    /// The flow of a packet. A flow that is not known starts idle.
    #[inline]
    pub fn of(&mut self, meta: &Meta, now: Time) -> Place {
        self.forget(now);
        let socket = meta.label.departure().is_some() || meta.reserved.as_bit() > 0;
        let (key, map) = match socket {
            true => (Key::Socket(meta.flow), &mut self.sockets),
            false => {
                let hash = FlowKey(mix(meta.flow.0, self.perturbation) & self.mask);
                (Key::Orphan(hash), &mut self.orphans)
            }
        };
        let (Key::Socket(of) | Key::Orphan(of)) = key;
        let Flows { slots, idle, initial_quantum, .. } = self;
        let place = *map.entry(of, || {
            let flow = Flow {
                key,
                queue: List::default(),
                credit: *initial_quantum,
                band: 0,
                standing: Standing::Idle,
                paused_until: None,
                since: now,
            };
            slots.push_back(idle, flow)
        });
        self.most = self.most.max((self.sockets.len() + self.orphans.len()) as u64);
        place
    }

    /// An idle flow has a packet. Returns how long it was idle.
    #[inline]
    pub fn wake(&mut self, place: Place, now: Time) -> Span {
        self.slots.detach(&mut self.idle, place);
        now.since(self.slots[place].since)
    }

    /// A flow that has left its band is idle from now on.
    #[inline]
    pub fn rest(&mut self, place: Place, now: Time) {
        let flow = &mut self.slots[place];
        (flow.standing, flow.since) = (Standing::Idle, now);
        self.slots.attach(&mut self.idle, place);
    }

    /// Forgets the flow that was idle longest, if it has been for long enough and its pause is over, or if
    /// there are too many.
    #[inline]
    fn forget(&mut self, now: Time) {
        let Some(place) = self.slots.front_place(&self.idle) else { return };
        let flow = &self.slots[place];
        let full = self.idle.len() > MAX_IDLE;
        if !full && now.since(flow.since) < AGE {
            return;
        }
        if !full && flow.paused_until.is_some_and(|until| until > now) {
            return self.slots.rotate(&mut self.idle);
        }
        match flow.key {
            Key::Socket(key) => self.sockets.remove(key),
            Key::Orphan(key) => self.orphans.remove(key),
        };
        self.slots.remove(&mut self.idle, place);
    }

    /// Number of idle flows.
    pub fn idle(&self) -> usize {
        self.idle.len()
    }

    pub fn table(&self) -> FlowTable {
        let table = self.sockets.table().plus(self.orphans.table());
        FlowTable { most: self.most, ..table.with(Slots::<Flow>::bytes_per_slot(), self.slots.bytes()) }
    }

    pub fn clear(&mut self) {
        self.sockets.retain(|_, _| false);
        self.orphans.retain(|_, _| false);
        self.slots = Slots::with_capacity(0);
        self.idle = List::default();
    }

    #[inline]
    pub fn slots(&self) -> &Slots<Flow> {
        &self.slots
    }
    #[inline]
    pub fn slots_mut(&mut self) -> &mut Slots<Flow> {
        &mut self.slots
    }
}

impl Index<Place> for Flows {
    type Output = Flow;
    #[inline]
    fn index(&self, place: Place) -> &Flow {
        &self.slots[place]
    }
}

impl IndexMut<Place> for Flows {
    #[inline]
    fn index_mut(&mut self, place: Place) -> &mut Flow {
        &mut self.slots[place]
    }
}

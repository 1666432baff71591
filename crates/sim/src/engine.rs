//! A run, from event to event.
//!
//! Three kinds of things happen: a link is done with a packet or hands one over at its far end; a connection's timer
//! runs out; a source wakes. Each has one timer of the queue. A packet's way: an end sends it, the route of its node
//! leads to a link's port, the port's discipline holds it, the link transmits it, the wire delays it, the next node
//! forwards it or its host takes it.
//!
//! A link may be down for a while. Then its transmitter rests, and routes lead around it: each packet takes the shortest
//! way there is when it comes to a node, and is told what lies ahead on that way. Nothing that is queued is lost and
//! nothing moves: what waits in front of the link waits until it is up again, and what a discipline has sorted by an
//! onward way that is no longer taken stays there. So packets of a flow can overtake each other twice: those that go
//! around a link pass those that wait for it, and after the repair the short way may be faster than the long one. What
//! is on the wire arrives. Where no way is left packets are dropped as unreachable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use qdisc::hash::SipHasher;
use qdisc::{
    DropReason, FlowKey, List, Next, Packet, Port, PortId, Probe, Rate, Rng, Slots, Span, Streams, Time,
};

use crate::event_queue::{Class, EventQueue, Owner, Rank, Timer};
use crate::net::{Caller, Net, Settings};
use crate::network::Network;
use crate::routes::Routes;
use crate::segment::Segment;
use crate::tcp::TcpConfig;
use crate::traffic::Source;
use crate::transport::{Origin, Simulated, Transport};

/// What to run.
pub struct Plan {
    /// Nodes and links.
    pub network: Network,
    /// Who sends; a source's place in the list is its number in reports.
    pub sources: Vec<SourcePlan>,
    /// When the run ends.
    pub until: Time,
    /// The measurement interval: from its first moment to its end, which is not part of it.
    pub measured: Range<Time>,
    /// How often ports are sampled; `None` never.
    pub sample: Option<Span>,
    /// Whether senders are sampled too.
    pub sample_senders: bool,
    /// Where its random numbers come from.
    pub streams: Streams,
    /// How many next hops beyond a link disciplines are told ([`qdisc::Meta::ahead`]).
    pub lookahead: usize,
}

/// A source and how its packets are sent.
pub struct SourcePlan {
    /// What tells it apart from all others. Its flows, and its turn among events at the same time, depend on it, and not on
    /// its place in the list.
    pub name: String,
    /// The group that it is measured with. Flows of a group have different numbers.
    pub group: String,
    /// When it is first woken.
    pub start: Time,
    /// The application.
    pub source: Box<dyn Source>,
    /// Its TCP.
    pub tcp: TcpConfig,
    /// The class of its packets.
    pub class: u16,
    /// The rate that is reserved for each of its flows; zero for none.
    pub reserved: Rate,
}

impl SourcePlan {
    /// A source that starts at once, alone in its group, with the usual TCP.
    pub fn new(name: impl Into<String>, source: Box<dyn Source>) -> SourcePlan {
        let name = name.into();
        SourcePlan {
            group: name.clone(),
            name,
            start: Time::ZERO,
            source,
            tcp: TcpConfig::default(),
            class: 0,
            reserved: Rate::default(),
        }
    }
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events handled.
    pub events: u64,
}

/// A run in progress.
pub struct Sim {
    now: Time,
    until: Time,
    queue: EventQueue,
    /// Timers of the measurement interval, of the samples and of the outages.
    measurement: Timer,
    samples: Timer,
    outages: Timer,
    links: Vec<Link>,
    nodes: usize,
    routes: Routes,
    lookahead: usize,
    /// Links that go down and come up, the next one last.
    changes: Vec<Change>,
    transport: Transport,
    sources: Vec<Running>,
    /// Packets between nodes and hosts that stand beyond them.
    access: AccessLinks,
    sample: Option<Span>,
    sample_senders: bool,
    gauges: Vec<(&'static str, f64)>,
    /// Used and emptied again by `flush`.
    sending: Vec<Packet<Segment>>,
    events: u64,
}

/// A link goes down or comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Time,
    link: u32,
    up: bool,
}

/// One direction of a link.
struct Link {
    port: Port<Segment>,
    from: u16,
    to: u16,
    cost: u32,
    up: bool,
    delay: Span,
    jitter: Span,
    loss: f64,
    rng: Rng,
    /// When the port is to be asked again; never when nothing waits.
    ask: Time,
    /// On the wire, in order of arrival.
    flight: VecDeque<(Time, Packet<Segment>)>,
    timer: Timer,
    /// Its turn among transmitters that ask at the same time, and among links at whose far ends packets arrive then.
    departure: Rank,
    arrival: Rank,
}

struct Running {
    source: Option<Box<dyn Source>>,
    settings: Settings,
    timer: Timer,
}

impl Sim {
    /// Sets a run up.
    pub fn new(plan: Plan) -> Sim {
        let mut queue = EventQueue::default();
        let routes = plan.network.routes();
        let nodes = plan.network.nodes;
        let mut changes: Vec<Change> = Vec::new();
        for (link, number) in plan.network.links.iter().zip(0..) {
            for (down, up) in &link.outages {
                changes.push(Change { at: *down, link: number, up: false });
                changes.push(Change { at: *up, link: number, up: true });
            }
        }
        changes.sort_unstable_by(|a, b| b.cmp(a));
        let turns = turns(plan.network.links.iter().map(|link| link.name.as_str()));
        let links = plan.network.links.into_iter().zip(turns).enumerate().map(|(number, (link, turn))| {
            let departure = Rank::new(Class::Departure, turn, 0);
            Link {
                port: Port::new(PortId(number as u32), link.qdisc, link.rate),
                from: link.from,
                to: link.to,
                cost: link.cost,
                up: true,
                delay: link.delay,
                jitter: link.jitter,
                loss: link.loss.get(),
                rng: plan.streams.within("wire").within(&link.name).rng(),
                ask: Time::NEVER,
                flight: VecDeque::new(),
                timer: queue.add(Owner::Link(number as u32), departure),
                departure,
                arrival: Rank::new(Class::Arrival, turn, 0),
            }
        });
        let links = links.collect();
        let mut keys = plan.streams.within("flows").rng();
        let hasher = SipHasher::new(keys.word(), keys.word());
        let origins = origins(&plan.sources);
        let sources = plan.sources.into_iter().zip(&origins).enumerate().map(|(number, (source, origin))| {
            let rank = Rank::new(Class::Source, origin.turn(), 0);
            let timer = queue.add(Owner::Source(number as u16), rank);
            queue.set(timer, source.start);
            let settings =
                Settings { tcp: Rc::new(source.tcp), class: source.class, reserved: source.reserved };
            Running { source: Some(source.source), settings, timer }
        });
        let sources = sources.collect();
        let alone = |class: Class| Rank::new(class, 0, 0);
        let access = AccessLinks::new(queue.add(Owner::Access, alone(Class::Access)));
        let measurement = queue.add(Owner::Measurement, alone(Class::Measuring));
        queue.set(measurement, plan.measured.start);
        let samples = queue.add(Owner::Sample, alone(Class::Sample));
        queue.set(samples, plan.sample.map_or(Time::NEVER, |every| Time::ZERO + every));
        let outages = queue.add(Owner::Outage, alone(Class::Outage));
        queue.set(outages, changes.last().map_or(Time::NEVER, |first| first.at));
        Sim {
            now: Time::ZERO,
            until: plan.until,
            queue,
            measurement,
            samples,
            outages,
            links,
            nodes,
            routes,
            lookahead: plan.lookahead,
            changes,
            transport: Transport::new(hasher, plan.measured, origins),
            sources,
            access,
            sample: plan.sample,
            sample_senders: plan.sample_senders,
            gauges: Vec::new(),
            sending: Vec::new(),
            events: 0,
        }
    }

    /// Runs up to and including `until`, but not beyond the end of the run.
    pub fn step_to<R: Probe<Segment>>(&mut self, until: Time, probe: &mut R) {
        let until = until.min(self.until);
        while let Some((at, owner)) = self.queue.first() {
            if at > until {
                break;
            }
            self.now = at;
            self.events += 1;
            match owner {
                Owner::Link(link) => self.link_event(link, probe),
                Owner::Connection(conn) => {
                    self.transport.on_timer(conn, at, &mut self.queue);
                    self.flush(probe);
                }
                Owner::Source(source) => {
                    self.queue.set(self.sources[usize::from(source)].timer, Time::NEVER);
                    self.with_source(source, probe, |source, net| source.wake(net));
                }
                Owner::Access => self.access_event(probe),
                Owner::Measurement => {
                    let next = self.transport.measuring(at);
                    self.queue.set(self.measurement, next);
                }
                Owner::Sample => self.sample(probe),
                Owner::Outage => self.outage(),
            }
        }
        self.now = self.now.max(until);
    }

    /// Ends the run: tells the probe about everything that is still open.
    pub fn finish<R: Probe<Segment>>(mut self, probe: &mut R) -> Totals {
        for source in 0..self.sources.len() {
            // Quietly: what it reports is told to the probe below.
            self.with_source_quiet(source as u16, |source, net| source.finish(net));
        }
        let mut left = Leftover::default();
        for link in &mut self.links {
            for (_, pkt) in link.flight.drain(..) {
                left.note(&pkt);
            }
            link.port.reset(self.now, &mut left);
        }
        self.transport.finish(self.now, &left.datagrams);
        for report in self.transport.reports.drain(..) {
            probe.flow(&report);
        }
        Totals { events: self.events }
    }

    /// What sources have to say about the run so far, each with its number.
    pub fn remarks(&self) -> impl Iterator<Item = (u16, String)> + '_ {
        self.sources.iter().enumerate().filter_map(|(number, running)| {
            let source = running.source.as_ref().expect("no source acts between events");
            Some((number as u16, source.remark()?))
        })
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Bytes of memory that connections take, and how many there are.
    pub fn connection_memory(&self) -> (usize, usize) {
        self.transport.memory()
    }

    /// A link's transmitter is free, or else a packet arrives at the link's far end. Where both happen at the same time these
    /// are two events: all transmitters that are free come before all arrivals.
    #[inline]
    fn link_event<R: Probe<Segment>>(&mut self, number: u32, probe: &mut R) {
        let now = self.now;
        let link = &mut self.links[number as usize];
        if link.ask <= now {
            link.pull(now, probe);
        } else {
            let to = link.to;
            while let Some((_, pkt)) = self.links[number as usize].flight.pop_front_if(|(at, _)| *at <= now) {
                self.arrive(to, pkt, probe);
            }
        }
        self.links[number as usize].schedule(&mut self.queue);
    }

    /// A packet is at a node: its host takes it, or it goes on.
    #[inline]
    fn arrive<R: Probe<Segment>>(&mut self, node: u16, pkt: Packet<Segment>, probe: &mut R) {
        if pkt.meta.to != node {
            return self.forward(node, pkt, probe);
        }
        if let Some(delay) = self.transport.access_delay(node, &pkt.payload) {
            return self.access.add(self.now + delay, (node, pkt), &mut self.queue);
        }
        self.take(node, pkt, probe);
    }

    /// A host takes a packet.
    #[inline]
    fn take<R: Probe<Segment>>(&mut self, node: u16, pkt: Packet<Segment>, probe: &mut R) {
        probe.delivered(node, &pkt.meta, &pkt.payload, self.now);
        self.transport.deliver(&pkt.meta, &pkt.payload, self.now, &mut self.queue);
        self.flush(probe);
    }

    /// Packets from beyond a node reach it, or packets for a host beyond it reach that.
    fn access_event<R: Probe<Segment>>(&mut self, probe: &mut R) {
        while let Some((node, pkt)) = self.access.pop(self.now) {
            if pkt.meta.from == node {
                self.forward(node, pkt, probe);
            } else {
                self.take(node, pkt, probe);
            }
        }
        self.queue.set(self.access.timer, self.access.first());
    }

    /// A packet goes to the port of the link towards its destination.
    #[inline]
    fn forward<R: Probe<Segment>>(&mut self, node: u16, mut pkt: Packet<Segment>, probe: &mut R) {
        let Some(number) = self.routes.next(node, pkt.meta.to) else {
            return probe.dropped(PortId(u32::MAX), pkt, DropReason::Unreachable, self.now);
        };
        if self.lookahead > 0 {
            let next_hop = self.links[number as usize].to;
            let target = |link: u32| self.links[link as usize].to;
            pkt.meta.ahead = self.routes.ahead(next_hop, pkt.meta.to, self.lookahead, target);
        }
        let now = self.now;
        let link = &mut self.links[number as usize];
        link.port.offer(pkt, now, probe);
        if link.port.free_at() <= now {
            link.pull(now, probe);
        } else if link.ask == Time::NEVER {
            link.ask = link.port.free_at();
        }
        link.schedule(&mut self.queue);
    }

    /// Links go down or come up: from now on packets take other ways.
    #[cold]
    fn outage(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at <= self.now) {
            let link = &mut self.links[change.link as usize];
            link.up = change.up;
            let waits = link.port.books().held().packets > 0;
            link.ask = if change.up && waits { link.port.free_at().max(self.now) } else { Time::NEVER };
            link.schedule(&mut self.queue);
        }
        let up = self.links.iter().zip(0..).filter(|(link, _)| link.up);
        self.routes =
            Routes::over(self.nodes, up.map(|(link, number)| (number, (link.from, link.to, link.cost))));
        self.queue.set(self.outages, self.changes.last().map_or(Time::NEVER, |change| change.at));
    }

    /// Sends what the ends sent, and tells the sources and the probe what happened, until nothing is left to say.
    fn flush<R: Probe<Segment>>(&mut self, probe: &mut R) {
        loop {
            if !self.transport.out.is_empty() {
                let mut sending = std::mem::take(&mut self.sending);
                std::mem::swap(&mut sending, &mut self.transport.out);
                for pkt in sending.drain(..) {
                    let from = pkt.meta.from;
                    probe.emitted(from, &pkt.meta, &pkt.payload, self.now);
                    match self.transport.access_delay(from, &pkt.payload) {
                        Some(delay) => self.access.add(self.now + delay, (from, pkt), &mut self.queue),
                        None => self.forward(from, pkt, probe),
                    }
                }
                self.sending = sending;
            }
            if self.transport.events.is_empty() && self.transport.reports.is_empty() {
                if self.transport.out.is_empty() {
                    return self.transport.recycle();
                }
                continue;
            }
            for report in self.transport.reports.drain(..) {
                probe.flow(&report);
            }
            for (source, event) in std::mem::take(&mut self.transport.events) {
                self.with_source_quiet(source, |source, net| source.on(event, net));
            }
        }
    }

    /// Lets a source act, then sends what it said.
    fn with_source<R: Probe<Segment>>(
        &mut self,
        number: u16,
        probe: &mut R,
        act: impl FnOnce(&mut dyn Source, &mut Net<'_>),
    ) {
        self.with_source_quiet(number, act);
        self.flush(probe);
    }

    fn with_source_quiet(&mut self, number: u16, act: impl FnOnce(&mut dyn Source, &mut Net<'_>)) {
        let running = &mut self.sources[usize::from(number)];
        let mut source = running.source.take().expect("a source does not act within its own action");
        let mut wake = self.queue.time_of(running.timer);
        let caller = Caller { source: number, settings: &running.settings, now: self.now };
        let mut carrier = Simulated { transport: &mut self.transport, queue: &mut self.queue };
        act(&mut *source, &mut Net::new(caller, &mut carrier, &mut wake));
        self.queue.set(running.timer, wake);
        running.source = Some(source);
    }

    fn sample<R: Probe<Segment>>(&mut self, probe: &mut R) {
        for link in &self.links {
            link.port.sample(self.now, &mut self.gauges, probe);
        }
        if self.sample_senders {
            for sample in self.transport.samples(self.now) {
                probe.sender(&sample);
            }
        }
        let every = self.sample.expect("the timer of samples is set only in a sampled run");
        self.queue.set(self.samples, self.now + every);
    }
}

/// The turn of each name: its place in the order of the names.
fn turns<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u32> {
    let mut sorted: Vec<(&str, usize)> = names.zip(0..).collect();
    sorted.sort_unstable();
    let mut turns = vec![0; sorted.len()];
    for (turn, (_, place)) in (0..).zip(sorted) {
        turns[place] = turn;
    }
    turns
}

/// What the transport has to know about each source to name its flows.
fn origins(sources: &[SourcePlan]) -> Vec<Origin> {
    let turns = turns(sources.iter().map(|source| source.name.as_str()));
    let named = sources.iter().zip(turns).zip(places(sources));
    named.map(|((source, turn), place)| Origin::new(&source.name, turn, place)).collect()
}

/// The place of each source among those of its group, in the order of their names, and how many these are.
pub fn places(sources: &[SourcePlan]) -> Vec<(u64, u64)> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources {
        groups.entry(&source.group).or_default().push(&source.name);
    }
    groups.values_mut().for_each(|names| names.sort_unstable());
    let place = |source: &SourcePlan| {
        let group = &groups[source.group.as_str()];
        let place = group.binary_search(&source.name.as_str()).expect("it is in its group");
        (place as u64, group.len() as u64)
    };
    sources.iter().map(place).collect()
}

impl Link {
    /// Asks the port for a packet and puts it on the wire.
    #[inline]
    fn pull<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) {
        match self.port.pull(now, probe) {
            Next::Packet(pkt) => {
                let free = self.port.free_at();
                self.ask = if self.port.books().held().packets > 0 { free } else { Time::NEVER };
                if self.loss > 0.0 && self.rng.uniform() < self.loss {
                    return self.port.lose(pkt, DropReason::Wire, now, probe);
                }
                let mut arrival = free + self.delay;
                if !self.jitter.is_zero() {
                    arrival += Span::from_ps(self.rng.below(self.jitter.as_ps() + 1));
                    // Jitter does not reorder.
                    arrival = self.flight.back().map_or(arrival, |(last, _)| arrival.max(*last));
                }
                self.flight.push_back((arrival, pkt));
            }
            Next::At(at) => self.ask = at,
            Next::Empty => self.ask = Time::NEVER,
        }
    }

    /// Sets its next event.
    #[inline]
    fn schedule(&self, queue: &mut EventQueue) {
        let arrival = self.flight.front().map_or(Time::NEVER, |(at, _)| *at);
        if self.ask <= arrival {
            queue.set_ranked(self.timer, self.ask, self.departure);
        } else {
            queue.set_ranked(self.timer, arrival, self.arrival);
        }
    }
}

/// Packets between nodes and the hosts beyond them: each host has a distance of its own, so they are sorted by time.
struct AccessLinks {
    /// When they reach the other end, and where they are kept. At equal times flows have their turns by their keys, and the
    /// packets of a flow stay in order: by how many packets of all flows had set out before.
    order: BinaryHeap<Reverse<(Time, FlowKey, u64, u32)>>,
    /// Packets with the nodes that they come from or that their hosts stand behind.
    packets: Slots<(u16, Packet<Segment>)>,
    all: List,
    /// Set out so far.
    count: u64,
    timer: Timer,
}

impl AccessLinks {
    fn new(timer: Timer) -> AccessLinks {
        AccessLinks {
            order: BinaryHeap::new(),
            packets: Slots::with_capacity(16),
            all: List::default(),
            count: 0,
            timer,
        }
    }

    fn add(&mut self, at: Time, pkt: (u16, Packet<Segment>), queue: &mut EventQueue) {
        let flow = pkt.1.meta.flow;
        let place = self.packets.push_back(&mut self.all, pkt);
        self.order.push(Reverse((at, flow, self.count, place.index())));
        self.count += 1;
        queue.set(self.timer, self.first());
    }

    fn pop(&mut self, now: Time) -> Option<(u16, Packet<Segment>)> {
        let Reverse((at, _, _, index)) = self.order.peek()?;
        if *at > now {
            return None;
        }
        let place = self.packets.place(*index).expect("what is in the order is kept");
        self.order.pop();
        Some(self.packets.remove(&mut self.all, place))
    }

    fn first(&self) -> Time {
        self.order.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }
}

/// Datagrams that are still somewhere when the run ends.
#[derive(Default)]
struct Leftover {
    /// Stream and time of sending.
    datagrams: Vec<(u32, Time)>,
}

impl Leftover {
    fn note(&mut self, pkt: &Packet<Segment>) {
        if pkt.payload.has(Segment::DATAGRAM) {
            self.datagrams.push((pkt.payload.conn, pkt.payload.datagram_sent()));
        }
    }
}

impl Probe<Segment> for Leftover {
    fn dropped(&mut self, _: PortId, pkt: Packet<Segment>, _: DropReason, _: Time) {
        self.note(&pkt);
    }
}

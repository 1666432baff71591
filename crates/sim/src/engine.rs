//! The engine: runs a simulation from event to event.
//!
//! Four kinds of events move packets: the transmitter of a link is free, a packet arrives at the far end of a
//! link, a timer of a connection expires, and a source wakes. Each link, connection and source has one timer
//! in the [`EventQueue`].
//!
//! The path of a packet: a host sends it, the route at its node selects the port of a link, the discipline of
//! the port queues it, the link transmits it, the wire delays it, and the next node forwards it or delivers
//! it to its host. A host may sit on an [access link](crate::access) with its own delay. Links may
//! [fail](crate::outage) and come back.

mod interactive;

use std::rc::Rc;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{DropReason, Meta, Packet, PortId, Probe, Span, Streams, Time};

use crate::access::AccessLinks;
use crate::event_queue::{Class, EventQueue, Moment, Owner, Rank, Timer};
use crate::link::Link;
use crate::media::Media;
use crate::net::{Caller, Net, Settings};
use crate::network::LinkPlan;
use crate::origin;
use crate::outage::Changes;
use crate::packets::{Number, Packets};
use crate::partition::{Partition, Whole};
pub use crate::plan::{Plan, SourcePlan};
use crate::routes::Routes;
use crate::segment::Segment;
use crate::timing::{Handling, Inbox, LateSource};
use crate::traffic::Source;
use crate::transport::{Simulated, Transport};
use crate::varying::Departure;

/// The cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of events handled.
    pub events: u64,
}

/// A simulation in progress, or the part of one that has some of the nodes ([`crate::parallel`]).
pub struct Sim {
    now: Time,
    /// The moment of the event that is being handled.
    moment: Moment,
    /// True once the engine knows which links are plain: after the first step, and in an interactive
    /// simulation from its beginning.
    simplified: bool,
    until: Time,
    /// Start of the measurement interval.
    measured_from: Time,
    queue: EventQueue,
    /// Timer of the bounds of the measurement interval.
    measurement: Timer,
    /// Timer of the samples.
    samples: Timer,
    links: Vec<Link>,
    /// The random streams of the wire of each link.
    wires: Vec<Streams>,
    media: Media,
    packets: Packets,
    access: AccessLinks,
    /// Packets that hosts have received and not handled; `None` if they handle them at once.
    inbox: Option<Box<Inbox>>,
    nodes: usize,
    routes: Routes,
    lookahead: usize,
    changes: Changes,
    transport: Transport,
    sources: Vec<Running>,
    sample: Option<Span>,
    sample_senders: bool,
    gauges: Vec<(&'static str, f64)>,
    /// Buffer of `send`, kept so that sending does not allocate.
    sending: Vec<Packet<Segment>>,
    /// Buffer of the packets of a burst.
    burst: Vec<Departure>,
    /// Packets that leave for other parts of the network, by the number of the part.
    leaving: Vec<Vec<Crossing>>,
    events: u64,
}

/// A packet on a link between two parts of the network.
pub(crate) struct Crossing {
    /// Number of the link.
    pub link: u32,
    /// Time at which the packet reaches the far end.
    pub at: Time,
    packet: Packet<Segment>,
}

/// A datagram that is in a queue or on a wire when the run ends.
pub(crate) struct Unarrived {
    source: u16,
    stream: u32,
    sent: Time,
}

struct Running {
    /// `None` while the source acts, and if the source is in another part of the network.
    source: Option<Box<dyn Source>>,
    settings: Settings,
    timer: Timer,
    /// The wake-ups of a source that is late.
    late: Option<Box<LateSource>>,
}

impl Sim {
    /// Prepares a run.
    pub fn new(mut plan: Plan) -> Sim {
        let whole = Partition::whole(plan.network.nodes, Whole::OneThread);
        Sim::part(&mut plan, &whole, 0)
    }

    /// Prepares a part of a run. It takes its disciplines and its sources out of the plan.
    pub(crate) fn part(plan: &mut Plan, partition: &Partition, part: u16) -> Sim {
        let mut queue = EventQueue::default();
        let routes = plan.network.routes();
        let nodes = plan.network.nodes;
        let changes = Changes::new(&plan.network.links, &mut queue);
        let wire = |link: &LinkPlan| plan.streams.within("wire").within(&link.name);
        let wires: Vec<Streams> = plan.network.links.iter().map(wire).collect();
        let links = plan.network.links.iter_mut().zip(&wires).zip(0..);
        let links = links.map(|((link, own), n)| Link::new(n, link, (partition, part), own, &mut queue));
        let mut links: Vec<Link> = links.collect();
        let handling = plan.timing.handling;
        if !handling.is_zero() {
            let rates = plan.network.links.iter().map(|link| link.rate);
            for ((link, rate), own) in links.iter_mut().zip(rates).zip(&wires) {
                link.handle(Handling::new(handling, rate, own));
            }
        }
        let mut media = Media::new(&plan.network.media, &plan.streams, &mut queue);
        for ((link, planned), number) in links.iter_mut().zip(&plan.network.links).zip(0..) {
            if let Some((medium, mtu)) = planned.medium {
                link.join(media.add(medium, number, (planned.from, planned.to), mtu));
            }
        }
        let mut keys = plan.streams.within("flows").rng();
        let hasher = SipHasher::new(keys.word(), keys.word());
        let origins = origin::origins(&plan.sources, &plan.streams);
        let sources = plan.sources.iter_mut().zip(&origins).zip(0..).map(|((source, origin), number)| {
            let timer = queue.add(Owner::Source(number), origin.rank());
            let own = (partition.part_with(source) == part).then(|| source.take());
            queue.set(timer, if own.is_some() { source.start } else { Time::NEVER });
            let settings = Settings {
                tcp: Rc::new(source.tcp.clone()),
                quic: Rc::new(source.quic.clone()),
                class: source.class,
                dscp: source.dscp,
                reserved: source.reserved,
            };
            let late = plan.timing.senders.as_ref().map(|lateness| {
                let rng = plan.streams.within("source").within(&source.name).within("wake-ups").rng();
                Box::new(LateSource::new(lateness.clone(), rng))
            });
            Running { source: own, settings, timer, late }
        });
        let sources = sources.collect();
        let access = AccessLinks::new(&plan.streams, &mut queue);
        let inbox = Inbox::new(&plan.timing, nodes, &plan.streams, &mut queue);
        let measurement = queue.add(Owner::Measurement, Rank::only(Class::Measuring));
        queue.set(measurement, plan.measured.start);
        let samples = queue.add(Owner::Sample, Rank::only(Class::Sample));
        queue.set(samples, plan.sample.map_or(Time::NEVER, |every| Time::ZERO + every));
        Sim {
            now: Time::ZERO,
            moment: queue.moment(measurement, Time::ZERO),
            simplified: false,
            until: plan.until,
            measured_from: plan.measured.start,
            queue,
            measurement,
            samples,
            links,
            wires,
            media,
            packets: Packets::default(),
            access,
            inbox,
            nodes,
            routes,
            lookahead: plan.lookahead,
            changes,
            transport: Transport::new(hasher, plan.measured.clone(), origins),
            sources,
            sample: plan.sample,
            sample_senders: plan.sample_senders,
            gauges: Vec::new(),
            sending: Vec::new(),
            burst: Vec::new(),
            leaving: std::iter::repeat_with(Vec::new).take(partition.parts()).collect(),
            events: 0,
        }
    }

    /// Handles all events up to and including `until`, or up to the end of the run if that comes first.
    pub fn step_to<R: Probe<Segment>>(&mut self, until: Time, probe: &mut R) {
        if !std::mem::replace(&mut self.simplified, true) && !self.changes.any() {
            self.links.iter_mut().for_each(|link| link.simplify(probe));
        }
        let until = until.min(self.until);
        while let Some((moment, owner)) = self.queue.first() {
            let at = moment.at;
            if at > until {
                break;
            }
            (self.now, self.moment) = (at, moment);
            self.events += 1;
            match owner {
                Owner::Link(link) => self.link_event(link, probe),
                Owner::Connection(conn) => {
                    self.transport.on_timer(conn, at, &mut self.queue);
                    self.flush(probe);
                }
                Owner::Source(source) => {
                    let running = &mut self.sources[usize::from(source)];
                    self.queue.set(running.timer, Time::NEVER);
                    if let Some(late) = &mut running.late {
                        late.asks(Time::NEVER, at);
                    }
                    self.with_source(source, probe, |source, net| source.wake(net));
                }
                Owner::Access => self.access_event(probe),
                Owner::Measurement => {
                    if at == self.measured_from {
                        self.links.iter().for_each(|link| link.report_classes(at, probe));
                    }
                    let next = self.transport.measuring(at);
                    self.queue.set(self.measurement, next);
                }
                Owner::Sample => self.sample(probe),
                Owner::Outage => self.outage(),
                Owner::Medium(medium) => self.medium_event(medium, probe),
                Owner::Host(node) => self.host_event(node, probe),
            }
        }
        self.now = self.now.max(until);
    }

    /// Ends the run: reports every flow that is still open to the probe.
    pub fn finish<R: Probe<Segment>>(mut self, probe: &mut R) -> Totals {
        let unarrived = self.close(probe);
        self.report_flows(&unarrived, probe)
    }

    /// Ends the run in this part of the network: ends its sources and empties its links. Returns the
    /// datagrams that were on them.
    pub(crate) fn close<R: Probe<Segment>>(&mut self, probe: &mut R) -> Vec<Unarrived> {
        for number in 0..self.sources.len() {
            // No flush here: packets must not be sent after the end, and the reports are forwarded later.
            if self.sources[number].source.is_some() {
                self.act(number as u16, |source, net| source.finish(net));
            }
        }
        let mut left = Leftover::default();
        for number in 0..self.links.len() {
            self.settle(number as u32, Moment::last(self.now), probe);
            self.links[number].finish(self.now, probe);
        }
        for link in &mut self.links {
            link.reset(&self.packets, self.now, &mut left);
        }
        for number in self.inbox.iter().flat_map(|inbox| inbox.left()) {
            let Packet { meta, payload } = self.packets.get(number);
            left.on_drop(PortId(u32::MAX), meta, payload, DropReason::Reset, self.now);
        }
        left.datagrams
    }

    /// Reports all flows of this part's sources. `unarrived` contains the datagrams on the links of
    /// all parts.
    pub(crate) fn report_flows<R: Probe<Segment>>(
        mut self,
        unarrived: &[Unarrived],
        probe: &mut R,
    ) -> Totals {
        let is_own = |left: &&Unarrived| self.sources[usize::from(left.source)].source.is_some();
        let own = unarrived.iter().filter(is_own).map(|left| (left.stream, left.sent));
        self.transport.finish(self.now, own);
        for report in self.transport.reports.drain(..) {
            probe.on_flow(&report);
        }
        Totals { events: self.events }
    }

    /// Remarks of the sources on the run so far, each with the number of its source.
    pub fn remarks(&self) -> impl Iterator<Item = (u16, String)> + '_ {
        self.sources.iter().zip(0..).filter_map(|(running, number)| {
            // A source of another part has no remark here.
            Some((number, running.source.as_ref()?.remark()?))
        })
    }

    /// The time of the next event; `Time::NEVER` without one.
    pub(crate) fn next_event(&mut self) -> Time {
        self.queue.first().map_or(Time::NEVER, |(moment, _)| moment.at)
    }

    /// The packets that have left for other parts of the network, by the number of the part. The caller
    /// takes them out.
    pub(crate) fn leaving(&mut self) -> &mut [Vec<Crossing>] {
        &mut self.leaving
    }

    /// Receives a packet from another part of the network, before the time at which it arrives.
    pub(crate) fn receive(&mut self, crossing: Crossing) {
        let Crossing { link, at, packet } = crossing;
        let pkt = self.packets.add(packet);
        if self.carry(link, at, pkt) {
            self.links[link as usize].schedule(&mut self.queue);
        }
    }

    /// The simulated time.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Number of events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Bytes of memory that connections take, and the number of connections.
    pub fn connection_memory(&self) -> (usize, usize) {
        self.transport.memory()
    }

    /// Handles an event of a link: its transmitter is free, or packets arrive at its far end. Both at the
    /// same time are two events.
    #[inline]
    fn link_event<R: Probe<Segment>>(&mut self, number: u32, probe: &mut R) {
        let link = &mut self.links[number as usize];
        if link.transmitter_is_due(self.now) {
            if let Some(member) = link.asks() {
                self.media.request(member, self.now, &mut self.queue);
            } else if let Some((at, packet)) = link.pull(self.now, probe) {
                self.depart(number, at, packet);
            }
        } else {
            let to = link.to;
            self.settle(number, self.moment, probe);
            // The link is indexed again for each packet, because an arrival may offer a packet to any link,
            // this one included.
            while let Some(pkt) = self.links[number as usize].next_arrival(self.now) {
                self.arrive(to, pkt, probe);
            }
        }
        self.links[number as usize].schedule(&mut self.queue);
    }

    /// Lets the next link on a shared medium send a burst.
    fn medium_event<R: Probe<Segment>>(&mut self, medium: u16, probe: &mut R) {
        let granted = self.media.grant(medium, self.now);
        let (number, station, spec) = granted.expect("the timer is set while a link waits");
        let mut burst = std::mem::take(&mut self.burst);
        let link = &mut self.links[number as usize];
        let (end, waits) = link.send_burst(self.now, &spec, &mut burst, probe);
        self.media.end(medium, station, (self.now, end), waits, &mut self.queue);
        for (at, packet) in burst.drain(..) {
            self.depart(number, at, packet);
        }
        self.burst = burst;
        self.links[number as usize].schedule(&mut self.queue);
    }

    /// Lets a plain link decide about all packets that arrive before `until`. True if there were any.
    #[inline]
    fn settle<R: Probe<Segment>>(&mut self, link: u32, until: Moment, probe: &mut R) -> bool {
        let mut any = false;
        while let Some((arrival, pkt)) = self.links[link as usize].next_added(until) {
            self.accept(link, pkt, arrival, probe);
            any = true;
        }
        any
    }

    /// Lets a plain link decide about a packet. True if the timer of the link must be set again.
    #[inline]
    fn accept<R: Probe<Segment>>(&mut self, link: u32, pkt: Number, arrival: Moment, probe: &mut R) -> bool {
        let packet = self.packets.get_mut(pkt);
        match self.links[link as usize].accept(packet, arrival, &self.queue, probe) {
            Some(at) => self.carry(link, at, pkt),
            None => {
                self.packets.discard(pkt);
                false
            }
        }
    }

    /// Carries a packet whose transmission starts, and its copy if the wire makes one.
    #[inline]
    fn depart(&mut self, link: u32, at: Time, packet: Packet<Segment>) {
        let departing = self.packets.add(packet);
        self.carry(link, at, departing);
        if let Some(copy) = self.links[link as usize].copy() {
            let copied = self.packets.add(copy);
            self.carry(link, at, copied);
        }
    }

    /// Adds a packet that leaves a link, and reaches its far end at `at`, to the plain link that it will be
    /// offered to next; or puts it on the wire, or sends it to another part of the network. True if it is the
    /// only packet on the wire.
    #[inline]
    fn carry(&mut self, link: u32, mut at: Time, pkt: Number) -> bool {
        let this = &mut self.links[link as usize];
        if let Some(part) = this.leads_to() {
            let packet = self.packets.take(pkt);
            self.leaving[usize::from(part)].push(Crossing { link, at, packet });
            return false;
        }
        let Packet { meta, payload } = self.packets.get(pkt);
        if meta.to == this.to {
            if !payload.has(Segment::DATAGRAM) {
                at = this.handles(at);
            }
        } else if let Some(next) = self.routes.next_of(this.to, meta, payload)
            && let Some(arrival) = this.arrival(at, &self.queue)
            && self.links[next as usize].is_plain()
        {
            let bytes = meta.bytes;
            if self.lookahead > 0 {
                self.set_next_hops(pkt, next);
            }
            self.links[next as usize].add(arrival, bytes, pkt, &mut self.queue);
            return false;
        }
        self.links[link as usize].carry(at, pkt)
    }

    /// Handles a packet that reaches a node: its host receives it, or the node forwards it.
    #[inline]
    fn arrive<R: Probe<Segment>>(&mut self, node: u16, pkt: Number, probe: &mut R) {
        let packet = self.packets.get(pkt);
        if packet.meta.to != node {
            return self.forward(node, pkt, probe);
        }
        if let Some(delay) = self.transport.access_delay(node, &packet.payload) {
            let taken = (node, self.packets.take(pkt));
            return self.access.add(self.now + delay, taken, &mut self.queue);
        }
        self.receive_at_host(node, pkt, probe);
    }

    /// A packet reaches its host, which handles it now or later.
    #[inline]
    fn receive_at_host<R: Probe<Segment>>(&mut self, node: u16, pkt: Number, probe: &mut R) {
        match &mut self.inbox {
            Some(inbox) => inbox.add(node, pkt, self.now, &mut self.queue),
            None => self.deliver(node, pkt, false, probe),
        }
    }

    /// The hosts of a node handle the packets that they have received.
    fn host_event<R: Probe<Segment>>(&mut self, node: u16, probe: &mut R) {
        while let Some((pkt, joined)) =
            self.inbox.as_mut().and_then(|inbox| inbox.next(node, &self.packets, &mut self.queue))
        {
            self.deliver(node, pkt, joined, probe);
        }
    }

    /// Delivers a packet to a host. A segment that is `joined` with a later one is not acknowledged for
    /// itself.
    #[inline]
    fn deliver<R: Probe<Segment>>(&mut self, node: u16, pkt: Number, joined: bool, probe: &mut R) {
        let Packet { meta, payload } = self.packets.get(pkt);
        probe.on_delivery(node, meta, payload, self.now);
        self.transport.deliver(meta, payload, joined, self.now, &mut self.queue);
        self.packets.discard(pkt);
        self.flush(probe);
    }

    /// Handles packets that have crossed access links, from a host to its node or from a node to its host.
    fn access_event<R: Probe<Segment>>(&mut self, probe: &mut R) {
        while let Some((node, pkt)) = self.access.pop(self.now) {
            let from_host = pkt.meta.from == node;
            let crossed = self.packets.add(pkt);
            if from_host {
                self.forward(node, crossed, probe);
            } else {
                self.receive_at_host(node, crossed, probe);
            }
        }
        self.access.schedule(&mut self.queue);
    }

    /// Offers a packet to the port of the link towards its destination.
    #[inline]
    fn forward<R: Probe<Segment>>(&mut self, node: u16, pkt: Number, probe: &mut R) {
        let packet = self.packets.get(pkt);
        let Some(number) = self.routes.next_of(node, &packet.meta, &packet.payload) else {
            let (no_port, why) = (PortId(u32::MAX), DropReason::Unreachable);
            probe.on_drop(no_port, &packet.meta, &packet.payload, why, self.now);
            return self.packets.discard(pkt);
        };
        if self.lookahead > 0 {
            self.set_next_hops(pkt, number);
        }
        if self.links[number as usize].is_plain() {
            let settled = self.settle(number, self.moment, probe);
            let alone = self.accept(number, pkt, self.moment, probe);
            if !settled && !alone && !self.links[number as usize].expects() {
                return;
            }
        } else {
            let offered = self.packets.take(pkt);
            if let Some((at, departing)) = self.links[number as usize].offer(offered, self.now, probe) {
                self.depart(number, at, departing);
            }
        }
        self.links[number as usize].schedule(&mut self.queue);
    }

    /// Writes the next hops after a link on a packet, for the disciplines. They are written at each node,
    /// because an outage may have changed the route since the last one.
    fn set_next_hops(&mut self, pkt: Number, number: u32) {
        let Packet { meta, payload } = self.packets.get(pkt);
        let target = |link: u32| self.links[link as usize].to;
        let next_hops = self.routes.next_hops(target(number), (meta, payload), self.lookahead, target);
        self.packets.get_mut(pkt).meta.next_hops = next_hops;
    }

    /// Lets links fail or come back, and computes the routes of all later packets.
    #[cold]
    fn outage(&mut self) {
        self.changes.apply(self.now, &mut self.links, &mut self.queue);
        let up = self.links.iter().zip(0..).filter(|(link, _)| link.up);
        let up = up.map(|(link, number)| (number, (link.from, link.to, link.cost)));
        self.routes = Routes::over(self.routes.routing(), self.nodes, up);
    }

    /// Puts the packets of all hosts on their links and reports events to the sources and flows to the probe,
    /// until nothing is left: a source that receives an event may send more.
    #[inline]
    fn flush<R: Probe<Segment>>(&mut self, probe: &mut R) {
        loop {
            // Packets go first. An event that the source receives below may have a packet as its consequence,
            // and that packet must not overtake those that were sent before the event.
            if !self.transport.out.is_empty() {
                self.send(probe);
            }
            if self.transport.events.is_empty() && self.transport.reports.is_empty() {
                if self.transport.out.is_empty() {
                    // Only now has every source received the end of its connections, so that their numbers
                    // may be used again.
                    return self.transport.recycle();
                }
                continue;
            }
            self.report(probe);
        }
    }

    /// Puts the packets that the transport has written on their links.
    #[inline]
    fn send<R: Probe<Segment>>(&mut self, probe: &mut R) {
        // The two buffers swap roles, so that neither is allocated again for each flush.
        std::mem::swap(&mut self.sending, &mut self.transport.out);
        let mut sending = std::mem::take(&mut self.sending);
        for pkt in sending.drain(..) {
            let from = pkt.meta.from;
            probe.on_emission(from, &pkt.meta, &pkt.payload, self.now);
            match self.transport.access_delay(from, &pkt.payload) {
                Some(delay) => self.access.add(self.now + delay, (from, pkt), &mut self.queue),
                None => {
                    let sent = self.packets.add(pkt);
                    self.forward(from, sent, probe);
                }
            }
        }
        self.sending = sending;
    }

    /// Reports flows to the probe, and events to the sources.
    fn report<R: Probe<Segment>>(&mut self, probe: &mut R) {
        for report in self.transport.reports.drain(..) {
            probe.on_flow(&report);
        }
        // The whole list is taken: an event that a source causes here is handled in the next round, after
        // the packets of the source have been sent.
        for (source, event) in std::mem::take(&mut self.transport.events) {
            self.act(source, |source, net| source.on(event, net));
        }
    }

    /// Calls a source, then sends the packets that it wrote.
    fn with_source<R: Probe<Segment>>(
        &mut self,
        number: u16,
        probe: &mut R,
        action: impl FnOnce(&mut dyn Source, &mut Net<'_>),
    ) {
        self.act(number, action);
        self.flush(probe);
    }

    /// Lets a source act. Its packets, events and reports stay in the transport until the next
    /// [`flush`](Sim::flush).
    fn act(&mut self, number: u16, action: impl FnOnce(&mut dyn Source, &mut Net<'_>)) {
        let running = &mut self.sources[usize::from(number)];
        let mut source = running.source.take().expect("a source does not act within its own action");
        let mut wake = match &running.late {
            Some(late) => late.due(),
            None => self.queue.time_of(running.timer),
        };
        let caller = Caller { source: number, settings: &running.settings, now: self.now };
        let mut carrier = Simulated { transport: &mut self.transport, queue: &mut self.queue };
        action(&mut *source, &mut Net::new(caller, &mut carrier, &mut wake));
        if let Some(late) = &mut running.late {
            wake = late.asks(wake, self.now);
        }
        self.queue.set(running.timer, wake);
        running.source = Some(source);
    }

    fn sample<R: Probe<Segment>>(&mut self, probe: &mut R) {
        for number in 0..self.links.len() {
            self.settle(number as u32, self.moment, probe);
            self.links[number].sample(self.now, &mut self.gauges, probe);
        }
        if self.sample_senders {
            for sample in self.transport.samples(self.now) {
                probe.on_sender(&sample);
            }
        }
        let every = self.sample.expect("the timer of samples is set only in a run that takes samples");
        self.queue.set(self.samples, self.now + every);
    }
}

/// Collects the datagrams that are in a queue or on a wire when the run ends.
#[derive(Default)]
struct Leftover {
    datagrams: Vec<Unarrived>,
}

impl Probe<Segment> for Leftover {
    fn on_drop(&mut self, _: PortId, _: &Meta, segment: &Segment, _: DropReason, _: Time) {
        if segment.has(Segment::DATAGRAM) && !segment.is_copied_datagram() {
            let Segment { source, conn: stream, .. } = *segment;
            self.datagrams.push(Unarrived { source, stream, sent: segment.datagram_sent() });
        }
    }
}

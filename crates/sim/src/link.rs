//! One direction of a link in a running simulation: the port, the transmitter and the wire.
//!
//! A link has one timer for two kinds of events, set to the earlier of the two. If the transmitter is free
//! and a packet arrives at the far end at the same time, the transmitter comes first. The two events concern
//! different nodes, so their order has no effect.
//!
//! A link whose queue is [plain](crate::plain) has arrivals only.
//!
//! A link whose rate, delay or wire is not constant has a [`Varying`]. It asks the
//! [`Transmitter`] when a transmission begins and ends, and the [`Line`] when the packet arrives. A change of
//! the rate is not an event: the port is informed before its next call. Only while the discipline holds
//! packets back does the timer wait for the next change, too.
//!
//! In a network that is [divided](crate::parallel), the part with the sending node has the port and the
//! transmitter, and the part with the receiving node has the wire. Each has its own `Link`.

use std::collections::VecDeque;

use giveway_links::{Fate, Line, Transmitter};
use giveway_qdisc::{
    Backlog, Cx, DropReason, Interest, Next, Packet, Port, PortId, Probe, Qdisc, Span, Streams, Time,
};

use crate::event_queue::{Class, EventQueue, Moment, Owner, Rank, Timer};
use crate::network::LinkPlan;
use crate::packets::{Number, Packets};
use crate::partition::Partition;
use crate::plain::Plain;
use crate::segment::Segment;

/// One direction of a link.
pub(crate) struct Link {
    /// Sending node.
    pub from: u16,
    /// Receiving node.
    pub to: u16,
    /// Cost of the link for routes.
    pub cost: u32,
    /// False during an outage.
    pub up: bool,
    /// True if the port is in this part of the network.
    here: bool,
    /// The part of the network at the far end, if it is another one.
    leads_to: Option<u16>,
    port: Port<Segment>,
    delay: Span,
    /// Time from the end of a transmission to the event of a plain queue that must have decided by then: the
    /// delay of the wire, or zero if the packet leaves this part of the network.
    grace: Span,
    /// The properties that are not constant.
    varying: Option<Box<Varying>>,
    /// True if packets arrive in the order of their transmission, each after the same delay.
    constant: bool,
    /// Time at which the transmitter next takes a packet from the port; never while the queue is empty or the
    /// link is down.
    next_pull: Time,
    /// Packets on the wire, in order of arrival.
    flight: VecDeque<(Time, Number)>,
    timer: Timer,
    /// The queue and the transmitter of a plain link, in place of `port` and `next_pull`.
    plain: Option<Plain>,
}

/// The part of a link that is not constant.
struct Varying {
    /// The transmitter, if the rate varies.
    transmitter: Option<Transmitter>,
    /// The wire, if it is not perfect.
    line: Option<Line>,
    /// The copy of the last packet, if it arrives twice.
    copy: Option<Packet<Segment>>,
}

/// A packet whose transmission begins, and the time at which it reaches the far end of the link.
pub(crate) type Departure = (Time, Packet<Segment>);

impl Link {
    /// The link `number` of the network, in a part of the partition. A part with the sending node takes the
    /// discipline out of the plan.
    pub fn new(
        number: u32,
        plan: &mut LinkPlan,
        (partition, part): (&Partition, u16),
        streams: &Streams,
        queue: &mut EventQueue,
    ) -> Link {
        let wire = streams.within("wire").within(&plan.name);
        let [here, ends_here] = [plan.from, plan.to].map(|node| partition.part_of(node) == part);
        let leads_to = (here && !ends_here).then(|| partition.part_of(plan.to));
        let elsewhere: Box<dyn Qdisc<Segment>> = Box::new(Elsewhere);
        let varying = plan.impairments.any(plan.loss, plan.jitter).then(|| {
            let line = Line::new((plan.delay, plan.loss, plan.jitter), &plan.impairments, &wire);
            Box::new(Varying {
                transmitter: plan
                    .impairments
                    .rate
                    .as_ref()
                    .map(|profile| Transmitter::new(profile, plan.rate)),
                line: (!line.is_perfect()).then_some(line),
                copy: None,
            })
        });
        let qdisc = if here { std::mem::replace(&mut plan.qdisc, elsewhere) } else { elsewhere };
        Link {
            from: plan.from,
            to: plan.to,
            cost: plan.cost,
            up: true,
            here,
            leads_to,
            port: Port::new(PortId(number), qdisc, plan.rate),
            delay: plan.delay,
            grace: if leads_to.is_some() { Span::ZERO } else { plan.delay },
            constant: varying
                .as_ref()
                .is_none_or(|varying| varying.line.as_ref().is_none_or(Line::is_constant)),
            varying,
            next_pull: Time::NEVER,
            flight: VecDeque::new(),
            timer: queue.add(Owner::Link(number), Rank::of(Class::Packet, &wire)),
            plain: None,
        }
    }

    /// Makes the link plain, if its discipline is plain, nothing of the link varies, and the probe does not
    /// need all reports in one order. No packet may have been offered before.
    pub fn simplify<R: Probe<Segment>>(&mut self, probe: &R) {
        let interest = probe.interest(self.port.id());
        if self.varying.is_none() && interest < Interest::Everything {
            let observed = interest == Interest::Port;
            let plain = |limit| Plain::new(self.port.id(), limit, self.port.rate(), observed);
            self.plain = self.port.plain().map(plain);
        }
    }

    /// True if the queue is plain.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// The moment at which a packet reaches the next node, if the packet may be added to the link after this
    /// one; `None` if that depends on the packets that are on the wire.
    #[inline]
    pub fn arrival(&self, at: Time, queue: &EventQueue) -> Option<Moment> {
        self.constant.then(|| queue.moment(self.timer, at))
    }

    /// The part of the network at the far end, if it is another one.
    #[inline]
    pub fn leads_to(&self) -> Option<u16> {
        self.leads_to
    }

    /// True if packets have been added that have not arrived at the queue.
    #[inline]
    pub fn expects(&self) -> bool {
        self.plain.as_ref().is_some_and(Plain::expects)
    }

    /// Adds a packet that will arrive at the queue of this plain link.
    #[inline]
    pub fn add(&mut self, arrival: Moment, bytes: u32, number: Number, queue: &mut EventQueue) {
        let plain = self.plain.as_mut().expect("packets are added to plain links only");
        if plain.add(arrival, bytes, number) && self.flight.is_empty() {
            queue.set(self.timer, plain.next_end() + self.grace);
        }
    }

    /// Takes the next packet that arrives at the queue of a plain link before `now`.
    #[inline]
    pub fn next_added(&mut self, now: Moment) -> Option<(Moment, Number)> {
        self.plain.as_mut()?.arrived(now)
    }

    /// The plain queue decides about a packet. Returns the time at which it will reach the far end.
    #[inline]
    pub fn accept<R: Probe<Segment>>(
        &mut self,
        pkt: &mut Packet<Segment>,
        arrival: Moment,
        queue: &EventQueue,
        probe: &mut R,
    ) -> Option<Time> {
        let timer = self.timer;
        let plain = self.plain.as_mut().expect("the link is plain");
        let end = plain.accept(pkt, arrival, || queue.moment(timer, arrival.at), probe)?;
        Some(end + self.delay)
    }

    /// Puts a packet on the wire, behind those that do not arrive later. The caller sets the timer
    /// ([`schedule`](Link::schedule)) if this returns true.
    #[inline]
    pub fn carry(&mut self, arrival: Time, number: Number) -> bool {
        if !self.constant {
            return self.carry_in_order(arrival, number);
        }
        self.flight.push_back((arrival, number));
        self.flight.len() == 1
    }

    /// Like [`carry`](Link::carry), for a packet that may overtake others.
    fn carry_in_order(&mut self, arrival: Time, number: Number) -> bool {
        let overtaken = self.flight.iter().rev().take_while(|(at, _)| *at > arrival).count();
        let place = self.flight.len() - overtaken;
        self.flight.insert(place, (arrival, number));
        place == 0
    }

    /// Takes the copy of the packet whose transmission began last, if it arrives twice.
    #[inline]
    pub fn copy(&mut self) -> Option<Packet<Segment>> {
        let varying = self.varying.as_mut()?;
        // Taking nothing out would still move a packet.
        if varying.copy.is_some() { varying.copy.take() } else { None }
    }

    /// True if the event at `now` is that of the transmitter, and not an arrival.
    #[inline]
    pub fn transmitter_is_due(&self, now: Time) -> bool {
        self.next_pull <= now
    }

    /// Offers a packet to the port. Returns the packet whose transmission begins.
    #[inline]
    pub fn offer<R: Probe<Segment>>(
        &mut self,
        pkt: Packet<Segment>,
        now: Time,
        probe: &mut R,
    ) -> Option<Departure> {
        if let Some(varying) = &mut self.varying {
            varying.tell(&mut self.port, now);
        }
        self.port.offer(pkt, now, probe);
        if self.port.free_at() <= now {
            return self.pull(now, probe);
        }
        if self.next_pull == Time::NEVER {
            self.next_pull = self.port.free_at();
        }
        None
    }

    /// Takes a packet from the port, if the discipline releases one, and transmits it.
    #[inline]
    pub fn pull<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) -> Option<Departure> {
        if self.varying.is_some() {
            return self.pull_varying(now, probe);
        }
        match self.port.pull(now, probe) {
            Next::Packet(pkt) => {
                let free = self.port.free_at();
                self.next_pull = if self.has_backlog() { free } else { Time::NEVER };
                Some((free + self.delay, pkt))
            }
            Next::At(at) => {
                self.next_pull = at;
                None
            }
            Next::Empty => {
                self.next_pull = Time::NEVER;
                None
            }
        }
    }

    /// Like [`pull`](Link::pull), for a link that varies.
    fn pull_varying<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) -> Option<Departure> {
        let varying = self.varying.as_mut().expect("the link varies");
        varying.tell(&mut self.port, now);
        if let Some(transmitter) = &mut varying.transmitter {
            let ready = transmitter.ready(now);
            if ready > now {
                self.next_pull = if self.has_backlog() { ready } else { Time::NEVER };
                return None;
            }
        }
        match self.port.pull(now, probe) {
            Next::Packet(pkt) => {
                let (bytes, waits) = (pkt.bytes(), self.port.counters().backlog().packets > 0);
                let mut next_pull = self.port.free_at();
                if let Some(transmitter) = &mut varying.transmitter {
                    let free = transmitter.transmit(bytes, now);
                    self.port.occupy_until(free);
                    next_pull = if waits { transmitter.ready(free) } else { free };
                }
                self.next_pull = if waits { next_pull } else { Time::NEVER };
                let free = self.port.free_at();
                let Some(line) = &mut varying.line else { return Some((free + self.delay, pkt)) };
                match line.carry(bytes, free, self.port.rate()) {
                    Fate::Lost => {
                        self.port.lose(&pkt, DropReason::Wire, now, probe);
                        None
                    }
                    Fate::Arrives(at) => Some((at, pkt)),
                    Fate::ArrivesTwice(at) => {
                        let Packet { meta, payload } = &pkt;
                        varying.copy = Some(Packet { meta: *meta, payload: payload.copied() });
                        Some((at, pkt))
                    }
                }
            }
            Next::At(at) => {
                let change = varying.transmitter.as_ref().map_or(Time::NEVER, Transmitter::next_change);
                self.next_pull = at.min(change);
                None
            }
            Next::Empty => {
                self.next_pull = Time::NEVER;
                None
            }
        }
    }

    /// The next packet that has arrived at the far end by `now`.
    #[inline]
    pub fn arrived(&mut self, now: Time) -> Option<Number> {
        let (at, number) = *self.flight.front()?;
        if at > now {
            return None;
        }
        self.flight.pop_front();
        Some(number)
    }

    /// The link fails or comes back. The queue is kept; packets on the wire still arrive.
    pub fn set_up(&mut self, up: bool, now: Time) {
        self.up = up;
        let resumes = up && self.has_backlog();
        self.next_pull = if resumes { self.port.free_at().max(now) } else { Time::NEVER };
    }

    /// Sets the timer to the next event of the link.
    #[inline]
    pub fn schedule(&self, queue: &mut EventQueue) {
        let next = match (self.flight.front(), &self.plain) {
            (Some((arrival, _)), _) => self.next_pull.min(*arrival),
            (None, Some(plain)) => plain.next_end() + self.grace,
            (None, None) => self.next_pull,
        };
        queue.set(self.timer, next);
    }

    /// Reports the state of the queue to the probe, if the port is in this part of the network.
    pub fn sample<R: Probe<Segment>>(
        &mut self,
        now: Time,
        gauges: &mut Vec<(&'static str, f64)>,
        probe: &mut R,
    ) {
        match &mut self.plain {
            Some(plain) => plain.sample(now, probe),
            None if self.here => self.port.sample(now, gauges, probe),
            None => {}
        }
    }

    /// Reports what has happened at a plain queue by the end of a run.
    pub fn finish<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) {
        if let Some(plain) = &mut self.plain {
            plain.finish(now, probe);
        }
    }

    /// Empties the wire and the queue at the end of a run; `left` receives every packet as dropped.
    pub fn reset<R: Probe<Segment>>(&mut self, packets: &Packets, now: Time, left: &mut R) {
        let coming = self.plain.iter_mut().flat_map(Plain::drain);
        for number in self.flight.drain(..).map(|(_, number)| number).chain(coming) {
            self.port.lose(packets.get(number), DropReason::Reset, now, left);
        }
        self.port.reset(now, left);
    }

    #[inline]
    fn has_backlog(&self) -> bool {
        self.port.counters().backlog().packets > 0
    }
}

impl Varying {
    /// Tells the port of the changes of the rate since the last call.
    #[inline]
    fn tell(&mut self, port: &mut Port<Segment>, now: Time) {
        if let Some(transmitter) = &mut self.transmitter
            && transmitter.may_change(now)
        {
            while let Some((at, rate)) = transmitter.change(now) {
                port.change_rate(rate, at);
            }
        }
    }
}

/// The discipline of a port that another part of the network has: no packet is ever offered to it.
struct Elsewhere;

impl Qdisc<Segment> for Elsewhere {
    fn enqueue(&mut self, _: Packet<Segment>, _: &mut Cx<'_, Segment>) {
        unreachable!("a part offers packets to its own ports only")
    }
    fn dequeue(&mut self, _: &mut Cx<'_, Segment>) -> Next<Segment> {
        Next::Empty
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _: &mut Cx<'_, Segment>) {}
}

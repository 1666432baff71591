//! One direction of a link in a running simulation: the port, the transmitter and the wire.
//!
//! A link has one timer for two kinds of events, set to the earlier of the two. If the transmitter is free
//! and a packet arrives at the far end at the same time, the transmitter comes first. The two events concern
//! different nodes, so their order has no effect.
//!
//! A link whose queue is [plain](crate::plain) has arrivals only.
//!
//! A link whose rate, delay or wire is not constant has a [`Varying`]. It asks the
//! [transmitter](giveway_links::Transmitter) when a transmission begins and ends, and the
//! [line](giveway_links::Line) when the packet arrives. A change of
//! the rate is not an event: the port is informed before its next call. Only while the discipline holds
//! packets back does the timer wait for the next change, too.
//!
//! A link on a shared [medium](crate::media) has no separate transmitter. At its time it asks for the medium
//! in place of transmitting. When it gets it, it sends a burst, whose packets all arrive at the end.
//!
//! If wake-ups are late, the discipline decides late, but the transmitter loses no time: its clock goes on
//! from the end of the last transmission, as in a shaper or a ring of buffers. A late wake-up takes all
//! packets whose transmission starts by then.
//!
//! In a network that is [divided](crate::parallel), the part with the sending node has the port and the
//! transmitter, and the part with the receiving node has the wire. Each has its own `Link`.

use std::collections::VecDeque;

use giveway_qdisc::{
    Backlog, Cx, DropReason, Interest, Next, Packet, Port, PortId, Probe, Qdisc, Rate, Share, Span, Streams,
    Time,
};

use crate::event_queue::{Class, EventQueue, Moment, Owner, Rank, Timer};
use crate::media::Member;
use crate::network::LinkPlan;
use crate::packets::{Number, Packets};
use crate::partition::Partition;
use crate::plain::Plain;
use crate::refused::LinkChangeError;
use crate::segment::Segment;
use crate::timing::Handling;
use crate::varying::{Departure, Sending, Varying};
use giveway_links::MediumSpec;

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
    /// True if the wire takes packets in the order in which they leave it.
    appends: bool,
    /// The time that hosts at the far end take for packets; `None` for none.
    handling: Option<Box<Handling>>,
    /// Time at which the transmitter next takes a packet from the port; never while the queue is empty or the
    /// link is down.
    next_pull: Time,
    /// Packets on the wire, in order of arrival.
    flight: VecDeque<(Time, Number)>,
    timer: Timer,
    /// The queue and the transmitter of a plain link, in place of `port` and `next_pull`.
    plain: Option<Plain>,
}

impl Link {
    /// The link `number` of the network, in a part of the partition. A part with the sending node takes the
    /// discipline out of the plan. `wire` are the streams of the wire.
    pub fn new(
        number: u32,
        plan: &mut LinkPlan,
        (partition, part): (&Partition, u16),
        wire: &Streams,
        queue: &mut EventQueue,
    ) -> Link {
        let [here, ends_here] = [plan.from, plan.to].map(|node| partition.part_of(node) == part);
        let leads_to = (here && !ends_here).then(|| partition.part_of(plan.to));
        let elsewhere: Box<dyn Qdisc<Segment>> = Box::new(Elsewhere);
        let varying = Varying::new(plan, wire);
        let constant = varying.as_ref().is_none_or(|varying| varying.is_constant());
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
            constant,
            varying,
            appends: constant,
            handling: None,
            next_pull: Time::NEVER,
            flight: VecDeque::new(),
            timer: queue.add(Owner::Link(number), Rank::of(Class::Packet, wire)),
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
        self.plain.as_mut()?.next_arrival(now)
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
        if !self.appends {
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

    /// Takes the copy of the packet whose transmission started last, if it arrives twice.
    #[inline]
    pub fn copy(&mut self) -> Option<Packet<Segment>> {
        self.varying.as_mut()?.copy()
    }

    /// True if the event at `now` belongs to the transmitter, and is not an arrival.
    #[inline]
    pub fn transmitter_is_due(&self, now: Time) -> bool {
        self.next_pull <= now
    }

    /// Offers a packet to the port. Returns the packet whose transmission starts.
    #[inline]
    pub fn offer<R: Probe<Segment>>(
        &mut self,
        pkt: Packet<Segment>,
        now: Time,
        probe: &mut R,
    ) -> Option<Departure> {
        if let Some((varying, mut sending)) = self.varying() {
            return varying.offer(pkt, now, &mut sending, probe);
        }
        self.port.offer(pkt, now, probe);
        self.begin(now, probe)
    }

    /// Takes a packet from the port if the transmitter is free, and otherwise when it will be.
    #[inline]
    fn begin<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) -> Option<Departure> {
        if self.port.free_at() <= now {
            return self.pull(now, probe);
        }
        if self.next_pull == Time::NEVER {
            self.next_pull = self.port.free_at();
        }
        None
    }

    /// Looks at the queue as after an arrival, because its discipline or the rate of the link has changed.
    /// Returns the packet whose transmission starts.
    pub fn look<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) -> Option<Departure> {
        if !self.up {
            return None;
        }
        if !self.has_backlog() {
            // The change may have dropped the last packet.
            self.next_pull = Time::NEVER;
            return None;
        }
        match self.varying() {
            Some((varying, mut sending)) => varying.look(now, &mut sending, probe),
            None => self.begin(now, probe),
        }
    }

    /// Replaces the discipline.
    pub fn replace<R: Probe<Segment>>(&mut self, qdisc: Box<dyn Qdisc<Segment>>, now: Time, probe: &mut R) {
        if let Some((varying, sending)) = self.varying() {
            return varying.replace(qdisc, now, sending.port, probe);
        }
        self.port.replace(qdisc, now, probe);
    }

    /// Changes the rate from the next transmission on.
    pub fn change_rate(&mut self, rate: Rate, now: Time) -> Result<(), LinkChangeError> {
        if self.varying.as_ref().is_some_and(|varying| varying.has_profile()) {
            return Err(LinkChangeError::RateVaries);
        }
        self.port.change_rate(rate, now);
        Ok(())
    }

    /// Changes the delay of the wire, whose streams are `wire`, for later transmissions.
    pub fn change_delay(&mut self, delay: Span, wire: &Streams) -> Result<(), LinkChangeError> {
        self.line(wire).change_delay(delay)?;
        self.delay = delay;
        Ok(())
    }

    /// Changes the probability of a loss on the wire, whose streams are `wire`, for later transmissions.
    pub fn change_loss(&mut self, loss: Share, wire: &Streams) -> Result<(), LinkChangeError> {
        self.line(wire).change_loss(loss)
    }

    /// The part that is not constant, with a wire whose properties can change.
    fn line(&mut self, wire: &Streams) -> &mut Varying {
        let last = self.flight.back().map_or(Time::ZERO, |(arrival, _)| *arrival);
        (self.constant, self.appends) = (false, false);
        let varying = self.varying.get_or_insert_default();
        varying.keep_line(self.delay, wire, last);
        varying
    }

    /// The port.
    pub fn port(&self) -> &Port<Segment> {
        &self.port
    }

    /// Takes a packet from the port, if the discipline releases one, and transmits it.
    #[inline]
    pub fn pull<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) -> Option<Departure> {
        if let Some((varying, mut sending)) = self.varying() {
            return varying.pull(now, &mut sending, probe);
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

    /// Lets the hosts at the far end take a time for each packet.
    pub fn handle(&mut self, handling: Handling) {
        self.handling = Some(Box::new(handling));
        self.appends = false;
    }

    /// The time at which the host at the far end has handled a packet that arrives at `at`.
    #[inline]
    pub fn handles(&mut self, at: Time) -> Time {
        self.handling.as_mut().map_or(at, |handling| handling.handles(at))
    }

    /// Puts a link that is planned on a shared medium there.
    pub fn join(&mut self, member: Member) {
        self.varying.as_mut().expect("a link on a medium is not constant").join(member);
    }

    /// The place on a shared medium of a link that has one. The transmitter is due, and asks for the medium.
    #[inline]
    pub fn asks(&mut self) -> Option<Member> {
        self.varying.as_mut()?.asks(&mut self.next_pull)
    }

    /// Sends a burst on the shared medium from `now` on. Its packets go to `burst`, with the time of their
    /// arrival. Returns the end of the burst, and whether there are more packets to send. The end is `now` if
    /// nothing is sent.
    pub fn send_burst<R: Probe<Segment>>(
        &mut self,
        now: Time,
        spec: &MediumSpec,
        burst: &mut Vec<Departure>,
        probe: &mut R,
    ) -> (Time, bool) {
        let up = self.up;
        match self.varying() {
            Some((varying, mut sending)) if up => varying.send_burst(now, spec, burst, &mut sending, probe),
            Some((varying, _)) => {
                varying.gives_up();
                (now, false)
            }
            None => (now, false),
        }
    }

    /// The part that is not constant, with the port.
    #[inline]
    fn varying(&mut self) -> Option<(&mut Varying, Sending<'_>)> {
        let Link { varying, port, next_pull, .. } = self;
        Some((varying.as_mut()?, Sending { port, next_pull }))
    }

    /// The next packet that has arrived at the far end by `now`.
    #[inline]
    pub fn next_arrival(&mut self, now: Time) -> Option<Number> {
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
        let due = if resumes { self.port.free_at().max(now) } else { Time::NEVER };
        match self.varying() {
            Some((varying, mut sending)) => varying.pull_at(due, &mut sending),
            None => self.next_pull = due,
        }
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
        self.report_classes(now, probe);
    }

    /// Reports the classes of the discipline to the probe, if the port is in this part of the network.
    pub fn report_classes<R: Probe<Segment>>(&self, now: Time, probe: &mut R) {
        if self.plain.is_none() && self.here {
            self.port.report_classes(now, probe);
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

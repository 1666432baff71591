//! One direction of a link in a running simulation: the port, the transmitter and the wire.
//!
//! A link has one timer for two kinds of events, set to the earlier of the two. If the transmitter is free
//! and a packet arrives at the far end at the same time, the transmitter comes first. The two events concern
//! different nodes, so their order has no effect.

use std::collections::VecDeque;

use giveway_qdisc::{DropReason, Next, Packet, Port, PortId, Probe, Rng, Span, Streams, Time};

use crate::event_queue::{Class, EventQueue, Owner, Rank, Timer};
use crate::network::LinkPlan;
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
    port: Port<Segment>,
    delay: Span,
    jitter: Span,
    /// Probability that the wire loses a packet.
    loss: f64,
    rng: Rng,
    /// Time at which the transmitter next takes a packet from the port; never while the queue is empty or the
    /// link is down.
    next_pull: Time,
    /// Packets on the wire, in order of arrival.
    flight: VecDeque<(Time, Packet<Segment>)>,
    timer: Timer,
}

impl Link {
    /// The link `number` of the network.
    pub fn new(number: u32, plan: LinkPlan, streams: &Streams, queue: &mut EventQueue) -> Link {
        let wire = streams.within("wire").within(&plan.name);
        Link {
            from: plan.from,
            to: plan.to,
            cost: plan.cost,
            up: true,
            port: Port::new(PortId(number), plan.qdisc, plan.rate),
            delay: plan.delay,
            jitter: plan.jitter,
            loss: plan.loss.get(),
            rng: wire.rng(),
            next_pull: Time::NEVER,
            flight: VecDeque::new(),
            timer: queue.add(Owner::Link(number), Rank::of(Class::Packet, &wire)),
        }
    }

    /// True if the event at `now` is that of the transmitter, and not an arrival.
    #[inline]
    pub fn transmitter_is_due(&self, now: Time) -> bool {
        self.next_pull <= now
    }

    /// Offers a packet to the port, and transmits one if the transmitter is free.
    #[inline]
    pub fn offer<R: Probe<Segment>>(&mut self, pkt: Packet<Segment>, now: Time, probe: &mut R) {
        self.port.offer(pkt, now, probe);
        if self.port.free_at() <= now {
            self.pull(now, probe);
        } else if self.next_pull == Time::NEVER {
            self.next_pull = self.port.free_at();
        }
    }

    /// Takes a packet from the port, if the discipline releases one, and puts it on the wire.
    #[inline]
    pub fn pull<R: Probe<Segment>>(&mut self, now: Time, probe: &mut R) {
        match self.port.pull(now, probe) {
            Next::Packet(pkt) => {
                let free = self.port.free_at();
                self.next_pull = if self.has_backlog() { free } else { Time::NEVER };
                // Without loss no random number is drawn, so that a lossless wire leaves its stream
                // untouched.
                if self.loss > 0.0 && self.rng.uniform() < self.loss {
                    return self.port.lose(&pkt, DropReason::Wire, now, probe);
                }
                let mut arrival = free + self.delay;
                if !self.jitter.is_zero() {
                    arrival += Span::from_ps(self.rng.below(self.jitter.as_ps() + 1));
                    // Jitter does not reorder.
                    arrival = self.flight.back().map_or(arrival, |(last, _)| arrival.max(*last));
                }
                self.flight.push_back((arrival, pkt));
            }
            Next::At(at) => self.next_pull = at,
            Next::Empty => self.next_pull = Time::NEVER,
        }
    }

    /// The next packet that has arrived at the far end by `now`.
    #[inline]
    pub fn arrived(&mut self, now: Time) -> Option<Packet<Segment>> {
        // Not `pop_front_if`: that is a call, and copies the packet once more.
        let (at, _) = self.flight.front()?;
        if *at > now {
            return None;
        }
        self.flight.pop_front().map(|(_, pkt)| pkt)
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
        let arrival = self.flight.front().map_or(Time::NEVER, |(at, _)| *at);
        queue.set(self.timer, self.next_pull.min(arrival));
    }

    /// Reports the state of the port to the probe.
    pub fn sample<R: Probe<Segment>>(&self, now: Time, gauges: &mut Vec<(&'static str, f64)>, probe: &mut R) {
        self.port.sample(now, gauges, probe);
    }

    /// Empties the wire and the queue at the end of a run; `left` receives every packet as dropped.
    pub fn reset<R: Probe<Segment>>(&mut self, now: Time, left: &mut R) {
        for (_, pkt) in self.flight.drain(..) {
            self.port.lose(&pkt, DropReason::Reset, now, left);
        }
        self.port.reset(now, left);
    }

    #[inline]
    fn has_backlog(&self) -> bool {
        self.port.counters().backlog().packets > 0
    }
}

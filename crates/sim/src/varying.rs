//! The part of a [link](crate::link) that is not constant: its rate or its wire varies, it is on a shared
//! medium, or its wake-ups are late.

use giveway_links::{Fate, Impairments, Line, MediumSpec, Transmitter, Waker};
use giveway_qdisc::{DropReason, Next, Packet, Port, Probe, Qdisc, Share, Span, Streams, Time};

use crate::media::Member;
use crate::network::LinkPlan;
use crate::refused::LinkChangeError;
use crate::segment::Segment;

/// A packet whose transmission starts, and the time at which it reaches the far end of the link.
pub(crate) type Departure = (Time, Packet<Segment>);

/// The port of a link, and the time at which the transmitter next takes a packet from it.
pub(crate) struct Sending<'a> {
    pub port: &'a mut Port<Segment>,
    pub next_pull: &'a mut Time,
}

impl Sending<'_> {
    fn backlog(&self) -> u64 {
        self.port.counters().backlog().packets
    }
}

/// The part of a link that is not constant.
#[derive(Default)]
pub(crate) struct Varying {
    /// Constant delay of the wire.
    delay: Span,
    /// The transmitter, if the rate varies.
    transmitter: Option<Transmitter>,
    /// The wire, if it is not perfect.
    line: Option<Line>,
    /// The copy of the last packet, if it arrives twice.
    copy: Option<Packet<Segment>>,
    /// The shared medium, if the link is on one, and whether it has asked for it.
    member: Option<Member>,
    asked: bool,
    /// The thread that takes packets from the port, if it wakes up late, and the time of `next_pull` if it
    /// did not.
    waker: Option<Waker>,
    due: Time,
}

impl Varying {
    /// The part of a link that is not constant; `None` if there is none. `wire` are the streams of the wire.
    pub fn new(plan: &LinkPlan, wire: &Streams) -> Option<Box<Varying>> {
        if !plan.impairments.any(plan.loss, plan.jitter) && plan.medium.is_none() {
            return None;
        }
        let line = Line::new((plan.delay, plan.loss, plan.jitter), &plan.impairments, wire);
        let rate = plan.impairments.rate.as_ref();
        let lateness = plan.impairments.dispatch_jitter.clone();
        Some(Box::new(Varying {
            delay: plan.delay,
            transmitter: rate.map(|profile| Transmitter::new(profile, plan.rate)),
            line: (!line.is_perfect()).then_some(line),
            waker: lateness.map(|lateness| Waker::new(lateness, wire.within("dispatch").rng())),
            ..Varying::default()
        }))
    }

    /// True if packets arrive in the order of their transmission, each after the same delay.
    pub fn is_constant(&self) -> bool {
        self.line.as_ref().is_none_or(Line::is_constant)
    }

    /// Takes the copy of the packet whose transmission started last, if it arrives twice.
    #[inline]
    pub fn copy(&mut self) -> Option<Packet<Segment>> {
        // Taking nothing out would still move a packet.
        if self.copy.is_some() { self.copy.take() } else { None }
    }

    /// Replaces the ends of transmissions in a burst that ends at `end` by times of arrival. Packets that the
    /// wire loses are taken out, and copies added.
    fn arrive_together<R: Probe<Segment>>(
        &mut self,
        burst: &mut Vec<Departure>,
        end: Time,
        port: &Port<Segment>,
        now: Time,
        probe: &mut R,
    ) {
        let mut copies = Vec::new();
        burst.retain_mut(|(at, pkt)| {
            // Only a packet whose transmission never ends does not end with the burst.
            if *at == Time::NEVER {
                return true;
            }
            let fate = match &mut self.line {
                Some(line) => line.carry(pkt.bytes(), end, port.rate()),
                None => Fate::Arrives(end + self.delay),
            };
            match fate {
                Fate::Lost => {
                    port.lose(pkt, DropReason::Wire, now, probe);
                    return false;
                }
                Fate::Arrives(arrival) => *at = arrival,
                Fate::ArrivesTwice(arrival) => {
                    *at = arrival;
                    let copy = Packet { meta: pkt.meta, payload: pkt.payload.copied() };
                    copies.push((arrival, copy));
                }
            }
            true
        });
        burst.append(&mut copies);
    }

    /// Informs the port of the changes of the rate since the last call.
    #[inline]
    fn inform(&mut self, port: &mut Port<Segment>, now: Time) {
        if let Some(transmitter) = &mut self.transmitter {
            transmitter.inform(port, now);
        }
    }

    /// Puts the link on a shared medium.
    pub fn join(&mut self, member: Member) {
        self.member = Some(member);
    }

    /// Offers a packet to the port. Returns the packet whose transmission starts.
    pub fn offer<R: Probe<Segment>>(
        &mut self,
        pkt: Packet<Segment>,
        now: Time,
        sending: &mut Sending<'_>,
        probe: &mut R,
    ) -> Option<Departure> {
        self.inform_by(now, sending.port);
        sending.port.offer(pkt, now, probe);
        self.look(now, sending, probe)
    }

    /// Looks at the queue after an arrival or another change. Returns the packet whose transmission starts.
    pub fn look<R: Probe<Segment>>(
        &mut self,
        now: Time,
        sending: &mut Sending<'_>,
        probe: &mut R,
    ) -> Option<Departure> {
        if self.waker.is_some() {
            return self.look_late(now, sending, probe);
        }
        if self.member.is_some() {
            if !std::mem::replace(&mut self.asked, true) {
                *sending.next_pull = now;
            }
            return None;
        }
        if sending.port.free_at() <= now {
            return self.pull(now, sending, probe);
        }
        if *sending.next_pull == Time::NEVER {
            *sending.next_pull = sending.port.free_at();
        }
        None
    }

    /// Informs the port of the changes of the rate since the last call, before an arrival or another change.
    #[inline]
    fn inform_by(&mut self, now: Time, port: &mut Port<Segment>) {
        // If wake-ups are late, the next transmission may begin before now.
        let by = if self.waker.is_some() { now.min(port.free_at()) } else { now };
        self.inform(port, by);
    }

    /// Replaces the discipline. The new one learns the present rate, if it varies.
    pub fn replace<R: Probe<Segment>>(
        &mut self,
        qdisc: Box<dyn Qdisc<Segment>>,
        now: Time,
        port: &mut Port<Segment>,
        probe: &mut R,
    ) {
        self.inform_by(now, port);
        port.replace(qdisc, now, probe);
        if self.has_profile() {
            port.change_rate(port.rate(), now);
        }
    }

    /// True if the rate follows a profile.
    pub fn has_profile(&self) -> bool {
        self.transmitter.is_some()
    }

    /// Keeps a wire whose properties can change, if there is none: with this delay, these streams, and a last
    /// packet that arrives at `last`.
    pub fn keep_line(&mut self, delay: Span, wire: &Streams, last: Time) {
        let perfect = || Line::new((delay, Share::default(), Span::ZERO), &Impairments::default(), wire);
        self.line.get_or_insert_with(|| perfect().behind(last));
    }

    /// Changes the delay of the wire.
    pub fn change_delay(&mut self, delay: Span) -> Result<(), LinkChangeError> {
        let changed = self.line.as_mut().is_some_and(|line| line.set_delay(delay));
        if !changed {
            return Err(LinkChangeError::DelayVaries);
        }
        self.delay = delay;
        Ok(())
    }

    /// Changes the probability of a loss on the wire.
    pub fn change_loss(&mut self, loss: Share) -> Result<(), LinkChangeError> {
        let changed = self.line.as_mut().is_some_and(|line| line.set_loss(loss));
        if changed { Ok(()) } else { Err(LinkChangeError::LossVaries) }
    }

    /// Like [`look`](Varying::look), for a link whose wake-ups are late.
    fn look_late<R: Probe<Segment>>(
        &mut self,
        now: Time,
        sending: &mut Sending<'_>,
        probe: &mut R,
    ) -> Option<Departure> {
        let free_at = sending.port.free_at();
        // A packet that finds the transmitter idle causes no wake-up. Nor does one while a discipline holds
        // packets back.
        let waits = *sending.next_pull < Time::NEVER && self.due <= free_at;
        if free_at <= now && !waits {
            self.due = now;
            return self.pull(now, sending, probe);
        }
        if *sending.next_pull == Time::NEVER {
            self.pull_at(free_at, sending);
        }
        None
    }

    /// Sets the time at which the transmitter takes a packet, which is later if its wake-ups are late.
    pub fn pull_at(&mut self, due: Time, sending: &mut Sending<'_>) {
        *sending.next_pull = due;
        if let Some(waker) = &mut self.waker
            && due < Time::NEVER
        {
            self.due = due;
            *sending.next_pull = waker.handles(due);
        }
    }

    /// Takes a packet from the port, if the discipline releases one, and transmits it.
    pub fn pull<R: Probe<Segment>>(
        &mut self,
        now: Time,
        sending: &mut Sending<'_>,
        probe: &mut R,
    ) -> Option<Departure> {
        let begin = if self.waker.is_some() { self.due } else { now };
        self.inform(sending.port, begin);
        if let Some(transmitter) = &mut self.transmitter {
            let ready = transmitter.ready(begin);
            if ready > begin {
                let backlog = sending.backlog() > 0;
                self.pull_at(if backlog { ready } else { Time::NEVER }, sending);
                return None;
            }
        }
        match sending.port.pull(now, probe) {
            Next::Packet(pkt) => {
                let (bytes, waits) = (pkt.bytes(), sending.backlog() > 0);
                let mut next_pull = sending.port.free_at();
                if let Some(transmitter) = &mut self.transmitter {
                    let free = transmitter.transmit(bytes, begin);
                    sending.port.occupy_until(free);
                    next_pull = if waits { transmitter.ready(free) } else { free };
                } else if self.waker.is_some() {
                    next_pull = begin + sending.port.rate().time_for(u64::from(bytes));
                    sending.port.occupy_until(next_pull);
                }
                self.pull_at(if waits { next_pull } else { Time::NEVER }, sending);
                // A packet that was taken late may have been transmitted before that, by the clock.
                let free = sending.port.free_at().max(now);
                let Some(line) = &mut self.line else { return Some((free + self.delay, pkt)) };
                match line.carry(bytes, free, sending.port.rate()) {
                    Fate::Lost => {
                        sending.port.lose(&pkt, DropReason::Wire, now, probe);
                        None
                    }
                    Fate::Arrives(at) => Some((at, pkt)),
                    Fate::ArrivesTwice(at) => {
                        let Packet { meta, payload } = &pkt;
                        self.copy = Some(Packet { meta: *meta, payload: payload.copied() });
                        Some((at, pkt))
                    }
                }
            }
            Next::At(at) => {
                let change = self.transmitter.as_ref().map_or(Time::NEVER, Transmitter::next_change);
                self.pull_at(at.min(change), sending);
                None
            }
            Next::Empty => {
                *sending.next_pull = Time::NEVER;
                None
            }
        }
    }

    /// The place on a shared medium of a link that has one. The transmitter is due, and asks for the medium.
    #[inline]
    pub fn asks(&mut self, next_pull: &mut Time) -> Option<Member> {
        let member = self.member?;
        self.asked = true;
        *next_pull = Time::NEVER;
        Some(member)
    }

    /// The link is down when it gets the medium.
    pub fn gives_up(&mut self) {
        self.asked = false;
    }

    /// Sends a burst on the shared medium from `now` on. Its packets go to `burst`, with the time of their
    /// arrival. Returns the end of the burst, and whether there are more packets to send. The end is `now` if
    /// nothing is sent.
    pub fn send_burst<R: Probe<Segment>>(
        &mut self,
        now: Time,
        spec: &MediumSpec,
        burst: &mut Vec<Departure>,
        sending: &mut Sending<'_>,
        probe: &mut R,
    ) -> (Time, bool) {
        let mtu = self.member.map_or(0, |member| member.mtu);
        self.asked = false;
        self.inform(sending.port, now);
        let begin = now + spec.overhead;
        let (mut end, mut bytes, mut silent) = (begin, 0, false);
        *sending.next_pull = loop {
            let packets = burst.len() as u32;
            let longest = sending.port.rate().time_for(u64::from(mtu));
            let fits = packets < spec.limit.packets
                && bytes + u64::from(mtu) <= spec.limit.bytes
                && end.since(begin) + longest <= spec.limit.time;
            if packets > 0 && !fits {
                break Time::NEVER;
            }
            if let Some(transmitter) = &mut self.transmitter {
                let ready = transmitter.ready(end);
                if ready > end {
                    silent = true;
                    break ready;
                }
            }
            let pkt = match sending.port.pull(now, probe) {
                Next::Packet(pkt) => pkt,
                Next::At(at) => break at,
                Next::Empty => break Time::NEVER,
            };
            bytes += u64::from(pkt.bytes());
            let sent = match &mut self.transmitter {
                Some(transmitter) => transmitter.transmit(pkt.bytes(), end),
                None => end + sending.port.rate().time_for(u64::from(pkt.bytes())),
            };
            // The next packet of the burst is taken at the same time.
            sending.port.occupy_until(now);
            burst.push((sent, pkt));
            if sent == Time::NEVER {
                break Time::NEVER;
            }
            end = sent;
        };
        if burst.is_empty() {
            end = now;
        }
        sending.port.occupy_until(end);
        self.arrive_together(burst, end, sending.port, now, probe);
        let backlog = sending.backlog();
        if backlog == 0 {
            *sending.next_pull = Time::NEVER;
        }
        let waits = backlog > 0 && *sending.next_pull == Time::NEVER;
        // While the rate is zero an arrival changes nothing. A discipline that holds packets back may release
        // an arrival at once.
        self.asked = waits || (silent && backlog > 0);
        (end, waits)
    }
}

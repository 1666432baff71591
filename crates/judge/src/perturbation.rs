//! A hidden change of what a candidate sees, which an honest discipline does not notice.
//!
//! A candidate is a program, and its author may know the public cells. A discipline decides by the packets in
//! its queue, and by differences of times. So nothing may depend on the hour at which a test starts, on the
//! numbers of flows and hosts, on the number of packets before the test, or on the seed. A perturbation
//! changes these, and leaves the traffic of the test as it is. Outcomes of an honest discipline change by
//! chance only: hash collisions differ, and TCP amplifies small differences.

use giveway_qdisc::{
    Backlog, Cx, FlowKey, LinkContext, Meta, Next, Outbox, Packet, Qdisc, Rate, Span, Streams, Time,
};

/// A part of a perturbation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The clock of the candidate starts later.
    Clock,
    /// Packets pass the queue before the test.
    Count,
    /// Flows and hosts have other numbers.
    Names,
    /// The random numbers of the candidate have another seed.
    Seed,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 4] = [Part::Clock, Part::Count, Part::Names, Part::Seed];

    /// The name of the part in results.
    pub fn name(self) -> &'static str {
        match self {
            Part::Clock => "clock",
            Part::Count => "count",
            Part::Names => "names",
            Part::Seed => "seed",
        }
    }

    /// The sentence about a candidate that notices this part.
    pub fn says(self) -> &'static str {
        match self {
            Part::Clock => {
                "it decides by the time of day: with a clock that begins later its outcomes differ"
            }
            Part::Count => {
                "it counts: if other packets passed the queue before the test, its outcomes differ"
            }
            Part::Names => "it knows flows or hosts by their numbers: with other numbers its outcomes differ",
            Part::Seed => "it reads the seed: with other random numbers its outcomes differ",
        }
    }
}

/// A hidden change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Perturbation {
    /// The time by which the clock of the candidate is ahead.
    pub clock: Span,
    /// The number of packets before the test.
    pub count: u32,
    /// The bits that are flipped in the numbers of flows and hosts.
    pub names: (u64, u16),
    /// The seed of the random numbers of the candidate; `None` for the seed of the run.
    pub seed: Option<u64>,
}

impl Perturbation {
    /// The hidden change that a stream of random numbers draws, with these parts.
    pub fn drawn(streams: &Streams, parts: &[Part]) -> Perturbation {
        let mut rng = streams.within("perturbation").rng();
        // An hour to a day; and about as many packets as a test has.
        let (clock, count) = (3_600 + rng.below(82_800), 10_000 + rng.below(15_000));
        let (names, seed) = (rng.word(), rng.word());
        let has = |part: Part| parts.contains(&part);
        // Packets before the test take time, so the clock starts later with them, too.
        let clock = if has(Part::Clock) { Span::s(clock) } else { Span::ZERO };
        Perturbation {
            clock,
            count: if has(Part::Count) { count as u32 } else { 0 },
            names: if has(Part::Names) { (names, (names >> 7) as u16 & 0x7fff) } else { (0, 0) },
            seed: has(Part::Seed).then_some(seed),
        }
    }

    /// The link as the candidate sees it.
    pub fn context(&self, context: &LinkContext) -> LinkContext {
        let streams = match self.seed {
            Some(seed) => Streams::new(seed).within(context.streams.path().trim_start_matches('/')),
            None => context.streams.clone(),
        };
        LinkContext { streams, ..context.clone() }
    }
}

/// The time between two packets before the test, and the longest time until the last of them has left.
const GAP: Span = Span::us(500);
const EMPTY: Span = Span::s(10);

/// A candidate that sees a hidden change. Judgements read neither its flow table nor its gauges.
pub struct Perturbed<P, Q> {
    inner: Q,
    perturbation: Perturbation,
    /// The time by which its clock is ahead, with the packets before the test.
    ahead: Span,
    begun: Begun,
    /// Packets from before the test that the candidate still has.
    foreign: Backlog,
    out: Outbox<P>,
}

/// The beginning of the test on the clock of the candidate; `None` before it.
#[derive(Clone, Copy)]
struct Begun(Option<Time>);

impl Begun {
    /// True for a packet from before the test.
    fn is_before(self, meta: &Meta) -> bool {
        self.0.is_some_and(|begun| meta.arrived < begun)
    }
}

impl<P, Q> Perturbed<P, Q> {
    /// A candidate behind a hidden change.
    pub fn new(inner: Q, perturbation: Perturbation) -> Perturbed<P, Q> {
        let before = if perturbation.count > 0 {
            GAP.scale(u64::from(perturbation.count), 1) + EMPTY
        } else {
            Span::ZERO
        };
        let ahead = perturbation.clock + before;
        Perturbed {
            inner,
            ahead,
            perturbation,
            begun: Begun(None),
            foreign: Backlog::ZERO,
            out: Outbox::default(),
        }
    }

    fn hide(&self, meta: Meta) -> Meta {
        self.renamed(Meta { arrived: meta.arrived + self.ahead, ..meta })
    }

    fn show(&self, meta: Meta) -> Meta {
        self.renamed(Meta { arrived: Time::ZERO + meta.arrived.since(Time::ZERO + self.ahead), ..meta })
    }

    /// Flipping bits twice restores them.
    fn renamed(&self, meta: Meta) -> Meta {
        let (flow, host) = self.perturbation.names;
        Meta { flow: FlowKey(meta.flow.0 ^ flow), from: meta.from ^ host, to: meta.to ^ host, ..meta }
    }
}

impl<P: Default, Q: Qdisc<P>> Perturbed<P, Q> {
    /// Calls the candidate at its time, and hands on what it drops and marks.
    fn call<R>(&mut self, cx: &mut Cx<'_, P>, call: impl FnOnce(&mut Q, &mut Cx<'_, P>) -> R) -> R {
        self.begin(cx.now());
        let mut out = std::mem::take(&mut self.out);
        let result = call(&mut self.inner, &mut Cx::new(cx.now() + self.ahead, &mut out));
        for (packet, _) in out.dropped.iter().filter(|(packet, _)| self.begun.is_before(&packet.meta)) {
            self.foreign.sub(packet.meta.bytes);
        }
        out.dropped.retain(|(packet, _)| !self.begun.is_before(&packet.meta));
        out.marked.retain(|meta| !self.begun.is_before(meta));
        for (packet, _) in &mut out.dropped {
            packet.meta = self.show(packet.meta);
        }
        for meta in &mut out.marked {
            *meta = self.show(*meta);
        }
        cx.relay(&mut out, |payload| payload);
        self.out = out;
        result
    }

    /// Passes the packets before the test through the candidate, once.
    fn begin(&mut self, now: Time) {
        if self.begun.0.is_some() || self.perturbation.count == 0 {
            return;
        }
        self.begun = Begun(Some(now + self.ahead));
        let mut time = now + self.perturbation.clock;
        let end = now + self.ahead;
        let mut rng = Streams::new(self.perturbation.names.0 ^ 0x5eed).within("before").rng();
        let mut wake = None;
        for _ in 0..self.perturbation.count {
            time += GAP;
            // Datagrams of 20 flows, which end before the test.
            let flow = FlowKey(rng.word() % 20 + 1);
            let bytes = 64 + rng.below(1000) as u32;
            let meta = Meta { flow, bytes, from: 900, to: 901, arrived: time, ..Meta::default() };
            let packet = Packet { meta, payload: P::default() };
            self.inner.enqueue(packet, &mut Cx::new(time, &mut self.out));
            if wake.is_none_or(|wake| wake <= time) {
                wake = self.one(time);
            }
        }
        // The rest leaves.
        while self.inner.backlog().packets > 0 && time < end {
            time = wake.unwrap_or(time + GAP).min(end);
            wake = self.one(time);
        }
        self.out.dropped.clear();
        self.out.marked.clear();
        self.foreign = self.inner.backlog();
    }

    /// Takes a packet that is not of the test, and forgets it. Returns the time of the next attempt.
    fn one(&mut self, time: Time) -> Option<Time> {
        match self.inner.dequeue(&mut Cx::new(time, &mut self.out)) {
            Next::At(at) => Some(at),
            Next::Packet(_) | Next::Empty => None,
        }
    }
}

impl<P: Default, Q: Qdisc<P>> Qdisc<P> for Perturbed<P, Q> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let hidden = Packet { meta: self.hide(pkt.meta), ..pkt };
        self.call(cx, |inner, cx| inner.enqueue(hidden, cx));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        match self.call(cx, |inner, cx| inner.dequeue(cx)) {
            Next::Packet(packet) if self.begun.is_before(&packet.meta) => {
                self.foreign.sub(packet.meta.bytes);
                self.dequeue(cx)
            }
            Next::Packet(packet) => {
                Next::Packet(Packet { meta: self.show(packet.meta), payload: packet.payload })
            }
            Next::At(at) => Next::At(Time::ZERO + at.since(Time::ZERO + self.ahead)),
            Next::Empty => Next::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        let all = self.inner.backlog();
        Backlog { packets: all.packets - self.foreign.packets, bytes: all.bytes - self.foreign.bytes }
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.call(cx, |inner, cx| inner.reset(cx));
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.begin(now);
        self.inner.rate_changed(rate, now + self.ahead);
    }
}

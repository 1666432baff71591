//! A hidden change of what a candidate sees, which an honest discipline does not notice.
//!
//! A candidate is a program, and its author may know the public cells. A discipline decides by the packets in
//! its queue, and by differences of times. So nothing may depend on the hour at which a test starts, on the
//! numbers of flows and hosts, on the number of packets before the test, or on the seed. A perturbation
//! changes these, and leaves the traffic of the test as it is. Outcomes of an honest discipline change by
//! chance only: hash collisions differ, and TCP amplifies small differences.
//!
//! No change may cancel out in a simple function of what a candidate sees. So numbers of flows and hosts go
//! through a permutation with a key ([`Names`]), under which a difference or an exclusive or of two numbers
//! changes as well. Packets before the test look like packets of a test ([`Before`]): a candidate that counts
//! from the first packet with an offset, or from the first full queue, counts them. Each run has its own
//! change, so a sum that cancels in one does not cancel in the next.

use giveway_qdisc::{Backlog, Cx, LinkContext, Meta, Next, Outbox, Packet, Qdisc, Rate, Span, Streams, Time};

use crate::before::Before;
use crate::names::Names;
use crate::rejected::Code;

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

    /// The kind of the reason for which a candidate that notices this part is rejected.
    pub fn code(self) -> Code {
        match self {
            Part::Clock => Code::Clock,
            Part::Count => Code::Count,
            Part::Names => Code::Names,
            Part::Seed => Code::Seed,
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
    /// The packets before the test; `None` for none.
    pub before: Option<Before>,
    /// The key of the numbers of flows and hosts; `None` for their own numbers.
    pub names: Option<Names>,
    /// The seed of the random numbers of the candidate; `None` for the seed of the run.
    pub seed: Option<u64>,
}

impl Perturbation {
    /// The hidden change that a stream of random numbers draws, with these parts.
    pub fn drawn(streams: &Streams, parts: &[Part]) -> Perturbation {
        let mut rng = streams.within("perturbation").rng();
        // An hour to a day, to the picosecond: a second, a millisecond or a tick has no common phase.
        let clock = Span::s(3_600) + Span::from_ps(rng.below(82_800 * 1_000_000_000_000));
        let (before, names, seed) = (Before::drawn(&mut rng), Names::drawn(&mut rng), rng.word());
        let has = |part: Part| parts.contains(&part);
        // Packets before the test take time, so the clock starts later with them, too.
        Perturbation {
            clock: if has(Part::Clock) { clock } else { Span::ZERO },
            before: has(Part::Count).then_some(before),
            names: has(Part::Names).then_some(names),
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

/// A candidate that sees a hidden change. Judgements read neither its flow table nor its gauges.
pub struct Perturbed<P, Q> {
    inner: Q,
    perturbation: Perturbation,
    /// The packets before the test, in the order of their times since the start of the change.
    before: Vec<(Span, Meta)>,
    /// The rate of the link on which they leave.
    rate: Rate,
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
    /// A candidate at a link of this rate behind a hidden change.
    pub fn new(inner: Q, rate: Rate, perturbation: Perturbation) -> Perturbed<P, Q> {
        // A link that is off at first has no rate.
        let rate = rate.max(Rate::kbit(100));
        let before = perturbation.before.as_ref().map_or(Vec::new(), |before| before.packets(rate));
        let lasts = perturbation
            .before
            .as_ref()
            .map_or(Span::ZERO, |drawn| before.last().map_or(Span::ZERO, |(at, _)| *at) + drawn.last);
        let ahead = perturbation.clock + lasts;
        Perturbed {
            inner,
            ahead,
            perturbation,
            before,
            rate,
            begun: Begun(None),
            foreign: Backlog::ZERO,
            out: Outbox::default(),
        }
    }

    fn hide(&self, meta: Meta) -> Meta {
        let meta = Meta { arrived: meta.arrived + self.ahead, ..meta };
        self.perturbation.names.as_ref().map_or(meta, |names| names.hide(meta))
    }

    fn show(&self, meta: Meta) -> Meta {
        let meta = self.perturbation.names.as_ref().map_or(meta, |names| names.show(meta));
        Meta { arrived: Time::ZERO + meta.arrived.since(Time::ZERO + self.ahead), ..meta }
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

    /// Passes the packets before the test through the candidate, once. Those that have not left stay: a queue
    /// is not always empty.
    fn begin(&mut self, now: Time) {
        if self.begun.0.is_some() || self.before.is_empty() {
            return;
        }
        self.begun = Begun(Some(now + self.ahead));
        let begin = now + self.perturbation.clock;
        // The time from which the link is free, or at which the candidate wants to be asked.
        let mut next = begin;
        for (at, meta) in std::mem::take(&mut self.before) {
            let arrived = begin + at;
            while self.inner.backlog().packets > 0 && next < arrived {
                next = self.one(next);
            }
            let meta = Meta { arrived, ..meta };
            let meta = self.perturbation.names.as_ref().map_or(meta, |names| names.hide(meta));
            let packet = Packet { meta, payload: P::default() };
            self.inner.enqueue(packet, &mut Cx::new(arrived, &mut self.out));
            if next <= arrived {
                next = self.one(arrived);
            }
        }
        let end = now + self.ahead;
        while self.inner.backlog().packets > 0 && next < end {
            next = self.one(next);
        }
        self.out.dropped.clear();
        self.out.marked.clear();
        self.foreign = self.inner.backlog();
    }

    /// Takes a packet that is not of the test, and forgets it. Returns the time of the next attempt.
    fn one(&mut self, time: Time) -> Time {
        match self.inner.dequeue(&mut Cx::new(time, &mut self.out)) {
            Next::At(at) => at.max(time + Span::us(1)),
            Next::Packet(packet) => time + self.rate.time_for(u64::from(packet.meta.bytes)),
            Next::Empty => time,
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

//! An observer of a candidate: how long it keeps packets while the link is free.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use giveway_qdisc::{Backlog, Cx, DropReason, FlowKey, Next, Outbox, Packet, Qdisc, Rate, Span, Time};
use giveway_sim::Segment;
use serde::{Deserialize, Serialize};

/// The time after a test in which a candidate must send what it still has.
const DRAIN: Span = Span::s(60);

/// The time after which a packet that a later one of its flow has overtaken counts.
pub const LATE: Span = Span::s(3);

/// A class of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The number of packets that arrived.
    pub packets: u64,
    /// The number that left.
    pub left: u64,
    /// The bytes that left.
    #[serde(default)]
    pub left_bytes: u64,
    /// The sum of their sojourn times, seconds.
    pub sojourn_s: f64,
    /// The sum of the times that they waited while the link was free, seconds.
    pub held_s: f64,
    queued: u64,
}

impl Class {
    /// The mean time that a packet waited while the link was free, seconds.
    pub fn held_mean_s(&self) -> f64 {
        self.held_s / self.packets.max(1) as f64
    }

    /// The mean sojourn time, seconds.
    pub fn sojourn_mean_s(&self) -> f64 {
        self.sojourn_s / self.left.max(1) as f64
    }
}

/// The observations at a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// TCP acknowledgements without data.
    pub acks: Class,
    /// All other packets.
    pub others: Class,
    /// The longest time that the link was free while packets were queued.
    pub longest_idle: Span,
    /// Packets that stayed for [`LATE`] or more after a later packet of their flow had left.
    pub overtaken: u64,
    /// Packets that were still queued a minute after the test.
    pub stuck: u64,
}

impl Seen {
    /// The mean sojourn time of acknowledgements, divided by the mean of all bytes. This is what each byte
    /// would wait first in, first out: by the conservation law of Kleinrock (Naval Res. Logist. Q. 12, 1965),
    /// a discipline that serves whenever it can only distributes it. `None` if no packet waited.
    pub fn acks_behind(&self) -> Option<f64> {
        let all = [&self.acks, &self.others];
        let bytes: u64 = all.iter().map(|class| class.left_bytes).sum();
        let waited: f64 = all.iter().map(|class| class.sojourn_mean_s() * class.left_bytes as f64).sum();
        (waited > 0.0).then(|| self.acks.sojourn_mean_s() * bytes as f64 / waited)
    }
}

/// The observations of a run, one for each link.
pub type Notes = Rc<RefCell<Vec<Seen>>>;

/// A candidate with its observer. Judgements read neither its flow table nor its gauges.
pub struct Watched<Q: Qdisc<Segment>> {
    inner: Q,
    seen: Seen,
    /// The beginning of the time in which the link is free and packets are queued.
    idle_since: Option<Time>,
    /// The times of arrival of the packets of each flow.
    flows: BTreeMap<FlowKey, Flow>,
    now: Time,
    ended: bool,
    notes: Notes,
}

#[derive(Default)]
struct Flow {
    /// Times of arrival, with the number of packets, and the time at which a later packet left.
    queued: BTreeMap<Time, (u32, Option<Time>)>,
}

fn is_ack(segment: &Segment) -> bool {
    let other = Segment::DATAGRAM | Segment::QUIC | Segment::SYN | Segment::FIN;
    segment.len == 0 && segment.flags & Segment::ACK != 0 && segment.flags & other == 0
}

impl<Q: Qdisc<Segment>> Watched<Q> {
    /// A candidate with an observer, which adds to `notes` when it ends.
    pub fn new(inner: Q, notes: &Notes) -> Watched<Q> {
        Watched {
            inner,
            seen: Seen::default(),
            idle_since: None,
            flows: BTreeMap::new(),
            now: Time::ZERO,
            ended: false,
            notes: Rc::clone(notes),
        }
    }

    /// Time passes until `now`.
    fn pass(&mut self, now: Time) {
        if let Some(since) = self.idle_since {
            let idle = now.since(self.now.max(since)).as_s();
            for class in [&mut self.seen.acks, &mut self.seen.others] {
                class.held_s += idle * class.queued as f64;
            }
            self.seen.longest_idle = self.seen.longest_idle.max(now.since(since));
        }
        self.now = now;
    }

    fn class(&mut self, segment: &Segment) -> &mut Class {
        if is_ack(segment) { &mut self.seen.acks } else { &mut self.seen.others }
    }

    /// A packet has gone; it was sent at `sent`, or dropped.
    fn gone(&mut self, packet: &Packet<Segment>, sent: Option<Time>) {
        let arrived = packet.meta.arrived;
        let class = self.class(&packet.payload);
        class.queued = class.queued.saturating_sub(1);
        if let Some(now) = sent {
            class.left += 1;
            class.left_bytes += u64::from(packet.meta.bytes);
            class.sojourn_s += now.since(arrived).as_s();
        }
        let key = packet.meta.flow;
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let now = self.now;
        let is_late = |since: &Option<Time>| since.is_some_and(|since| now.since(since) >= LATE);
        let was_first = flow.queued.first_key_value().is_some_and(|(first, _)| *first == arrived);
        let mut was_late = false;
        if let Some((count, since)) = flow.queued.get_mut(&arrived) {
            was_late = is_late(since);
            *count -= 1;
            if *count == 0 {
                flow.queued.remove(&arrived);
            }
        }
        if sent.is_some() {
            self.seen.overtaken += u64::from(was_late);
            // A later packet leaves first: all that wait now and came before it are overtaken.
            if !was_first {
                flow.queued.range_mut(..arrived).for_each(|(_, (_, since))| *since = since.or(Some(now)));
            }
        }
        if flow.queued.is_empty() {
            self.flows.remove(&key);
        }
    }

    fn call<R>(
        &mut self,
        cx: &mut Cx<'_, Segment>,
        call: impl FnOnce(&mut Q, &mut Cx<'_, Segment>) -> R,
    ) -> R {
        let mut out = Outbox::default();
        let result = call(&mut self.inner, &mut cx.within(&mut out));
        for (packet, _) in &out.dropped {
            self.gone(packet, None);
        }
        cx.relay(&mut out, |segment| segment);
        result
    }

    /// The end of the test: takes out what the candidate still sends, and hands it to `out`. What stays in
    /// the queue stays for ever.
    fn end(&mut self, test: Time, out: &mut Outbox<Segment>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // Packets that were overtaken have waited until now.
        for (count, since) in self.flows.values().flat_map(|flow| flow.queued.values()) {
            if since.is_some_and(|since| test.since(since) >= LATE) {
                self.seen.overtaken += u64::from(*count);
            }
        }
        let mut time = test;
        while self.inner.backlog().packets > 0 && time < test + DRAIN {
            match self.inner.dequeue(&mut Cx::new(time, out)) {
                Next::Packet(packet) => out.dropped.push((packet, DropReason::Reset)),
                Next::At(at) => time = at.max(time + Span::us(1)),
                Next::Empty => break,
            }
        }
        self.seen.stuck = self.inner.backlog().packets;
    }
}

impl<Q: Qdisc<Segment>> Drop for Watched<Q> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end(self.now, &mut Outbox::default());
            self.notes.borrow_mut().push(self.seen);
        }
    }
}

impl<Q: Qdisc<Segment>> Qdisc<Segment> for Watched<Q> {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        self.pass(cx.now());
        let class = self.class(&pkt.payload);
        class.packets += 1;
        class.queued += 1;
        let flow = self.flows.entry(pkt.meta.flow).or_default();
        flow.queued.entry(pkt.meta.arrived).or_default().0 += 1;
        self.call(cx, |inner, cx| inner.enqueue(pkt, cx));
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Segment>) -> Next<Segment> {
        self.pass(cx.now());
        let next = self.call(cx, |inner, cx| inner.dequeue(cx));
        match &next {
            Next::Packet(packet) => {
                self.idle_since = None;
                self.gone(packet, Some(cx.now()));
            }
            _ if self.inner.backlog().packets > 0 => {
                self.idle_since = self.idle_since.or(Some(cx.now()));
            }
            _ => self.idle_since = None,
        }
        next
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.pass(cx.now());
        // The simulator resets a queue at the end of a run, and only then.
        let mut out = Outbox::default();
        self.end(cx.now(), &mut out);
        cx.relay(&mut out, |segment| segment);
        self.call(cx, |inner, cx| inner.reset(cx));
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.inner.rate_changed(rate, now);
    }
}

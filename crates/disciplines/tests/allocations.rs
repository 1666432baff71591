//! No discipline allocates per packet: after a warm-up, 100,000 packets pass without an allocation.

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::{
    Cx, Ecn, FlowKey, Label, LinkContext, Next, NextHops, Outbox, Packet, Qdisc, Rate, Rng, Streams, Time,
};

/// Number of packets that stay queued, if the limit allows it.
const BACKLOG: u64 = 200;
const FLOWS: u64 = 64;
const PAIRS: u64 = 100_000;

/// A discipline and the traffic that passes through it.
struct Traffic {
    qdisc: Box<dyn Qdisc<u64>>,
    rng: Rng,
    out: Outbox<u64>,
    now: Time,
    link: Rate,
    serial: u64,
}

impl Traffic {
    fn arrive(&mut self) {
        let bytes = 40 + self.rng.below(1461) as u32;
        let mut pkt = Packet::new(FlowKey(self.rng.below(FLOWS)), bytes, self.serial);
        pkt.meta.class = (pkt.meta.flow.0 % 4) as u16;
        pkt.meta.arrived = self.now;
        pkt.meta.offset = u32::try_from(self.serial * 700).unwrap_or(u32::MAX);
        pkt.meta.label = match self.serial % 3 {
            0 => Label::NONE,
            1 => Label::SHORT,
            _ => Label::of(Rate::kbit(self.rng.below(1000))),
        };
        pkt.meta.ecn = [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1][(self.serial % 3) as usize];
        pkt.meta.reserved = Rate::kbit(100);
        pkt.meta.remaining = self.rng.below(100_000) as u32;
        (pkt.meta.from, pkt.meta.to) = ((pkt.meta.flow.0 / 8) as u16, (pkt.meta.flow.0 % 8) as u16);
        pkt.meta.next_hops = NextHops::new([8, 16, 64].map(|hops| (pkt.meta.flow.0 % hops) as u16));
        self.serial += 1;
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.settle();
    }

    /// Dequeues the next packet, at the time at which it may leave.
    fn leave(&mut self) {
        loop {
            let next = self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out));
            self.settle();
            match next {
                Next::Packet(pkt) => return self.now += self.link.time_for(u64::from(pkt.bytes())),
                Next::At(at) => self.now = at,
                Next::Empty => return,
            }
        }
    }

    fn settle(&mut self) {
        self.out.dropped.clear();
        self.out.marked.clear();
    }

    /// Keeps the backlog constant: an arrival, a departure, and another arrival if a packet was dropped.
    fn pairs(&mut self, pairs: u64) {
        for _ in 0..pairs {
            self.arrive();
            if self.qdisc.backlog().packets < BACKLOG {
                self.arrive();
            }
            self.leave();
        }
    }
}

/// The number of allocations of a discipline after its warm-up.
fn allocations(spec: &Spec) -> u64 {
    let link = Rate::mbit(10);
    let context = LinkContext::new(link, Streams::new(3).within("allocations"));
    let qdisc = spec.build_numbered(&context).expect("variants can be built");
    let (rng, out) = (Streams::new(4).rng(), Outbox::default());
    let mut traffic = Traffic { qdisc, rng, out, now: Time::ms(1), link, serial: 0 };
    traffic.out.dropped.reserve(1024);
    traffic.out.marked.reserve(1024);
    (0..BACKLOG).for_each(|_| traffic.arrive());
    // The warm-up is as long as the measurement, so that tables and slabs reach their largest size.
    traffic.pairs(PAIRS);
    let before = giveway_counting::calls();
    traffic.pairs(PAIRS);
    giveway_counting::calls() - before
}

#[test]
fn warm_disciplines_do_not_allocate() {
    // Check the counter: building a discipline allocates.
    let before = giveway_counting::calls();
    drop(ALL[0].default().variants());
    assert!(giveway_counting::calls() > before);

    let specs: Vec<Spec> = crate::tested().into_iter().flat_map(|entry| entry.default().variants()).collect();
    let guilty: Vec<String> = specs
        .iter()
        .map(|spec| (spec, allocations(spec)))
        .filter(|(_, allocations)| *allocations > 0)
        .map(|(spec, allocations)| format!("{spec}: {allocations} allocations in {PAIRS} pairs"))
        .collect();
    assert!(guilty.is_empty(), "{}", guilty.join("\n"));
}

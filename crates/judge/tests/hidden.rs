//! Hidden changes do not cancel out: cheats that leave a part of the change out of what they see, or look at
//! a difference in which it vanishes, still decide otherwise than without the change.
//!
//! Each cheat drops packets. A short trace passes it twice, with and without a change, and the share of
//! packets on which it decides otherwise is counted. Judgements of some of these cheats are in `cheats.rs`.

use std::collections::VecDeque;

use giveway_judge::{Around, Part, Perturbation};
use giveway_qdisc::{
    Backlog, Cx, DropReason, Ecn, FlowKey, LinkContext, Meta, Next, Outbox, Packet, Qdisc, Rate, Streams,
    Time,
};
use giveway_sim::Segment;

/// The time and the number from which a cheat cheats, which fit a short trace.
const LATE_S: f64 = 1.0;
const MANY: u64 = 800;

/// The memory of a cheat.
#[derive(Default)]
struct Known {
    begun: Option<Time>,
    last: Option<Time>,
    count: u64,
    key: Option<u64>,
}

impl Known {
    /// True some time after the first packet for which `starts` is true.
    fn after(&mut self, starts: bool, now: Time) -> bool {
        if starts && self.begun.is_none() {
            self.begun = Some(now);
        }
        self.begun.is_some_and(|begun| now.since(begun).as_s() > LATE_S)
    }

    /// True after many packets for which `counts` is true.
    fn beyond(&mut self, counts: bool) -> bool {
        self.count += u64::from(counts);
        self.count > MANY
    }
}

/// A cheat: true for a packet that it drops.
type Cheat = fn(&mut Known, &Meta, Time, Backlog) -> bool;

const CHEATS: &[(&str, Cheat)] = &[
    ("a clock from the first packet with an offset", |known, meta, now, _| known.after(meta.offset > 0, now)),
    ("a count of packets with an offset", |known, meta, _, _| known.beyond(meta.offset > 0)),
    ("source exclusive or destination", |_, meta, _, _| {
        [1 ^ 9, 2 ^ 9, 3 ^ 9].contains(&(meta.from ^ meta.to))
    }),
    ("a clock from the first full packet", |known, meta, now, _| known.after(meta.bytes == 1500, now)),
    ("a clock from the last gap of a second", |known, _, now, _| {
        if known.last.is_none_or(|last| now.since(last).as_s() > 1.0) {
            known.begun = Some(now);
        }
        known.last = Some(now);
        known.after(false, now)
    }),
    ("the order of source and destination", |_, meta, _, _| meta.from < meta.to),
    ("the difference of source and destination", |_, meta, _, _| {
        [8, 7, 6].contains(&meta.to.wrapping_sub(meta.from))
    }),
    ("the exclusive or of two flows", |known, meta, _, _| {
        let first = *known.key.get_or_insert(meta.flow.0);
        let pairs = (0..8).flat_map(|one| (0..one).map(move |other| key(one) ^ key(other)));
        pairs.into_iter().any(|pair| pair == first ^ meta.flow.0)
    }),
    ("the phase of a second", |_, _, now, _| now.as_ps() % 1_000_000_000_000 < 500_000_000_000),
    ("a count of short packets", |known, meta, _, _| {
        known.count += u64::from(meta.bytes <= 64);
        known.count > MANY / 4
    }),
    ("a clock from the first long queue", |known, _, now, backlog| known.after(backlog.packets > 20, now)),
    ("a count of flows with large keys", |known, meta, _, _| known.beyond(meta.flow.0 > 1 << 20)),
    ("a count of hosts with small numbers", |known, meta, _, _| known.beyond(meta.from < 100)),
    ("a count of long packets", |known, meta, _, _| known.beyond(meta.bytes > 1064)),
    ("a clock from the first packet with ECN", |known, meta, now, _| {
        known.after(meta.ecn != Ecn::NotCapable, now)
    }),
];

/// Honest rules: they decide by the packet, by its flow, or by times that it has waited.
const HONEST: &[(&str, Cheat)] = &[
    ("bytes of the flow", |_, meta, _, _| meta.offset > 100_000),
    ("length", |_, meta, _, _| meta.bytes < 100),
    ("the same flow as the packet before", |known, meta, _, _| {
        known.key.replace(meta.flow.0) == Some(meta.flow.0)
    }),
    ("the time since the packet before", |known, _, now, _| {
        known.last.replace(now).is_some_and(|last| now.since(last).as_s() > 0.002)
    }),
];

/// The key of a flow of the trace.
fn key(flow: u64) -> u64 {
    Streams::new(7).within("key").within(&flow.to_string()).rng().word()
}

/// First in, first out, with a cheat.
struct Queue {
    cheat: Cheat,
    known: Known,
    packets: VecDeque<Packet<Segment>>,
    backlog: Backlog,
}

impl Qdisc<Segment> for Queue {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        let is_drop = (self.cheat)(&mut self.known, &pkt.meta, cx.now(), self.backlog);
        // A dropped packet would make the queue shorter, and so change what others see.
        if is_drop || self.backlog.packets >= 200 {
            return cx.drop(pkt, if is_drop { DropReason::Policy } else { DropReason::Overlimit });
        }
        self.backlog.add(pkt.bytes());
        self.packets.push_back(pkt);
    }

    fn dequeue(&mut self, _: &mut Cx<'_, Segment>) -> Next<Segment> {
        match self.packets.pop_front() {
            Some(packet) => {
                self.backlog.sub(packet.bytes());
                Next::Packet(packet)
            }
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.packets.drain(..).for_each(|packet| cx.drop(packet, DropReason::Reset));
        self.backlog = Backlog::ZERO;
    }
}

/// Eight flows between small numbers of hosts on a link of 10 Mbit/s, which they load fully for about three
/// seconds.
fn trace() -> Vec<(Time, Meta)> {
    let mut rng = Streams::new(3).rng();
    let mut offsets = [0_u32; 8];
    let mut now = Time::ZERO;
    let each = (0..3000).map(|_| {
        now += giveway_qdisc::Span::from_s_f64(rng.exponential(0.0009));
        let flow = rng.below(8);
        let bytes = if flow < 6 { 1500 } else { 52 };
        let hosts = [(1, 9), (2, 9), (3, 9), (9, 4), (5, 9), (6, 9), (9, 7), (9, 8)][flow as usize];
        let ecn = if flow == 2 { Ecn::Ect0 } else { Ecn::NotCapable };
        let offset = offsets[flow as usize];
        offsets[flow as usize] += bytes;
        let flow = FlowKey(key(flow));
        (now, Meta { flow, bytes, from: hosts.0, to: hosts.1, offset, ecn, arrived: now, ..Meta::default() })
    });
    each.collect()
}

/// The packets of the trace that a cheat drops.
fn dropped(trace: &[(Time, Meta)], cheat: Cheat, change: Option<&Perturbation>) -> Vec<bool> {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let around = Around::new(change);
    let queue = Queue { cheat, known: Known::default(), packets: VecDeque::new(), backlog: Backlog::ZERO };
    let mut queue = around.wrap::<()>(&context, |_| Ok(Box::new(queue))).unwrap();
    let mut found = vec![false; trace.len()];
    let mut out = Outbox::default();
    let mut free = Time::ZERO;
    for (place, (now, meta)) in trace.iter().enumerate() {
        let next = |queue: &mut Box<dyn Qdisc<Segment>>, out: &mut Outbox<Segment>, at: Time| match queue
            .dequeue(&mut Cx::new(at, out))
        {
            Next::Packet(packet) => at + context.rate.time_for(u64::from(packet.meta.bytes)),
            _ => at,
        };
        while free < *now && queue.backlog().packets > 0 {
            free = next(&mut queue, &mut out, free);
        }
        let payload = Segment { seq: place as u64, ..Segment::default() };
        queue.enqueue(Packet { meta: *meta, payload }, &mut Cx::new(*now, &mut out));
        free = free.max(*now);
        for (packet, why) in out.dropped.drain(..) {
            found[packet.payload.seq as usize] = why == DropReason::Policy;
        }
    }
    found
}

/// The share of packets on which a cheat decides otherwise, over some secrets.
fn noticed(cheat: Cheat, parts: &[Part]) -> f64 {
    let trace = trace();
    let plain = dropped(&trace, cheat, None);
    let secrets = 3;
    let other: usize = (0..secrets)
        .map(|secret| {
            let change = Perturbation::drawn(&Streams::new(secret), parts);
            dropped(&trace, cheat, Some(&change)).iter().zip(&plain).filter(|(a, b)| a != b).count()
        })
        .sum();
    other as f64 / (plain.len() * secrets as usize) as f64
}

#[test]
fn no_cheat_takes_the_change_out_of_what_it_sees() {
    let shares: Vec<(f64, &str)> =
        CHEATS.iter().map(|(name, cheat)| (noticed(*cheat, &Part::ALL), *name)).collect();
    for (share, name) in &shares {
        println!("{share:.2} {name}");
    }
    // A third of the trace is before the time or the number from which a clock or a counter cheats.
    assert!(shares.iter().all(|(share, _)| *share > 0.15), "{shares:?}");
}

#[test]
fn honest_rules_decide_as_before() {
    for (name, rule) in HONEST {
        assert!(noticed(*rule, &Part::ALL) < 0.001, "{name}");
    }
}

/// Names alone, because they would otherwise hide behind the other parts.
#[test]
fn no_relation_of_numbers_stays() {
    for (name, cheat) in
        CHEATS.iter().filter(|(name, _)| name.contains("source") || name.contains("or of two"))
    {
        assert!(noticed(*cheat, &[Part::Names]) > 0.15, "{name}");
    }
}

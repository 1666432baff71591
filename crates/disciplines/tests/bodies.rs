//! Packets with bodies, in disciplines that decide about numbers.

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, DropReason, FlowKey, LinkContext, Outbox, Packet, Qdisc, Rate, Streams, Time};

fn built(spec: &str) -> Box<dyn Qdisc<&'static str>> {
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    spec.parse::<Spec>().unwrap().build(&context).unwrap()
}

/// A queue, and what it has dropped.
struct Driven {
    qdisc: Box<dyn Qdisc<&'static str>>,
    out: Outbox<&'static str>,
}

impl Driven {
    fn offer(&mut self, flow: u64, bodies: &[&'static str]) {
        for body in bodies {
            let pkt = Packet::new(FlowKey(flow), 1000, *body);
            self.qdisc.enqueue(pkt, &mut Cx::new(Time::ZERO, &mut self.out));
        }
    }
    fn sent(&mut self) -> Vec<&'static str> {
        let qdisc = &mut self.qdisc;
        let mut next = || qdisc.dequeue(&mut Cx::new(Time::ZERO, &mut self.out)).packet();
        std::iter::from_fn(|| next().map(|pkt| pkt.payload)).collect()
    }
    fn dropped(&mut self) -> Vec<(&'static str, DropReason)> {
        self.out.dropped.drain(..).map(|(pkt, why)| (pkt.payload, why)).collect()
    }
}

#[test]
fn bodies_leave_and_are_dropped_with_their_packets() {
    let mut driven = Driven { qdisc: built("drr limit 3p"), out: Outbox::default() };
    driven.offer(1, &["a1", "a2", "a3"]);
    driven.offer(2, &["b1"]);
    let (gone, why) = driven.dropped()[0];
    assert_eq!(why, DropReason::Pushout, "the longest queue makes room");
    let mut sent = driven.sent();
    assert_eq!(sent[..2], ["a1", "b1"]);
    sent.push(gone);
    sent.sort_unstable();
    assert_eq!(sent, ["a1", "a2", "a3", "b1"]);
    // Numbers are used again.
    driven.offer(1, &["c1", "c2"]);
    driven.qdisc.reset(&mut Cx::new(Time::ZERO, &mut driven.out));
    assert_eq!(driven.dropped(), [("c1", DropReason::Reset), ("c2", DropReason::Reset)]);
    assert!(driven.sent().is_empty());
}

/// Of two bands, the second one is kept, and the first one is gone: its packets stay with the old tree.
#[test]
fn a_discipline_that_takes_over_shares_the_bodies_with_the_one_before() {
    let mut old =
        Driven { qdisc: built("tbf rate 1mbit burst 2kb child (fifo limit 9p)"), out: Outbox::default() };
    old.offer(1, &["a", "b", "c"]);
    let mut new =
        Driven { qdisc: built("tbf rate 2mbit burst 9kb child (fifo limit 9p)"), out: Outbox::default() };
    new.qdisc.take_over(&mut *old.qdisc, &mut Cx::new(Time::ZERO, &mut new.out));
    let total = new.qdisc.backlog().packets + old.qdisc.backlog().packets;
    assert_eq!(total, 3);
    new.offer(1, &["d"]);
    old.qdisc.reset(&mut Cx::new(Time::ZERO, &mut old.out));
    new.qdisc.reset(&mut Cx::new(Time::ZERO, &mut new.out));
    let all = [old.dropped(), new.dropped()].concat();
    let mut all: Vec<_> = all.into_iter().map(|(body, _)| body).collect();
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c", "d"]);
}

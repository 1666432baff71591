//! Prints the packets of a lossy transfer, for looking at.
#[path = "../tests/support/mod.rs"]
mod support;
#[path = "../tests/support/story.rs"]
mod story;
use qdisc::{Rate, Span, Time};
use sim::TcpConfig;
use support::Lab;

struct Rounds { inner: std::collections::VecDeque<qdisc::Packet<sim::Segment>>, p: f64, gap: Span, last: Time, losing: bool, rng: qdisc::Rng, drawn: u64, first: u64 }
impl qdisc::Qdisc<sim::Segment> for Rounds {
    fn enqueue(&mut self, pkt: qdisc::Packet<sim::Segment>, cx: &mut qdisc::Cx<'_, sim::Segment>) {
        if cx.now().since(self.last) > self.gap { self.losing = false; }
        if !self.losing { self.drawn += 1; self.losing = pkt.payload.len > 0 && self.rng.uniform() < self.p; if self.losing { self.first += 1; self.last = cx.now(); } }
        if self.losing { cx.drop(pkt, qdisc::DropReason::Policy) } else { self.inner.push_back(pkt) }
    }
    fn dequeue(&mut self, _: &mut qdisc::Cx<'_, sim::Segment>) -> qdisc::Next<sim::Segment> {
        match self.inner.pop_front() { Some(p) => qdisc::Next::Packet(p), None => qdisc::Next::Empty }
    }
    fn backlog(&self) -> qdisc::Backlog { qdisc::Backlog { packets: self.inner.len() as u64, bytes: 0 } }
    fn reset(&mut self, cx: &mut qdisc::Cx<'_, sim::Segment>) { for p in self.inner.drain(..) { cx.drop(p, qdisc::DropReason::Reset) } }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let sack = args.next().is_some_and(|a| a == "sack");
    let loss: f64 = args.next().unwrap().parse().unwrap();
    let size: u64 = args.next().unwrap().parse().unwrap();
    let mut lab = Lab::new(2, 7);
    let rtt = 50u64;
    let qdisc = Box::new(Rounds { inner: Default::default(), p: loss, gap: Span::us(rtt * 500), last: Time::ZERO, losing: false, rng: qdisc::Streams::new(5).rng(), drawn: 0, first: 0 });
    lab.network.link(sim::LinkPlan { from: 0, to: 1, rate: Rate::gbit(1), delay: Span::us(rtt * 500), jitter: Span::ZERO, loss: qdisc::Share::default(), cost: 1, qdisc });
    lab.link(1, 0, Rate::gbit(1), Span::us(rtt * 500), "fifo limit 100000p");
    let tcp = TcpConfig {
        congestion: sim::tcp::Congestion::reno,
        counting: sim::tcp::Counting::Acks,
        delayed_ack: false,
        sack,
        ..TcpConfig::default()
    };
    lab.bulk(&[(0, 1)], Some(size * 1460), &tcp);
    let mut story = story::Story::new(0, 1460, 2000000);
    lab.run(Time::s(400), Time::s(0), &mut story);
    print!("{}", story.text);
}

//! Rate under random loss against the formula of Padhye et al., for looking at.
#[path = "../tests/support/mod.rs"]
mod support;
use qdisc::{PortId, Rate, Span, Time};
use sim::TcpConfig;
use support::{Lab, Tally};

fn pftk(p: f64, rtt: f64, t0: f64, b: f64, wmax: f64) -> f64 {
    let q = |w: f64| {
        let a = (1.0 - (1.0 - p).powi(3)) * (1.0 + (1.0 - p).powi(3) * (1.0 - (1.0 - p).powf(w - 3.0)));
        (a / (1.0 - (1.0 - p).powf(w))).min(1.0)
    };
    let f = 1.0 + p + 2.0 * p * p + 4.0 * p.powi(3) + 8.0 * p.powi(4) + 16.0 * p.powi(5) + 32.0 * p.powi(6);
    let wu = (2.0 + b) / (3.0 * b) + (8.0 * (1.0 - p) / (3.0 * b * p) + ((2.0 + b) / (3.0 * b)).powi(2)).sqrt();
    if wu < wmax {
        ((1.0 - p) / p + wu + q(wu) / (1.0 - p)) / (rtt * (b / 2.0 * wu + 1.0) + q(wu) * t0 * f / (1.0 - p))
    } else {
        ((1.0 - p) / p + wmax + q(wmax) / (1.0 - p))
            / (rtt * (b / 8.0 * wmax + (1.0 - p) / (p * wmax) + 2.0) + q(wmax) * t0 * f / (1.0 - p))
    }
}

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
    let rounds = std::env::args().nth(1).is_some();
    for sack in [false, true] {
        for (rtt, seconds) in [(20, 1000), (50, 2000), (100, 4000)] {
            for loss in [0.001, 0.01, 0.03] {
                let mut lab = Lab::new(2, 7);
                if rounds {
                    let qdisc = Box::new(Rounds { inner: Default::default(), p: loss, gap: Span::us(rtt * 500), last: Time::ZERO, losing: false, rng: qdisc::Streams::new(5).rng(), drawn: 0, first: 0 });
                    lab.network.link(sim::LinkPlan { from: 0, to: 1, rate: Rate::gbit(1), delay: Span::us(rtt * 500), jitter: Span::ZERO, loss: qdisc::Share::default(), cost: 1, qdisc });
                } else {
                    lab.lossy_link(0, 1, Rate::gbit(1), Span::us(rtt * 500), "fifo limit 100000p", loss);
                }
                lab.link(1, 0, Rate::gbit(1), Span::us(rtt * 500), "fifo limit 100000p");
                let tcp = TcpConfig {
                    congestion: sim::tcp::Congestion::reno,
                    counting: sim::tcp::Counting::Acks,
                    delayed_ack: false,
                    sack,
                    rto_min: Span::ms(1000),
                    ..TcpConfig::default()
                };
                lab.bulk(&[(0, 1)], None, &tcp);
                let mut tally = Tally { port: PortId(0), ..Tally::default() };
                lab.run(Time::s(seconds), Time::s(10), &mut tally);
                let flow = &tally.flows[0];
                let rate = flow.packets as f64 / seconds as f64;
                let rtt_s = rtt as f64 / 1000.0 + 1540.0 * 8e-9;
                let formula = pftk(loss, rtt_s, 1.0, 1.0, 2800.0);
                println!(
                    "sack {sack} rtt {rtt} loss {loss}: {rate:.1} packets/s, formula {formula:.1}, ratio {:.3}, timeouts {} losses {} ratio of timeouts {:.3}",
                    rate / formula, flow.timeouts, tally.dropped, flow.timeouts as f64 / tally.dropped as f64
                );
            }
        }
    }
}

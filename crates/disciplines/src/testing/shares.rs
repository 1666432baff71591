//! Who gets how much of a link: a small driver for tests of fairness.
//!
//! Time goes in slots of a millisecond, in each of which the link can send one packet of 1,000 bytes.

use std::collections::VecDeque;

use giveway_qdisc::{Cx, Ecn, FlowKey, LinkContext, Outbox, Packet, Qdisc, Rate, Streams, Time};

use crate::Spec;

/// How a flow sends.
#[derive(Clone, Copy, Debug)]
pub enum Sender {
    /// This many packets per slot on average, at random, whatever becomes of them.
    Deaf(f64),
    /// As much as a window allows, which grows by a packet per round trip of 20 slots, and is halved at most
    /// once per round trip when a packet is lost or marked.
    Window,
}

/// Time in slots until a sender learns of a departure or a loss.
const ROUND_TRIP: u64 = 20;

/// What became of a flow's packets after the first quarter of the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    pub offered: u64,
    pub sent: u64,
    pub marked: u64,
}

impl Flow {
    /// The share of its packets that did not arrive.
    pub fn loss(&self) -> f64 {
        1.0 - self.sent as f64 / self.offered as f64
    }
}

struct Window {
    size: f64,
    in_flight: u64,
    /// Deaf to bad news until then.
    halved_until: u64,
    /// When, and whether it is good news.
    news: VecDeque<(u64, bool)>,
}

/// Runs the flows through a discipline.
pub fn run(spec: &str, flows: &[Sender], slots: u64) -> Vec<Flow> {
    let context = LinkContext::new(Rate::mbit(8), Streams::new(1).within("link"));
    let mut qdisc = spec.parse::<Spec>().unwrap().build::<()>(&context).unwrap();
    let mut rng = Streams::new(2).within("senders").rng();
    let mut out = Outbox::default();
    let mut books = vec![Flow::default(); flows.len()];
    let mut windows: Vec<Window> = flows
        .iter()
        .map(|_| Window { size: 1.0, in_flight: 0, halved_until: 0, news: VecDeque::new() })
        .collect();
    let mut arrivals = Vec::new();
    for slot in 0..slots {
        let counts = slot >= slots / 4;
        arrivals.clear();
        for (number, (flow, window)) in flows.iter().zip(&mut windows).enumerate() {
            let packets = match flow {
                Sender::Deaf(rate) => rate.trunc() as u64 + u64::from(rng.uniform() < rate.fract()),
                Sender::Window => window.allows(slot),
            };
            arrivals.extend((0..packets).map(|_| number));
        }
        // Everything of one slot comes in any order.
        for last in (1..arrivals.len()).rev() {
            arrivals.swap(last, rng.below(last as u64 + 1) as usize);
        }
        for number in &arrivals {
            let mut pkt = Packet::new(FlowKey(*number as u64), 1000, ());
            pkt.meta.arrived = Time::ms(slot);
            if let Sender::Window = flows[*number] {
                pkt.meta.ecn = Ecn::Ect0;
            }
            books[*number].offered += u64::from(counts);
            qdisc.enqueue(pkt, &mut Cx::new(Time::ms(slot), &mut out));
            for meta in out.marked.drain(..) {
                books[meta.flow.0 as usize].marked += u64::from(counts);
            }
            for (pkt, _) in out.dropped.drain(..) {
                windows[pkt.meta.flow.0 as usize].news.push_back((slot + ROUND_TRIP, false));
            }
        }
        if let Some(pkt) = qdisc.dequeue(&mut Cx::new(Time::ms(slot), &mut out)).packet() {
            let number = pkt.meta.flow.0 as usize;
            books[number].sent += u64::from(counts);
            windows[number].news.push_back((slot + ROUND_TRIP, pkt.meta.ecn != Ecn::Marked));
        }
        for (pkt, _) in out.dropped.drain(..) {
            windows[pkt.meta.flow.0 as usize].news.push_back((slot + ROUND_TRIP, false));
        }
    }
    books
}

impl Window {
    /// Processes new feedback, and returns the number of packets that may be sent.
    fn allows(&mut self, slot: u64) -> u64 {
        while let Some((_, good)) = self.news.pop_front_if(|(at, _)| *at <= slot) {
            self.in_flight -= 1;
            if good {
                self.size += 1.0 / self.size;
            } else if slot >= self.halved_until {
                self.size = (self.size / 2.0).max(1.0);
                self.halved_until = slot + ROUND_TRIP;
            }
        }
        let more = (self.size as u64).saturating_sub(self.in_flight);
        self.in_flight += more;
        more
    }
}

/// Ten flows that nothing slows down, the fastest ten times as fast as the slowest, 2.2 times the link
/// together: the shares that are fair to all (each at most 0.11), and how near to them a discipline comes, by
/// Jain's index of what each got over what is fair. 1 is perfect.
pub fn ten_unresponsive_flows(spec: &str) -> f64 {
    let rates: Vec<f64> = (1..=10).map(|times| 0.04 * f64::from(times)).collect();
    let senders: Vec<Sender> = rates.iter().map(|rate| Sender::Deaf(*rate)).collect();
    let flows = run(spec, &senders, 80_000);
    let got: Vec<f64> =
        flows.iter().zip(&rates).map(|(flow, rate)| flow.sent as f64 / 60_000.0 / rate.min(0.11)).collect();
    jain(&got)
}

/// Jain's index: 1 when all are equal, 1/n when one has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

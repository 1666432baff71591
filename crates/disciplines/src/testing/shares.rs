//! Driver for fairness tests: responsive and unresponsive flows share a link.
//!
//! Time is divided into slots of a millisecond. The link sends one packet of 1,000 bytes per slot.

use std::collections::VecDeque;

use giveway_qdisc::{Cx, Ecn, FlowKey, LinkContext, Outbox, Packet, Qdisc, Rate, Streams, Time};

use crate::Spec;

/// Sending behaviour of a flow.
#[derive(Clone, Copy, Debug)]
pub enum Sender {
    /// Unresponsive: this many packets per slot on average, at random.
    Unresponsive(f64),
    /// Responsive: limited by a window, which grows by a packet per round trip of 20 slots, and is halved at
    /// most once per round trip when a packet is lost or marked.
    Window,
}

/// Time in slots after which a sender detects a departure or a loss.
const ROUND_TRIP: u64 = 20;

/// Counters of a flow's packets after the first quarter of the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    pub offered: u64,
    pub sent: u64,
    pub marked: u64,
}

impl Flow {
    /// Share of its packets that did not arrive.
    pub fn loss(&self) -> f64 {
        1.0 - self.sent as f64 / self.offered as f64
    }
}

struct Window {
    size: f64,
    in_flight: u64,
    /// Slot until which losses and marks have no further effect.
    halved_until: u64,
    /// Slot of each acknowledgement, and false if the packet was lost or marked.
    feedback: VecDeque<(u64, bool)>,
}

/// Runs the flows through a discipline.
pub fn run(spec: &str, flows: &[Sender], slots: u64) -> Vec<Flow> {
    let context = LinkContext::new(Rate::mbit(8), Streams::new(1).within("link"));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut rng = Streams::new(2).within("senders").rng();
    let mut out = Outbox::default();
    let mut counters = vec![Flow::default(); flows.len()];
    let mut windows: Vec<Window> = flows
        .iter()
        .map(|_| Window { size: 1.0, in_flight: 0, halved_until: 0, feedback: VecDeque::new() })
        .collect();
    let mut arrivals = Vec::new();
    for slot in 0..slots {
        let counts = slot >= slots / 4;
        arrivals.clear();
        for (number, (flow, window)) in flows.iter().zip(&mut windows).enumerate() {
            let packets = match flow {
                Sender::Unresponsive(rate) => rate.trunc() as u64 + u64::from(rng.uniform() < rate.fract()),
                Sender::Window => window.allows(slot),
            };
            arrivals.extend((0..packets).map(|_| number));
        }
        // The packets of one slot arrive in random order.
        for last in (1..arrivals.len()).rev() {
            arrivals.swap(last, rng.below(last as u64 + 1) as usize);
        }
        for number in &arrivals {
            let mut pkt = Packet::new(FlowKey(*number as u64), 1000, 0);
            pkt.meta.arrived = Time::ms(slot);
            if let Sender::Window = flows[*number] {
                pkt.meta.ecn = Ecn::Ect0;
            }
            counters[*number].offered += u64::from(counts);
            qdisc.enqueue(pkt, &mut Cx::new(Time::ms(slot), &mut out));
            for meta in out.marked.drain(..) {
                counters[meta.flow.0 as usize].marked += u64::from(counts);
            }
            for (pkt, _) in out.dropped.drain(..) {
                windows[pkt.meta.flow.0 as usize].feedback.push_back((slot + ROUND_TRIP, false));
            }
        }
        if let Some(pkt) = qdisc.dequeue(&mut Cx::new(Time::ms(slot), &mut out)).packet() {
            let number = pkt.meta.flow.0 as usize;
            counters[number].sent += u64::from(counts);
            windows[number].feedback.push_back((slot + ROUND_TRIP, pkt.meta.ecn != Ecn::Marked));
        }
        for (pkt, _) in out.dropped.drain(..) {
            windows[pkt.meta.flow.0 as usize].feedback.push_back((slot + ROUND_TRIP, false));
        }
    }
    counters
}

impl Window {
    /// Processes new feedback, and returns the number of packets that may be sent.
    fn allows(&mut self, slot: u64) -> u64 {
        while let Some((_, good)) = self.feedback.pop_front_if(|(at, _)| *at <= slot) {
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

/// Fairness of a discipline to ten unresponsive flows with 2.2 times the link's rate together, the fastest
/// ten times as fast as the slowest: Jain's index of the throughput divided by the fair share (at most 0.11
/// of the link). 1 is perfect.
pub fn ten_unresponsive_flows(spec: &str) -> f64 {
    let rates: Vec<f64> = (1..=10).map(|times| 0.04 * f64::from(times)).collect();
    let senders: Vec<Sender> = rates.iter().map(|rate| Sender::Unresponsive(*rate)).collect();
    let flows = run(spec, &senders, 80_000);
    let got: Vec<f64> =
        flows.iter().zip(&rates).map(|(flow, rate)| flow.sent as f64 / 60_000.0 / rate.min(0.11)).collect();
    jain(&got)
}

/// Jain's index: 1 if all shares are equal, 1/n if one flow has the whole link.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

//! A queue of two packets, at a port of 1 Mbit/s: prints the packet that leaves and the number of drops.

use giveway_qdisc::{Backlog, Cx, DropReason, FlowKey, Next, Packet, Port, PortId, Qdisc, Rate, Time};
use std::collections::VecDeque;

struct TwoPackets<P> {
    queue: VecDeque<Packet<P>>,
}

impl<P> Qdisc<P> for TwoPackets<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if self.queue.len() < 2 {
            self.queue.push_back(pkt);
        } else {
            cx.drop(pkt, DropReason::Overlimit); // moved away: it cannot also be queued
        }
    }
    fn dequeue(&mut self, _cx: &mut Cx<'_, P>) -> Next<P> {
        match self.queue.pop_front() {
            Some(pkt) => Next::Packet(pkt),
            None => Next::Empty,
        }
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(|pkt| u64::from(pkt.bytes())).sum();
        Backlog { packets: self.queue.len() as u64, bytes }
    }
    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for pkt in self.queue.drain(..) {
            cx.drop(pkt, DropReason::Reset);
        }
    }
}

fn main() {
    // A backend: one output port at 1 Mbit/s, without a probe.
    let mut port = Port::new(PortId(0), Box::new(TwoPackets { queue: VecDeque::new() }), Rate::mbit(1));
    let mut probe = ();
    for name in ["A", "B", "C"] {
        port.offer(Packet::new(FlowKey(1), 125, name), Time::ZERO, &mut probe);
    }
    let Next::Packet(first) = port.pull(Time::ZERO, &mut probe) else { panic!("A is queued") };
    assert_eq!(first.payload, "A");
    // The link is busy for 125 bytes: one millisecond at 1 Mbit/s.
    assert!(matches!(port.pull(Time::us(10), &mut probe), Next::At(t) if t == Time::ms(1)));
    assert_eq!(port.counters().dropped.packets, 1);
    assert_eq!(port.counters().backlog().packets, 1);
    println!("{} leaves first, {} dropped", first.payload, port.counters().dropped.packets);
}

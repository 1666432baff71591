//! An arrival and a departure at each discipline, with a steady backlog of 100 and of 10,000 flows.
//!
//! The two cases come from `disciplines/benches/pair.rs`, which measures time. At 100 flows 300 packets are
//! queued. At 10,000 flows one packet of each is, and arrivals cycle through twice as many flows.

use std::hint::black_box;

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, NextHops, Outbox, Packet, Qdisc, Rate, Streams, Time};

use crate::workload::Workload;

/// Number of flows of the arrivals, of queued packets, and name.
const CASES: [(u64, u64, &str); 2] = [(100, 300, "100 flows"), (20_000, 10_000, "10000 flows")];
/// Number of pairs.
const PAIRS: u64 = 20_000;
/// So fast that disciplines based on delay find no delay.
const LINK: Rate = Rate::gbit(1000);
const BYTES: u32 = 1000;

/// The workloads.
pub(crate) fn workloads() -> impl Iterator<Item = Workload> {
    ALL.iter().flat_map(|entry| {
        CASES.into_iter().map(|(flows, packets, case)| {
            let spec = raised(entry.name, packets);
            let mut traffic = Traffic::new(spec.build_numbered(&context()).expect("it was built"), flows);
            for _ in 0..packets {
                traffic.arrive();
            }
            let run = move || {
                for _ in 0..PAIRS {
                    traffic.arrive();
                    traffic.leave();
                }
                PAIRS
            };
            Workload { name: format!("{}, {case}", entry.name), run: Box::new(run) }
        })
    })
}

fn context() -> LinkContext {
    LinkContext::new(LINK, Streams::new(5).within("pair"))
}

/// The discipline with each of these parameters that it accepts, so that nothing is dropped.
fn raised(name: &str, packets: u64) -> Spec {
    let room = 2 * packets;
    let mut text = name.to_owned();
    for more in [&format!("limit {room}p"), "flows 65536", "divisor 65536", "width 8us"] {
        let candidate = format!("{text} {more}");
        if candidate.parse::<Spec>().is_ok_and(|spec| spec.build_numbered(&context()).is_ok()) {
            text = candidate;
        }
    }
    text.parse().expect("it was read before")
}

/// A discipline under steady traffic.
struct Traffic {
    qdisc: Box<dyn Qdisc<u64>>,
    out: Outbox<u64>,
    now: Time,
    serial: u64,
    flows: u64,
}

impl Traffic {
    fn new(qdisc: Box<dyn Qdisc<u64>>, flows: u64) -> Traffic {
        Traffic { qdisc, out: Outbox::default(), now: Time::ms(1), serial: 0, flows }
    }

    fn arrive(&mut self) {
        let flow = self.serial % self.flows;
        let mut pkt = Packet::new(FlowKey(mix(flow, 0x5bd1)), BYTES, self.serial);
        pkt.meta.class = (flow % 3) as u16;
        pkt.meta.arrived = self.now;
        pkt.meta.offset = (self.serial * 1000) as u32;
        pkt.meta.remaining = u32::MAX - pkt.meta.offset;
        pkt.meta.reserved = Rate::mbit(1);
        pkt.meta.next_hops = NextHops::new([flow % 16, flow % 32, flow % 64].map(|hop| hop as u16));
        self.serial += 1;
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.settle();
    }

    /// One departure, at the time at which the discipline allows it.
    fn leave(&mut self) {
        loop {
            match self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out)) {
                Next::Packet(pkt) => {
                    black_box(pkt);
                    self.now += LINK.time_for(u64::from(BYTES));
                    return self.settle();
                }
                Next::At(at) => self.now = at,
                Next::Empty => return self.settle(),
            }
        }
    }

    fn settle(&mut self) {
        self.out.dropped.clear();
        self.out.marked.clear();
    }
}

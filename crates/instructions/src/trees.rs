//! An arrival and a departure at trees of classes, with 10,000 packets queued. Of 20,000 flows each is in one
//! leaf, so in a tree of 100,000 leaves a fifth of them takes part.
//!
//! The leaves are fifos, whose own count is a separate row. The rates of the leaves are so low that nearly
//! every packet is sent on the credit of a class above.

use std::hint::black_box;

use giveway_disciplines::Spec;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};

use crate::workload::Workload;

/// Trees with their names, the number of their sites, and of the hosts of each.
const TREES: [(&str, &str, (u64, u64)); 3] = [
    (
        "htb, 8 leaves",
        "htb classes [(name net rate 900gbit classes [(name leaf[1-8] rate 1gbit ceil 900gbit match [(to [0-7])])])]",
        (1, 8),
    ),
    (
        "htb, 1000 leaves in 3 levels",
        "htb classes [(name net rate 900gbit classes [(name site[1-10] rate 2gbit ceil 900gbit match [(from [0-9])] \
         classes [(name leaf[1-1000] rate 10mbit ceil 900gbit match [(to [0-99])])])])]",
        (10, 100),
    ),
    (
        "htb, 100000 leaves in 3 levels",
        "htb classes [(name net rate 900gbit classes [(name site[1-100] rate 2gbit ceil 900gbit match [(from [0-99])] \
         classes [(name leaf[1-100000] rate 10mbit ceil 900gbit match [(to [0-999])])])])]",
        (100, 1000),
    ),
];
/// Number of flows of the arrivals, and of queued packets.
const FLOWS: u64 = 20_000;
const QUEUED: u64 = 10_000;
/// Number of pairs.
const PAIRS: u64 = 20_000;
const LINK: Rate = Rate::gbit(1000);
const BYTES: u32 = 1000;

/// The workloads.
pub(crate) fn workloads() -> impl Iterator<Item = Workload> {
    TREES.into_iter().map(|(name, text, (sites, hosts))| {
        let spec: Spec = text.parse().expect("the constant is a tree");
        let context = LinkContext::new(LINK, Streams::new(5).within("trees"));
        let qdisc = spec.build_numbered(&context).expect("the constant can be built");
        let mut traffic =
            Traffic { qdisc, out: Outbox::default(), now: Time::ms(1), serial: 0, sites, hosts };
        for _ in 0..QUEUED {
            traffic.arrive();
        }
        let run = move || {
            for _ in 0..PAIRS {
                traffic.arrive();
                traffic.leave();
            }
            PAIRS
        };
        Workload { name: name.to_owned(), run: Box::new(run) }
    })
}

/// A tree under steady traffic.
struct Traffic {
    qdisc: Box<dyn Qdisc<u64>>,
    out: Outbox<u64>,
    now: Time,
    serial: u64,
    /// Number of sites, and of hosts of each.
    sites: u64,
    hosts: u64,
}

impl Traffic {
    fn arrive(&mut self) {
        let flow = self.serial % FLOWS;
        let leaf = mix(flow, 0x5bd1) % (self.sites * self.hosts);
        let mut pkt = Packet::new(FlowKey(flow), BYTES, self.serial);
        (pkt.meta.from, pkt.meta.to) = ((leaf / self.hosts) as u16, (leaf % self.hosts) as u16);
        pkt.meta.arrived = self.now;
        self.serial += 1;
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.out.dropped.clear();
    }

    /// One departure, at the time at which the tree allows it.
    fn leave(&mut self) {
        loop {
            match self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out)) {
                Next::Packet(pkt) => {
                    black_box(pkt);
                    self.now += LINK.time_for(u64::from(BYTES));
                    return;
                }
                Next::At(at) => self.now = at,
                Next::Empty => return,
            }
        }
    }
}

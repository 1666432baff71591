//! A million flows of one packet each, at twice the rate of the link: the state of every discipline stays
//! bounded, and a long flow afterwards gets service. `GIVEWAY_FLOWS=10000000` makes it ten million.
//!
//! The bounds cover all reasons for a bounded state: no state per flow; a fixed number of buckets; state for
//! flows with queued packets only; or a table of recent flows, rows or branches with a bound, by default
//! 65,536, or 131,072 in routers that label packets.

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, NextHops, Outbox, Packet, Qdisc, Rate, Streams, Time};

const LINK: Rate = Rate::gbit(1);
const BYTES: u32 = 1000;
/// Default number of flows: eight times the largest table.
const STRANGERS: u64 = 1_000_000;
/// Half the number of packets of the long flow, of which this many must pass: more than any discipline queues
/// by default.
const STAYS: u64 = 20_000;
/// Largest number of flows in a table beyond those that are queued.
const CAP: u64 = 131_072;
/// Largest memory for state per flow, in bytes.
const MEMORY: u64 = 16_000_000;

/// A discipline in front of a link, under a stream of packets.
struct Stream {
    qdisc: Box<dyn Qdisc<u64>>,
    out: Outbox<u64>,
    now: Time,
    /// Largest backlog so far, in packets.
    held: u64,
}

impl Stream {
    fn arrive(&mut self, flow: FlowKey, offset: u64) {
        let mut pkt = Packet::new(flow, BYTES, 0);
        pkt.meta.arrived = self.now;
        pkt.meta.offset = u32::try_from(offset).unwrap_or(u32::MAX);
        pkt.meta.remaining = BYTES;
        // Each flow has its own source, destination and route.
        (pkt.meta.from, pkt.meta.to) = ((flow.0 >> 16) as u16, flow.0 as u16);
        pkt.meta.next_hops = NextHops::new([0, 16, 32].map(|shift| (flow.0 >> shift) as u16 & 0x7fff));
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.held = self.held.max(self.qdisc.backlog().packets);
        self.out.dropped.clear();
        self.out.marked.clear();
    }

    /// Advances the time by one packet on the link. Returns the flow of the packet that leaves, if there is
    /// one.
    fn leave(&mut self) -> Option<FlowKey> {
        let next = self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out));
        self.out.dropped.clear();
        self.out.marked.clear();
        self.now += LINK.time_for(u64::from(BYTES));
        match next {
            Next::Packet(pkt) => Some(pkt.meta.flow),
            Next::At(at) => {
                self.now = self.now.max(at);
                None
            }
            Next::Empty => None,
        }
    }
}

/// Messages about violated bounds of a discipline.
fn violations(spec: &Spec, strangers: u64) -> Vec<String> {
    let name = spec.to_string();
    let context = LinkContext::new(LINK, Streams::new(6).within("hostile"));
    let qdisc = spec.build_numbered(&context).expect("the defaults can be built");
    let mut stream = Stream { qdisc, out: Outbox::default(), now: Time::ms(1), held: 0 };
    for stranger in 0..strangers / 2 {
        stream.arrive(FlowKey(mix(2 * stranger, 0x5bd1)), 0);
        stream.arrive(FlowKey(mix(2 * stranger + 1, 0x5bd1)), 0);
        let _ = stream.leave();
    }
    let mut wrong = Vec::new();
    let table = stream.qdisc.flow_table();
    if table.most > CAP.max(stream.held) {
        wrong.push(format!("{name} kept state for {} flows, and held {} packets", table.most, stream.held));
    }
    if table.bytes > MEMORY {
        wrong.push(format!("{name} takes {} bytes of memory for state per flow", table.bytes));
    }
    // A long flow at the rate of the link, first behind a buffer that the short flows filled, then alone.
    let friend = FlowKey(mix(u64::MAX, 1));
    let mut through = 0;
    for sent in 0..2 * STAYS {
        stream.arrive(friend, sent * u64::from(BYTES));
        through += u64::from(stream.leave() == Some(friend));
    }
    if through < STAYS {
        wrong.push(format!("{name} let {through} of {} packets of a long flow through", 2 * STAYS));
    }
    wrong
}

#[test]
fn a_million_short_flows_keep_all_state_bounded() {
    let strangers = std::env::var("GIVEWAY_FLOWS").map_or(STRANGERS, |text| text.parse().expect("a number"));
    // The defaults, and settings with tables that the defaults do not have.
    let tables = ["run2c source table", "pias source table", "xprotect probability 100%", "bsq level 3"];
    let tables = tables.map(|text| text.parse::<Spec>().expect("these are written right"));
    let specs: Vec<Spec> = ALL.iter().map(|entry| entry.default()).chain(tables).collect();
    // Two threads, since this is the longest test of the crate.
    let half = |which: usize| {
        let mine = specs.iter().skip(which).step_by(2);
        mine.flat_map(|spec| violations(spec, strangers)).collect::<Vec<_>>()
    };
    let wrong = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut wrong = half(0);
        wrong.extend(other.join().expect("the other half ran"));
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

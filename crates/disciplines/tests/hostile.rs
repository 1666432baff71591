//! Ten million flows of one packet each, twice as fast as the link: what every discipline keeps of them stays
//! bounded, and a flow that means it still gets through.
//!
//! The bounds hold for every discipline, by the reason why its state is bounded: nothing per flow; a fixed
//! number of buckets; only flows that have packets queued; or a table of recent flows, rows or branches with
//! a cap, by default 65,536, or 131,072 in routers that label.

use giveway_disciplines::{ALL, Discipline, Spec, Visit};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, NextHops, Outbox, Packet, Qdisc, Rate, Streams, Time};

const LINK: Rate = Rate::gbit(1);
const BYTES: u32 = 1000;
const STRANGERS: u64 = 10_000_000;
/// A flow stays for twice as many packets as any discipline holds by default, and as many of it are to get
/// through.
const STAYS: u64 = 20_000;
/// The largest number of flows that a table may remember beyond those that are queued.
const CAP: u64 = 131_072;
/// The most memory for state per flow.
const MEMORY: u64 = 16_000_000;

/// A discipline behind its link, and who sends to it.
struct Stream<Q> {
    qdisc: Q,
    out: Outbox<()>,
    now: Time,
    /// The most packets that it ever held.
    held: u64,
}

impl<Q: Qdisc<()>> Stream<Q> {
    fn arrive(&mut self, flow: FlowKey, offset: u64) {
        let mut pkt = Packet::new(flow, BYTES, ());
        pkt.meta.arrived = self.now;
        pkt.meta.offset = u32::try_from(offset).unwrap_or(u32::MAX);
        pkt.meta.remaining = BYTES;
        // Everyone comes from elsewhere, goes elsewhere, and on a way of its own.
        (pkt.meta.from, pkt.meta.to) = ((flow.0 >> 16) as u16, flow.0 as u16);
        pkt.meta.next_hops = NextHops::new([0, 16, 32].map(|shift| (flow.0 >> shift) as u16 & 0x7fff));
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
        self.held = self.held.max(self.qdisc.backlog().packets);
        self.out.dropped.clear();
        self.out.marked.clear();
    }

    /// A packet's time passes on the link: what leaves meanwhile, if anything does.
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

/// The discipline's name, for what is wrong with it.
struct Hostile(String);

impl Visit for Hostile {
    /// What is wrong with it.
    type Out = Vec<String>;

    fn visit<D: Discipline>(self, config: &D) -> Vec<String> {
        let Hostile(name) = self;
        let context = LinkContext::new(LINK, Streams::new(6).within("hostile"));
        let qdisc = config.build::<()>(&context).expect("the defaults can be built");
        let mut stream = Stream { qdisc, out: Outbox::default(), now: Time::ms(1), held: 0 };
        for stranger in 0..STRANGERS / 2 {
            stream.arrive(FlowKey(mix(2 * stranger, 0x5bd1)), 0);
            stream.arrive(FlowKey(mix(2 * stranger + 1, 0x5bd1)), 0);
            let _ = stream.leave();
        }
        let mut wrong = Vec::new();
        let table = stream.qdisc.flow_table();
        if table.most > CAP.max(stream.held) {
            wrong.push(format!(
                "{name} kept state for {} flows, and held {} packets",
                table.most, stream.held
            ));
        }
        if table.bytes > MEMORY {
            wrong.push(format!("{name} takes {} bytes of memory for state per flow", table.bytes));
        }
        // A flow that stays, as fast as the link, first against a buffer that the strangers filled, then
        // alone.
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
}

#[test]
fn ten_million_strangers_are_survived() {
    // The defaults, and the tables that the defaults of these leave out.
    let tables = ["run2c source table", "pias source table", "xprotect probability 100%", "bsq level 3"];
    let tables = tables.map(|text| text.parse::<Spec>().expect("these are written right"));
    let specs: Vec<Spec> = ALL.iter().map(|entry| (entry.default)()).chain(tables).collect();
    // Two halves at a time: it is the longest test of these.
    let half = |which: usize| {
        let mine = specs.iter().skip(which).step_by(2);
        mine.flat_map(|spec| spec.with(Hostile(spec.to_string()))).collect::<Vec<_>>()
    };
    let wrong = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut wrong = half(0);
        wrong.extend(other.join().expect("the other half ran"));
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

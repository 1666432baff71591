//! Cost per packet: nanoseconds per enqueue and dequeue, for every discipline, with 10², 10⁴ and 10⁵ flows.
//!
//! The queue is warm and the backlog steady: each arrival is followed by a departure. At 100 flows 300
//! packets are queued, with more flows one packet of each. Arrivals cycle through the flows; with 10⁴ and
//! 10⁵ through twice as many as are queued, so that each arrival is of a flow without queued packets and
//! each departure empties its flow: the expensive case for tables and caches.
//! `100000 through 300` has 100,000 flows and 300 queued packets, as at a busy link, and shows the cost of
//! state for flows without queued packets. Flow keys are hashes, as in every backend, all packets
//! have 1,000 bytes, and the link is so fast (1 Tbit/s) that disciplines based on delay find no delay.
//!
//! Limits are raised to twice the backlog by the parameters `limit`, `flows`, `divisor` and `width`, as far
//! as a discipline accepts them ([`raised`]); the output names a backlog that is smaller nevertheless.
//! `full` rows offer two packets per departure to a full buffer, and show the time per offered
//! packet, which includes the choice of the packet to drop.
//!
//! The flows separate after the link at 16 next hops, and again at the next two hops, for disciplines with
//! lookahead.
//!
//! Run one discipline with `cargo bench -p giveway-disciplines -- efd/`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use giveway_disciplines::{ALL, Discipline, Entry, Spec, Visit};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, NextHops, Outbox, Packet, Qdisc, Rate, Streams, Time};

const LINK: Rate = Rate::gbit(1000);
const BYTES: u32 = 1000;
/// Number of pairs per iteration.
const BATCH: u64 = 10_000;

/// Number of flows, and number of queued packets.
const CASES: [(u64, u64); 4] = [(100, 300), (100_000, 300), (10_000, 10_000), (100_000, 100_000)];

/// Disciplines with a table of 131,072 flows by default.
const LABELLING: [&str; 3] = ["fpip", "fpip_edge", "csfq"];

/// The discipline with each of these parameters that it accepts, for `packets` queued packets.
fn raised(entry: &Entry, packets: u64) -> Spec {
    let room = 2 * packets;
    let mut text = entry.name.to_owned();
    // Routers that label packets have larger tables by default.
    let flows = if LABELLING.contains(&entry.name) { "flows 131072" } else { "flows 65536" };
    // With this width, reservations of 1 Mbit/s are within a calendar's window: 8 ms of 33.
    let more = [
        format!("limit {room}p"),
        format!("flows {room}"),
        flows.into(),
        "divisor 65536".into(),
        "width 8us".into(),
    ];
    for more in more {
        let candidate = format!("{text} {more}");
        let builds = |spec: Spec| spec.build::<u64>(&context()).is_ok();
        if candidate.parse::<Spec>().is_ok_and(builds) {
            text = candidate;
        }
    }
    text.parse().expect("it was just read")
}

fn context() -> LinkContext {
    LinkContext::new(LINK, Streams::new(5).within("pair"))
}

/// A discipline under steady traffic.
struct Traffic<Q> {
    qdisc: Q,
    out: Outbox<u64>,
    now: Time,
    serial: u64,
    /// Number of flows of the arrivals.
    flows: u64,
    /// Routes of the flows after the link: 16 next hops, each with two next hops, and so on.
    routes: [NextHops; ROUTES],
}

/// Number of routes after the link.
const ROUTES: usize = 64;

impl<Q: Qdisc<u64>> Traffic<Q> {
    fn new(qdisc: Q, flows: u64) -> Traffic<Q> {
        let route = |n: usize| NextHops::new([n % 16, n % 32, n % 64].map(|hop| hop as u16));
        let routes = std::array::from_fn(route);
        Traffic { qdisc, out: Outbox::default(), now: Time::ms(1), serial: 0, flows, routes }
    }

    #[inline]
    fn arrive(&mut self) {
        let flow = self.serial % self.flows;
        let mut pkt = Packet::new(FlowKey(mix(flow, 0x5bd1)), BYTES, self.serial);
        pkt.meta.class = (flow % 3) as u16;
        pkt.meta.arrived = self.now;
        pkt.meta.offset = (self.serial * 1000) as u32;
        pkt.meta.remaining = u32::MAX - pkt.meta.offset;
        pkt.meta.reserved = Rate::mbit(1);
        pkt.meta.next_hops = self.routes[flow as usize % ROUTES];
        self.serial += 1;
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
    }

    /// One departure, at the time at which the discipline allows it.
    #[inline]
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

    #[inline]
    fn settle(&mut self) {
        self.out.dropped.clear();
        self.out.marked.clear();
    }

    fn pairs(&mut self) {
        for _ in 0..BATCH {
            self.arrive();
            self.leave();
            self.settle();
        }
    }

    /// Twice as many arrivals as departures.
    fn overload(&mut self) {
        for _ in 0..BATCH / 2 {
            self.arrive();
            self.arrive();
            self.leave();
            self.settle();
        }
    }
}

/// Times one discipline with its type known, so that the whole loop is compiled for it.
struct Timed<'a> {
    criterion: &'a mut Criterion,
    name: &'static str,
    flows: u64,
    packets: u64,
    full: bool,
}

impl Visit for Timed<'_> {
    type Out = ();

    fn visit<D: Discipline>(self, config: &D) {
        let Timed { criterion, name, flows, packets, full } = self;
        let case = match (flows, packets) {
            (100_000, 300) => "100000 through 300".to_owned(),
            (flows, _) => flows.to_string(),
        };
        let case = if full { format!("full/{case}") } else { case };
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(BATCH));
        // The queue is filled here, so a case that a filter excludes takes no time.
        let mut filled = None;
        group.bench_function(BenchmarkId::from_parameter(case), |bencher| {
            let traffic = filled.get_or_insert_with(|| fill(config, flows, packets, full));
            if full {
                bencher.iter(|| traffic.overload());
            } else {
                bencher.iter(|| traffic.pairs());
            }
        });
        group.finish();
    }
}

/// Traffic through a warm queue.
fn fill<D: Discipline>(config: &D, flows: u64, packets: u64, full: bool) -> Traffic<D::Qdisc<u64>> {
    let qdisc = config.build::<u64>(&context()).expect("it was built before");
    let population = if flows < packets { flows } else { 2 * flows };
    let mut traffic = Traffic::new(qdisc, population);
    for _ in 0..if full { 3 * packets } else { packets } {
        traffic.arrive();
        traffic.settle();
    }
    let queued = traffic.qdisc.backlog().packets;
    if !full && queued != packets {
        println!("the backlog is {queued} packets, not {packets}");
    }
    traffic
}

/// Cost of lookahead, with 300 packets of 100 flows: 1, 16, 32 and 64 sub-queues.
fn levels(criterion: &mut Criterion) {
    for level in 0..=3 {
        let spec: Spec = format!("bsq level {level}").parse().expect("it is written right");
        let name = ["bsq level 0", "bsq level 1", "bsq level 2", "bsq level 3"][level];
        spec.with(Timed { criterion, name, flows: 100, packets: 300, full: false });
    }
}

fn pair(criterion: &mut Criterion) {
    for entry in ALL {
        for (flows, packets) in CASES {
            for full in [false, true] {
                // For `full` rows the limit equals the backlog; otherwise half of the buffer stays free.
                let spec = raised(entry, if full { packets / 2 } else { packets });
                spec.with(Timed { criterion, name: entry.name, flows, packets, full });
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = pair, levels
}
criterion_main!(benches);

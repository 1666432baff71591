//! A run on several threads reports the same as one on a single thread: of every port the same events in the
//! same order, and of every flow the same numbers.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use giveway_links::{Gilbert, Impairments, Lateness, Loss, Model, Profile, Quantity, Reorder, Shape};
use giveway_qdisc::{
    Backlog, Cx, Divisible, DropReason, FlowReport, FlowTable, Interest, Meta, Next, Packet, PortId, Probe,
    Qdisc, Rate, SenderSample, Share, Span, Streams, Time,
};
use giveway_sim::traffic::{cbr, poisson};
use giveway_sim::{
    Gain, LinkPlan, Partition, Plan, Routing, Segment, Sim, TcpConfig, Timing, Whole, parallel,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::Lab;

/// An event at a port: kind, time, flow, bytes and offset.
type Row = (&'static str, Time, u64, u32, u32);

/// Keeps all reports.
#[derive(Clone, Debug, Default, PartialEq)]
struct Log {
    ports: BTreeMap<u32, Vec<Row>>,
    samples: Vec<(Time, u32, Backlog)>,
    senders: Vec<(Time, u16, u64, u64)>,
    flows: Vec<FlowReport>,
}

impl Log {
    fn add(&mut self, at: PortId, kind: &'static str, meta: &Meta, now: Time) {
        let row = (kind, now, meta.flow.0, meta.bytes, meta.offset);
        self.ports.entry(at.0).or_default().push(row);
    }

    /// The place of a difference, in a few words: a whole log has thousands of lines.
    fn difference(&self, other: &Log) -> String {
        let port = self.ports.iter().find(|(port, rows)| other.ports.get(port) != Some(rows));
        let flow = self.flows.iter().zip(&other.flows).find(|(one, other)| one != other);
        format!("port {:?}, flow {flow:?}", port.map(|(port, _)| port))
    }

    /// The log in an order that does not depend on parts.
    fn sorted(mut self) -> Log {
        self.samples.sort_by_key(|sample| (sample.0, sample.1));
        self.senders.sort();
        self.flows.sort_by_key(|flow| (flow.source, flow.id));
        self
    }
}

impl Probe<Segment> for Log {
    fn interest(&self, _: PortId) -> Interest {
        Interest::Port
    }
    fn on_arrival(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.add(at, "arrived", meta, now);
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, now: Time) {
        self.add(at, "sent", meta, now);
    }
    fn on_drop(&mut self, at: PortId, meta: &Meta, _: &Segment, _: DropReason, now: Time) {
        self.add(at, "dropped", meta, now);
    }
    fn on_mark(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.add(at, "marked", meta, now);
    }
    fn on_flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
    fn on_sample(
        &mut self,
        at: PortId,
        backlog: Backlog,
        _: &FlowTable,
        _: &[(&'static str, f64)],
        now: Time,
    ) {
        self.samples.push((now, at.0, backlog));
    }
    fn on_sender(&mut self, sample: &SenderSample) {
        self.senders.push((sample.now, sample.source, sample.id, sample.window));
    }
}

impl Divisible<Segment> for Log {
    fn fresh(&self) -> Log {
        Log::default()
    }
    fn join(&mut self, part: Log, has: &dyn Fn(PortId) -> bool) {
        for (port, rows) in part.ports {
            assert!(has(PortId(port)), "a part reports its own ports only");
            assert!(self.ports.insert(port, rows).is_none());
        }
        self.samples.extend(part.samples);
        self.senders.extend(part.senders);
        self.flows.extend(part.flows);
    }
}

/// The drawn settings of a network.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    seed: u64,
    middle: &'static str,
    edge: &'static str,
    rates: [u64; 2],
    delay: Span,
    jitter: Span,
    loss: f64,
    outage: bool,
    routing: Routing,
    vary: Vary,
}

/// The varying quantities on the links between routers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Vary {
    Nothing,
    Rate,
    Bursts,
    Delay,
    Wire,
    Late,
    Everything,
}

impl Vary {
    fn impairments(self, delay: Span) -> Impairments {
        let share = |share| Share::new(share).expect("it is a share");
        let has = |what| self == what || self == Vary::Everything;
        let mbit = 1_000_000;
        let rates =
            [(Span::ZERO, 10 * mbit), (Span::ms(90), 0), (Span::ms(110), 4 * mbit), (Span::ms(200), 0)];
        let steps = Profile::points(Quantity::Rate, Shape::Steps, &rates, true);
        let grants = Profile::model(Model::Cable { mean: Rate::mbit(9), every: Span::ms(2) }, 3);
        let delays = [(Span::ZERO, delay.as_ps() * 3), (Span::ms(130), delay.as_ps()), (Span::ms(300), 0)];
        let delays = Profile::points(Quantity::Delay, Shape::Steps, &delays, true);
        Impairments {
            rate: match self {
                Vary::Bursts => Some(grants.expect("it is right")),
                _ => has(Vary::Rate).then(|| steps.expect("it is right")),
            },
            delay: has(Vary::Delay).then(|| delays.expect("it is right")),
            loss: has(Vary::Wire).then(|| {
                Loss::Gilbert(Gilbert { p: share(0.01), r: share(0.3), bad: share(0.9), good: share(0.0) })
            }),
            corrupt: if has(Vary::Wire) { share(0.002) } else { Share::default() },
            duplicate: if has(Vary::Wire) { share(0.02) } else { Share::default() },
            reorder: has(Vary::Wire).then(|| Reorder { percent: share(0.03), distance: 3 }),
            unordered: has(Vary::Wire),
            dispatch_jitter: has(Vary::Late).then(|| Lateness::uniform(Span::us(300))),
        }
    }
}

impl Vary {
    /// The timing of hosts.
    fn timing(self) -> Timing {
        if ![Vary::Late, Vary::Everything].contains(&self) {
            let handling = if self == Vary::Nothing { Span::ZERO } else { Span::us(1) };
            return Timing { handling, ..Timing::default() };
        }
        Timing {
            handling: Span::us(1),
            senders: Some(Lateness::uniform(Span::us(100))),
            receivers: Some(Lateness::uniform(Span::us(200))),
            coalesce: Span::us(50),
            gro: true,
        }
    }
}

/// A ring of four routers, each with two hosts. Two sources send far, two send near, and one uses three pairs
/// of nodes; equal rates and lengths make packets arrive at the same time.
fn plan(drawn: Drawn) -> Plan {
    const ROUTERS: u16 = 4;
    let mut lab = Lab::new(usize::from(3 * ROUTERS), drawn.seed);
    lab.network = lab.network.with_routing(drawn.routing);
    let [middle, access] = drawn.rates.map(Rate::mbit);
    for router in 0..ROUTERS {
        let next = (router + 1) % ROUTERS;
        for (from, to) in [(router, next), (next, router)] {
            let outages = if drawn.outage && (from, to) == (0, 1) {
                vec![(Time::ms(200), Time::ms(500))]
            } else {
                Vec::new()
            };
            let context =
                giveway_qdisc::LinkContext::new(middle, lab.streams.within(&format!("{from}-{to}")));
            let spec: giveway_disciplines::Spec = drawn.middle.parse().expect("it is right");
            lab.network.link(LinkPlan {
                name: format!("{from}->{to}"),
                from,
                to,
                rate: middle,
                delay: drawn.delay,
                jitter: drawn.jitter,
                loss: Share::new(drawn.loss).expect("it is a share"),
                cost: 1,
                impairments: drawn.vary.impairments(drawn.delay),
                outages,
                medium: None,
                qdisc: spec.build(&context).expect("it is right"),
            });
        }
        for host in [ROUTERS + 2 * router, ROUTERS + 2 * router + 1] {
            lab.link(host, router, access, Span::us(300), drawn.edge);
            lab.link(router, host, access, Span::us(300), drawn.edge);
        }
    }
    let tcp = TcpConfig::rfc();
    lab.bulk(&[(4, 8)], None, &tcp);
    lab.bulk(&[(9, 5)], Some(300_000), &tcp);
    lab.bulk(&[(6, 7), (6, 5), (7, 5)], Some(50_000), &tcp);
    // Not in the example, whose division is known.
    if drawn.seed.is_multiple_of(2) {
        let over_quic: giveway_sim::traffic::quic::Config =
            serde_json::from_value(json!({ "flows": 2, "size": "150kb" })).expect("it is right");
        lab.source(&over_quic, &[(5, 8), (9, 4)], &tcp);
        let pages: giveway_sim::traffic::web::Config =
            serde_json::from_value(json!({ "transport": "quic", "think": "50ms" })).expect("it is right");
        lab.source(&pages, &[(6, 4)], &tcp);
    }
    let constant: cbr::Config = serde_json::from_value(json!({ "rate": "2mbit" })).expect("it is right");
    lab.source(&constant, &[(10, 11)], &tcp);
    let random: poisson::Config = serde_json::from_value(json!({ "rate": "1mbit" })).expect("it is right");
    lab.source(&random, &[(11, 4)], &tcp);
    let until = Time::ms(900);
    Plan {
        network: lab.network,
        sources: lab.sources,
        until,
        measured: Time::ms(100)..Time::ms(800),
        sample: Some(Span::ms(7)),
        sample_senders: true,
        streams: Streams::new(drawn.seed).within("run"),
        lookahead: 1,
        timing: drawn.vary.timing(),
    }
}

fn alone(plan: Plan) -> Log {
    let mut log = Log::default();
    let until = plan.until;
    let mut sim = Sim::new(plan);
    sim.step_to(until, &mut log);
    sim.finish(&mut log);
    log.sorted()
}

fn divided(drawn: Drawn, partition: &Partition, threads: usize) -> Log {
    let mut log = Log::default();
    parallel::run(&|| plan(drawn), partition, threads, &mut log, &mut |_| true).expect("nothing stops it");
    log.sorted()
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let queues = prop::sample::select(vec![
        "fifo limit 2p",
        "fifo limit 30p",
        "fifo limit 20kb",
        "fq_codel",
        "drr",
        "red",
        "sfq",
    ]);
    let settings = (
        0..1_000_u64,
        queues.clone(),
        queues,
        prop::array::uniform2(prop::sample::select(vec![5_u64, 10, 12])),
        prop::sample::select(vec![Span::us(40), Span::us(300), Span::ms(2), Span::ms(7)]),
    );
    let rare = (
        prop::sample::select(vec![Span::ZERO, Span::ZERO, Span::ms(1)]),
        prop::sample::select(vec![0.0, 0.0, 0.01]),
        prop::bool::weighted(0.25),
        prop::sample::select(vec![Routing::First, Routing::Flow, Routing::Packet]),
        prop::sample::select(vec![
            Vary::Nothing,
            Vary::Nothing,
            Vary::Rate,
            Vary::Bursts,
            Vary::Delay,
            Vary::Wire,
            Vary::Late,
            Vary::Everything,
        ]),
    );
    (settings, rare).prop_map(
        |((seed, middle, edge, rates, delay), (jitter, loss, outage, routing, vary))| Drawn {
            seed,
            middle,
            edge,
            rates,
            delay,
            jitter,
            loss,
            outage,
            routing,
            vary,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_number_of_threads_gives_the_same_results(drawn in drawn()) {
        same_with_threads(drawn)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    #[ignore = "it takes long: cargo xtask test --all runs it"]
    fn long_every_number_of_threads_gives_the_same_results(drawn in drawn()) {
        same_with_threads(drawn)?;
    }
}

fn same_with_threads(drawn: Drawn) -> Result<(), TestCaseError> {
    let expected = alone(plan(drawn));
    prop_assert!(!expected.senders.is_empty() && expected.samples.len() > 100);
    for (most, threads) in [(2, 2), (3, 1), (8, 3)] {
        let partition = Partition::of(&|| plan(drawn), most, Gain::Any);
        // Otherwise nothing is compared.
        prop_assert!(partition.parts() > 1 && partition.parts() <= most);
        let found = divided(drawn, &partition, threads);
        prop_assert!(found == expected, "{} parts: {}", most, found.difference(&expected));
    }
    Ok(())
}

/// A plain network for tests of the division itself.
fn example() -> Drawn {
    Drawn {
        seed: 1,
        middle: "fifo limit 30p",
        edge: "fifo limit 30p",
        rates: [10, 10],
        delay: Span::ms(2),
        jitter: Span::ZERO,
        loss: 0.0,
        outage: false,
        routing: Routing::First,
        vary: Vary::Nothing,
    }
}

#[test]
fn parts_keep_sources_together_and_are_a_window_apart() {
    let partition = Partition::of(&|| plan(example()), 4, Gain::Any);
    for source in &plan(example()).sources {
        let pairs = source.pairs.as_ref().expect("they are known");
        let parts: Vec<u16> =
            pairs.iter().flat_map(|(a, b)| [*a, *b]).map(|node| partition.part_of(node)).collect();
        assert!(parts.iter().all(|part| *part == partition.part_with(source)), "{parts:?}");
    }
    assert!(partition.parts() >= 2);
    assert!(partition.window() >= Span::us(300), "{}", partition.window());
}

#[test]
fn a_division_that_gains_nothing_is_not_made() {
    let reason = |build: &dyn Fn() -> Plan, most| Partition::of(build, most, Gain::Faster).why_whole();
    assert_eq!(reason(&|| plan(example()), 1), Some(Whole::OneThread));
    let slow = || plan(Drawn { rates: [1, 1], ..example() });
    assert!(matches!(reason(&slow, 2), Some(Whole::Short(..))), "{:?}", reason(&slow, 2));
    let unknown = || {
        let mut plan = plan(example());
        plan.sources[0].pairs = None;
        plan
    };
    assert_eq!(reason(&unknown, 2), Some(Whole::Tied));
    let fast = || plan(Drawn { rates: [1_000, 1_000], middle: "drr", edge: "drr", ..example() });
    assert_eq!(reason(&fast, 2), None);
    let without_delay = || {
        let mut plan = fast();
        plan.network.links_mut().iter_mut().for_each(|link| link.delay = Span::ZERO);
        plan
    };
    assert_eq!(reason(&without_delay, 2), Some(Whole::Tied));
}

#[test]
fn a_run_stops_when_the_caller_says_so() {
    let partition = Partition::of(&|| plan(example()), 3, Gain::Any);
    let mut calls = 0;
    let ended = parallel::run(&|| plan(example()), &partition, 2, &mut Log::default(), &mut |_| {
        calls += 1;
        calls < 10
    });
    assert_eq!((ended, calls), (None, 10));
}

/// A discipline that panics at its first packet.
struct Broken;

impl Qdisc<Segment> for Broken {
    fn enqueue(&mut self, _: Packet<Segment>, _: &mut Cx<'_, Segment>) {
        panic!("this discipline is broken")
    }
    fn dequeue(&mut self, _: &mut Cx<'_, Segment>) -> Next<Segment> {
        Next::Empty
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _: &mut Cx<'_, Segment>) {}
}

#[test]
fn a_panic_in_any_part_ends_the_run() {
    for link in [2, 8, 14, 20] {
        let broken = || {
            let mut plan = plan(example());
            plan.network.links_mut()[link].qdisc = Box::new(Broken);
            plan
        };
        let partition = Partition::of(&|| plan(example()), 3, Gain::Any);
        let running =
            AssertUnwindSafe(|| parallel::run(&broken, &partition, 3, &mut Log::default(), &mut |_| true));
        let panic = std::panic::catch_unwind(running).expect_err("a link has a broken discipline");
        assert_eq!(panic.downcast_ref(), Some(&"this discipline is broken"));
    }
}

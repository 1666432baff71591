//! Plain queues decide in batches. Everything that a probe can observe is the same as with an event for each
//! packet, which is what a probe gets that needs all reports in one order.

use std::collections::BTreeMap;

use giveway_qdisc::{
    Backlog, DropReason, FlowReport, FlowTable, Interest, Meta, PortId, Probe, Rate, Span, Streams, Time,
};
use giveway_sim::traffic::{cbr, poisson};
use giveway_sim::{Plan, Segment, Sim, TcpConfig};
use proptest::prelude::*;
use serde_json::json;

use crate::support::Lab;

/// An event at a port: kind, time, flow, bytes and offset.
type Row = (&'static str, Time, u64, u32, u32);

/// Keeps all reports.
struct Log {
    interest: Interest,
    ports: BTreeMap<u32, Vec<Row>>,
    samples: Vec<(u32, Time, Backlog)>,
    flows: Vec<FlowReport>,
}

impl Log {
    fn add(&mut self, at: PortId, kind: &'static str, meta: &Meta, now: Time) {
        let row = (kind, now, meta.flow.0, meta.bytes, meta.offset);
        self.ports.entry(at.0).or_default().push(row);
    }
}

impl Probe<Segment> for Log {
    fn interest(&self, _: PortId) -> Interest {
        self.interest
    }
    fn on_arrival(&mut self, at: PortId, meta: &Meta, now: Time) {
        assert_eq!(meta.arrived, now);
        self.add(at, "arrived", meta, now);
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, now: Time) {
        self.add(at, "sent", meta, now);
    }
    fn on_drop(&mut self, at: PortId, meta: &Meta, _: &Segment, _: DropReason, now: Time) {
        self.add(at, "dropped", meta, now);
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
        self.samples.push((at.0, now, backlog));
    }
}

/// Two routers between three hosts on each side, with links of equal and unequal rates, so that packets often
/// arrive at the same time, and short queues, so that many are dropped.
fn run(seed: u64, limits: [&str; 3], rates: [u64; 3], interest: Interest) -> (Log, u64) {
    let mut lab = Lab::new(8, seed);
    let [access, middle, back] = rates.map(Rate::mbit);
    lab.link(0, 1, middle, Span::ms(4), limits[0]);
    lab.link(1, 0, back, Span::ms(4), limits[1]);
    for host in 2..5 {
        for (host, router) in [(host, 0), (host + 3, 1)] {
            lab.link(host, router, access, Span::us(500), limits[2]);
            lab.link(router, host, access, Span::us(500), limits[2]);
        }
    }
    let tcp = TcpConfig::rfc();
    lab.bulk(&[(2, 5), (3, 6), (4, 7), (5, 2)], None, &tcp);
    let constant: cbr::Config = serde_json::from_value(json!({ "rate": "2mbit" })).expect("it is right");
    lab.source(&constant, &[(2, 6), (3, 7)], &tcp);
    let random: poisson::Config = serde_json::from_value(json!({ "rate": "1mbit" })).expect("it is right");
    lab.source(&random, &[(6, 3)], &tcp);
    let until = Time::ms(1_500);
    let mut sim = Sim::new(Plan {
        network: lab.network,
        sources: lab.sources,
        until,
        measured: Time::ZERO..until,
        sample: Some(Span::ms(7)),
        sample_senders: false,
        streams: Streams::new(seed).within("run"),
        lookahead: 0,
        timing: giveway_sim::Timing::default(),
    });
    let mut log = Log { interest, ports: BTreeMap::new(), samples: Vec::new(), flows: Vec::new() };
    // In steps, as a progress bar needs them.
    for step in 1..=10 {
        sim.step_to(Time::ms(150 * step), &mut log);
    }
    let totals = sim.finish(&mut log);
    (log, totals.events)
}

/// The drops of all ports.
fn drops(log: &Log) -> BTreeMap<u32, Vec<Row>> {
    let of_port = |rows: &Vec<Row>| rows.iter().filter(|row| row.0 == "dropped").copied().collect();
    let drops = log.ports.iter().map(|(port, rows)| (*port, of_port(rows)));
    drops.filter(|(_, rows): &(u32, Vec<Row>)| !rows.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn batches_change_nothing_that_can_be_observed(
        seed in 0..1_000_u64,
        limits in prop::array::uniform3(prop::sample::select(vec![
            "fifo limit 1p", "fifo limit 2p", "fifo limit 5p", "fifo limit 40p", "fifo limit 6000b",
            "fifo limit 20kb", "fifo limit 5p drop head",
        ])),
        rates in prop::array::uniform3(prop::sample::select(vec![5_u64, 10, 12, 100])),
    ) {
        let (all, events) = run(seed, limits, rates, Interest::Everything);
        for interest in [Interest::Port, Interest::Nothing] {
            let (log, fewer) = run(seed, limits, rates, interest);
            prop_assert_eq!(&log.flows, &all.flows);
            for (one, other) in log.samples.iter().zip(&all.samples) {
                prop_assert_eq!(one, other);
            }
            prop_assert_eq!(log.samples.len(), all.samples.len());
            prop_assert_eq!(drops(&log), drops(&all));
            if interest == Interest::Port {
                prop_assert_eq!(&log.ports, &all.ports);
            }
            // Otherwise nothing has been compared.
            prop_assert!(fewer < events || limits.iter().any(|limit| limit.ends_with("head")));
        }
        prop_assert!(!drops(&all).is_empty());
    }
}

//! A TCP transfer of 1 MB over a link of 10 Mbit/s with a plain queue: prints when it ends.

use giveway_qdisc::{
    Backlog, Cx, DropReason, FlowReport, Next, Packet, Probe, Qdisc, Rate, Share, Span, Streams, Time,
};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{LinkPlan, Net, Network, Plan, Segment, Sim, Source};
use std::collections::VecDeque;

/// First in, first out, without a limit.
#[derive(Default)]
struct Queue(VecDeque<Packet<Segment>>);

impl Qdisc<Segment> for Queue {
    fn enqueue(&mut self, pkt: Packet<Segment>, _cx: &mut Cx<'_, Segment>) {
        self.0.push_back(pkt);
    }
    fn dequeue(&mut self, _cx: &mut Cx<'_, Segment>) -> Next<Segment> {
        self.0.pop_front().map_or(Next::Empty, Next::Packet)
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.0.iter().map(|pkt| u64::from(pkt.bytes())).sum();
        Backlog { packets: self.0.len() as u64, bytes }
    }
    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.0.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
    }
}

/// Starts one transfer from node 0 to node 1.
struct OneTransfer;

impl Source for OneTransfer {
    fn wake(&mut self, net: &mut Net<'_>) {
        net.transfer(0, 1, Some(1_000_000));
    }
}

/// Keeps the reports of flows.
#[derive(Default)]
struct Reports(Vec<FlowReport>);

impl Probe<Segment> for Reports {
    fn on_flow(&mut self, report: &FlowReport) {
        self.0.push(report.clone());
    }
}

fn main() {
    let mut network = Network::new(2);
    for (from, to) in [(0, 1), (1, 0)] {
        network.link(LinkPlan {
            name: format!("{from} to {to}"),
            from,
            to,
            rate: Rate::mbit(10),
            delay: Span::ms(5),
            jitter: Span::ZERO,
            loss: Share::default(),
            cost: 1,
            impairments: Default::default(),
            outages: Vec::new(),
            medium: None,
            qdisc: Box::new(Queue::default()),
        });
    }
    let mut sim = Sim::new(Plan {
        network,
        sources: vec![SourcePlan::new("transfer", Box::new(OneTransfer))],
        until: Time::s(10),
        measured: Time::ZERO..Time::s(10),
        sample: None,
        sample_senders: false,
        streams: Streams::new(1),
        lookahead: 0,
        timing: giveway_sim::Timing::default(),
    });
    let mut reports = Reports::default();
    sim.step_to(Time::s(10), &mut reports);
    let [report] = &reports.0[..] else { panic!("there is one transfer") };
    // The link needs 0.8 s for the data, and more for headers and slow start.
    assert_eq!(report.delivered, 1_000_000);
    assert!(report.end > Time::ms(800) && report.end < Time::ms(1_200));
    println!("1 MB in {:?}", report.end);
}

//! Small networks for tests.

#![allow(dead_code, missing_docs)]

use giveway_disciplines::Spec;
use giveway_qdisc::{
    DropReason, FlowReport, Interest, LinkContext, Meta, Packet, PortId, Probe, Rate, Share, Span, Streams,
    Time,
};
use giveway_sim::engine::SourcePlan;
use giveway_sim::traffic::bulk;
use giveway_sim::{LinkPlan, Network, Plan, Segment, Sim, SourceContext, TcpConfig, Traffic};

/// Builds networks link by link.
pub struct Lab {
    pub network: Network,
    pub streams: Streams,
    pub sources: Vec<SourcePlan>,
    pub timing: giveway_sim::Timing,
    /// The QUIC of all sources that are added from now on.
    pub quic: giveway_sim::QuicConfig,
    nodes: usize,
}

impl Lab {
    pub fn new(nodes: usize, seed: u64) -> Lab {
        Lab {
            network: Network::new(nodes),
            streams: Streams::new(seed),
            sources: Vec::new(),
            timing: giveway_sim::Timing::default(),
            quic: giveway_sim::QuicConfig::default(),
            nodes,
        }
    }

    /// Adds one direction of a link and returns its number. A path of 8 Mbit/s and 50 ms each way, with a
    /// transfer of `segments` segments from node 0 to node 1, of which the listed ones are dropped and
    /// marked. The SYN is number 0.
    pub fn gated(tcp: &TcpConfig, segments: u64, lose: &[u64], mark: &[u64]) -> Lab {
        let mut lab = Lab::new(2, 1);
        let (rate, delay, mss) = (Rate::mbit(8), Span::ms(50), tcp.mss.0);
        lab.network.link(LinkPlan {
            name: "0->1".into(),
            from: 0,
            to: 1,
            rate,
            delay,
            jitter: Span::ZERO,
            loss: Share::default(),
            cost: 1,
            impairments: Default::default(),
            outages: Vec::new(),
            medium: None,
            qdisc: Box::new(Gate::new(mss, lose, mark)),
        });
        lab.link(1, 0, rate, delay, "fifo");
        lab.bulk(&[(0, 1)], Some(segments * mss), tcp);
        lab
    }

    pub fn link(&mut self, from: u16, to: u16, rate: Rate, delay: Span, spec: &str) -> u32 {
        self.lossy_link(from, to, rate, delay, spec, 0.0)
    }

    pub fn lossy_link(&mut self, from: u16, to: u16, rate: Rate, delay: Span, spec: &str, loss: f64) -> u32 {
        let context = LinkContext::new(rate, self.streams.within(&format!("{from}->{to}")));
        let qdisc = spec.parse::<Spec>().unwrap().build(&context).unwrap();
        let loss = Share::new(loss).unwrap();
        self.network.link(LinkPlan {
            name: format!("{from}->{to}"),
            from,
            to,
            rate,
            delay,
            jitter: Span::ZERO,
            loss,
            cost: 1,
            impairments: Default::default(),
            outages: Vec::new(),
            medium: None,
            qdisc,
        })
    }

    /// Adds one direction of a link with outages and returns its number.
    pub fn link_with_outages(
        &mut self,
        from: u16,
        to: u16,
        rate: Rate,
        delay: Span,
        spec: &str,
        outages: Vec<(Time, Time)>,
    ) -> u32 {
        let context = LinkContext::new(rate, self.streams.within(&format!("{from}->{to}")));
        let qdisc = spec.parse::<Spec>().unwrap().build(&context).unwrap();
        let (jitter, loss) = (Span::ZERO, Share::default());
        let name = format!("{from}->{to}");
        let impairments = Default::default();
        let cost = 1;
        self.network.link(LinkPlan {
            name,
            from,
            to,
            rate,
            delay,
            jitter,
            loss,
            impairments,
            cost,
            outages,
            medium: None,
            qdisc,
        })
    }

    /// Adds both directions of a link, with queues that never overflow.
    pub fn wire(&mut self, a: u16, b: u16, rate: Rate, delay: Span) {
        self.link(a, b, rate, delay, "fifo limit 100000p");
        self.link(b, a, rate, delay, "fifo limit 100000p");
    }

    pub fn context(&self, pairs: &[(u16, u16)], tcp: &TcpConfig) -> SourceContext {
        SourceContext {
            pairs: pairs.to_vec(),
            hosts: Vec::new(),
            access: Rate::default(),
            start: Time::ZERO,
            stop: Time::NEVER,
            tcp: tcp.clone(),
            quic: self.quic.clone(),
            streams: self.streams.within(&format!("traffic/{}", self.sources.len())),
            folder: ".".into(),
            nodes: (0..self.nodes).map(|node| node.to_string()).collect(),
        }
    }

    pub fn source(&mut self, config: &impl Traffic, pairs: &[(u16, u16)], tcp: &TcpConfig) {
        self.source_at(config, &self.context(pairs, tcp));
    }

    pub fn source_at(&mut self, config: &impl Traffic, context: &SourceContext) {
        let name = format!("source-{}", self.sources.len());
        self.sources.push(SourcePlan {
            start: context.start,
            tcp: context.tcp.clone(),
            quic: context.quic.clone(),
            pairs: Some(context.pairs.clone()),
            ..SourcePlan::new(name, config.build(context).unwrap())
        });
    }

    pub fn bulk(&mut self, pairs: &[(u16, u16)], size: Option<u64>, tcp: &TcpConfig) {
        let config = bulk::Config {
            size: size.map(giveway_qdisc::Bytes),
            spread: Some(Span::ZERO),
            ..Default::default()
        };
        self.source(&config, pairs, tcp);
    }

    pub fn run<R: Probe<Segment>>(
        self,
        until: Time,
        measured_from: Time,
        probe: &mut R,
    ) -> giveway_sim::Totals {
        let mut sim = Sim::new(Plan { measured: measured_from..until, ..self.plan(until) });
        sim.step_to(until, probe);
        sim.finish(probe)
    }

    /// The plan of a run that is measured from its beginning.
    pub fn plan(self, until: Time) -> Plan {
        Plan {
            network: self.network,
            sources: self.sources,
            until,
            measured: Time::ZERO..until,
            sample: None,
            sample_senders: false,
            streams: self.streams.within("run"),
            lookahead: 0,
            timing: self.timing,
        }
    }
}

/// Keeps the reports of flows, and counts the packets that one port sent.
#[derive(Default)]
pub struct Counters {
    pub port: PortId,
    pub flows: Vec<FlowReport>,
    pub sent: u64,
    pub sent_bytes: u64,
    pub dropped: u64,
    pub marked: u64,
    pub from: Time,
}

impl Probe<Segment> for Counters {
    fn interest(&self, at: PortId) -> Interest {
        if at == self.port { Interest::Port } else { Interest::Nothing }
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, _: &Segment, now: Time) {
        if at == self.port && now >= self.from {
            self.sent += 1;
            self.sent_bytes += u64::from(meta.bytes);
        }
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, _: &Segment, _: DropReason, _: Time) {
        self.dropped += 1;
    }
    fn on_mark(&mut self, _: PortId, _: &Meta, _: Time) {
        self.marked += 1;
    }
    fn on_flow(&mut self, report: &FlowReport) {
        self.flows.push(report.clone());
    }
}

/// A queue without a limit that drops and marks chosen segments, for tests of loss recovery.
pub struct Gate {
    queue: std::collections::VecDeque<Packet<Segment>>,
    mss: u64,
    /// Data segments to drop (1 is the first; 0 is the SYN), each as often as it is listed.
    lose: Vec<u64>,
    /// Data segments to mark once.
    mark: Vec<u64>,
}

impl Gate {
    pub fn new(mss: u64, lose: &[u64], mark: &[u64]) -> Gate {
        Gate { queue: Default::default(), mss, lose: lose.to_vec(), mark: mark.to_vec() }
    }

    fn listed(list: &mut Vec<u64>, number: u64) -> bool {
        match list.iter().position(|entry| *entry == number) {
            Some(at) => {
                list.remove(at);
                true
            }
            None => false,
        }
    }
}

impl giveway_qdisc::Qdisc<Segment> for Gate {
    fn enqueue(&mut self, mut pkt: Packet<Segment>, cx: &mut giveway_qdisc::Cx<'_, Segment>) {
        let segment = &pkt.payload;
        let number = if segment.has(Segment::SYN) { 0 } else { (segment.seq.max(1) - 1) / self.mss + 1 };
        if segment.seq_len() > 0 && Gate::listed(&mut self.lose, number) {
            return cx.drop(pkt, DropReason::Policy);
        }
        if pkt.payload.len > 0 && Gate::listed(&mut self.mark, number) {
            assert!(cx.mark(&mut pkt), "only segments of a connection with ECN can be marked");
        }
        self.queue.push_back(pkt);
    }
    fn dequeue(&mut self, _: &mut giveway_qdisc::Cx<'_, Segment>) -> giveway_qdisc::Next<Segment> {
        self.queue.pop_front().map_or(giveway_qdisc::Next::Empty, giveway_qdisc::Next::Packet)
    }
    fn backlog(&self) -> giveway_qdisc::Backlog {
        let bytes = self.queue.iter().map(|pkt| u64::from(pkt.bytes())).sum();
        giveway_qdisc::Backlog { packets: self.queue.len() as u64, bytes }
    }
    fn reset(&mut self, cx: &mut giveway_qdisc::Cx<'_, Segment>) {
        for pkt in self.queue.drain(..) {
            cx.drop(pkt, DropReason::Reset);
        }
    }
}

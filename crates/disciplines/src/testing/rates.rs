//! Driver for fairness tests: unresponsive senders at constant rates with jitter share a link behind a
//! discipline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use giveway_qdisc::hash::mix;
use giveway_qdisc::{
    Backlog, DropReason, FlowKey, LinkContext, Meta, Packet, Port, PortId, Probe, Rate, Rng, Span, Streams,
    Time,
};

use crate::Spec;

/// A sender with a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Rate of the sender.
    pub kbit: u64,
    /// Length of its packets in bytes.
    pub bytes: u32,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Throughput of each sender, Mbit/s.
    pub got: Vec<f64>,
    /// Share of the link that was used.
    pub utilization: f64,
    /// Mean length of the queue at arrivals.
    pub queue_packets: f64,
    /// Number of dropped packets.
    pub dropped: u64,
    /// Means of the gauges at arrivals.
    pub gauges: Vec<(&'static str, f64)>,
}

impl Outcome {
    /// Mean of a gauge.
    pub fn gauge(&self, wanted: &str) -> f64 {
        let found = self.gauges.iter().find(|(name, _)| *name == wanted);
        found.unwrap_or_else(|| panic!("there is a gauge {wanted}")).1
    }
    /// Jain's index of the senders' throughput.
    pub fn jain(&self) -> f64 {
        let sum: f64 = self.got.iter().sum();
        let squares: f64 = self.got.iter().map(|got| got * got).sum();
        sum * sum / (self.got.len() as f64 * squares)
    }
}

/// Offers all flows for this many seconds, of which the first two do not count.
pub fn offer(spec: &str, link: Rate, flows: &[Flow], seconds: u64) -> Outcome {
    let starts: Vec<Span> = flows.iter().map(|_| Span::ZERO).collect();
    offer_from(spec, link, flows, &starts, seconds)
}

/// Like [`offer`], with a start of each flow.
pub fn offer_from(spec: &str, link: Rate, flows: &[Flow], starts: &[Span], seconds: u64) -> Outcome {
    let context = LinkContext::new(link, Streams::new(3).within("discipline"));
    let qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut run = Run {
        port: Port::new(PortId(0), qdisc, link),
        received: Received { from: Time::s(2), got: vec![0; flows.len()], dropped: 0 },
    };
    let mut rng = Streams::new(3).within("senders").rng();
    let gap = |flow: &Flow| Rate::kbit(flow.kbit).time_for(u64::from(flow.bytes));
    let begins = flows.iter().zip(starts).enumerate().map(|(which, (flow, start))| {
        Reverse((Time::ms(1) + *start + Span::from_ps(rng.below(gap(flow).as_ps())), which))
    });
    let mut next: BinaryHeap<Reverse<(Time, usize)>> = begins.collect();
    let (mut found, mut arrivals) = (0, 0u64);
    let mut gauges: Vec<(&'static str, f64)> = Vec::new();
    while let Some(Reverse((at, which))) = next.pop().filter(|Reverse((at, _))| *at <= Time::s(seconds)) {
        run.until(at);
        if at >= run.received.from {
            found += run.port.counters().backlog().packets;
            arrivals += 1;
            // A sample of the arrivals is enough for a mean.
            if arrivals % 64 == 1 {
                let mut now = Vec::new();
                run.port.sample(at, &mut now, &mut ());
                gauges.resize(now.len(), ("", 0.0));
                gauges.iter_mut().zip(now).for_each(|(sum, (name, value))| *sum = (name, sum.1 + value));
            }
        }
        let flow = &flows[which];
        let mut pkt = Packet::new(FlowKey(mix(which as u64, 7)), flow.bytes, 0);
        pkt.meta.class = which as u16;
        run.port.offer(pkt, at, &mut run.received);
        run.pull(at);
        next.push(Reverse((at + jittered(gap(flow), &mut rng), which)));
    }
    let measured = (seconds - 2) as f64;
    let got: Vec<f64> = run.received.got.iter().map(|bytes| *bytes as f64 * 8e-6 / measured).collect();
    let samples = arrivals.div_ceil(64) as f64;
    Outcome {
        utilization: got.iter().sum::<f64>() * 1e6 / link.as_bit() as f64,
        got,
        queue_packets: found as f64 / arrivals as f64,
        dropped: run.received.dropped,
        gauges: gauges.into_iter().map(|(name, sum)| (name, sum / samples)).collect(),
    }
}

/// A uniform draw between half and one and a half times `gap`.
fn jittered(gap: Span, rng: &mut Rng) -> Span {
    gap.scale(1, 2) + Span::from_ps(rng.below(gap.as_ps() + 1))
}

struct Run {
    port: Port<u64>,
    received: Received,
}

impl Run {
    /// Runs the link until an arrival.
    fn until(&mut self, at: Time) {
        while self.port.counters().backlog() != Backlog::ZERO && self.port.free_at() <= at {
            let free = self.port.free_at();
            self.pull(free);
        }
    }
    fn pull(&mut self, now: Time) {
        let _ = self.port.pull(now, &mut self.received);
    }
}

struct Received {
    from: Time,
    got: Vec<u64>,
    dropped: u64,
}

impl Probe<u64> for Received {
    fn on_transmission(&mut self, _: PortId, meta: &Meta, _: &u64, now: Time) {
        if now >= self.from {
            self.got[usize::from(meta.class)] += u64::from(meta.bytes);
        }
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, _: &u64, _: DropReason, _: Time) {
        self.dropped += 1;
    }
}

//! Packets that pass the queue of a candidate before a test.
//!
//! They look like packets of a test, so that a candidate cannot leave them out when it counts: flows of three
//! kinds with random keys, offsets that grow, lengths from acknowledgements to full packets, all ECN fields,
//! and hosts with small numbers. First they come in bursts, which wait in the queue. Then one comes now and
//! then for some seconds, so that what a discipline has learnt from the bursts fades. The last one comes
//! shortly before the test, so no gap marks its beginning.
//!
//! The bursts load the link below its rate. Senders that do not respond, on a link that is full for a minute,
//! occur in no test, and drive a drop probability to a height from which it needs minutes to return. The
//! probability of BLUE in `cobalt` falls more slowly than it rises.

use giveway_qdisc::{Dscp, Ecn, FlowKey, Header, Meta, Rate, Rng, Span, Streams};

/// The time after the bursts in which a packet comes now and then.
const CALM: Span = Span::s(10);

/// Packets before a test, as a secret draws them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// The number of packets in bursts.
    pub count: u32,
    /// Their mean rate in bursts, per thousand of the rate of the link.
    pub load: u64,
    /// The mean time between two packets after the bursts.
    pub gap: Span,
    /// The time between the last packet and the test.
    pub last: Span,
    /// The seed of all else.
    pub seed: u64,
}

impl Before {
    /// Draws the packets.
    pub fn drawn(rng: &mut Rng) -> Before {
        Before {
            // About as many as a test has.
            count: 10_000 + rng.below(15_000) as u32,
            load: 600 + rng.below(300),
            gap: Span::us(10_000 + rng.below(30_000)),
            last: Span::us(1 + rng.below(40_000)),
            seed: rng.word(),
        }
    }

    /// The packets at a link of this rate, with the times of their arrival since the first could arrive.
    pub fn packets(&self, rate: Rate) -> Vec<(Span, Meta)> {
        let mut rng = Streams::new(self.seed).within("before").rng();
        let mut flows: Vec<Flow> = (0..8 + rng.below(24)).map(|_| Flow::drawn(&mut rng)).collect();
        let mut packets = Vec::new();
        let mut time = Span::ZERO;
        while packets.len() < self.count as usize {
            let place = rng.below(flows.len() as u64) as usize;
            let mut burst = 0;
            for _ in 0..=rng.below(10) {
                let meta = flows[place].packet(&mut rng);
                burst += u64::from(meta.bytes);
                packets.push((time, meta));
            }
            if flows[place].is_over() {
                flows[place] = Flow::drawn(&mut rng);
            }
            let mean = rate.time_for(burst).scale(1_000, self.load);
            time += drawn(&mut rng, mean);
        }
        let end = time + CALM;
        while time < end {
            time += drawn(&mut rng, self.gap);
            let place = rng.below(flows.len() as u64) as usize;
            packets.push((time, flows[place].packet(&mut rng)));
            if flows[place].is_over() {
                flows[place] = Flow::drawn(&mut rng);
            }
        }
        packets
    }
}

/// An exponential time with this mean.
fn drawn(rng: &mut Rng, mean: Span) -> Span {
    Span::from_s_f64(rng.exponential(mean.as_s()))
}

/// A flow: data, acknowledgements or datagrams.
struct Flow {
    /// Metadata of its next packet.
    meta: Meta,
    kind: u64,
    /// True if the bytes that it has still to send are unknown.
    is_open: bool,
}

impl Flow {
    fn drawn(rng: &mut Rng) -> Flow {
        // As cells of a card number their hosts.
        let (from, to) = (rng.below(12) as u16, rng.below(12) as u16);
        let kind = rng.below(3);
        let ecn = [Ecn::NotCapable, Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1][rng.below(4) as usize];
        let dscp = Dscp::new([0, 0, 0, 8, 46][rng.below(5) as usize]).unwrap_or_default();
        let header = Header::new(dscp, kind == 1).with_advance(kind == 1);
        let class = [0, 0, 0, 1, 2][rng.below(5) as usize];
        // 10 kB to 3 MB, with few of the long ones.
        let size = (1e4 + rng.exponential(3e5)).min(3e6);
        let meta = Meta { flow: FlowKey(rng.word()), from, to, ecn, header, class, ..Meta::default() };
        Flow { meta: Meta { remaining: size as u32, ..meta }, kind, is_open: rng.below(4) == 0 }
    }

    fn packet(&mut self, rng: &mut Rng) -> Meta {
        let bytes = match self.kind {
            0 => 1500,
            1 => 52,
            _ => 64 + rng.below(1437) as u32,
        };
        let remaining = match (self.kind, self.is_open) {
            (0, false) => self.meta.remaining,
            (0, true) => u32::MAX,
            _ => 0,
        };
        let packet = Meta { bytes, remaining, ..self.meta };
        // An acknowledgement sends no data.
        let sent = if self.kind == 1 { 0 } else { bytes };
        self.meta.offset = self.meta.offset.saturating_add(sent);
        self.meta.remaining = self.meta.remaining.saturating_sub(bytes);
        packet
    }

    fn is_over(&self) -> bool {
        self.meta.remaining == 0
    }
}

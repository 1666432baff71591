//! A readable trace of QUIC packets, and a queue that drops and marks chosen ones.

#![allow(dead_code, missing_docs)]

use std::collections::VecDeque;
use std::fmt::Write;

use giveway_qdisc::{Backlog, Cx, DropReason, Ecn, Meta, Next, Packet, PortId, Probe, Qdisc, Time};
use giveway_sim::Segment;
use giveway_sim::quic::packet::{AckFrame, PacketType};

/// Writes one line for each packet that node `at` sends or receives, and one for each loss.
#[derive(Default)]
pub struct Trace {
    pub at: u16,
    pub text: String,
    pub lines: usize,
    /// Number of lines that are written.
    pub most: usize,
}

/// Number, header and contents of a packet: "5 1-rtt 1222 b, 1193 data, has 0-3".
fn describe(meta: &Meta, segment: &Segment) -> String {
    let kind = match PacketType::of(segment) {
        PacketType::Initial => "initial",
        PacketType::ZeroRtt => "0-rtt",
        PacketType::Handshake => "handshake",
        PacketType::OneRtt => "1-rtt",
    };
    let mut text = format!("{} {kind} {} b", segment.seq, meta.bytes - 28);
    if segment.len > 0 {
        write!(text, ", {} data", segment.len).unwrap();
    }
    if let Some(ack) = AckFrame::read(segment) {
        let range = |(first, last)| if first == last { format!("{last}") } else { format!("{first}-{last}") };
        write!(text, ", has {}", ack.ranges().map(range).collect::<Vec<_>>().join(" ")).unwrap();
        if let Some(ecn) = ack.ecn.filter(|ecn| ecn.marked > 0) {
            write!(text, ", {} marked", ecn.marked).unwrap();
        }
    }
    text
}

impl Trace {
    fn line(&mut self, now: Time, event: &str) {
        self.lines += 1;
        if self.lines <= self.most {
            writeln!(self.text, "{:>9.3} {event}", now.as_ps() as f64 / 1e9).unwrap();
        }
    }
}

impl Probe<Segment> for Trace {
    fn on_emission(&mut self, node: u16, meta: &Meta, segment: &Segment, now: Time) {
        if node == self.at {
            self.line(now, &format!("-> {}", describe(meta, segment)));
        }
    }
    fn on_delivery(&mut self, node: u16, meta: &Meta, segment: &Segment, now: Time) {
        if node == self.at {
            self.line(now, &format!("            <- {}", describe(meta, segment)));
        }
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, segment: &Segment, _: DropReason, now: Time) {
        self.line(now, &format!("   x {}", segment.seq));
    }
}

/// A queue without a limit that drops and marks packets with chosen numbers, each once.
#[derive(Default)]
pub struct Gate {
    pub queue: VecDeque<Packet<Segment>>,
    pub lose: Vec<u64>,
    pub mark: Vec<u64>,
    /// Everything that arrives within these times is lost.
    pub dark: Option<(Time, Time)>,
}

impl Qdisc<Segment> for Gate {
    fn enqueue(&mut self, mut pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        let now = cx.now();
        let dark = self.dark.is_some_and(|(from, to)| from <= now && now < to);
        let listed = self.lose.iter().position(|number| *number == pkt.payload.seq);
        if let Some(at) = listed {
            self.lose.remove(at);
        }
        if dark || listed.is_some() {
            return cx.drop(pkt, DropReason::Policy);
        }
        if self.mark.contains(&pkt.payload.seq) && pkt.meta.ecn != Ecn::NotCapable {
            cx.mark(&mut pkt);
        }
        self.queue.push_back(pkt);
    }
    fn dequeue(&mut self, _: &mut Cx<'_, Segment>) -> Next<Segment> {
        self.queue.pop_front().map_or(Next::Empty, Next::Packet)
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(|pkt| u64::from(pkt.bytes())).sum();
        Backlog { packets: self.queue.len() as u64, bytes }
    }
    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.queue.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
    }
}

//! A readable packet trace: the segments that a node sends and receives.

#![allow(dead_code, missing_docs)]

use std::fmt::Write;

use giveway_qdisc::{DropReason, Meta, PortId, Probe, Time};
use giveway_sim::Segment;

/// Writes one line for each packet that node `at` sends or receives, and one for each loss. Data are counted
/// in segments of `mss` bytes.
pub struct Trace {
    pub at: u16,
    pub mss: u64,
    pub text: String,
    pub lines: usize,
    pub most: usize,
}

impl Trace {
    pub fn new(at: u16, mss: u64, most: usize) -> Trace {
        Trace { at, mss, text: String::new(), lines: 0, most }
    }

    fn line(&mut self, now: Time, event: &str) {
        self.lines += 1;
        if self.lines <= self.most {
            writeln!(self.text, "{:>9.3} {event}", now.as_ps() as f64 / 1e9).unwrap();
        }
    }

    /// The number of a data segment, from 1.
    fn data(&self, segment: &Segment) -> String {
        let first = (segment.seq.max(1) - 1) / self.mss + 1;
        let fin = if segment.has(Segment::FIN) { " FIN" } else { "" };
        match segment.len {
            0 => format!("{}{fin}", if segment.has(Segment::SYN) { "SYN" } else { "" }),
            _ => format!("{first}{fin}"),
        }
    }

    fn flags(&self, segment: &Segment) -> String {
        let mut text = String::new();
        for (flag, name) in [(Segment::ECE, " ECE"), (Segment::CWR, " CWR")] {
            if segment.has(flag) {
                text.push_str(name);
            }
        }
        if segment.ace > 0 {
            write!(text, " ACE {:03b}", segment.ace).unwrap();
        }
        text
    }

    fn ack(&self, segment: &Segment) -> String {
        let number = |seq: u64| (seq - 1) / self.mss + 1;
        let blocks: Vec<String> = segment
            .blocks()
            .map(|(from, to)| match (number(from), number(to) - 1) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first}-{last}"),
            })
            .collect();
        let sack = if blocks.is_empty() { String::new() } else { format!(" has {}", blocks.join(" ")) };
        format!("wants {}{sack}", number(segment.ack.max(1)))
    }
}

impl Probe<Segment> for Trace {
    fn on_emission(&mut self, node: u16, _: &Meta, segment: &Segment, now: Time) {
        if node == self.at {
            let event = match self.data(segment) {
                data if data.is_empty() => self.ack(segment),
                data => data,
            };
            let event = event.trim_start();
            let line = format!("-> {event}{}", self.flags(segment));
            self.line(now, &line);
        }
    }
    fn on_delivery(&mut self, node: u16, meta: &Meta, segment: &Segment, now: Time) {
        if node == self.at {
            let ecn = if meta.ecn == giveway_qdisc::Ecn::Marked { " marked" } else { "" };
            let event = if segment.has(Segment::SYN) {
                "SYN ACK".into()
            } else if segment.has(Segment::FIN) {
                format!("FIN, {}", self.ack(segment))
            } else {
                self.ack(segment)
            };
            let line = format!("            <- {event}{}{ecn}", self.flags(segment));
            self.line(now, &line);
        }
    }
    fn on_drop(&mut self, _: PortId, _: &Meta, segment: &Segment, why: DropReason, now: Time) {
        let line = format!("   x {} ({})", self.data(segment), why.name());
        self.line(now, &line);
    }
}

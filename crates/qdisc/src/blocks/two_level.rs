//! One buffer in two levels: the high queue is always served before the low one, and what has to go is taken from the
//! far end. EFD, Run2C and X-Protect differ only in how they choose the level.
//!
//! The two queues are one line of packets, high in front of low: the tail of that line is the last low packet, or the
//! last high one when no packet is low.

use std::collections::VecDeque;

use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::qdisc::Backlog;

/// Where a packet waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Served first.
    High,
    /// Served when no packet is high; gives way first.
    Low,
}

/// Two queues that share a buffer.
#[derive(Debug)]
pub struct TwoLevel<P> {
    high: VecDeque<Packet<P>>,
    low: VecDeque<Packet<P>>,
    held: Backlog,
}

impl<P> TwoLevel<P> {
    /// Room for `packets` packets, however they divide; it grows when there are more.
    pub fn with_capacity(packets: usize) -> TwoLevel<P> {
        TwoLevel {
            high: VecDeque::with_capacity(packets),
            low: VecDeque::with_capacity(packets),
            held: Backlog::ZERO,
        }
    }

    /// Appends to a level.
    #[inline]
    pub fn push(&mut self, level: Level, pkt: Packet<P>) {
        self.held.add(pkt.bytes());
        match level {
            Level::High => self.high.push_back(pkt),
            Level::Low => self.low.push_back(pkt),
        }
    }

    /// Takes the packet that is served next.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<P>> {
        let pkt = match self.high.pop_front() {
            Some(pkt) => pkt,
            None => self.low.pop_front()?,
        };
        self.held.sub(pkt.bytes());
        Some(pkt)
    }

    /// Takes the tail of the line, and says from which level.
    #[inline]
    pub fn push_out(&mut self) -> Option<(Level, Packet<P>)> {
        let (level, pkt) = match self.low.pop_back() {
            Some(pkt) => (Level::Low, pkt),
            None => (Level::High, self.high.pop_back()?),
        };
        self.held.sub(pkt.bytes());
        Some((level, pkt))
    }

    /// What both levels hold.
    #[inline]
    pub fn held(&self) -> Backlog {
        self.held
    }
    /// How many packets are high.
    pub fn high_packets(&self) -> usize {
        self.high.len()
    }
    /// How many packets are low.
    pub fn low_packets(&self) -> usize {
        self.low.len()
    }
    /// The tail of the line.
    pub fn tail(&self) -> Option<&Packet<P>> {
        self.low.back().or_else(|| self.high.back())
    }
    /// Every packet, in the order of the line.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.high.iter().chain(&self.low)
    }

    /// Gives every packet up.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for pkt in self.high.drain(..).chain(self.low.drain(..)) {
            cx.drop(pkt, DropReason::Reset);
        }
        self.held = Backlog::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowKey;
    use proptest::prelude::*;

    proptest! {
        /// It is one line in which high packets stand before low ones.
        #[test]
        fn is_one_line(ops in prop::collection::vec(0..5u8, 0..300)) {
            let mut two = TwoLevel::with_capacity(0);
            let mut line: Vec<(Level, u32)> = Vec::new();
            for (serial, op) in (1u32..).zip(ops) {
                match op {
                    0..=2 => {
                        let level = if op == 0 { Level::High } else { Level::Low };
                        let end_of_high = line.iter().take_while(|(each, _)| *each == Level::High).count();
                        line.insert(if level == Level::High { end_of_high } else { line.len() }, (level, serial));
                        two.push(level, Packet::new(FlowKey(0), serial, ()));
                    }
                    3 => {
                        let first = (!line.is_empty()).then(|| line.remove(0).1);
                        prop_assert_eq!(two.pop().map(|pkt| pkt.bytes()), first);
                    }
                    _ => {
                        let last = line.pop();
                        prop_assert_eq!(two.push_out().map(|(level, pkt)| (level, pkt.bytes())), last);
                    }
                }
                prop_assert_eq!(two.iter().map(Packet::bytes).collect::<Vec<_>>(), line.iter().map(|(_, b)| *b).collect::<Vec<_>>());
                prop_assert_eq!(two.tail().map(Packet::bytes), line.last().map(|(_, bytes)| *bytes));
                prop_assert_eq!(two.held().packets, line.len() as u64);
                prop_assert_eq!(two.held().bytes, line.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>());
                prop_assert_eq!(two.high_packets() + two.low_packets(), line.len());
            }
        }
    }
}

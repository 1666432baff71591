//! A buffer with strict priority levels: a level is served when all levels above it are empty. EFD, Run2C and
//! X-Protect have two levels and differ only in the choice of the level; PIAS has more.
//!
//! The queues form one sequence of packets, upper levels before lower ones. Packets are pushed out at its
//! tail, the last packet of the lowest level that is not empty.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::units::Limit;

/// A priority level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

impl Level {
    /// The highest level, which is served first.
    pub const HIGH: Level = Level(0);
    /// The second level: the lower one of a [`TwoLevel`].
    pub const LOW: Level = Level(1);

    /// The level below `above` others.
    ///
    /// # Panics
    /// If there are more than 255 levels above.
    #[inline]
    pub fn below(above: usize) -> Level {
        Level(u8::try_from(above).expect("there are at most 256 levels"))
    }
    /// Number of levels above this one.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// `K` queues that share a buffer.
#[derive(Debug)]
pub struct Levels<P, const K: usize> {
    /// Upper levels first.
    queues: [VecDeque<Packet<P>>; K],
    backlog: Backlog,
}

/// A high and a low queue.
pub type TwoLevel<P> = Levels<P, 2>;

impl<P, const K: usize> Levels<P, K> {
    /// Empty levels, each with capacity for `packets` packets. They grow on demand.
    pub fn with_capacity(packets: usize) -> Levels<P, K> {
        Levels { queues: std::array::from_fn(|_| VecDeque::with_capacity(packets)), backlog: Backlog::ZERO }
    }

    /// Appends to a level.
    #[inline]
    pub fn push(&mut self, level: Level, pkt: Packet<P>) {
        self.backlog.add(pkt.bytes());
        self.queues[level.index()].push_back(pkt);
    }

    /// Appends to a level, then drops packets from the tail of the sequence until the backlog is within
    /// `limit`. `gone` is called with each victim before its drop. The reason is [`DropReason::Overlimit`]
    /// for the new packet, otherwise [`DropReason::Pushout`].
    #[inline]
    pub fn push_within(
        &mut self,
        limit: Limit,
        level: Level,
        pkt: Packet<P>,
        cx: &mut Cx<'_, P>,
        gone: impl FnMut(Level, &Packet<P>),
    ) {
        self.push(level, pkt);
        if !limit.allows(self.backlog) {
            self.shrink(limit, level, cx, gone);
        }
    }

    fn shrink(
        &mut self,
        limit: Limit,
        arrival: Level,
        cx: &mut Cx<'_, P>,
        mut gone: impl FnMut(Level, &Packet<P>),
    ) {
        while !limit.allows(self.backlog) {
            let (level, victim) = self.push_out().expect("what exceeds the limit is queued");
            gone(level, &victim);
            // The arriving packet is the tail of its level, and without it the backlog is within the limit.
            // So this victim is the arriving packet.
            let why = if level == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }

    /// Removes the packet that is served next, with its level.
    #[inline]
    pub fn pop(&mut self) -> Option<(Level, Packet<P>)> {
        // A search and one removal: a loop with a removal per level would copy the code that moves a packet.
        let at = self.queues.iter().position(|queue| !queue.is_empty())?;
        let pkt = self.queues[at].pop_front()?;
        self.backlog.sub(pkt.bytes());
        Some((Level::below(at), pkt))
    }

    /// The first packet of a level.
    #[inline]
    pub fn front(&self, level: Level) -> Option<&Packet<P>> {
        self.queues[level.index()].front()
    }

    /// Removes the tail of the sequence, with its level.
    #[inline]
    pub fn push_out(&mut self) -> Option<(Level, Packet<P>)> {
        let at = self.queues.iter().rposition(|queue| !queue.is_empty())?;
        let pkt = self.queues[at].pop_back()?;
        self.backlog.sub(pkt.bytes());
        Some((Level::below(at), pkt))
    }

    /// Backlog of all levels.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// Number of packets of a level.
    pub fn packets(&self, level: Level) -> usize {
        self.queues[level.index()].len()
    }
    /// The packets in the order of service.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.queues.iter().flatten()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for pkt in self.queues.iter_mut().flat_map(|queue| queue.drain(..)) {
            cx.drop(pkt, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Outbox;
    use crate::packet::FlowKey;
    use crate::units::Time;
    use proptest::prelude::*;

    /// Index of a new packet of a level in the sequence: behind all packets of this level and those above.
    fn place(sequence: &[(Level, u32)], level: Level) -> usize {
        sequence.iter().take_while(|(each, _)| *each <= level).count()
    }

    /// Drives `K` levels and a plain list through the same operations.
    fn is_one_line<const K: usize>(ops: Vec<u8>) -> Result<(), TestCaseError> {
        let mut levels = Levels::<(), K>::with_capacity(0);
        let mut sequence: Vec<(Level, u32)> = Vec::new();
        for (serial, op) in (1u32..).zip(ops) {
            let named = |(level, pkt): (Level, Packet<()>)| (level, pkt.bytes());
            match usize::from(op) {
                push if push < 2 * K => {
                    let level = Level::below(push % K);
                    sequence.insert(place(&sequence, level), (level, serial));
                    levels.push(level, Packet::new(FlowKey(0), serial, ()));
                }
                pop if pop % 2 == 0 => {
                    let first = (!sequence.is_empty()).then(|| sequence.remove(0));
                    let at_front = first.and_then(|(level, _)| levels.front(level)).map(Packet::bytes);
                    prop_assert_eq!(at_front, first.map(|(_, bytes)| bytes));
                    prop_assert_eq!(levels.pop().map(named), first);
                }
                _ => prop_assert_eq!(levels.push_out().map(named), sequence.pop()),
            }
            let bytes: Vec<u32> = sequence.iter().map(|(_, bytes)| *bytes).collect();
            prop_assert_eq!(levels.iter().map(Packet::bytes).collect::<Vec<_>>(), bytes.clone());
            prop_assert_eq!(levels.backlog().packets, sequence.len() as u64);
            prop_assert_eq!(levels.backlog().bytes, bytes.into_iter().map(u64::from).sum::<u64>());
            for level in (0..K).map(Level::below) {
                prop_assert_eq!(
                    levels.packets(level),
                    sequence.iter().filter(|(each, _)| *each == level).count()
                );
            }
        }
        Ok(())
    }

    proptest! {
        /// The levels form one sequence with upper packets before lower ones.
        #[test]
        fn two_levels_are_one_sequence(ops in prop::collection::vec(0..7u8, 0..300)) {
            is_one_line::<2>(ops)?;
        }
        #[test]
        fn five_levels_are_one_sequence(ops in prop::collection::vec(0..16u8, 0..300)) {
            is_one_line::<5>(ops)?;
        }

        /// A packet joins the sequence behind its level; then packets are removed from the tail until the
        /// backlog is within the limit.
        #[test]
        fn packets_above_the_limit_are_dropped_from_the_tail(
            arrivals in prop::collection::vec((0..3usize, 40..1500u32), 1..100),
            most in 1500..9000u64,
            in_bytes in any::<bool>(),
        ) {
            let limit = if in_bytes { Limit::Bytes(most) } else { Limit::Packets(most / 1000) };
            let mut levels = Levels::<(), 3>::with_capacity(0);
            let mut sequence: Vec<(Level, u32)> = Vec::new();
            let mut out = Outbox::default();
            for (level, bytes) in arrivals {
                let level = Level::below(level);
                let at = place(&sequence, level);
                sequence.insert(at, (level, bytes));
                let backlog_of = |sequence: &[(Level, u32)]| Backlog {
                    packets: sequence.len() as u64,
                    bytes: sequence.iter().map(|(_, bytes)| u64::from(*bytes)).sum(),
                };
                let mut expected = Vec::new();
                while !limit.allows(backlog_of(&sequence)) {
                    let why = if sequence.len() - 1 == at { DropReason::Overlimit } else { DropReason::Pushout };
                    let (level, bytes) = sequence.pop().unwrap();
                    expected.push((level, bytes, why));
                }
                let mut gone = Vec::new();
                let mut cx = Cx::new(Time::ZERO, &mut out);
                levels.push_within(limit, level, Packet::new(FlowKey(0), bytes, ()), &mut cx, |level, _| gone.push(level));
                let dropped: Vec<_> =
                    gone.into_iter().zip(out.dropped.drain(..)).map(|(level, (pkt, why))| (level, pkt.bytes(), why)).collect();
                prop_assert_eq!(dropped, expected);
                prop_assert_eq!(levels.backlog(), backlog_of(&sequence));
            }
        }
    }
}

//! A buffer in order of ranks that drops its worst packets: the common part of LAS, LARS and STFQ.
//!
//! A packet that is the worst of all when it arrives joins the end of a *run*, a plain queue in order of
//! ranks. Only the others need a heap. With many flows that have few packets each, ranks follow arrivals, and
//! most packets are in the run: their cost does not grow with the number of packets, and they are next to
//! each other in memory. If ranks do not follow arrivals, the run is nearly always empty, and costs some
//! twenty instructions at each end.

use std::collections::VecDeque;

use super::Ranked;
use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::store::Place;
use crate::units::Limit;

/// Packets by rank, then by arrival, with their backlog.
#[derive(Debug)]
pub struct RankedPackets<P> {
    /// Packets that were the worst of all at their arrival, with their ranks; the best first. A packet of
    /// `others` with the rank of one of these arrived later.
    run: VecDeque<(u64, Packet<P>)>,
    others: Ranked<Packet<P>>,
    backlog: Backlog,
}

impl<P> RankedPackets<P> {
    /// An empty buffer with capacity for `packets` packets. It grows on demand.
    pub fn with_capacity(packets: usize) -> RankedPackets<P> {
        RankedPackets {
            run: VecDeque::with_capacity(packets),
            others: Ranked::with_capacity(packets),
            backlog: Backlog::ZERO,
        }
    }

    /// Inserts a packet behind the packets of the same rank, then drops the worst packets until the rest is
    /// within `limit`. `gone` is called with each victim and its rank before its drop. The reason is
    /// [`DropReason::Overlimit`] for the new packet, otherwise [`DropReason::Pushout`].
    #[inline]
    pub fn push_within(
        &mut self,
        limit: Limit,
        rank: u64,
        pkt: Packet<P>,
        cx: &mut Cx<'_, P>,
        gone: impl FnMut(u64, &Packet<P>),
    ) {
        self.backlog.add(pkt.bytes());
        let arrival = self.push(rank, pkt);
        if !limit.allows(self.backlog) {
            self.shrink(limit, arrival, cx, gone);
        }
    }

    /// Inserts a packet. Returns its place, or `None` if it is in the run.
    #[inline]
    fn push(&mut self, rank: u64, pkt: Packet<P>) -> Option<Place> {
        // The heap is asked first: if ranks do not follow arrivals, it nearly always has a worse packet.
        let is_worst = self.others.worst().is_none_or(|(worst, _)| rank > worst)
            && self.run.back().is_none_or(|(last, _)| rank >= *last);
        if !is_worst {
            return Some(self.others.push(rank, pkt));
        }
        self.run.push_back((rank, pkt));
        None
    }

    fn shrink(
        &mut self,
        limit: Limit,
        arrival: Option<Place>,
        cx: &mut Cx<'_, P>,
        mut gone: impl FnMut(u64, &Packet<P>),
    ) {
        while !limit.allows(self.backlog) {
            let (place, rank, victim) = self.pop_worst().expect("what exceeds the limit is queued");
            self.backlog.sub(victim.bytes());
            gone(rank, &victim);
            // Without the arriving packet the backlog is within the limit, so it can only be the last victim.
            // If it is in the run, it is the worst of all, and the only one.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }

    /// Removes the worst packet, with its rank and its place, which is `None` if it was in the run.
    fn pop_worst(&mut self) -> Option<(Option<Place>, u64, Packet<P>)> {
        let last = self.run.back().map(|(rank, _)| *rank);
        match self.others.worst() {
            Some((worst, place)) if last.is_none_or(|last| worst >= last) => {
                let (rank, pkt) = self.others.remove(place);
                Some((Some(place), rank, pkt))
            }
            _ => self.run.pop_back().map(|(rank, pkt)| (None, rank, pkt)),
        }
    }

    /// Removes the best packet, with its rank.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Packet<P>)> {
        // Each branch moves the packet once: one exit for both would copy it again.
        if self.run_is_first() {
            let (rank, pkt) = self.run.pop_front()?;
            self.backlog.sub(pkt.bytes());
            return Some((rank, pkt));
        }
        let (rank, pkt) = self.others.pop()?;
        self.backlog.sub(pkt.bytes());
        Some((rank, pkt))
    }

    /// True if the best packet is in the run.
    #[inline]
    fn run_is_first(&self) -> bool {
        let Some((first, _)) = self.run.front() else { return false };
        self.others.best().is_none_or(|(best, _)| *first <= best)
    }

    /// Packets and bytes in the buffer.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// The lowest rank and the highest.
    pub fn ranks(&self) -> Option<(u64, u64)> {
        let others = self.others.best().zip(self.others.worst()).map(|((best, _), (worst, _))| (best, worst));
        let run = self.run.front().zip(self.run.back()).map(|((first, _), (last, _))| (*first, *last));
        match (run, others) {
            (Some((first, last)), Some((best, worst))) => Some((first.min(best), last.max(worst))),
            (run, others) => run.or(others),
        }
    }
    /// Lowers all ranks by `by`, which is at most the lowest rank.
    pub fn lower(&mut self, by: u64) {
        self.run.iter_mut().for_each(|(rank, _)| *rank -= by);
        self.others.lower(by);
    }
    /// Ranks and packets in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Packet<P>)> {
        self.run.iter().map(|(rank, pkt)| (*rank, pkt)).chain(self.others.iter())
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, pkt)) = self.pop() {
            cx.drop(pkt, DropReason::Reset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Outbox;
    use crate::packet::FlowKey;
    use crate::units::Time;
    use proptest::prelude::*;

    proptest! {
        /// The buffer equals a vector sorted by rank and arrival: departures, victims and reasons.
        #[test]
        fn is_a_sorted_vector(ops in prop::collection::vec((0..12u8, 0..8u64), 0..400), most in 1..12u64) {
            let mut queue = RankedPackets::with_capacity(0);
            let mut sorted: Vec<(u64, u32)> = Vec::new();
            let mut out = Outbox::default();
            for (serial, (op, rank)) in (0u32..).zip(ops) {
                match op {
                    // Ranks that mostly follow arrivals, and ranks that do not.
                    0..7 => {
                        let rank = if op < 4 { rank + u64::from(serial) / 4 } else { rank };
                        sorted.push((rank, serial));
                        sorted.sort_unstable();
                        let mut expected = Vec::new();
                        if sorted.len() as u64 > most {
                            let (rank, victim) = sorted.pop().unwrap();
                            let own = victim == serial;
                            let why = if own { DropReason::Overlimit } else { DropReason::Pushout };
                            expected.push((rank, victim, why));
                        }
                        let mut ranks = Vec::new();
                        let mut cx = Cx::new(Time::ZERO, &mut out);
                        let pkt = Packet::new(FlowKey(0), 100, serial);
                        let limit = Limit::Packets(most);
                        queue.push_within(limit, rank, pkt, &mut cx, |rank, _| ranks.push(rank));
                        let drops = out.dropped.drain(..).zip(ranks);
                        let drops = drops.map(|((pkt, why), rank)| (rank, pkt.payload, why));
                        prop_assert_eq!(drops.collect::<Vec<_>>(), expected);
                    }
                    7 => {
                        let by = sorted.first().map_or(0, |(rank, _)| *rank);
                        queue.lower(by);
                        sorted.iter_mut().for_each(|(rank, _)| *rank -= by);
                    }
                    _ => {
                        let first = (!sorted.is_empty()).then(|| sorted.remove(0));
                        prop_assert_eq!(queue.pop().map(|(rank, pkt)| (rank, pkt.payload)), first);
                    }
                }
                let ends = sorted.first().zip(sorted.last());
                prop_assert_eq!(queue.ranks(), ends.map(|(first, last)| (first.0, last.0)));
                prop_assert_eq!(queue.backlog().packets, sorted.len() as u64);
                let mut all: Vec<(u64, u32)> = queue.iter().map(|(rank, pkt)| (rank, pkt.payload)).collect();
                all.sort_unstable();
                prop_assert_eq!(&all, &sorted);
            }
        }
    }

    #[test]
    fn the_worst_packets_are_dropped_until_the_backlog_fits() {
        let mut queue = RankedPackets::with_capacity(4);
        let mut out = Outbox::default();
        let mut ranks = Vec::new();
        for (name, rank, bytes) in [("a", 5, 400), ("b", 7, 300), ("c", 6, 300), ("d", 1, 900), ("e", 9, 200)]
        {
            let mut cx = Cx::new(Time::ZERO, &mut out);
            let pkt = Packet::new(FlowKey(0), bytes, name);
            queue.push_within(Limit::Bytes(1000), rank, pkt, &mut cx, |rank, _| ranks.push(rank));
        }
        let dropped: Vec<(&str, DropReason)> =
            out.dropped.iter().map(|(pkt, why)| (pkt.payload, *why)).collect();
        let pushed = DropReason::Pushout;
        assert_eq!(dropped, [("b", pushed), ("c", pushed), ("a", pushed), ("e", DropReason::Overlimit)]);
        assert_eq!((ranks, queue.backlog()), (vec![7, 6, 5, 9], Backlog { packets: 1, bytes: 900 }));
        assert_eq!(queue.ranks(), Some((1, 1)));
        assert_eq!(queue.pop().map(|(rank, pkt)| (rank, pkt.payload)), Some((1, "d")));
        assert_eq!((queue.backlog(), queue.ranks()), (Backlog::ZERO, None));
    }
}

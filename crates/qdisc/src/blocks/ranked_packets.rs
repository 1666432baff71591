//! A buffer in order of ranks that drops its worst packets: the common part of LAS, LARS and STFQ.

use super::Ranked;
use crate::backlog::Backlog;
use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::store::Place;
use crate::units::Limit;

/// Packets by rank, then by arrival, with their backlog.
#[derive(Debug)]
pub struct RankedPackets<P> {
    queue: Ranked<Packet<P>>,
    backlog: Backlog,
}

impl<P> RankedPackets<P> {
    /// An empty buffer with capacity for `packets` packets. It grows on demand.
    pub fn with_capacity(packets: usize) -> RankedPackets<P> {
        RankedPackets { queue: Ranked::with_capacity(packets), backlog: Backlog::ZERO }
    }

    /// Inserts a packet behind those of the same rank, then drops the worst packets until the rest is within
    /// `limit`. `gone` is called with each victim and its rank before its drop. The reason is
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
        let arrival = self.queue.push(rank, pkt);
        if !limit.allows(self.backlog) {
            self.shrink(limit, arrival, cx, gone);
        }
    }

    fn shrink(
        &mut self,
        limit: Limit,
        arrival: Place,
        cx: &mut Cx<'_, P>,
        mut gone: impl FnMut(u64, &Packet<P>),
    ) {
        while !limit.allows(self.backlog) {
            let (_, place) = self.queue.worst().expect("what exceeds the limit is queued");
            let (rank, victim) = self.queue.remove(place);
            self.backlog.sub(victim.bytes());
            gone(rank, &victim);
            // Without the arriving packet the backlog is within the limit, so it can only be the last victim.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }

    /// Removes the best packet, with its rank.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Packet<P>)> {
        let (rank, pkt) = self.queue.pop()?;
        self.backlog.sub(pkt.bytes());
        Some((rank, pkt))
    }

    /// Packets and bytes in the buffer.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// The lowest rank and the highest.
    pub fn ranks(&self) -> Option<(u64, u64)> {
        Some((self.queue.best()?.0, self.queue.worst()?.0))
    }
    /// Lowers all ranks by `by`, saturating at zero.
    pub fn lower(&mut self, by: u64) {
        self.queue.lower(by);
    }
    /// Ranks and packets in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Packet<P>)> {
        self.queue.iter()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, pkt)) = self.queue.pop() {
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

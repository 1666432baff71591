//! First in, first out: the default queue of a link.
//!
//! # Principles
//! - Departure order is acceptance order, whatever the flow.
//! - The limit counts packets or bytes, as written; the packet on the wire does not count.
//! - When the queue is full, the arriving packet is refused (`drop tail`), or the oldest is dropped (`drop
//!   head`), so that the sender detects congestion a queue's length earlier.
//! - When the limit is lowered while packets are queued, those above it are dropped: the newest ones, or with
//!   `drop head` the oldest.
//!
//! # Deviations
//! - None. ns-2's drop-tail refuses when the queue *reaches* the limit, so its capacity is one packet less:
//!   `limit 39p` here is `limit_ 40` there.
//!
//! # Cost
//! - One queue operation per packet; the memory of the packets themselves.
//!
//! # References
//! - Linux `pfifo`, `bfifo`, `pfifo_head_drop`: tc-bfifo(8). The default limit there is the device's transmit
//!   queue length, 1,000 packets.

use std::any::Any;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::taking::same;
use crate::{Discipline, InLinux};

/// Parameters of `fifo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity, in packets or in bytes.
    pub limit: Limit,
    /// The packet that is dropped when the queue is full.
    pub drop: Victim,
}

/// The packet that a full queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// The arriving packet.
    Tail,
    /// The oldest packets, until the arriving packet fits.
    Head,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(1000), drop: Victim::Tail }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "first in, first out, with a limit in packets or bytes";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Fifo<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Fifo<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        Ok(Fifo { limit: self.limit, victim: self.drop, queue: Queue::new(self.limit) })
    }

    fn in_linux(&self) -> Option<InLinux> {
        match (self.limit, self.drop) {
            (_, Victim::Head) => None,
            (Limit::Packets(limit), Victim::Tail) => {
                Some(InLinux { limit: Some(limit), ..InLinux::named("pfifo") })
            }
            (Limit::Bytes(_), Victim::Tail) => Some(InLinux::named("bfifo")),
        }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        vec![
            Config { limit: Limit::Packets(5), ..Config::default() },
            Config { limit: Limit::Bytes(6000), ..Config::default() },
            Config { limit: Limit::Bytes(6000), drop: Victim::Head },
        ]
    }
}

impl Config {
    /// The discipline, without memory for packets until they arrive.
    pub(crate) fn growing<P>(&self) -> Fifo<P> {
        Fifo { limit: self.limit, victim: self.drop, queue: Queue::growing() }
    }
}

/// The discipline `fifo`: one queue with a limit.
pub struct Fifo<P> {
    limit: Limit,
    victim: Victim,
    queue: Queue<P>,
}

impl<P: 'static> Qdisc<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(self.queue.backlog(), pkt.bytes()) && !self.make_room(&pkt, cx) {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        self.queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        self.queue.pop().map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
    }

    fn plain(&self) -> Option<Limit> {
        (self.victim == Victim::Tail).then_some(self.limit)
    }

    /// The queue.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Fifo<P>>(old) else { return };
        std::mem::swap(&mut self.queue, &mut old.queue);
        self.shorten(self.limit, cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl<P> Fifo<P> {
    /// Drops packets that exceed a limit.
    fn shorten(&mut self, limit: Limit, cx: &mut Cx<'_, P>) {
        match self.victim {
            Victim::Tail => self.queue.shorten(limit, cx),
            Victim::Head => self.queue.shorten_from_the_head(limit, cx),
        }
    }

    /// Takes out the newest packet.
    pub(crate) fn pop_last(&mut self) -> Option<Packet<P>> {
        self.queue.pop_last()
    }

    /// Drops packets from the head until the arriving packet fits. Returns false with `drop tail`, or if the
    /// packet can never fit.
    fn make_room(&mut self, arriving: &Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        if self.victim == Victim::Tail || !self.limit.admits(Backlog::ZERO, arriving.bytes()) {
            return false;
        }
        while !self.limit.admits(self.queue.backlog(), arriving.bytes()) {
            let oldest = self.queue.pop().expect("a full queue holds a packet");
            cx.drop(oldest, DropReason::Pushout);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::trace::{MIXED, T1, trace};

    #[test]
    fn serves_in_order_of_arrival() {
        assert_eq!(
            trace("fifo limit 4p", 1000, T1),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-4.5] B2[4.5-5] A6[5-6] | A5@1.3 C1@1.4 B3@2.7"
        );
    }

    #[test]
    fn counts_bytes() {
        let finish = |spec| trace(spec, 100, MIXED);
        assert_eq!(
            finish("fifo"),
            "A1[0-1] A2[1-2] A3[2-3] B1[3-4] B2[4-5] C1[5-7] C2[7-8] A4[8-9] D1[9-10] B3[10-11] |"
        );
    }

    #[test]
    fn with_drop_head_the_newest_packets_are_kept() {
        assert_eq!(
            trace("fifo limit 2p drop head", 1000, "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000"),
            "A1[0-1] A3[1-2] A4[2-3] | A2@0.3"
        );
    }
}

//! What is counted of one direction, packet by packet, by the thread that moves the packets.
//!
//! It is told what a [`qdisc::Probe`] is told, and what only a live host knows: by how much a packet was late, who a flow is, what the ring
//! and the line lost. Once a second it is turned: what was since the last turn is the last second then. Nothing here allocates per
//! packet; a turn allocates the names of the flows that are shown.

use qdisc::{Backlog, DropReason, Meta, Span, Time};

use crate::delays::Delays;
use crate::flows::TopFlows;
use crate::snapshot::{Drops, Flow, Recent, Snapshot};

/// Counts what one direction does. `T` is what tells who a flow is: its 5-tuple.
#[derive(Debug)]
pub struct Meter<T> {
    arrived: Backlog,
    sent: Backlog,
    dropped: Drops,
    marked: Backlog,
    line_lost: Backlog,
    ring_drops: u64,
    stalls: u64,
    sojourn: Delays,
    lateness: Delays,
    flows: TopFlows<T>,
    /// What had arrived and was sent at the last turn.
    turned: (Backlog, Backlog),
    /// Of the last whole second.
    recent: Recent,
}

impl<T: Copy> Meter<T> {
    /// Nothing yet. So many flows are watched: [`TopFlows::new`].
    pub fn new(flows: usize) -> Meter<T> {
        Meter {
            arrived: Backlog::ZERO,
            sent: Backlog::ZERO,
            dropped: Drops::default(),
            marked: Backlog::ZERO,
            line_lost: Backlog::ZERO,
            ring_drops: 0,
            stalls: 0,
            sojourn: Delays::new(),
            lateness: Delays::new(),
            flows: TopFlows::new(flows),
            turned: (Backlog::ZERO, Backlog::ZERO),
            recent: Recent::default(),
        }
    }

    /// A packet was offered to the port.
    #[inline]
    pub fn arrived(&mut self, meta: &Meta) {
        self.arrived.add(meta.bytes);
    }

    /// A packet was sent, `late` after the time that the shaper said.
    #[inline]
    pub fn sent(&mut self, meta: &Meta, who: T, now: Time, late: Span) {
        self.sent.add(meta.bytes);
        self.sojourn.add(now.since(meta.arrived));
        self.lateness.add(late);
        self.flows.add(meta.flow, who, meta.bytes);
    }

    /// The port dropped a packet. What the line loses after it was sent is told to [`Meter::line_lost`] instead.
    #[inline]
    pub fn dropped(&mut self, meta: &Meta, why: DropReason) {
        self.dropped.add(why, meta.bytes);
    }

    /// The discipline marked a packet.
    #[inline]
    pub fn marked(&mut self, meta: &Meta) {
        self.marked.add(meta.bytes);
    }

    /// The line lost a packet that was sent.
    #[inline]
    pub fn line_lost(&mut self, bytes: u32) {
        self.line_lost.add(bytes);
    }

    /// The kernel had no room for so many frames.
    pub fn ring_dropped(&mut self, frames: u64) {
        self.ring_drops += frames;
    }

    /// The port was found stuck.
    pub fn stalled(&mut self) {
        self.stalls += 1;
    }

    /// A second is over. The `most` flows that sent most in it are shown, by what `name` says of them.
    pub fn turn(&mut self, most: usize, mut name: impl FnMut(&T) -> String) {
        let since = |all: Backlog, before: Backlog| Backlog {
            packets: all.packets - before.packets,
            bytes: all.bytes - before.bytes,
        };
        self.sojourn.turn();
        self.lateness.turn();
        let flows = self.flows.top(most).into_iter();
        self.recent = Recent {
            arrived: since(self.arrived, self.turned.0),
            sent: since(self.sent, self.turned.1),
            sojourn: self.sojourn.last(),
            lateness: self.lateness.last(),
            flows: flows.map(|(key, who, sent)| Flow { key, text: name(&who), sent }).collect(),
        };
        self.turned = (self.arrived, self.sent);
        self.flows.clear();
    }

    /// Held now: what arrived and was neither sent nor dropped.
    pub fn held(&self) -> Backlog {
        let Backlog { packets, bytes } = self.sent.plus(self.dropped.total());
        Backlog {
            packets: self.arrived.packets.saturating_sub(packets),
            bytes: self.arrived.bytes.saturating_sub(bytes),
        }
    }

    /// Everything that was counted. Names, rates and the like are the host's to fill in.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            arrived: self.arrived,
            sent: self.sent,
            dropped: self.dropped,
            marked: self.marked,
            held: self.held(),
            line_lost: self.line_lost,
            ring_drops: self.ring_drops,
            stalls: self.stalls,
            sojourn: self.sojourn.all(),
            lateness: self.lateness.all(),
            recent: self.recent.clone(),
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdisc::FlowKey;

    #[test]
    fn a_second_by_hand() {
        let mut meter = Meter::new(4);
        let meta =
            |flow, bytes, at| Meta { flow: FlowKey(flow), bytes, arrived: Time::ms(at), ..Meta::default() };
        for flow in 1..=3 {
            meter.arrived(&meta(flow, 100 * flow as u32, 10));
        }
        meter.sent(&meta(1, 100, 10), "one", Time::ms(15), Span::us(3));
        meter.marked(&meta(1, 100, 10));
        meter.dropped(&meta(2, 200, 10), DropReason::Early);
        meter.line_lost(100);
        meter.ring_dropped(7);
        meter.stalled();
        assert_eq!(meter.snapshot().recent, Recent::default(), "the second is not over");
        meter.turn(2, |who| format!("flow {who}"));
        let seen = meter.snapshot();
        assert_eq!(seen.held, Backlog { packets: 1, bytes: 300 });
        assert_eq!(seen.dropped.of(DropReason::Early), Backlog { packets: 1, bytes: 200 });
        assert_eq!((seen.marked.packets, seen.line_lost.bytes, seen.ring_drops, seen.stalls), (1, 100, 7, 1));
        assert_eq!((seen.sojourn.max, seen.lateness.max), (Span::ms(5), Span::us(3)));
        assert_eq!(seen.recent.arrived, Backlog { packets: 3, bytes: 600 });
        let flow =
            Flow { key: FlowKey(1), text: "flow one".to_owned(), sent: Backlog { packets: 1, bytes: 100 } };
        assert_eq!(seen.recent.flows, [flow]);

        meter.sent(&meta(3, 300, 10), "three", Time::ms(1010), Span::ZERO);
        meter.turn(2, |who| (*who).to_owned());
        let seen = meter.snapshot();
        assert_eq!((seen.held, seen.sent), (Backlog::ZERO, Backlog { packets: 2, bytes: 400 }));
        assert_eq!(seen.recent.sent, Backlog { packets: 1, bytes: 300 });
        assert_eq!((seen.recent.sojourn.count, seen.recent.sojourn.max), (1, Span::s(1)));
        assert_eq!(seen.recent.flows.iter().map(|flow| &flow.text[..]).collect::<Vec<_>>(), ["three"]);
        meter.turn(2, |who| (*who).to_owned());
        assert_eq!(meter.snapshot().recent, Recent::default(), "nothing happened in that second");
    }
}

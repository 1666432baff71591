// SPDX-License-Identifier: MIT OR Apache-2.0

//! One discipline and the packets that its calls drop.

use giveway_disciplines::Discipline;
use giveway_qdisc::{Backlog, Cx, Ecn, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};

use crate::call::{CALL, Outcome};

/// A discipline, once it is built.
pub struct Held<D: Discipline> {
    built: Option<Built<D>>,
}

struct Built<D: Discipline> {
    qdisc: D::Qdisc<u32>,
    out: Outbox<u32>,
    /// Number of packets of the outbox that the shim has taken.
    taken: usize,
}

/// Number of drops by one call for which there is memory from the start.
const DROPS: usize = 64;

impl<D: Discipline> Held<D> {
    /// No discipline yet.
    pub const EMPTY: Held<D> = Held { built: None };

    /// Builds the default configuration, or a variant of it.
    #[inline]
    pub fn build(&mut self, variant: u64, rate: u64, seed: u64) -> u64 {
        let config = match variant {
            0 => D::default(),
            number => match D::variants().into_iter().nth(number as usize - 1) {
                Some(config) => config,
                None => return 1,
            },
        };
        let context = LinkContext::new(Rate::bit(rate), Streams::new(seed));
        let Ok(qdisc) = config.build(&context) else { return 2 };
        let out = Outbox { dropped: Vec::with_capacity(DROPS), marked: Vec::with_capacity(DROPS) };
        self.built = Some(Built { qdisc, out, taken: 0 });
        0
    }

    /// Enqueues the packet in [`CALL`].
    #[inline]
    pub fn arrive(&mut self, now: u64) {
        let Some(Built { qdisc, out, .. }) = &mut self.built else { return };
        let now = Time::from_ps(now);
        // SAFETY: there is one call at a time, and the reference ends with this statement.
        let (meta, payload) =
            unsafe { ((*(&raw const CALL)).arrival.meta(now), (*(&raw const CALL)).arrival.slot) };
        qdisc.enqueue(Packet { meta, payload }, &mut Cx::new(now, out));
    }

    /// Dequeues the next packet.
    #[inline]
    pub fn leave(&mut self, now: u64) -> u64 {
        let Some(Built { qdisc, out, .. }) = &mut self.built else { return Outcome::EMPTY };
        match qdisc.dequeue(&mut Cx::new(Time::from_ps(now), out)) {
            Next::Packet(pkt) => {
                let marked = if pkt.meta.ecn == Ecn::Marked { Outcome::MARKED } else { 0 };
                // SAFETY: there is one call at a time.
                unsafe {
                    CALL.label = pkt.meta.label.bits();
                    CALL.header = u64::from(pkt.meta.header.byte());
                }
                Outcome::PACKET | marked | u64::from(pkt.payload)
            }
            Next::At(at) => {
                // SAFETY: there is one call at a time.
                unsafe { CALL.at = at.as_ps() };
                Outcome::LATER
            }
            Next::Empty => Outcome::EMPTY,
        }
    }

    /// Takes the next packet that the last call dropped.
    #[inline]
    pub fn doomed(&mut self) -> u64 {
        let Some(Built { out, taken, .. }) = &mut self.built else { return u64::MAX };
        match out.dropped.get(*taken) {
            Some((pkt, why)) => {
                *taken += 1;
                u64::from(pkt.payload) | (*why as u64) << 32
            }
            None => {
                out.dropped.clear();
                out.marked.clear();
                *taken = 0;
                u64::MAX
            }
        }
    }

    /// Drops the backlog.
    #[inline]
    pub fn reset(&mut self, now: u64) {
        let Some(Built { qdisc, out, .. }) = &mut self.built else { return };
        qdisc.reset(&mut Cx::new(Time::from_ps(now), out));
    }

    /// The link has another rate.
    #[inline]
    pub fn rate(&mut self, rate: u64, now: u64) {
        let Some(Built { qdisc, .. }) = &mut self.built else { return };
        qdisc.rate_changed(Rate::bit(rate), Time::from_ps(now));
    }

    /// Packets and bytes in the queue.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.built.as_ref().map_or(Backlog::ZERO, |built| built.qdisc.backlog())
    }

    /// Number of marks by calls since the last time that all doomed packets were taken.
    #[inline]
    pub fn marks(&self) -> usize {
        self.built.as_ref().map_or(0, |built| built.out.marked.len())
    }
}

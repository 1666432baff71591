//! The context of a call of a discipline: the time, and the packets that the call drops and marks.

use crate::flow_key::FiveTuple;
use crate::packet::{Ecn, Meta, Packet};
use crate::units::Time;

/// Context of one call of a discipline.
pub struct Cx<'a, P> {
    now: Time,
    out: &'a mut Outbox<P>,
    headers: Option<&'a FiveTuple>,
}

/// Packets that a call dropped or marked. The backend empties it after each call and reuses it, so that drops
/// and marks do not allocate.
#[derive(Debug)]
pub struct Outbox<P> {
    /// Dropped packets with their reasons, in the order of the drops.
    pub dropped: Vec<(Packet<P>, DropReason)>,
    /// Metadata of marked packets, in the order of the marks.
    pub marked: Vec<Meta>,
}

/// Reason for a drop. The names come from the Linux kernel where it has them, so that simulated and live
/// drops can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The buffer was full and the arriving packet was refused.
    Overlimit,
    /// The buffer was full and this packet had to make room for another.
    Pushout,
    /// The discipline signalled congestion early, at arrival (RED, PIE).
    Early,
    /// The discipline signalled congestion at departure (CoDel).
    Congested,
    /// The flow or class had its own limit, and reached it.
    FlowLimit,
    /// The packet alone is larger than the limit, the bucket or the burst.
    TooLarge,
    /// No class takes this packet.
    NoClass,
    /// The discipline's policy refuses it (a reservation it does not have, a rate it exceeded).
    Policy,
    /// The discipline was reset or replaced while the packet was queued.
    Reset,
    /// The link emulation lost the packet on the wire (random loss).
    Wire,
    /// There was no route to the destination.
    Unreachable,
}

impl DropReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [DropReason; 11] = [
        DropReason::Overlimit,
        DropReason::Pushout,
        DropReason::Early,
        DropReason::Congested,
        DropReason::FlowLimit,
        DropReason::TooLarge,
        DropReason::NoClass,
        DropReason::Policy,
        DropReason::Reset,
        DropReason::Wire,
        DropReason::Unreachable,
    ];

    /// Its name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Overlimit => "overlimit",
            DropReason::Pushout => "pushout",
            DropReason::Early => "early",
            DropReason::Congested => "congested",
            DropReason::FlowLimit => "flow_limit",
            DropReason::TooLarge => "too_large",
            DropReason::NoClass => "no_class",
            DropReason::Policy => "policy",
            DropReason::Reset => "reset",
            DropReason::Wire => "wire",
            DropReason::Unreachable => "unreachable",
        }
    }
}

impl<P> Default for Outbox<P> {
    fn default() -> Outbox<P> {
        Outbox { dropped: Vec::new(), marked: Vec::new() }
    }
}

impl<'a, P> Cx<'a, P> {
    /// A context for one call at `now`, for backends and tests.
    pub fn new(now: Time, out: &'a mut Outbox<P>) -> Cx<'a, P> {
        Cx { now, out, headers: None }
    }

    /// This context, for the arrival of a packet with these addresses and ports.
    #[inline]
    pub fn with_headers(self, headers: Option<&'a FiveTuple>) -> Cx<'a, P> {
        Cx { headers, ..self }
    }

    /// Addresses, ports and protocol of the packet that arrives with this call, if the backend has real
    /// packets: for filters only.
    #[inline]
    pub fn headers(&self) -> Option<&FiveTuple> {
        self.headers
    }

    /// A context of this call, for a discipline with another outbox and perhaps another payload.
    #[inline]
    pub fn within<'b, Q>(&self, out: &'b mut Outbox<Q>) -> Cx<'b, Q>
    where
        'a: 'b,
    {
        Cx { now: self.now, out, headers: self.headers }
    }

    /// The time of this call. It never goes back.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Drops a packet. The packet is moved, so it cannot also be sent.
    #[inline]
    pub fn drop(&mut self, pkt: Packet<P>, why: DropReason) {
        self.out.dropped.push((pkt, why));
    }

    /// Marks a packet instead of dropping it, RFC 3168 section 5. Returns false if its transport does not
    /// support ECN; then the caller has to decide again.
    #[inline]
    pub fn mark(&mut self, pkt: &mut Packet<P>) -> bool {
        match pkt.meta.ecn {
            Ecn::NotCapable => return false,
            Ecn::Ect0 | Ecn::Ect1 => {
                pkt.meta.ecn = Ecn::Marked;
                self.out.marked.push(pkt.meta);
            }
            // Another queue marked it already. The sender reacts once, so this is not a mark of ours.
            Ecn::Marked => {}
        }
        true
    }

    /// Takes over the drops and marks of a discipline whose packets have another payload, in order, and
    /// empties `from`.
    pub fn relay<Q>(&mut self, from: &mut Outbox<Q>, mut payload: impl FnMut(Q) -> P) {
        self.out.marked.append(&mut from.marked);
        let dropped = from.dropped.drain(..);
        self.out.dropped.extend(
            dropped.map(|(pkt, why)| (Packet { meta: pkt.meta, payload: payload(pkt.payload) }, why)),
        );
    }

    /// This context for a call of a child discipline.
    pub fn child(&mut self) -> Cx<'_, P> {
        Cx { now: self.now, out: self.out, headers: self.headers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowKey;

    #[test]
    fn relayed_drops_and_marks_keep_their_order() {
        let (mut inner, mut outer) = (Outbox::default(), Outbox::default());
        let packet = |number: u32| Packet::new(FlowKey(u64::from(number)), 100 + number, number);
        outer.dropped.push((Packet::new(FlowKey(0), 1, "before".to_owned()), DropReason::Reset));
        for number in 1..=3 {
            inner.dropped.push((packet(number), DropReason::ALL[number as usize]));
            inner.marked.push(packet(10 + number).meta);
        }
        Cx::new(Time::ZERO, &mut outer).relay(&mut inner, |number| format!("number {number}"));
        assert!(inner.dropped.is_empty() && inner.marked.is_empty());
        let dropped: Vec<_> =
            outer.dropped.iter().map(|(pkt, why)| (pkt.bytes(), &pkt.payload[..], *why)).collect();
        assert_eq!(
            dropped,
            [
                (1, "before", DropReason::Reset),
                (101, "number 1", DropReason::Pushout),
                (102, "number 2", DropReason::Early),
                (103, "number 3", DropReason::Congested),
            ]
        );
        assert_eq!(outer.marked.iter().map(|meta| meta.bytes).collect::<Vec<_>>(), [111, 112, 113]);
    }
}

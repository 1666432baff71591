//! A simple model of a buffer with levels, with which the disciplines with levels are compared.

use giveway_qdisc::contract::{LENGTHS, Op};
use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Time};
use proptest::prelude::*;

/// Level and number of each queued packet, in the order of departure.
#[derive(Default)]
pub struct Reference {
    packets: Vec<(usize, u64)>,
    most: usize,
}

impl Reference {
    /// An empty buffer for `most` packets.
    pub fn new(most: u64) -> Reference {
        Reference { packets: Vec::new(), most: most as usize }
    }
    /// Enqueues a packet behind all packets of its level. Returns the number of the packet that is dropped.
    pub fn enqueue(&mut self, level: usize, serial: u64) -> Option<u64> {
        let place = self.packets.iter().filter(|(other, _)| *other <= level).count();
        self.packets.insert(place, (level, serial));
        if self.packets.len() > self.most { self.packets.pop().map(|(_, serial)| serial) } else { None }
    }
    /// Dequeues the first packet. Returns its number.
    pub fn dequeue(&mut self) -> Option<u64> {
        (!self.packets.is_empty()).then(|| self.packets.remove(0).1)
    }
}

/// Random arrivals of a few flows, and departures.
pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0..8u8, any::<u16>()).prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
        2 => Just(Op::Dequeue),
    ];
    prop::collection::vec(op, 1..400)
}

/// Applies the same operations to `qdisc` and to a reference of `most` packets, and compares each departure
/// and drop. `level` returns the level of a packet from its flow, its length and its offset in the flow.
pub fn equals_reference(
    qdisc: &mut impl Qdisc<u64>,
    most: u64,
    ops: &[Op],
    mut level: impl FnMut(u64, u32, u32) -> usize,
) -> Result<(), TestCaseError> {
    let mut reference = Reference::new(most);
    let mut out = Outbox::default();
    let mut offsets = [0; 256];
    for (serial, op) in (0u64..).zip(ops) {
        let mut cx = Cx::new(Time::ms(serial), &mut out);
        match op {
            Op::Enqueue { flow, bytes, .. } => {
                let bytes = LENGTHS.start() + u32::from(*bytes) % 1461;
                let mut pkt = Packet::new(FlowKey(u64::from(*flow)), bytes, serial);
                pkt.meta.offset = offsets[usize::from(*flow)];
                offsets[usize::from(*flow)] += bytes;
                let dropped = reference.enqueue(level(u64::from(*flow), bytes, pkt.meta.offset), serial);
                qdisc.enqueue(pkt, &mut cx);
                prop_assert_eq!(
                    out.dropped.drain(..).map(|(pkt, _)| pkt.payload).collect::<Vec<_>>(),
                    Vec::from_iter(dropped)
                );
            }
            _ => {
                prop_assert_eq!(qdisc.dequeue(&mut cx).packet().map(|pkt| pkt.payload), reference.dequeue());
            }
        }
    }
    Ok(())
}

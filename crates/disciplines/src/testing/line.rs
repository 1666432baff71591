//! A buffer of levels as the sheets describe it, written as plainly as can be: what the fast one is compared
//! with.

use giveway_qdisc::contract::{LENGTHS, Op};
use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Time};

use proptest::prelude::*;

/// Packets in the order in which they would leave: level, number.
#[derive(Default)]
pub struct Line {
    packets: Vec<(usize, u64)>,
    most: usize,
}

impl Line {
    /// Room for `most` packets.
    pub fn new(most: u64) -> Line {
        Line { packets: Vec::new(), most: most as usize }
    }
    /// A packet takes its place; gives the number of the one that had to go.
    pub fn enqueue(&mut self, level: usize, serial: u64) -> Option<u64> {
        let place = self.packets.iter().filter(|(other, _)| *other <= level).count();
        self.packets.insert(place, (level, serial));
        if self.packets.len() > self.most { self.packets.pop().map(|(_, serial)| serial) } else { None }
    }
    /// The first leaves.
    pub fn dequeue(&mut self) -> Option<u64> {
        (!self.packets.is_empty()).then(|| self.packets.remove(0).1)
    }
}

/// Arrivals of a few flows, and departures.
pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0..8u8, any::<u16>()).prop_map(|(flow, bytes)| Op::Enqueue { flow, bytes, class: 0, ecn: false }),
        2 => Just(Op::Dequeue),
    ];
    prop::collection::vec(op, 1..400)
}

/// Drives `qdisc` and a line of `most` packets through the same operations and compares what leaves and what
/// is dropped, one by one. `level` says where the sheet wants a packet of a flow, of a length, that carries
/// this offset.
pub fn same_as_the_line(
    qdisc: &mut impl Qdisc<u64>,
    most: u64,
    ops: &[Op],
    mut level: impl FnMut(u64, u32, u32) -> usize,
) -> Result<(), TestCaseError> {
    let mut line = Line::new(most);
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
                let dropped = line.enqueue(level(u64::from(*flow), bytes, pkt.meta.offset), serial);
                qdisc.enqueue(pkt, &mut cx);
                prop_assert_eq!(
                    out.dropped.drain(..).map(|(pkt, _)| pkt.payload).collect::<Vec<_>>(),
                    Vec::from_iter(dropped)
                );
            }
            _ => prop_assert_eq!(qdisc.dequeue(&mut cx).packet().map(|pkt| pkt.payload), line.dequeue()),
        }
    }
    Ok(())
}

//! Output queueing: every cell crosses in the slot in which it arrives, however many are for one output. No fabric does
//! that at the speed of many links, and no switch can do better: what all others are compared with. All waiting is at the
//! output links.

use super::Fabric;
use crate::packet::{Class, Packet};
use crate::shared::Shared;

pub(super) struct Output {
    /// Packets whose last cell is there in this slot, with their inputs.
    complete: Vec<(u16, Packet)>,
}

impl Output {
    pub fn new(ports: usize) -> Output {
        Output { complete: Vec::with_capacity(ports) }
    }
}

impl<const W: usize> Fabric<W> for Output {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, _: &mut Shared<W>) {
        self.complete.push((input as u16, packet));
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        // Counted when they are complete, since nothing is known of a cell before.
        let cells = self.complete.iter().map(|(_, packet)| u64::from(packet.cells)).sum::<u64>();
        shared.account(0, cells, 0, 0, 0);
        for (input, packet) in self.complete.drain(..) {
            shared.complete(usize::from(input), packet);
        }
    }

    fn pointers(&self, _: &mut dyn FnMut(&'static str, &'static str, &[u16])) {}
}

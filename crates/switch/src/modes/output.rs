//! Output queueing: every cell crosses in the slot in which it arrives, however many are for one output. No
//! fabric is that fast for many links, and no switch has less delay, so the others are compared with it.
//! Packets wait only at the output links.

use super::Rules;
use crate::packet::{Class, Packet};
use crate::shared::Shared;
use crate::statistics::Longest;

pub(super) struct Output {
    /// Packets whose last cell arrives in this slot, with their inputs.
    complete: Vec<(u16, Packet)>,
}

impl Output {
    pub fn new(ports: usize) -> Output {
        Output { complete: Vec::with_capacity(ports) }
    }
}

impl<const W: usize> Rules<W> for Output {
    #[inline(always)]
    fn arrive(&mut self, input: usize, packet: Packet, _: Class, _: &mut Shared<W>) {
        self.complete.push((input as u16, packet));
    }

    fn slot(&mut self, shared: &mut Shared<W>) {
        // All cells of a packet are counted with its last one, because packets arrive here only when they are
        // complete.
        let cells = self.complete.iter().map(|(_, packet)| u64::from(packet.cells)).sum::<u64>();
        shared.account(0, cells, 0, 0, 0);
        for (input, packet) in self.complete.drain(..) {
            shared.complete(usize::from(input), packet);
        }
    }

    fn longest(&self) -> Longest {
        // The inputs have no queues.
        Longest::default()
    }

    fn pointers(&self, _: &mut dyn FnMut(&'static str, &'static str, &[u16])) {}
}

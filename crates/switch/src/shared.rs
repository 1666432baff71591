//! What the modes of a switch share: its clock, what is measured, and what is behind the outputs.

use crate::arbiter::Weights;
use crate::clock::Clock;
use crate::links::{Links, Ready};
use crate::notes::Notes;
use crate::packet::Packet;
use crate::queues::{Fifos, Voqs};
use crate::tally::Tally;

/// A packet of which not all cells are there yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coming {
    /// Its output.
    pub to: u16,
    /// The slot of its last cell.
    pub last: u64,
}

/// Everything but queues and connections.
pub(crate) struct Shared<const W: usize> {
    pub clock: Clock,
    pub tally: Tally,
    pub links: Links,
    /// By input: what came last.
    pub coming: Vec<Coming>,
    pub notes: Notes,
}

impl<const W: usize> Shared<W> {
    /// The last cell of a packet crosses in this slot.
    #[inline]
    pub fn complete(&mut self, input: usize, packet: Packet) {
        let at = self.clock.end();
        let Packet { arrived, kind, to, .. } = packet;
        self.tally.complete(input, usize::from(to), kind, arrived, at);
        let tally = &mut self.tally;
        let left = &mut |left: Ready, tick| tally.left(left.kind, left.arrived, tick);
        self.links.offer(usize::from(to), Ready { at, arrived, kind }, left);
    }

    /// Where the slot of the outputs went; the rest was idle.
    #[inline]
    pub fn account(&mut self, short: u64, long: u64, blocked: u64, held: u64, unmatched: u64) {
        let slots = &mut self.tally.slots;
        slots.short += short;
        slots.long += long;
        slots.blocked += blocked;
        slots.held += held;
        slots.unmatched += unmatched;
    }
}

/// Virtual output queues, and what of their last packets is not there yet.
pub(crate) struct Present<'a, const W: usize> {
    pub voqs: &'a Voqs<W>,
    /// By input: what came last. Empty where these queues are for short packets: they come whole.
    pub coming: &'a [Coming],
    /// The first slot that has not begun.
    pub slot: u64,
}

impl<const W: usize> Weights for Present<'_, W> {
    #[inline]
    fn cells(&self, input: usize, output: usize) -> u64 {
        let cells = self.voqs.cells(input, output);
        match self.coming.get(input) {
            Some(Coming { to, last }) if usize::from(*to) == output => {
                cells - (last + 1).saturating_sub(self.slot)
            }
            _ => cells,
        }
    }
    #[inline]
    fn head(&self, input: usize, output: usize) -> u64 {
        self.voqs.head(input, output).unwrap_or(u64::MAX)
    }
}

/// Queues of short packets.
pub(crate) struct PresentShort<'a, const W: usize> {
    pub fifos: &'a Fifos<W>,
}

impl<const W: usize> Weights for PresentShort<'_, W> {
    #[inline]
    fn cells(&self, input: usize, _: usize) -> u64 {
        self.fifos.cells(input)
    }
    #[inline]
    fn head(&self, input: usize, _: usize) -> u64 {
        self.fifos.head(input).unwrap_or(u64::MAX)
    }
}

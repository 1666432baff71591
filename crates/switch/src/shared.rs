//! What the modes of a switch share: its clock, what is measured, and what is behind the outputs.

use crate::arbiter::Weights;
use crate::clock::Clock;
use crate::links::{Links, Ready};
use crate::notes::Notes;
use crate::packet::Packet;
use crate::per_port::PerPort;
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

/// A packet whose last cell has crossed.
#[derive(Clone, Copy, Debug, Default)]
struct Crossed {
    /// End of that slot, in ticks.
    at: u64,
    packet: Packet,
}

/// How many packets that have crossed are written down before they are counted and given to the links: one after the
/// other in one loop is faster than one now and then.
const TOGETHER: usize = 64;

/// Everything but queues and connections.
pub(crate) struct Shared<const W: usize> {
    pub clock: Clock,
    pub tally: Tally,
    pub links: Links,
    /// By input: what came last.
    pub coming: PerPort<Coming, W>,
    pub notes: Notes,
    /// What has crossed and is not counted yet, and how much that is.
    crossed: Box<[Crossed; TOGETHER]>,
    uncounted: usize,
}

impl<const W: usize> Shared<W> {
    /// Nothing has happened yet.
    pub fn new(clock: Clock, tally: Tally, links: Links) -> Shared<W> {
        Shared {
            clock,
            tally,
            links,
            coming: PerPort::new(Coming::default()),
            notes: Notes::off(),
            crossed: Box::new([Crossed::default(); TOGETHER]),
            uncounted: 0,
        }
    }

    /// The last cell of a packet crosses in this slot.
    #[inline]
    pub fn complete(&mut self, input: usize, packet: Packet) {
        self.tally.gone(input, packet.kind);
        self.crossed[self.uncounted % TOGETHER] = Crossed { at: self.clock.end(), packet };
        self.uncounted += 1;
        if self.uncounted == TOGETHER {
            self.settle();
        }
    }

    /// Counts what has crossed, and gives it to the links.
    #[inline(never)]
    pub fn settle(&mut self) {
        let Shared { tally, links, crossed, uncounted, .. } = self;
        for Crossed { at, packet } in &crossed[..std::mem::take(uncounted)] {
            let (at, Packet { arrived, kind, to, .. }) = (*at, *packet);
            tally.complete(usize::from(to), kind, arrived, at);
            let left = &mut |left: Ready, tick| tally.left(left.kind, left.arrived, tick);
            links.offer(usize::from(to), Ready { at, arrived, kind }, left);
        }
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
    /// By input: what came last. Nothing where these queues are for short packets: they come whole.
    pub coming: Option<&'a PerPort<Coming, W>>,
    /// The first slot that has not begun.
    pub slot: u64,
}

impl<const W: usize> Weights for Present<'_, W> {
    #[inline]
    fn cells(&self, input: usize, output: usize) -> u64 {
        let cells = self.voqs.cells(input, output);
        match self.coming.map(|coming| coming[input]) {
            Some(Coming { to, last }) if usize::from(to) == output => {
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

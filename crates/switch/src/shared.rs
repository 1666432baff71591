//! State that all modes of a switch have: the clock, the statistics and the output links.

use crate::arbiter::Weights;
use crate::clock::Clock;
use crate::links::{Links, Ready};
use crate::notes::Notes;
use crate::packet::Packet;
use crate::per_port::PerPort;
use crate::queues::{Fifos, Voqs};
use crate::statistics::Statistics;

/// The last packet of an input, whose cells may not all have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arriving {
    /// Its output.
    pub to: u16,
    /// The slot of the link in which its last cell arrives.
    pub last: u64,
}

/// A packet that has crossed completely.
#[derive(Clone, Copy, Debug, Default)]
struct Departure {
    /// End of the slot in which its last cell crossed, in ticks.
    at: u64,
    packet: Packet,
}

/// Packets that cross before they are counted and passed to the links. One loop over all of them is faster
/// than a call for each.
const BATCH: usize = 64;

/// Everything in a switch but its queues and connections.
pub(crate) struct Shared<const W: usize> {
    /// The present time.
    pub clock: Clock,
    /// Statistics of the run.
    pub statistics: Statistics,
    /// The output links.
    pub links: Links,
    /// By input: the packet that arrived last.
    pub arriving: PerPort<Arriving, W>,
    /// The trace, when one is recorded.
    pub notes: Notes,
    /// Packets that have crossed and are not counted yet: the first `uncounted`.
    crossed: Box<[Departure; BATCH]>,
    uncounted: usize,
}

impl<const W: usize> Shared<W> {
    /// The state at the start of a run.
    pub fn new(clock: Clock, statistics: Statistics, links: Links) -> Shared<W> {
        Shared {
            clock,
            statistics,
            links,
            arriving: PerPort::new(Arriving::default()),
            notes: Notes::off(),
            crossed: Box::new([Departure::default(); BATCH]),
            uncounted: 0,
        }
    }

    /// Completes a packet whose last cell crosses in this slot.
    #[inline]
    pub fn complete(&mut self, input: usize, packet: Packet) {
        self.statistics.left_input(input, packet.kind);
        self.crossed[self.uncounted % BATCH] = Departure { at: self.clock.end(), packet };
        self.uncounted += 1;
        if self.uncounted == BATCH {
            self.settle();
        }
    }

    /// Counts the packets that have crossed and passes them to the links.
    #[inline(never)]
    pub fn settle(&mut self) {
        let Shared { statistics, links, crossed, uncounted, .. } = self;
        for Departure { at, packet } in &crossed[..std::mem::take(uncounted)] {
            let (at, Packet { arrived, kind, to, .. }) = (*at, *packet);
            statistics.complete(usize::from(to), kind, arrived, at);
            let left = &mut |left: Ready, tick| statistics.on_departure(left.kind, left.arrived, tick);
            links.offer(usize::from(to), Ready { at, arrived, kind }, left);
        }
    }

    /// Counts the outputs by their use in this slot, in the classes of [`Slots`](crate::statistics::Slots).
    /// The other outputs are idle because the switch has no packet for them.
    #[inline]
    pub fn account(&mut self, short: u64, long: u64, blocked: u64, held: u64, unmatched: u64) {
        let slots = &mut self.statistics.slots;
        slots.short += short;
        slots.long += long;
        slots.blocked += blocked;
        slots.held += held;
        slots.unmatched += unmatched;
    }
}

/// Queue lengths and ages of virtual output queues, without cells that have not arrived yet.
pub(crate) struct VoqWeights<'a, const W: usize> {
    /// The queues, whose lengths include cells that have not arrived yet.
    pub voqs: &'a Voqs<W>,
    /// By input: the packet that arrived last. `None` for queues of short packets, which have one cell.
    pub arriving: Option<&'a PerPort<Arriving, W>>,
    /// The first slot of the links that has not started.
    pub slot: u64,
}

impl<const W: usize> Weights for VoqWeights<'_, W> {
    #[inline]
    fn cells(&self, input: usize, output: usize) -> u64 {
        let cells = self.voqs.cells(input, output);
        match self.arriving.map(|arriving| arriving[input]) {
            Some(Arriving { to, last }) if usize::from(to) == output => {
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

/// Queue lengths and ages where each input has one queue for all outputs.
pub(crate) struct FifoWeights<'a, const W: usize> {
    /// The queues.
    pub fifos: &'a Fifos<W>,
}

impl<const W: usize> Weights for FifoWeights<'_, W> {
    #[inline]
    fn cells(&self, input: usize, _: usize) -> u64 {
        self.fifos.cells(input)
    }
    #[inline]
    fn head(&self, input: usize, _: usize) -> u64 {
        self.fifos.head(input).unwrap_or(u64::MAX)
    }
}

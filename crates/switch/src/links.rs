//! The links behind the outputs: a packet leaves when all of it is there, one cell a slot.
//!
//! The output scheduler never interrupts a packet. With two classes it sends short ones first (P-SPF, section 2.1),
//! otherwise in the order of their completion.

use crate::packet::{Class, Kind};
use crate::slab::{Chain, Slab};

/// A packet that waits for its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// When all of it was there, in ticks.
    pub at: u64,
    /// When it arrived at the switch, in ticks.
    pub arrived: u64,
    pub kind: u16,
}

/// All links.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    slab: Slab<Ready>,
    /// By kind: how long it takes, in ticks, and whether it goes before others.
    kinds: Vec<(u64, bool)>,
    short_first: bool,
    slot_ticks: u64,
    /// The longest time that one output needed for all that waited there, what was being sent included, in ticks.
    most_ticks: u64,
    /// The most short packets that waited at one output.
    pub most_short: u64,
}

#[derive(Clone, Debug)]
struct Link {
    /// When it is free again, in ticks.
    free: u64,
    /// Time that what waits in the queues will take, in ticks.
    waiting: u64,
    /// Only used where short ones go first.
    short: Chain,
    long: Chain,
    /// How many short ones wait.
    shorts: u64,
}

impl Links {
    pub fn new(ports: usize, kinds: &[Kind], short_first: bool, slot_ticks: u64) -> Links {
        let link = Link { free: 0, waiting: 0, short: Chain::EMPTY, long: Chain::EMPTY, shorts: 0 };
        let kind = |kind: &Kind| (u64::from(kind.cells) * slot_ticks, kind.class == Class::Short);
        let kinds = kinds.iter().map(kind).collect();
        Links {
            links: vec![link; ports],
            slab: Slab::new(),
            kinds,
            short_first,
            slot_ticks,
            most_ticks: 0,
            most_short: 0,
        }
    }

    /// A packet is complete. Tells what left since the last time: the packet, and when its last cell was sent.
    #[inline]
    pub fn offer(&mut self, output: usize, packet: Ready, left: &mut impl FnMut(Ready, u64)) {
        let link = &mut self.links[output];
        let (sending, short) = self.kinds[usize::from(packet.kind)];
        if self.short_first {
            link.send_until(packet.at, &mut self.slab, &self.kinds, left);
            if link.free >= packet.at {
                link.waiting += sending;
                self.most_ticks = self.most_ticks.max(link.free - packet.at + link.waiting);
                if short {
                    self.slab.push_back(&mut link.short, packet);
                    link.shorts += 1;
                    self.most_short = self.most_short.max(link.shorts);
                } else {
                    self.slab.push_back(&mut link.long, packet);
                }
                return;
            }
            // Nobody is there, and no other one can be complete in the same slot: it begins at once.
        }
        link.free = link.free.max(packet.at) + sending;
        self.most_ticks = self.most_ticks.max(link.free - packet.at);
        left(packet, link.free);
    }

    /// The most cells that waited at one output, what was being sent included.
    pub fn most_cells(&self) -> u64 {
        self.most_ticks.div_ceil(self.slot_ticks)
    }

    /// So many cells wait at one output, and are sent without these links knowing.
    pub fn held(&mut self, cells: u64) {
        self.most_ticks = self.most_ticks.max(cells * self.slot_ticks);
    }

    /// Tells what leaves until `tick`, exclusively.
    pub fn advance(&mut self, tick: u64, left: &mut impl FnMut(Ready, u64)) {
        for link in &mut self.links {
            link.send_until(tick, &mut self.slab, &self.kinds, left);
        }
    }

    /// Forgets the maxima.
    pub fn forget(&mut self) {
        (self.most_ticks, self.most_short) = (0, 0);
    }
}

impl Link {
    /// Begins everything that can begin before `tick`.
    #[inline]
    fn send_until(
        &mut self,
        tick: u64,
        slab: &mut Slab<Ready>,
        kinds: &[(u64, bool)],
        left: &mut impl FnMut(Ready, u64),
    ) {
        // What waits was there before the link became free: whoever comes finds it waiting, or an idle link.
        while self.waiting > 0 && self.free < tick {
            let queue = if self.short.is_empty() { &mut self.long } else { &mut self.short };
            let packet = slab.pop(queue);
            let (sending, short) = kinds[usize::from(packet.kind)];
            self.shorts -= u64::from(short);
            self.waiting -= sending;
            self.free += sending;
            left(packet, self.free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(short_first: bool, offers: &[(u64, u32)]) -> Vec<(u32, u64)> {
        let sizes = [1, 2, 3, 5, 9];
        let class = |cells: u32| if cells == 1 { Class::Short } else { Class::Long };
        let kinds = sizes.map(|cells| Kind { cells, class: class(cells) });
        let mut links = Links::new(1, &kinds, short_first, 1);
        let mut out = Vec::new();
        for (at, cells) in offers {
            let kind = sizes.iter().position(|size| size == cells).unwrap() as u16;
            let packet = Ready { at: *at, arrived: 0, kind };
            links.offer(0, packet, &mut |packet, end| out.push((sizes[usize::from(packet.kind)], end)));
        }
        links.advance(u64::MAX, &mut |packet, end| out.push((sizes[usize::from(packet.kind)], end)));
        out
    }

    #[test]
    fn short_ones_first_and_nobody_is_interrupted() {
        // Nine cells are being sent when a packet of 5 and then a short one come.
        let offers = [(10, 9), (11, 5), (12, 1)];
        assert_eq!(run(true, &offers), [(9, 19), (1, 20), (5, 25)]);
        assert_eq!(run(false, &offers), [(9, 19), (5, 24), (1, 25)]);
        // One that comes in the very tick in which the link becomes free is there in time.
        assert_eq!(run(true, &[(10, 2), (11, 3), (12, 1)]), [(2, 12), (1, 13), (3, 16)]);
        // After an idle time.
        assert_eq!(run(true, &[(10, 2), (20, 1)]), [(2, 12), (1, 21)]);
    }
}

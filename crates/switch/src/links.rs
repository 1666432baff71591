//! The links behind the outputs: a packet leaves when all of it is there, one cell a slot.
//!
//! The output scheduler never interrupts a packet. With two classes it sends short ones first (P-SPF, section 2.1),
//! otherwise in the order of their completion.

use std::collections::VecDeque;

use crate::packet::Class;

/// A packet that waits for its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// When all of it was there, in ticks.
    pub at: u64,
    /// When it arrived at the switch, in ticks.
    pub arrived: u64,
    pub cells: u32,
    pub kind: u16,
    pub class: Class,
}

/// All links.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    short_first: bool,
    slot_ticks: u64,
    /// The most cells that waited at one output, what is being sent included.
    pub most_cells: u64,
    /// The most short packets that waited at one output.
    pub most_short: u64,
}

#[derive(Debug, Default)]
struct Link {
    /// When it is free again, in ticks.
    free: u64,
    /// Only used where short ones go first.
    short: VecDeque<Ready>,
    long: VecDeque<Ready>,
    /// Cells that wait in these.
    cells: u64,
}

impl Links {
    pub fn new(ports: usize, short_first: bool, slot_ticks: u64) -> Links {
        let links = std::iter::repeat_with(Link::default).take(ports).collect();
        Links { links, short_first, slot_ticks, most_cells: 0, most_short: 0 }
    }

    /// A packet is complete. Tells what left since the last time: the packet, and when its last cell was sent.
    #[inline]
    pub fn offer(&mut self, output: usize, packet: Ready, left: &mut impl FnMut(Ready, u64)) {
        let link = &mut self.links[output];
        if !self.short_first {
            let begin = link.free.max(packet.at);
            link.free = begin + u64::from(packet.cells) * self.slot_ticks;
            self.most_cells = self.most_cells.max((link.free - packet.at).div_ceil(self.slot_ticks));
            left(packet, link.free);
            return;
        }
        link.send_until(packet.at, self.slot_ticks, left);
        let sending = link.free.saturating_sub(packet.at).div_ceil(self.slot_ticks);
        link.cells += u64::from(packet.cells);
        self.most_cells = self.most_cells.max(sending + link.cells);
        match packet.class {
            Class::Short => {
                link.short.push_back(packet);
                self.most_short = self.most_short.max(link.short.len() as u64);
            }
            Class::Long => link.long.push_back(packet),
        }
    }

    /// Tells what leaves until `tick`, exclusively.
    pub fn advance(&mut self, tick: u64, left: &mut impl FnMut(Ready, u64)) {
        for link in &mut self.links {
            link.send_until(tick, self.slot_ticks, left);
        }
    }

    /// Forgets the maxima.
    pub fn forget(&mut self) {
        (self.most_cells, self.most_short) = (0, 0);
    }
}

impl Link {
    /// Begins everything that can begin before `tick`.
    #[inline]
    fn send_until(&mut self, tick: u64, slot_ticks: u64, left: &mut impl FnMut(Ready, u64)) {
        loop {
            // Whoever was there first when the link became free, short ones before long ones.
            let heads = [self.short.front(), self.long.front()];
            let Some(first) = heads.into_iter().flatten().map(|packet| packet.at).min() else { return };
            let begin = self.free.max(first);
            if begin >= tick {
                return;
            }
            let short = self.short.front().is_some_and(|packet| packet.at <= begin);
            let queue = if short { &mut self.short } else { &mut self.long };
            let packet = queue.pop_front().expect("it was at the front");
            self.cells -= u64::from(packet.cells);
            self.free = begin + u64::from(packet.cells) * slot_ticks;
            left(packet, self.free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(short_first: bool, offers: &[(u64, u32)]) -> Vec<(u32, u64)> {
        let mut links = Links::new(1, short_first, 1);
        let mut out = Vec::new();
        for (at, cells) in offers {
            let class = if *cells == 1 { Class::Short } else { Class::Long };
            let packet = Ready { at: *at, arrived: 0, cells: *cells, kind: 0, class };
            links.offer(0, packet, &mut |packet, end| out.push((packet.cells, end)));
        }
        links.advance(u64::MAX, &mut |packet, end| out.push((packet.cells, end)));
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

//! The links behind the outputs: a packet leaves when all of it is there, one cell a slot.
//!
//! A link never interrupts a packet. With two classes it sends short ones first (P-SPF, section 2.1),
//! otherwise in the order of their completion.

use crate::packet::{Class, Kind};

/// A packet that waits for its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// When all of it was there, in ticks.
    pub at: u64,
    /// When it arrived at the switch, in ticks.
    pub arrived: u64,
    pub kind: u16,
}

/// How many packets are written down for a link before it is looked at.
const TOGETHER: usize = 8;

/// All links.
///
/// Where short packets go first, packets are only written down when they are complete, and sent some dozen at a time:
/// nothing in the switch depends on when that is done, and one link after the other is faster than all in turns.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    /// By kind: how long it takes, in ticks, and whether it goes before others.
    kinds: Vec<(u64, bool)>,
    short_first: bool,
    slot_ticks: u64,
    /// The longest time that one output needed for all that waited there, what was being sent included, in ticks.
    most_ticks: u64,
    /// The most short packets that waited at one output.
    pub most_short: u64,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// When all that is complete will have been sent, in ticks, in whatever order.
    busy_until: u64,
    /// When what was sent until now will have been sent, in ticks. Only used where short ones go first, as are queues.
    free: u64,
    /// Of short ones and of others.
    queues: [Queue; 2],
}

/// What waits, and before that what does no more.
#[derive(Clone, Debug, Default)]
struct Queue {
    packets: Vec<Ready>,
    /// The first one that waits.
    next: usize,
}

impl Links {
    pub fn new(ports: usize, kinds: &[Kind], short_first: bool, slot_ticks: u64) -> Links {
        let kind = |kind: &Kind| (u64::from(kind.cells) * slot_ticks, kind.class == Class::Short);
        let kinds = kinds.iter().map(kind).collect();
        Links {
            links: vec![Link::default(); ports],
            kinds,
            short_first,
            slot_ticks,
            most_ticks: 0,
            most_short: 0,
        }
    }

    /// A packet is complete. Tells, now or later, when its last cell was sent.
    #[inline]
    pub fn offer(&mut self, output: usize, packet: Ready, left: &mut impl FnMut(Ready, u64)) {
        let link = &mut self.links[output];
        let (sending, short) = self.kinds[usize::from(packet.kind)];
        link.busy_until = link.busy_until.max(packet.at) + sending;
        self.most_ticks = self.most_ticks.max(link.busy_until - packet.at);
        if !self.short_first {
            left(packet, link.busy_until);
            return;
        }
        let queue = &mut link.queues[usize::from(!short)];
        queue.packets.push(packet);
        if queue.packets.len() >= queue.next + TOGETHER {
            self.send(output, packet.at, left);
        }
    }

    /// The most cells that waited at one output, what was being sent included.
    pub fn most_cells(&self) -> u64 {
        self.most_ticks.div_ceil(self.slot_ticks)
    }

    /// So many cells wait at one output, and are sent without these links knowing.
    pub fn held(&mut self, cells: u64) {
        self.most_ticks = self.most_ticks.max(cells * self.slot_ticks);
    }

    /// Tells what begins to leave until `tick`.
    pub fn advance(&mut self, tick: u64, left: &mut impl FnMut(Ready, u64)) {
        for output in 0..self.links.len() {
            self.send(output, tick, left);
        }
    }

    /// Forgets the maxima.
    pub fn forget(&mut self) {
        (self.most_ticks, self.most_short) = (0, 0);
    }

    /// Begins everything that can begin until `tick`. A link that becomes free in that very tick waits: others may be
    /// complete in it that go before what is there.
    #[inline(never)]
    fn send(&mut self, output: usize, tick: u64, left: &mut impl FnMut(Ready, u64)) {
        let Link { free, queues, .. } = &mut self.links[output];
        let (kinds, mut most_short) = (&self.kinds[..], self.most_short as usize);
        let packets = [&queues[0].packets[..], &queues[1].packets[..]];
        let mut next = [queues[0].next, queues[1].next];
        let complete = |queue: usize, at: usize| packets[queue].get(at).map_or(u64::MAX, |packet| packet.at);
        let mut first = [complete(0, next[0]), complete(1, next[1])];
        let mut now = *free;
        // What never comes is later than everything.
        let tick = tick.min(u64::MAX - 1);
        while now < tick {
            let idle_until = first[0].min(first[1]);
            if idle_until > tick {
                break;
            }
            let waited = idle_until <= now;
            now = now.max(idle_until);
            // Without a jump: nobody can foresee whose turn it is.
            let queue = usize::from(first[0] > now);
            // Beyond the end where it is not the turn of the short ones.
            let beyond = next[0] + most_short + (queue << 40);
            if complete(0, beyond) <= now && (waited || most_short > 0) {
                most_short += 1;
                while complete(0, next[0] + most_short) <= now {
                    most_short += 1;
                }
            }
            let packet = &packets[queue][next[queue]];
            next[queue] += 1;
            first[queue] = complete(queue, next[queue]);
            now += kinds[usize::from(packet.kind)].0;
            left(*packet, now);
        }
        *free = now;
        self.most_short = most_short as u64;
        for (queue, next) in queues.iter_mut().zip(next) {
            queue.forget(next);
        }
    }
}

impl Queue {
    /// Forgets all before `next`, unless that is more work than what it makes room for.
    fn forget(&mut self, next: usize) {
        self.next = next;
        if 2 * next >= self.packets.len() {
            self.packets.drain(..next);
            self.next = 0;
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

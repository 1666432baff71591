//! The output links. A link sends complete packets, one cell per slot, and never interrupts a packet.
//!
//! With two classes it sends short packets first (P-SPF, section 2.1), otherwise packets in the order of
//! their completion.

use crate::packet::{Class, PacketKind};

/// A complete packet at an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// Time at which it was complete, in ticks.
    pub at: u64,
    /// Time of its arrival at the switch, in ticks.
    pub arrived: u64,
    /// Number of its kind.
    pub kind: u16,
}

/// Packets that are collected for a link before it sends.
const BATCH: usize = 8;

/// All output links.
///
/// If short packets have priority, complete packets are collected and sent several at a time. Nothing in the
/// switch depends on the links, so the moment of the computation is free, and handling one link at a time is
/// faster.
#[derive(Debug)]
pub(crate) struct Links {
    /// By output.
    links: Vec<Link>,
    /// By kind: transmission time in ticks, and `true` for short packets.
    kinds: Vec<(u64, bool)>,
    /// Short packets are sent before others.
    short_first: bool,
    /// Length of a slot of a link, in ticks.
    slot_ticks: u64,
    /// Largest backlog of one output, the packet in transmission included, as transmission time in ticks.
    most_ticks: u64,
    /// Largest number of short packets that waited at one output.
    pub most_short: u64,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// Time at which all complete packets will have been sent, in ticks. It does not depend on their order.
    busy_until: u64,
    /// End of the last transmission that has been computed, in ticks. Used only with short packets first, as
    /// are the queues.
    free: u64,
    /// Short packets, and others.
    queues: [Queue; 2],
}

/// Collected packets, and before them packets that have been sent.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Packets in order of completion.
    packets: Vec<Ready>,
    /// Index of the first packet that has not been sent.
    next: usize,
}

impl Links {
    pub fn new(ports: usize, kinds: &[PacketKind], short_first: bool, slot_ticks: u64) -> Links {
        let kind = |kind: &PacketKind| (u64::from(kind.cells) * slot_ticks, kind.class == Class::Short);
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

    /// Adds a complete packet. `left` is called, now or later, with the end of its transmission.
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
        if queue.packets.len() >= queue.next + BATCH {
            self.send(output, packet.at, left);
        }
    }

    /// Largest number of cells at one output, the packet in transmission included.
    pub fn most_cells(&self) -> u64 {
        self.most_ticks.div_ceil(self.slot_ticks)
    }

    /// Records the cells at one output, for modes that send cells without these links.
    pub fn record_backlog(&mut self, cells: u64) {
        self.most_ticks = self.most_ticks.max(cells * self.slot_ticks);
    }

    /// Computes all transmissions that start by `tick`.
    pub fn advance(&mut self, tick: u64, left: &mut impl FnMut(Ready, u64)) {
        for output in 0..self.links.len() {
            self.send(output, tick, left);
        }
    }

    /// Resets the maxima to the backlogs at `tick`, to which the links have advanced.
    pub fn reset_maxima(&mut self, tick: u64) {
        let ticks = self.links.iter().map(|link| link.busy_until.saturating_sub(tick));
        let short = self.links.iter().map(|link| {
            let [queue, _] = &link.queues;
            queue.packets[queue.next..].iter().take_while(|packet| packet.at <= tick).count() as u64
        });
        self.most_ticks = ticks.max().unwrap_or(0);
        self.most_short = short.max().unwrap_or(0);
    }

    /// Computes the transmissions of one output that start by `tick`. A link that becomes free in exactly
    /// that tick waits, because packets with priority may still be completed in it.
    #[inline(never)]
    fn send(&mut self, output: usize, tick: u64, left: &mut impl FnMut(Ready, u64)) {
        let Link { free, queues, .. } = &mut self.links[output];
        let (kinds, mut most_short) = (&self.kinds[..], self.most_short as usize);
        let packets = [&queues[0].packets[..], &queues[1].packets[..]];
        let mut next = [queues[0].next, queues[1].next];
        let complete = |queue: usize, at: usize| packets[queue].get(at).map_or(u64::MAX, |packet| packet.at);
        let mut first = [complete(0, next[0]), complete(1, next[1])];
        let mut now = *free;
        // u64::MAX stands for a packet that does not exist, and must stay above `tick`.
        let tick = tick.min(u64::MAX - 1);
        while now < tick {
            let idle_until = first[0].min(first[1]);
            if idle_until > tick {
                break;
            }
            let waited = idle_until <= now;
            now = now.max(idle_until);
            // An index instead of a branch, which could not be predicted.
            let queue = usize::from(first[0] > now);
            // If a long packet is next, this index is outside of the list, so that `complete` returns
            // u64::MAX.
            let short = next[0] + most_short + (queue << 40);
            if complete(0, short) <= now && (waited || most_short > 0) {
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
            queue.remove_sent(next);
        }
    }
}

impl Queue {
    /// Removes the packets before `next`, once they are at least half of the list.
    fn remove_sent(&mut self, next: usize) {
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
        let kinds = sizes.map(|cells| PacketKind { cells, class: class(cells) });
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
    fn short_packets_first_without_interruption() {
        // Nine cells are being sent when a packet of 5 cells and then a short one arrive.
        let offers = [(10, 9), (11, 5), (12, 1)];
        assert_eq!(run(true, &offers), [(9, 19), (1, 20), (5, 25)]);
        assert_eq!(run(false, &offers), [(9, 19), (5, 24), (1, 25)]);
        // A short packet that arrives in the tick in which the link becomes free is in time.
        assert_eq!(run(true, &[(10, 2), (11, 3), (12, 1)]), [(2, 12), (1, 13), (3, 16)]);
        // After an idle time.
        assert_eq!(run(true, &[(10, 2), (20, 1)]), [(2, 12), (1, 21)]);
    }
}

//! The packets of a queue whose discipline is written in Python.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use giveway_qdisc::{Backlog, Packet};
use giveway_sim::Segment;

/// The part of a queue that the objects of its packets know.
#[derive(Default)]
pub struct Shared {
    /// The number of a forgotten packet plus one; zero if there is none.
    forgotten: AtomicU64,
    /// True once the queue has ended, so that freed objects do not count.
    ended: AtomicBool,
}

impl Shared {
    /// Records that the object of a packet was freed while the packet was queued.
    pub fn forget(&self, number: u64) {
        if !self.ended.load(Ordering::Relaxed) {
            self.forgotten.store(number + 1, Ordering::Relaxed);
        }
    }
}

/// The packets, each in a slot.
#[derive(Default)]
pub struct Held {
    slots: Vec<Option<Packet<Segment>>>,
    free: Vec<u32>,
    backlog: Backlog,
    /// The number of packets so far.
    count: u64,
    shared: Arc<Shared>,
}

impl Held {
    /// Adds a packet. Returns its slot and its number, which counts from 0.
    #[inline]
    pub fn add(&mut self, packet: Packet<Segment>) -> (u32, u64) {
        let number = self.count;
        self.count += 1;
        self.backlog.add(packet.meta.bytes);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(packet);
                slot
            }
            None => {
                self.slots.push(Some(packet));
                self.slots.len() as u32 - 1
            }
        };
        (slot, number)
    }

    /// Takes a packet out. Its object guarantees that it is there: it gives its slot away once.
    #[inline]
    pub fn take(&mut self, slot: u32) -> Packet<Segment> {
        let packet = self.slots[slot as usize].take().expect("its object has not given it away before");
        self.free.push(slot);
        self.backlog.sub(packet.meta.bytes);
        packet
    }

    /// A packet that stays.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Packet<Segment>> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Takes all packets out.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet<Segment>> + use<> {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.free.clear();
        self.backlog = Backlog::default();
        std::mem::take(&mut self.slots).into_iter().flatten()
    }

    /// Packets and bytes.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The part of this queue that the objects of its packets know.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The number of a packet that was forgotten.
    #[inline]
    pub fn forgotten(&self) -> Option<u64> {
        self.shared.forgotten.load(Ordering::Relaxed).checked_sub(1)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
    }
}

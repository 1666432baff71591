//! The packets on the wires and in plain queues, by number, so that a hop moves a number and not the packet.

use giveway_qdisc::Packet;

use crate::segment::Segment;

/// Number of a packet in [`Packets`], from its addition to its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u32);

/// Packets by number.
#[derive(Default)]
pub(crate) struct Packets {
    slots: Vec<Option<Packet<Segment>>>,
    /// Numbers of empty slots.
    free: Vec<u32>,
}

impl Packets {
    /// Adds a packet, and returns its number.
    ///
    /// # Panics
    /// With 2^32 packets.
    #[inline]
    pub fn add(&mut self, pkt: Packet<Segment>) -> Number {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(pkt);
            return Number(number);
        }
        self.slots.push(Some(pkt));
        Number(u32::try_from(self.slots.len() - 1).expect("there are fewer packets"))
    }

    /// The packet with this number.
    #[inline]
    pub fn get(&self, number: Number) -> &Packet<Segment> {
        self.slots[number.0 as usize].as_ref().expect("a number belongs to a packet")
    }

    /// The packet with this number, to change it.
    #[inline]
    pub fn get_mut(&mut self, number: Number) -> &mut Packet<Segment> {
        self.slots[number.0 as usize].as_mut().expect("a number belongs to a packet")
    }

    /// Removes a packet.
    #[inline]
    pub fn take(&mut self, number: Number) -> Packet<Segment> {
        self.free.push(number.0);
        self.slots[number.0 as usize].take().expect("a number belongs to a packet")
    }

    /// Removes a packet without a look at it.
    #[inline]
    pub fn discard(&mut self, number: Number) {
        self.free.push(number.0);
        self.slots[number.0 as usize] = None;
    }
}

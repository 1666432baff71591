//! Ethernet frames with a control packet.

use giveway_reserve::message::LENGTH;

use crate::device::Arrival;

/// Length of an Ethernet header, in bytes.
pub(super) const HEADER: usize = 14;
/// Length of a control packet with its Ethernet header, in bytes.
pub(super) const FRAME: usize = HEADER + LENGTH;

/// A frame with a control packet, without padding.
#[derive(Clone, Copy, Debug)]
pub struct ControlFrame {
    /// Direction of the frame: 0 forward, 1 reverse.
    pub(super) direction: usize,
    pub(super) bytes: [u8; FRAME],
    pub(super) length: usize,
    vlan: Option<[u8; 4]>,
}

impl ControlFrame {
    /// Copies a frame that arrived in `direction`. Returns `None` if its body does not start like a
    /// control packet.
    pub fn of(direction: usize, arrival: &Arrival<'_>) -> Option<ControlFrame> {
        let length = arrival.bytes.len().min(FRAME);
        let begins = arrival.bytes.get(HEADER..HEADER + 2) == Some(b"GW");
        begins.then(|| {
            let mut bytes = [0; FRAME];
            bytes[..length].copy_from_slice(&arrival.bytes[..length]);
            ControlFrame { direction, bytes, length, vlan: arrival.vlan }
        })
    }

    /// Source address.
    pub(super) fn from(&self) -> [u8; 6] {
        std::array::from_fn(|at| self.bytes[6 + at])
    }
    /// EtherType.
    pub(super) fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.bytes[12], self.bytes[13]])
    }
    /// The control packet.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[HEADER..self.length]
    }

    /// A frame with these addresses and body, in the VLAN of this frame and with its EtherType.
    pub(super) fn frame(&self, to: [u8; 6], from: [u8; 6], body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME + 4);
        frame.extend(to);
        frame.extend(from);
        frame.extend(self.vlan.iter().flatten());
        frame.extend(&self.bytes[12..HEADER]);
        frame.extend(body);
        frame
    }

    /// The whole received frame, with its VLAN tag.
    pub(super) fn whole(&self) -> Vec<u8> {
        let to = std::array::from_fn(|at| self.bytes[at]);
        self.frame(to, self.from(), self.body())
    }
}

//! Number of packets and bytes: the size of a queue.

/// A number of packets and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their lengths in bytes.
    pub bytes: u64,
}

impl Backlog {
    /// No packets.
    pub const ZERO: Backlog = Backlog { packets: 0, bytes: 0 };

    /// Adds a packet of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
    /// Removes a packet of `bytes` bytes.
    #[inline]
    pub fn sub(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
    /// Sum of two backlogs.
    pub fn plus(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

//! The counters of accurate ECN at the sender of data: RFC 9768, section 3.2.2.
//!
//! # Principles
//! - The receiver counts the packets that arrive with a mark, and sends the lowest three bits of the count in
//!   every acknowledgement. The difference to the last count says how many packets were marked since.
//! - Where the AccECN option is present it tells the bytes, which is exact even if acknowledgements are lost.
//!
//! # Deviations
//! - A difference that may have wrapped (RFC 9768, section 3.2.2.5.2) counts as the largest that the packets
//!   acknowledged allow only if the option is missing.

use crate::segment::Segment;

/// The initial value of the counters: RFC 9768, section 3.2.1.
pub(super) const INITIAL: u8 = 5;

/// The counters of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The last value of the ACE field.
    ace: u8,
    /// The last count of marked bytes of the option, modulo 2^24.
    bytes: u32,
}

impl Marks {
    pub fn new() -> Marks {
        Marks { ace: INITIAL, bytes: 0 }
    }

    /// Handles an acknowledgement that reports `delivered` new bytes. Returns the bytes that were marked.
    pub fn arrived(&mut self, segment: &Segment, delivered: u64, mss: u64) -> u64 {
        // RFC 9768, section 3.2.2: the field has three bits of the count, so a difference is modulo 8.
        let packets = segment.ace.wrapping_sub(self.ace) & 7;
        self.ace = segment.ace;
        if let Some((bytes, _)) = segment.accecn() {
            // RFC 9768, section 3.2.3: the counters of the option have 24 bits.
            let marked = bytes.wrapping_sub(self.bytes) & 0xff_ffff;
            self.bytes = bytes;
            return u64::from(marked);
        }
        // Without the option only packets are known. They are taken to be full, but no more bytes are marked
        // than were delivered.
        (u64::from(packets) * mss).min(delivered.max(u64::from(packets > 0) * mss))
    }
}

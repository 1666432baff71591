//! Counters of reassembly.

/// Reason why a fragment was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Lost {
    /// Its header is invalid, or does not match its length.
    Malformed,
    /// The frame would be too long.
    TooLong,
    /// It had been received already.
    Duplicate,
    /// It, or another one of its packet, contradicted earlier fragments.
    Contradictory,
    /// The rest of its packet did not arrive in time.
    Expired,
    /// Its packet was the oldest when another one needed the memory.
    CrowdedOut,
}

impl Lost {
    /// Every reason, in order.
    pub const ALL: [Lost; 6] = [
        Lost::Malformed,
        Lost::TooLong,
        Lost::Duplicate,
        Lost::Contradictory,
        Lost::Expired,
        Lost::CrowdedOut,
    ];

    /// Name in all outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Lost::Malformed => "malformed",
            Lost::TooLong => "too_long",
            Lost::Duplicate => "duplicate",
            Lost::Contradictory => "contradictory",
            Lost::Expired => "expired",
            Lost::CrowdedOut => "crowded_out",
        }
    }
}

/// Counters of fragments. `fragments` is the sum of `joined`, all of `lost`, and the fragments of incomplete
/// packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fragments that arrived.
    pub fragments: u64,
    /// Fragments that became part of frames.
    pub joined: u64,
    /// Frames that were joined.
    pub packets: u64,
    /// Incomplete packets that were discarded.
    pub given_up: u64,
    /// Lost fragments, by reason.
    pub lost: [u64; Lost::ALL.len()],
}

impl Counts {
    /// The counters of lost fragments, with their reasons.
    pub fn lost(&self) -> impl Iterator<Item = (Lost, u64)> {
        Lost::ALL.into_iter().zip(self.lost)
    }
}

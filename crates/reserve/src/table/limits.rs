//! Limits on the reservations of a link.

use giveway_qdisc::Rate;

/// Limits on the reservations of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rate that may be reserved in total.
    pub capacity: Rate,
    /// Largest number of reservations.
    pub most: usize,
    /// Time after which a reservation expires unless it is refreshed, in nanoseconds.
    pub lifetime: u64,
    /// Smallest rate of a reservation.
    pub least: Rate,
    /// Largest number of reservations of one owner.
    pub owner_flows: usize,
    /// Share of the capacity that one owner may have, in millionths.
    pub owner_share: u64,
    /// Share of the capacity and of the table that all owners without a key may have together, in millionths.
    pub open_share: u64,
}

impl Limits {
    /// Default share of a link that may be reserved, per mille.
    pub const SHARE: u64 = 950;
    /// Default for the largest number of reservations.
    pub const MAX: usize = 4096;
    /// Default lifetime, in nanoseconds: half a minute.
    pub const LIFETIME: u64 = 30_000_000_000;
    /// Default for the smallest rate: the rate of the slowest telephone calls.
    pub const MIN: Rate = Rate::kbit(8);
    /// Default for the largest number of reservations of one owner.
    pub const OWNER_FLOWS: usize = 256;
    /// Default share of the capacity for one owner, in millionths.
    pub const OWNER_SHARE: u64 = 500_000;
    /// Default share of all owners without a key if there is no key, in millionths.
    pub const OPEN_SHARE: u64 = 500_000;

    /// The default limits of a link.
    pub fn of(link: Rate) -> Limits {
        Limits {
            capacity: part(link, Limits::SHARE * 1000),
            most: Limits::MAX,
            lifetime: Limits::LIFETIME,
            least: Limits::MIN,
            owner_flows: Limits::OWNER_FLOWS,
            owner_share: Limits::OWNER_SHARE,
            open_share: Limits::OPEN_SHARE,
        }
    }

    /// Rate that one owner may have.
    pub fn per_owner(&self) -> Rate {
        part(self.capacity, self.owner_share)
    }

    /// Rate that all owners without a key may have together.
    pub fn open(&self) -> Rate {
        part(self.capacity, self.open_share)
    }

    /// Number of reservations that all owners without a key may have together.
    pub(super) fn open_most(&self) -> usize {
        (self.most as u128 * u128::from(self.open_share) / 1_000_000) as usize
    }
}

/// A share of a rate, in millionths.
fn part(of: Rate, millionths: u64) -> Rate {
    Rate::bit((u128::from(of.as_bit()) * u128::from(millionths.min(1_000_000)) / 1_000_000) as u64)
}

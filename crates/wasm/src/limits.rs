//! The limits of a module.

use giveway_qdisc::Bytes;

/// The limits of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The fuel that a call earns: about one for each instruction.
    pub fuel: u64,
    /// Maximum number of calls whose fuel one call may use.
    pub saved_calls: u64,
    /// Maximum memory of one queue.
    pub memory: Bytes,
}

impl Default for Limits {
    /// 10,000 instructions a call, two million in one call, and 16 MiB.
    fn default() -> Limits {
        Limits { fuel: 10_000, saved_calls: 200, memory: Bytes(16 << 20) }
    }
}

impl Limits {
    /// The maximum amount of fuel that one call may use.
    pub fn most_fuel(&self) -> u64 {
        self.fuel.saturating_mul(self.saved_calls)
    }
}

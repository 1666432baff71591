//! Arbiters, one file each. The registry of schedulers ([`scheduler`](crate::scheduler)) has a line for each.

pub mod fifo;
pub mod islip;
pub mod oq;
pub mod p_spf;

/// Arbiters by their scheduler.
pub struct Together;

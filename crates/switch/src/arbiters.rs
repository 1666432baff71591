//! Arbiters, one file each. The registry of schedulers ([`scheduler`](crate::scheduler)) has a line for each.

pub mod fifo;
pub mod greedy;
pub mod islip;
pub mod msm;
pub mod mwm;
pub mod oq;
pub mod p_msm;
pub mod p_mwm_ca;
pub mod p_mwm_ql;
pub mod p_spf;

/// Arbiters by their scheduler.
pub struct Together;

//! Arbiters, one file each. The [`registry`](crate::registry) has a line for each.

pub mod cioq;
mod config;
pub mod drrm;
pub mod fifo;
pub mod firm;
pub mod greedy;
#[cfg(test)]
mod hand;
pub mod ilqf;
pub mod iocf;
pub mod islip;
pub mod msm;
pub mod mwm;
pub mod oq;
pub mod p_msm;
pub mod p_mwm_ca;
pub mod p_mwm_ql;
pub mod p_spf;
pub mod pim;
pub mod qps;
mod round_robin;
mod rounds;
pub mod rrm;
pub mod serena;
pub mod tdm;

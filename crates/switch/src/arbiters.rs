//! Arbiters, one file each. The registry of schedulers ([`scheduler`](crate::scheduler)) has a line for each.

pub mod drrm;
pub mod fifo;
pub mod firm;
#[cfg(test)]
mod hand;
pub mod ilqf;
pub mod iocf;
pub mod islip;
pub mod oq;
pub mod p_spf;
pub mod pim;
pub mod qps;
mod rounds;
pub mod rrm;
pub mod serena;
pub mod tdm;

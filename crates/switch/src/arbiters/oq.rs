//! Output queueing: no packet waits at an input, and no matching is needed.
//!
//! # Principles
//! The fabric takes any number of cells to one output in a slot. No real fabric can do that. Of all switches,
//! output queueing has the shortest delay, so the others are compared with it.
//!
//! # Deviations
//! A packet counts as crossed when its last cell has arrived, since links send whole packets.
//!
//! # Cost
//! None.
//!
//! # References
//! M. Karol, M. Hluchyj, S. Morgan, Input Versus Output Queueing on a Space-Division Packet Switch, IEEE
//! Transactions on Communications 35(12), 1987: mean waiting times, equation (1) of the P-SPF paper.

use giveway_qdisc::Invalid;

use super::config::config;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::notes::Notes;
use crate::options::Queueing;

config!(none, "Output queueing has no parameters.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "output queueing: the fabric takes everything at once; the ideal";
    const QUEUEING: Queueing = Queueing::Output;

    fn arbiter<const W: usize>(&self, _: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(NoArbiter))
    }
}

/// An arbiter for fabrics that never call one.
pub(super) struct NoArbiter;

impl<const W: usize> Arbiter<W> for NoArbiter {
    fn decide(&mut self, _: &Demand<'_, W>, _: &mut Matching<W>, _: &mut Notes) {}
}

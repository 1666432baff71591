//! P-MSM: short packets interrupt long ones, and long ones are matched by maximum size.
//!
//! # Principles
//! - Short packets of an input wait in one queue. Each output that is asked for takes one of the asking inputs, at random unless `ties` says otherwise.
//! - Then long packets are matched at ports that send no short one and are at the end of a packet (`phases sequential`,
//!   section 5: "first short packets, then long packets"), by a matching of maximum size.
//! - What is interrupted stays matched and goes on afterwards, as in P-SPF.
//!
//! # Deviations
//! - The paper does not say how short packets are matched here. Random is the counterpart of a random matching of maximum size; a round-robin pointer does not change its results.
//! - Ties are open; they are those of `msm`.
//!
//! # Cost
//! As `msm`'s where few ports are free.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance, IWQoS 2005.

use qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::msm::Msm;
use crate::arbiter::{Arbiter, Site};
use crate::matching::Ties;
use crate::scheduler::{Mode, Scheduler};

/// P-MSM's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which of several maximum matchings is taken.
    pub ties: Ties,
}

impl Scheduler for Config {
    const SUMMARY: &'static str = "preemptive: short ones interrupt, long ones by maximum size matching";
    const MODE: Mode = Mode::Preemptive;

    /// Short packets are matched in the same way: every input asks for one output, so that the best matching takes the
    /// best input for each output.
    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Msm::new(self.ties, site)))
    }
}

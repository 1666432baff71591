//! P-MWM-QL: short packets interrupt long ones, and long ones are matched by maximum weight, by queue lengths.
//!
//! # Principles
//! - Short packets of an input wait in one queue. Each output that is asked for takes the asking input where most short packets wait.
//! - Then long packets are matched at ports that send no short one and are at the end of a packet (`phases sequential`,
//!   section 5: "first short packets, then long packets"), by a matching of maximum weight; the weight of a pair is the number of cells in its queue now.
//! - What is interrupted stays matched and goes on afterwards, as in P-SPF.
//!
//! # Deviations
//! - The paper does not say how short packets are matched here. By their own weights, as long ones.
//! - Ties are open; they are those of `mwm`.
//!
//! # Cost
//! As `mwm`'s where few ports are free.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance, IWQoS 2005.

use qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mwm::Mwm;
use crate::arbiter::{Arbiter, Site};
use crate::matching::{Ties, Weight};
use crate::scheduler::{Mode, Scheduler};

/// P-MWM-QL's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which of several maximum matchings is taken.
    pub ties: Ties,
}

impl Scheduler for Config {
    const SUMMARY: &'static str =
        "preemptive: short ones interrupt, long ones by maximum weight (queue length)";
    const MODE: Mode = Mode::Preemptive;

    /// Short packets are matched in the same way: every input asks for one output, so that the best matching takes the
    /// best input for each output.
    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Mwm::new(Weight::QueueLength, self.ties, site)))
    }
}

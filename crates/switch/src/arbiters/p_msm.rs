//! P-MSM: short packets interrupt long ones; both are matched by maximum size.
//!
//! # Principles
//! - "Similarly to P-SPF", short packets are scheduled first, "and then [...] long packets among the unmatched input/output
//!   ports" (section 5): `phases sequential`.
//! - Short packets of an input wait in one queue, so that each input asks for one output, and the best matching gives each
//!   output one of the inputs that ask for it.
//! - Long packets are matched where both ports are at the end of a packet and send no short one.
//! - What is interrupted stays matched and goes on afterwards, as in P-SPF.
//!
//! # Deviations
//! None. The paper leaves ties open; they are those of `msm`. At random, each of the inputs that ask for an output is as
//! likely to get it.
//!
//! # Cost
//! That of `msm` where few ports are free.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance, IWQoS 2005.

use qdisc::Invalid;

use super::config::config;
use super::msm::Msm;
use crate::arbiter::{Arbiter, Site};
use crate::options::Mode;
use crate::registry::ArbiterConfig;

config!(ties, "Parameters of P-MSM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "preemptive: short ones interrupt, long ones by maximum size matching";
    const MODE: Mode = Mode::Preemptive;

    /// For both classes.
    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Msm::<W>::new(self.ties, site)))
    }
}

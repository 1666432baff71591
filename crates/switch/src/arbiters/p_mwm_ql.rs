//! P-MWM-QL: short packets interrupt long ones; both are matched by maximum weight, by queue lengths.
//!
//! # Principles
//! - "Similarly to P-SPF", short packets are scheduled first, "and then [...] long packets among the unmatched input/output
//!   ports" (section 5): `phases sequential`.
//! - Short packets of an input wait in one queue, so that each input asks for one output, and the best matching gives each
//!   output the input with the longest queue of short packets.
//! - Long packets are matched where both ports are at the end of a packet and send no short one. The weight of a pair is the
//!   number of cells that its queue holds now.
//! - What is interrupted stays matched and goes on afterwards, as in P-SPF.
//!
//! # Deviations
//! - The length of a queue of short packets is that of all of it, whatever outputs its packets are for. The paper does not
//!   say.
//! - Ties are open in the paper; they are those of `mwm`.
//!
//! # Cost
//! That of `mwm` where few ports are free.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance, IWQoS 2005.

use qdisc::Invalid;

use super::config::config;
use super::mwm::Mwm;
use crate::arbiter::{Arbiter, Site};
use crate::matching::Weight;
use crate::options::Mode;
use crate::registry::ArbiterConfig;

config!(ties, "Parameters of P-MWM-QL.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "preemptive: short ones interrupt, long ones by maximum weight (queue length)";
    const MODE: Mode = Mode::Preemptive;

    /// For both classes.
    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Mwm::new(Weight::QueueLength, self.ties, site)))
    }
}

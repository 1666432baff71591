//! P-MWM-CA: short packets interrupt long ones; both classes are matched by maximum weight, by ages.
//!
//! # Principles
//! - "Similarly to P-SPF", short packets are scheduled first, "and then [...] long packets among the
//!   unmatched input/output ports" (section 5): `phases sequential`.
//! - The short packets of an input wait in one queue, so each input requests one output, and a matching of
//!   maximum weight gives each output the input whose first short packet is the oldest.
//! - Long packets are matched where both ports are at the end of a packet and send no short one. The weight
//!   of a pair is the age of the packet at the head of its queue.
//! - An interrupted connection stays and continues afterwards, as in P-SPF.
//!
//! # Deviations
//! None. The paper leaves ties open; they are broken as in `mwm`.
//!
//! # Cost
//! The same as `mwm` with few free ports.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance,
//! IWQoS 2005.

use giveway_qdisc::Invalid;

use super::config::config;
use super::mwm::Mwm;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext};
use crate::matching::Weight;
use crate::options::Mode;

config!(ties, "Parameters of P-MWM-CA.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "preemptive: short packets interrupt; long packets by maximum weight (cell age)";
    const MODE: Mode = Mode::Preemptive;

    /// The arbiter of both classes.
    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Mwm::new(Weight::CellAge, self.ties, context)))
    }
}

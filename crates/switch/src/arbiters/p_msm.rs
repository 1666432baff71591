//! P-MSM: short packets interrupt long ones; both classes are matched by maximum size.
//!
//! # Principles
//! - "Similarly to P-SPF", short packets are scheduled first, "and then [...] long packets among the
//!   unmatched input/output ports" (section 5): `phases sequential`.
//! - The short packets of an input wait in one queue, so each input requests one output, and a matching of
//!   maximum size gives each requested output one of its inputs.
//! - Long packets are matched where both ports are at the end of a packet and send no short one.
//! - An interrupted connection stays and continues afterwards, as in P-SPF.
//!
//! # Deviations
//! None. The paper leaves ties open; they are broken as in `msm`. With `ties random`, each input that
//! requests an output gets it with the same probability.
//!
//! # Cost
//! The same as `msm` with few free ports.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance,
//! IWQoS 2005.

use giveway_qdisc::Invalid;

use super::config::config;
use super::msm::Msm;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext};
use crate::options::Mode;

config!(ties, "Parameters of P-MSM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "preemptive: short packets interrupt; long packets by maximum size matching";
    const MODE: Mode = Mode::Preemptive;

    /// The arbiter of both classes.
    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Msm::<W>::new(self.ties, context)))
    }
}

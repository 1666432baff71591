//! P-SPF: preemptive short packets first.
//!
//! # Principles
//! The algorithm of section 3 of the paper, in its words and symbols. Short packets have one cell, and all
//! short packets of an input wait in one queue (`IFIFO_S`); long packets wait in virtual output queues.
//! - Short, step 1: every input with a short packet requests the output of the first one. Step 2: every
//!   output grants the requesting input that comes next from its pointer `OP_S` on, which moves to one
//!   beyond.
//! - Long, step 1: every free input requests all outputs that it has a packet for. Step 2: every free output
//!   grants the requesting input that comes next from `OP_L` on; the pointer moves to one beyond if the grant
//!   is accepted. Step 3: an input accepts the granting output that comes next from `IP_L` on, which moves to
//!   one beyond. These steps are iterated.
//! - Ports are busy from the first to before the last cell of a long packet. A short packet interrupts at
//!   both of its ports; an interrupted connection stays and continues afterwards.
//! - Both halves run at the same time (`phases parallel`), each without the decisions of the other. An input
//!   with two answers sends the short packet first; the long one, newly matched, holds both ports in the
//!   meantime.
//!
//! # Deviations
//! - A packet of one cell that is not short (a TCP segment with a few bytes of data) may be matched in a slot
//!   in which one of its ports has a short packet, so that it cannot be sent. The paper leaves its ports
//!   "free", as if it had been sent. Here they are held until it has been sent.
//! - The paper does not specify the number of iterations of the three steps. The default is 4, as in the
//!   iSLIP that the paper compares with.
//!
//! # Cost
//! A quarter of iSLIP's: only ports at the end of a packet are matched again.
//!
//! # References
//! W. Li, B. Liu, L. Shi, Y. Xu, D. Wu, Preemptive Packet-Mode Scheduling to Improve TCP Performance,
//! IWQoS 2005.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::islip::{self, Pointers as Moving};
use super::round_robin::Pointers;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching, check_iterations};
use crate::notes::Notes;
use crate::options::{Mode, Phases};

/// Parameters of P-SPF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Iterations of the three steps for long packets per slot.
    pub iterations: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { iterations: 4 }
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "preemptive short packets first: short ones interrupt long ones";
    const MODE: Mode = Mode::Preemptive;
    const PHASES: Phases = Phases::Parallel;

    fn short_arbiter<const W: usize>(
        &self,
        context: &ArbiterContext,
    ) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Short { op_s: Pointers::<W>::new(context.ports) }))
    }

    /// Steps 1 to 3 for long packets are iSLIP with pointers that move with every accepted grant: `OP_L` is
    /// its grant pointer, `IP_L` its accept pointer.
    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        let config = islip::Config { iterations: self.iterations, pointers: Moving::Every };
        Ok(Box::new(config.islip::<W>(context.ports)))
    }
}

/// The arbiter of short packets.
struct Short<const W: usize> {
    /// `OP_S`: by output, the input with the highest priority.
    op_s: Pointers<W>,
}

impl<const W: usize> Arbiter<W> for Short<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        for output in demand.outputs {
            // An input may request several outputs in mode spf, so inputs that are matched already are
            // excluded.
            let requesting = demand.of_output(output) & !matching.inputs;
            if notes.wanted() {
                requesting.iter().for_each(|input| notes.request(input, output));
            }
            if let Some(input) = self.op_s.choose(output, requesting) {
                self.op_s.move_past(output, input);
                matching.pair(input, output);
                notes.grant(output, input);
            }
        }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        visit("OP_S", self.op_s.positions());
    }
}

//! FIFO input queueing: each output takes one of the inputs whose first packet is for it, at random.
//!
//! # Principles
//! Each input has one queue, whose first packet blocks the others (head-of-line blocking). Under uniform
//! traffic of cells the throughput of a large switch is limited to 2 - sqrt(2) = 0.586.
//!
//! # Deviations
//! None. The choice among contenders is random, as in the article; it does not change the saturation
//! throughput.
//!
//! # Cost
//! One draw per contended output.
//!
//! # References
//! M. Karol, M. Hluchyj, S. Morgan, Input Versus Output Queueing on a Space-Division Packet Switch, IEEE
//! Transactions on Communications 35(12), 1987.

use giveway_qdisc::{Invalid, Rng};

use super::config::config;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::notes::Notes;
use crate::options::Queueing;

config!(none, "FIFO input queueing has no parameters.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "one queue for each input, heads of line chosen at random: head-of-line blocking";
    const QUEUEING: Queueing = Queueing::Fifo;

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Heads { rng: context.streams.rng() }))
    }
}

struct Heads {
    rng: Rng,
}

impl<const W: usize> Arbiter<W> for Heads {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        for output in demand.outputs {
            let requesting = demand.of_output(output);
            let chosen = match requesting.count() {
                0 => None,
                1 => requesting.lowest(),
                several => requesting.nth(self.rng.below(several as u64) as usize),
            };
            if let Some(input) = chosen {
                matching.pair(input, output);
                notes.grant(output, input);
            }
        }
    }
}

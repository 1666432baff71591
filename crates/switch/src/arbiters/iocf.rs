//! iOCF, iterative oldest cell first: request, grant, accept, by the waiting time of the first packets of
//! queues.
//!
//! # Principles
//! - As [`ilqf`](super::ilqf), with the age of the first packet instead of the length of the queue: outputs
//!   grant, and inputs accept, the request that has waited longest.
//! - A waiting packet gets older until it has priority, so no queue starves, as queues may when the length
//!   counts.
//!
//! # Deviations
//! - All cells of a packet have the age of its arrival, also in cell mode, where they cross one by one.
//! - Ties: one of the oldest, each with the same probability, at outputs and at inputs.
//!
//! # Cost
//! A weight per request in each slot, and a comparison per remaining request in each iteration.
//!
//! # References
//! N. McKeown, Scheduling Algorithms for Input-Queued Cell Switches, PhD thesis, Berkeley, 1995; A.
//! Mekkittikul, N. McKeown, A Starvation-Free Algorithm for Achieving 100% Throughput in an Input-Queued
//! Switch, ICCCN 1996 (the maximum weight matching by age, which this approximates).

use giveway_qdisc::Invalid;

use super::config::config;
use super::ilqf::{Heaviest, Weight};
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, check_iterations};

config!(iterations, "Parameters of iOCF.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "iterative oldest cell first: grants and accepts by the age of heads";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(Heaviest::<W, Age>::new(self.iterations, &context.within("iocf"))))
    }
}

/// Weight by the age of the first packet, in ticks. Ticks are finer than slots of the fabric where there is
/// speedup.
struct Age;

impl Weight for Age {
    #[inline]
    fn weigh<const W: usize>(demand: &Demand<'_, W>, input: usize, weights: &mut [u64]) {
        let outputs = demand.of_input(input);
        demand.weights.heads_of(input, outputs.words(), weights);
        outputs.iter().for_each(|output| weights[output] = demand.tick - weights[output]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context};
    use super::*;

    fn iocf(iterations: u32) -> Box<dyn Arbiter<1>> {
        Config { iterations }.arbiter(&context(3)).unwrap()
    }

    /// Outputs 0 and 1 both grant input 0, which accepts the older request; then output 0 grants input 2.
    #[test]
    fn oldest_heads_by_hand() {
        let hand = Hand::ages([[20, 30, 0], [0, 10, 0], [15, 25, 0]]);
        assert_eq!(hand.grants(&mut *iocf(3)), "0>0 0>1, 2>0");
        assert_eq!(hand.pairs(&mut *iocf(3)), "0-1 2-0");
    }

    /// The length of a queue does not matter.
    #[test]
    fn one_old_cell_comes_before_many_new_ones() {
        let hand = Hand::ages([[5, 0, 0], [6, 0, 0], [0, 0, 0]]).with_cells(0, 0, 1000);
        assert_eq!(hand.pairs(&mut *iocf(1)), "1-0");
    }
}

//! iOCF, iterative oldest cell first: request, grant, accept, by how long the heads of queues have waited.
//!
//! # Principles
//! - As [`ilqf`](super::ilqf), with the age of a queue's head for its length: outputs grant, and inputs accept, whoever
//!   has waited longest.
//! - Who waits grows older, and comes first in the end: nobody starves, as they may when length counts.
//!
//! # Deviations
//! - All cells of a packet are as old as its arrival, in cell mode too, where they cross one by one.
//! - Ties: one of the oldest, each as likely, at outputs and at inputs.
//!
//! # Cost
//! A weight per request in each slot, and a comparison per request that is left in each iteration.
//!
//! # References
//! N. McKeown, Scheduling Algorithms for Input-Queued Cell Switches, PhD thesis, Berkeley, 1995; A. Mekkittikul, N. McKeown,
//! A Starvation-Free Algorithm for Achieving 100% Throughput in an Input-Queued Switch, ICCCN 1996 (the
//! heaviest matching by age, which this approximates).

use qdisc::Invalid;

use super::config::config;
use super::ilqf::{Heaviest, Weight};
use crate::arbiter::{Arbiter, Demand, Site, check_iterations};
use crate::registry::ArbiterConfig;

config!(iterations, "Parameters of iOCF.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "iterative oldest cell first: grants and accepts by the age of heads";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(Heaviest::<W, Age>::new(self.iterations, &site.within("iocf"))))
    }
}

/// How long heads have been there, in ticks: finer than slots of the fabric when that is faster than links.
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
    use super::super::hand::{Hand, site};
    use super::*;

    fn iocf(iterations: u32) -> Box<dyn Arbiter<1>> {
        Config { iterations }.arbiter(&site(3)).unwrap()
    }

    /// Outputs 0 and 1 both grant input 0, which accepts what has waited longer; then output 0 grants input 2.
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

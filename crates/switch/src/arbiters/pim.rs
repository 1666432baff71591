//! PIM, parallel iterative matching: request, grant, accept, all at random.
//!
//! # Principles
//! - In each iteration every unmatched input requests all outputs that it has a packet for.
//! - Every unmatched output grants one of the inputs that request it, each with the same probability and
//!   independent of the other outputs.
//! - Every input accepts one of its grants, each with the same probability.
//! - An iteration leaves on average at most a quarter of the requests that it found, so about log2 N + 4/3
//!   iterations suffice for a maximal matching.
//! - PIM has no state, so no request starves, and it is not fair either. With one iteration an output of a
//!   busy switch gets no accept with probability (1 - 1/N)^N, which limits the throughput to 0.63.
//!
//! # Deviations
//! None.
//!
//! # Cost
//! A random number per output and iteration, and one per input with several grants.
//!
//! # References
//! T. Anderson, S. Owicki, J. Saxe, C. Thacker, High-Speed Switch Scheduling for Local-Area Networks, ACM
//! Transactions on Computer Systems 11(4), 1993.

use giveway_qdisc::{Invalid, Rng};

use super::config::config;
use super::rounds::{Choice, Rounds, any};
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching, check_iterations};
use crate::notes::Notes;
use crate::port_set::PortSet;

config!(iterations, "Parameters of PIM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "parallel iterative matching: grants and accepts at random, repeated";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        let dice = Dice { rng: context.streams.within("pim").rng() };
        Ok(Box::new(Pim { rounds: Rounds::new(self.iterations), dice }))
    }
}

struct Pim<const W: usize> {
    rounds: Rounds<W>,
    dice: Dice,
}

struct Dice {
    rng: Rng,
}

impl<const W: usize> Choice<W> for Dice {
    #[inline]
    fn grant(&mut self, _: u32, _: usize, requesting: PortSet<W>) -> usize {
        any(&mut self.rng, requesting)
    }
    #[inline]
    fn accept(&mut self, _: u32, _: usize, grants: PortSet<W>) -> usize {
        any(&mut self.rng, grants)
    }
}

impl<const W: usize> Arbiter<W> for Pim<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.rounds.run(&mut self.dice, demand, matching, notes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context};
    use super::*;

    fn pim(iterations: u32) -> Box<dyn Arbiter<1>> {
        Config { iterations }.arbiter(&context(3)).unwrap()
    }

    /// Frequencies of the answers in 12,000 slots, in twelfths.
    fn twelfths(arbiter: &mut dyn Arbiter<1>, hand: &Hand, answers: &[&str]) -> Vec<f64> {
        let given: Vec<String> = (0..12_000).map(|_| hand.pairs(arbiter)).collect();
        let count = |answer: &&str| given.iter().filter(|given| given == answer).count() as f64 / 1000.0;
        let counts: Vec<f64> = answers.iter().map(count).collect();
        assert!((counts.iter().sum::<f64>() - 12.0).abs() < 1e-9, "there are no other answers: {given:?}");
        counts
    }

    /// Input 0 requests outputs 0 and 1, input 1 output 0 alone.
    ///
    /// Output 1 grants input 0. Output 0 grants input 1 with probability 1/2, which matches both. Otherwise
    /// input 0 has two grants, and takes either; if it takes output 1, a second iteration finds the other
    /// pair.
    #[test]
    fn two_inputs_by_hand() {
        let hand = Hand::cells([[1, 1, 0], [1, 0, 0], [0, 0, 0]]);
        let answers = ["0-1 1-0", "0-0", "0-1"];
        for (iterations, expected) in [(1, [6.0, 3.0, 3.0]), (2, [9.0, 3.0, 0.0])] {
            let got = twelfths(&mut *pim(iterations), &hand, &answers);
            for (got, expected) in got.iter().zip(expected) {
                // Four standard deviations of a share of 1/2 among 12,000.
                assert!((got - expected).abs() < 0.22, "{iterations} iterations: {got} of {expected}");
            }
        }
    }

    #[test]
    fn no_iterations_are_refused() {
        let error = ArbiterConfig::arbiter::<1>(&Config { iterations: 0 }, &context(3)).err().unwrap();
        assert!(error.to_string().contains("write 1 to 1024"));
    }
}

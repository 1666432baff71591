//! iLQF, iterative longest queue first: request, grant, accept, by the length of queues.
//!
//! # Principles
//! - In each iteration every unmatched input requests all outputs that it has a packet for, with the lengths
//!   of its queues.
//! - Every unmatched output grants the input with the longest queue for it.
//! - Every input accepts the grant for its longest queue.
//! - So the longest queue of all is served in every slot, and each iteration serves at least the longest
//!   remaining one: a parallel approximation of the maximum weight matching. Short queues may starve.
//!
//! # Deviations
//! - The length of a queue is the number of its cells that have arrived; cells of a packet that is still
//!   arriving do not count before.
//! - Ties: one of the longest queues, each with the same probability, at outputs and at inputs. The thesis
//!   breaks them at random, too.
//!
//! # Cost
//! A weight per request in each slot, and a comparison per remaining request in each iteration.
//!
//! # References
//! N. McKeown, Scheduling Algorithms for Input-Queued Cell Switches, PhD thesis, Berkeley, 1995.

use giveway_qdisc::{Invalid, Rng};

use super::config::config;
use super::rounds::{Choice, Rounds, heaviest};
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching, check_iterations};
use crate::notes::Notes;
use crate::port_set::PortSet;

config!(iterations, "Parameters of iLQF.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "iterative longest queue first: grants and accepts by the length of queues";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(Heaviest::<W, Length>::new(self.iterations, &context.within("ilqf"))))
    }
}

/// The weight of requests.
pub(super) trait Weight: Send {
    /// Writes the weights of the queues of an input for free outputs to `weights`, indexed by output.
    fn weigh<const W: usize>(demand: &Demand<'_, W>, input: usize, weights: &mut [u64]);
}

/// Weight by the number of cells that have arrived.
struct Length;

impl Weight for Length {
    #[inline]
    fn weigh<const W: usize>(demand: &Demand<'_, W>, input: usize, weights: &mut [u64]) {
        demand.weights.cells_of(input, demand.of_input(input).words(), weights);
    }
}

/// An arbiter whose ports choose the request with the greatest weight.
pub(super) struct Heaviest<const W: usize, M> {
    rounds: Rounds<W>,
    scales: Scales,
    weight: std::marker::PhantomData<M>,
}

impl<const W: usize, M> Heaviest<W, M> {
    /// An arbiter with at most `iterations` iterations per slot.
    pub fn new(iterations: u32, context: &ArbiterContext) -> Heaviest<W, M> {
        let ports = context.ports;
        Heaviest {
            rounds: Rounds::new(iterations),
            scales: Scales { weights: vec![0; ports * ports], ports, rng: context.streams.rng() },
            weight: std::marker::PhantomData,
        }
    }
}

/// The choices of ports by the weights of a slot.
struct Scales {
    /// By input and output: weights of the requests between free ports; others are left from earlier slots.
    weights: Vec<u64>,
    ports: usize,
    rng: Rng,
}

impl<const W: usize> Choice<W> for Scales {
    #[inline]
    fn grant(&mut self, _: u32, output: usize, requesting: PortSet<W>) -> usize {
        let (weights, ports) = (&self.weights, self.ports);
        heaviest(&mut self.rng, requesting, |input| weights[input * ports + output])
    }
    #[inline]
    fn accept(&mut self, _: u32, input: usize, grants: PortSet<W>) -> usize {
        let weights = &self.weights[input * self.ports..][..self.ports];
        heaviest(&mut self.rng, grants, |output| weights[output])
    }
}

impl<const W: usize, M: Weight> Arbiter<W> for Heaviest<W, M> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        let ports = self.scales.ports;
        for input in demand.inputs {
            M::weigh(demand, input, &mut self.scales.weights[input * ports..][..ports]);
        }
        self.rounds.run(&mut self.scales, demand, matching, notes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context};
    use super::*;

    fn ilqf(iterations: u32) -> Box<dyn Arbiter<1>> {
        Config { iterations }.arbiter(&context(3)).unwrap()
    }

    /// Outputs 0 and 1 both grant input 0, which accepts its longer queue; output 2 grants input 2, which
    /// alone requests it. Then output 1 grants input 1.
    #[test]
    fn longest_queues_by_hand() {
        let hand = Hand::cells([[9, 7, 0], [8, 6, 0], [0, 5, 1]]);
        assert_eq!(hand.grants(&mut *ilqf(3)), "0>0 0>1 2>2, 1>1");
        for (iterations, pairs) in [(1, "0-0 2-2"), (2, "0-0 1-1 2-2")] {
            assert_eq!(hand.pairs(&mut *ilqf(iterations)), pairs);
        }
    }

    /// Only free ports count: without input 0 and output 2 the longest queue is at input 1 for output 0.
    #[test]
    fn busy_ports_do_not_count() {
        let hand = Hand::cells([[9, 7, 0], [8, 6, 0], [0, 5, 1]]).free(&[1, 2], &[0, 1]);
        assert_eq!(hand.grants(&mut *ilqf(3)), "1>0 1>1, 2>1");
    }

    #[test]
    fn ties_are_broken_evenly() {
        let hand = Hand::cells([[4, 0, 0], [4, 0, 0], [3, 0, 0]]);
        let mut ilqf = ilqf(1);
        let answers: Vec<String> = (0..10_000).map(|_| hand.pairs(&mut *ilqf)).collect();
        let first = answers.iter().filter(|pairs| *pairs == "0-0").count();
        assert!(answers.iter().all(|pairs| pairs == "0-0" || pairs == "1-0"));
        // Four standard deviations of a fair coin.
        assert!(first.abs_diff(5000) < 200, "{first}");
    }
}

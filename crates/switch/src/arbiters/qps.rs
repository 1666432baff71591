//! QPS-iSLIP: inputs propose at random, with probabilities in proportion to the lengths of their queues;
//! iSLIP completes the matching.
//!
//! # Principles
//! - Every input draws one of its queues, each with probability in proportion to its length, and proposes to
//!   the output of that queue: long queues propose often, and short ones do not starve.
//! - Every output accepts the proposal of the longest queue.
//! - Ports that are still free are matched by a few iterations of iSLIP. So iSLIP, which ignores lengths,
//!   starts with a matching that considers them, for one message per input.
//! - With proposals alone (`iterations` 0) an output of a busy switch gets none with probability (1 - 1/N)^N,
//!   which limits the throughput under uniform load to about 0.63, as with one iteration of PIM.
//!
//! # Deviations
//! - Inputs draw from queues for free outputs only. In cell mode these are all queues; in packet mode a draw
//!   of a busy output would be a lost proposal.
//! - The length of a queue is the number of its cells that have arrived; cells of a packet that is still
//!   arriving do not count before.
//! - Ties between proposals: one of the longest queues, each with the same probability. Draws are exact up to
//!   the bias of a 64-bit random number, which is below 2^-64 times the length of all queues.
//! - Proposals do not move the pointers of iSLIP.
//!
//! # Cost
//! A random number per input, and the lengths of its queues with requests, up to N. (In the article each
//! input keeps a table of all its cells, with which the cost of a draw does not depend on N. Here that table
//! would must be updated for every cell, which costs more than reading the few queues with requests in packet
//! mode.) Then the cost of iSLIP for the remaining ports.
//!
//! # References
//! L. Gong, P. Tune, L. Liu, S. Yang, J. Xu, Queue-Proportional Sampling: A Better Approach to Crossbar
//! Scheduling for Input-Queued Switches, Proceedings of the ACM on Measurement and Analysis of Computing
//! Systems 1(1), 2017.

use giveway_qdisc::{Invalid, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::islip::{self, Islip};
use super::rounds::heaviest;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching, check_iterations};
use crate::notes::Notes;
use crate::port_set::PortSet;

/// Parameters of QPS-iSLIP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Iterations of iSLIP after the proposals, 0 for none.
    pub iterations: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { iterations: 4 }
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "queue-proportional sampling: inputs propose at random, then iSLIP";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        if self.iterations > 0 {
            check_iterations(self.iterations)?;
        }
        let ports = context.ports;
        let rest = islip::Config { iterations: self.iterations, ..islip::Config::default() };
        Ok(Box::new(Qps::<W> {
            lengths: vec![0; ports],
            proposed: vec![0; ports],
            proposals: vec![PortSet::EMPTY; ports],
            rest: rest.islip(ports),
            rng: context.streams.within("qps").rng(),
        }))
    }
}

struct Qps<const W: usize> {
    /// Buffer for one input, by output: the length of the queue; undefined for queues without a request.
    lengths: Vec<u64>,
    /// By input: the length of the queue that it has proposed in this slot.
    proposed: Vec<u64>,
    /// By output: inputs that have proposed to it; empty between slots.
    proposals: Vec<PortSet<W>>,
    /// Matches the remaining ports.
    rest: Islip<W>,
    rng: Rng,
}

impl<const W: usize> Qps<W> {
    /// Draws one of the queues of an input for free outputs. Returns its output and its length; `None` when
    /// there is none.
    #[inline]
    fn draw(&mut self, demand: &Demand<'_, W>, input: usize) -> Option<(usize, u64)> {
        let wanted = demand.of_input(input);
        if wanted.count() <= 1 {
            return wanted.lowest().map(|output| (output, demand.weights.cells(input, output)));
        }
        demand.weights.cells_of(input, wanted.words(), &mut self.lengths);
        let cells = wanted.iter().map(|output| self.lengths[output]).sum();
        // A uniform cell of all queues, counted from 0; its queue is the result.
        let mut nth = self.rng.below(cells);
        let drawn = wanted.iter().find(|output| {
            let length = self.lengths[*output];
            let found = nth < length;
            nth = nth.wrapping_sub(length);
            found
        })?;
        Some((drawn, self.lengths[drawn]))
    }
}

impl<const W: usize> Arbiter<W> for Qps<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        let mut proposed_to = PortSet::<W>::EMPTY;
        for input in demand.inputs {
            if let Some((output, length)) = self.draw(demand, input) {
                self.proposed[input] = length;
                self.proposals[output].insert(input);
                proposed_to.insert(output);
                notes.request(input, output);
            }
        }
        for output in proposed_to {
            let proposals = std::mem::replace(&mut self.proposals[output], PortSet::EMPTY);
            let input = heaviest(&mut self.rng, proposals, |input| self.proposed[input]);
            matching.pair(input, output);
            notes.grant(output, input);
        }
        let (inputs, outputs) = (demand.inputs & !matching.inputs, demand.outputs & !matching.outputs);
        if !inputs.is_empty() && !outputs.is_empty() {
            self.rest.decide(&Demand { inputs, outputs, ..*demand }, matching, notes);
        }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        Arbiter::<W>::pointers(&self.rest, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context};
    use super::*;

    fn qps(iterations: u32) -> Box<dyn Arbiter<1>> {
        Config { iterations }.arbiter(&context(3)).unwrap()
    }

    /// Input 0 has 1, 3 and 6 cells: output 2 gets six proposals in ten.
    #[test]
    fn proposals_are_in_proportion_to_lengths() {
        let hand = Hand::cells([[1, 3, 6], [0; 3], [0; 3]]);
        let mut qps = qps(0);
        let mut seen = [0u32; 3];
        let n = 20_000;
        for _ in 0..n {
            let pairs = hand.pairs(&mut *qps);
            seen[["0-0", "0-1", "0-2"].iter().position(|pair| *pair == pairs).unwrap()] += 1;
        }
        for (seen, share) in seen.iter().zip([0.1, 0.3, 0.6]) {
            let off = f64::from(*seen) / f64::from(n) - share;
            // Four standard deviations.
            assert!(
                off.abs() < 4.0 * (share * (1.0 - share) / f64::from(n)).sqrt(),
                "{share} is off by {off}"
            );
        }
    }

    /// Each input has one queue, so that draws are certain: output 0 takes the longest of three, and iSLIP
    /// finds nothing for the others. With another queue at input 1, which is drawn once in a million, iSLIP
    /// serves it.
    #[test]
    fn longest_proposals_and_the_rest_by_hand() {
        let one = Hand::cells([[2, 0, 0], [4, 0, 0], [3, 0, 0]]);
        assert_eq!(one.pairs(&mut *qps(4)), "1-0");
        let two = Hand::cells([[2_000_000, 0, 0], [1_000_000, 1, 0], [3, 0, 0]]);
        assert_eq!(two.grants(&mut *qps(0)), "0>0");
        assert_eq!(two.grants(&mut *qps(1)), "0>0, 1>1");
    }

    #[test]
    fn ties_are_broken_evenly() {
        let hand = Hand::cells([[4, 0, 0], [4, 0, 0], [3, 0, 0]]);
        let mut qps = qps(0);
        let first = (0..10_000).filter(|_| hand.pairs(&mut *qps) == "0-0").count();
        // Four standard deviations of a fair coin.
        assert!(first.abs_diff(5000) < 200, "{first}");
    }
}

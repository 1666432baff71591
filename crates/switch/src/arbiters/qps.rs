//! QPS-iSLIP: inputs propose by lot, with odds in proportion to the length of their queues; iSLIP does the rest.
//!
//! # Principles
//! - Every input draws one of its queues, each with probability in proportion to its length, and proposes to that queue's
//!   output: long queues come forward often, and short ones are not starved.
//! - Every output accepts the proposal of the longest queue.
//! - Ports that are still free go through a few iterations of iSLIP. So iSLIP, blind to lengths, begins with a matching that
//!   is not, for one message per input.
//! - By proposals alone (`iterations` 0) an output of a busy switch gets none with probability (1 - 1/N)^N: throughput
//!   under uniform load ends at about 0.63, as with one iteration of PIM.
//!
//! # Deviations
//! - Only queues for free outputs are drawn from. In cell mode these are all; in packet mode, who draws a busy output would
//!   have lost its proposal before it was made.
//! - The length of a queue is the number of its cells that are there; cells of a packet that is still arriving do not
//!   count before they have come.
//! - Ties between proposals: one of the longest, each as likely. Draws are exact but for the bias of a 64-bit random
//!   number, which is below 2^-64 times the length of all queues.
//! - Proposals do not move iSLIP's pointers.
//!
//! # Cost
//! A random number per input, and a look at the length of each of its queues that asks, up to N. (The article's inputs keep a
//! table of all their cells, by which a draw costs the same whatever N is; here that table would have to be kept up with
//! every cell, which costs more than looks at the few queues that ask in packet mode.) Then iSLIP's for what is left.
//!
//! # References
//! L. Gong, P. Tune, L. Liu, S. Yang, J. Xu, Queue-Proportional Sampling: A Better Approach to Crossbar Scheduling for
//! Input-Queued Switches, Proceedings of the ACM on Measurement and Analysis of Computing Systems 1(1), 2017.

use qdisc::{Invalid, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::islip::{self, Islip};
use super::rounds::heaviest;
use crate::arbiter::{Arbiter, Demand, Matching, Site, check_iterations};
use crate::notes::Notes;
use crate::registry::ArbiterConfig;
use crate::row::Row;

/// QPS-iSLIP's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How many iterations of iSLIP follow the proposals; 0: none.
    pub iterations: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { iterations: 4 }
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "queue-proportional sampling: inputs propose by lot, then iSLIP";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        if self.iterations > 0 {
            check_iterations(self.iterations)?;
        }
        let ports = site.ports;
        let rest = islip::Config { iterations: self.iterations, ..islip::Config::default() };
        Ok(Box::new(Qps::<W> {
            lengths: vec![0; ports],
            proposed: vec![0; ports],
            asking: vec![Row::EMPTY; ports],
            rest: rest.islip(ports),
            rng: site.streams.within("qps").rng(),
        }))
    }
}

struct Qps<const W: usize> {
    /// Of one input, by output: the length of its queue; of those that do not ask, anything.
    lengths: Vec<u64>,
    /// By input: the length of the queue for which it has proposed in this slot.
    proposed: Vec<u64>,
    /// By output: who has proposed to it; empty between slots.
    asking: Vec<Row<W>>,
    /// Matches what is left.
    rest: Islip<W>,
    rng: Rng,
}

impl<const W: usize> Qps<W> {
    /// One of the queues of an input for free outputs: its output, and its length. `None` when there is none.
    #[inline]
    fn draw(&mut self, demand: &Demand<'_, W>, input: usize) -> Option<(usize, u64)> {
        let wanted = demand.of_input(input);
        if wanted.count() <= 1 {
            return wanted.lowest().map(|output| (output, demand.weights.cells(input, output)));
        }
        demand.weights.cells_of(input, wanted.words(), &mut self.lengths);
        let cells = wanted.iter().map(|output| self.lengths[output]).sum();
        // The queue in which the cell of this number is, when all are counted through from zero.
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
        let mut asked = Row::<W>::EMPTY;
        for input in demand.inputs {
            if let Some((output, length)) = self.draw(demand, input) {
                self.proposed[input] = length;
                self.asking[output].insert(input);
                asked.insert(output);
                notes.request(input, output);
            }
        }
        for output in asked {
            let asking = std::mem::replace(&mut self.asking[output], Row::EMPTY);
            let input = heaviest(&mut self.rng, asking, |input| self.proposed[input]);
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
    use super::super::hand::{Hand, site};
    use super::*;

    fn qps(iterations: u32) -> Box<dyn Arbiter<1>> {
        Config { iterations }.arbiter(&site(3)).unwrap()
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

    /// Everybody has one queue only, so that nothing is left to chance: output 0 takes the longest of three, and iSLIP finds
    /// nothing for the others. With another queue at input 1, which is drawn once in a million, iSLIP serves it.
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

//! MSM, maximum size matching: the largest number of pairs.
//!
//! # Principles
//! - In each slot one of the matchings with the largest number of pairs is taken, regardless of queues.
//! - That leaves a choice, and the choice matters. With `ties random` inputs are taken in a random order and
//!   get random outputs; then searches for paths that match one more input take ports in random order.
//! - `ties fixed` and `rotating` demonstrate the trap: a matching that prefers ports by their number always
//!   leaves packets at the same ports, whose queues are long when others are empty. In packet mode at a load
//!   of 1 this costs about 0.4 % of the throughput, in a run of any length.
//!
//! # Deviations
//! - The articles leave ties open. Here every maximum matching can occur, although not with the same
//!   probability.
//!
//! # Cost
//! A few word operations per free input if the greedy matching is a maximum, which is the usual case, without
//! a branch that depends on requests: in packet mode, with 16 ports at a load of 0.9, about 400 instructions
//! per slot. Otherwise a few per port on the paths, at most all of them for each input that is left.
//!
//! # References
//! N. McKeown, A. Mekkittikul, V. Anantharam, J. Walrand, Achieving 100% Throughput in an Input-Queued
//! Switch, IEEE Transactions on Communications 47(8), 1999: why it is unstable where traffic is not uniform,
//! and unfair.

use giveway_qdisc::Invalid;

use super::config::config;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::matching::Ties;
use crate::matching::order::PortOrder;
use crate::matching::size::MaxSize;
use crate::notes::Notes;

config!(ties, "Parameters of MSM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "maximum size matching: the largest number of pairs";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Msm::<W>::new(self.ties, context)))
    }
}

/// The order of ports, and buffers.
pub(crate) struct Msm<const W: usize> {
    order: PortOrder,
    size: MaxSize<W>,
}

impl<const W: usize> Msm<W> {
    pub fn new(ties: Ties, context: &ArbiterContext) -> Msm<W> {
        let order = PortOrder::new(ties, context.ports, &context.streams.within("ties"));
        Msm { order, size: MaxSize::new(context.ports) }
    }
}

impl<const W: usize> Arbiter<W> for Msm<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.size.solve(demand, &mut self.order, |input, output| {
            matching.pair(input, output);
            notes.accept(input, output);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::table::Table;

    fn msm(ties: &str) -> Config {
        serde_json::from_value(serde_json::json!({ "ties": ties })).unwrap()
    }

    #[test]
    fn an_input_changes_so_that_one_more_is_matched() {
        // Input 0 takes output 0, the only request of input 1, and must change to output 1.
        let table = Table::new("9 1 . / 9 . . / . . .");
        assert_eq!(table.decided(&msm("fixed")), [(0, 1), (1, 0)]);
        // A path through all three: 2 takes 0 from 0, which takes 1 from 1, which takes 2.
        let table = Table::new("1 1 . / . 1 1 / 1 . .");
        assert_eq!(table.decided(&msm("fixed")), [(0, 1), (1, 2), (2, 0)]);
    }

    #[test]
    fn if_only_one_can_be_matched_all_take_turns() {
        let table = Table::new("1 . . / 1 . . / 1 . .");
        assert_eq!(table.decided(&msm("fixed")), [(0, 0)]);
        let mut seen = [0; 3];
        let mut arbiter = table.arbiter(&msm("random"));
        (0..30_000).for_each(|_| seen[table.decide(&mut *arbiter)[0].0] += 1);
        // 10000 each; four standard deviations are 327.
        assert!(seen.iter().all(|times| (9673..=10327).contains(times)), "{seen:?}");
        let mut arbiter = table.arbiter(&msm("rotating"));
        let turns: Vec<usize> = (0..4).map(|_| table.decide(&mut *arbiter)[0].0).collect();
        assert_eq!(turns, [1, 2, 0, 1]);
    }

    #[test]
    fn every_maximum_matching_occurs() {
        // Three inputs for two outputs: 3 * 2 matchings of size 2.
        let table = Table::new("1 1 . / 1 1 . / 1 1 .");
        let seen = table.all_decided(&msm("random"), 200);
        assert_eq!(seen.len(), 6);
        assert!(seen.iter().all(|pairs| pairs.len() == 2));
    }
}

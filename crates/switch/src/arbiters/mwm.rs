//! MWM, maximum weight matching: the pairs with the largest sum of weights.
//!
//! # Principles
//! - In each slot one of the matchings with the largest sum of weights is taken.
//! - `weight queue_length` (longest queues first, LQF): throughput is 100 % under every admissible pattern of
//!   independent arrivals, but a short queue may starve.
//! - `weight cell_age` (oldest cells first, OCF): the same throughput without starvation.
//! - `weight port_occupancy` (longest ports first, LPF): the weight of a pair with a packet is the number of
//!   cells at its input plus the number of cells for its output. The matching is of maximum size as well.
//!
//! # Deviations
//! - The age of a cell includes the present slot, so that a new cell has a weight above 0. The articles do
//!   not specify it. In packet mode it is the age of the packet at the head, and the length of a queue counts
//!   the cells that have arrived.
//! - The articles leave ties open. With `ties random`, if less than three quarters of the ports are free,
//!   these are put into random orders first, so that probabilities do not depend on the numbers of ports;
//!   matchings of the same weight may have different probabilities. Otherwise (so in cell mode), pairs of the
//!   last time stay if they are part of a maximum; the other inputs are matched again in random order, with
//!   outputs from a random one on. `fixed` and `rotating` take ports in the order of their numbers.
//!
//! # Cost
//! Weights are read once, of free pairs with requests. With up to three free ports on one side and up to
//! seven on the other, a few operations for each port of the other side. With up to seven on both sides, at
//! most 448 steps, without a branch that depends on weights. With k and m free ports, where k is less and one
//! is more than seven, k searches over up to k rows of m columns. In cell mode prices and pairs are kept, and
//! only rows whose pair is no longer the best for them are searched.
//!
//! # References
//! - N. McKeown, A. Mekkittikul, V. Anantharam, J. Walrand, Achieving 100% Throughput in an Input-Queued
//!   Switch, IEEE Transactions on Communications 47(8), 1999: LQF and OCF.
//! - A. Mekkittikul, N. McKeown, A Practical Scheduling Algorithm to Achieve 100% Throughput in Input-Queued
//!   Switches, INFOCOM 1998: LPF.
//! - M. Ajmone Marsan, A. Bianco, P. Giaccone, E. Leonardi, F. Neri, Packet-Mode Scheduling in Input-Queued
//!   Cell-Based Switches, IEEE/ACM Transactions on Networking 10(5), 2002: in packet mode.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::matching::order::PortOrder;
use crate::matching::weight::MaxWeight;
use crate::matching::{Ties, Weight};
use crate::notes::Notes;

/// Parameters of MWM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of a pair.
    pub weight: Weight,
    /// The choice among several maximum matchings.
    pub ties: Ties,
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "maximum weight matching: by queue lengths, ages or ports";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Mwm::new(self.weight, self.ties, context)))
    }
}

/// The order of ports, prices and buffers.
pub(crate) struct Mwm {
    order: PortOrder,
    weight: MaxWeight,
}

impl Mwm {
    pub fn new(weight: Weight, ties: Ties, context: &ArbiterContext) -> Mwm {
        let order = PortOrder::new(ties, context.ports, &context.streams.within("ties"));
        Mwm { order, weight: MaxWeight::new(weight, context.ports) }
    }
}

impl<const W: usize> Arbiter<W> for Mwm {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.weight.solve(demand, &mut self.order, |input, output| {
            matching.pair(input, output);
            notes.accept(input, output);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::table::Table;

    fn mwm(weight: Weight) -> Config {
        Config { weight, ties: Ties::Fixed }
    }

    #[test]
    fn two_good_pairs_weigh_more_than_the_best_one() {
        // 9 + 1 is less than 6 + 5.
        let table = Table::new("9 6 / 5 1");
        assert_eq!(table.decided(&mwm(Weight::QueueLength)), [(0, 1), (1, 0)]);
    }

    #[test]
    fn one_heavy_pair_weighs_more_than_two() {
        // Size is not what counts: 9 is more than 3 + 4.
        let table = Table::new("9 3 / 4 .");
        assert_eq!(table.decided(&mwm(Weight::QueueLength)), [(0, 0)]);
        // The same by ages.
        assert_eq!(table.decided(&mwm(Weight::CellAge)), [(0, 0)]);
        // Every pair weighs at least its ports, so two pairs are better than one.
        assert_eq!(table.decided(&mwm(Weight::PortOccupancy)), [(0, 1), (1, 0)]);
    }

    #[test]
    fn longest_ports_first() {
        // Inputs have 5, 10 and 2 cells. For output 0, input 0 has the longer queue, but input 1 has more
        // cells.
        let table = Table::new("5 . . / 1 9 . / . . 2").only(&[0, 1, 2], &[0]);
        assert_eq!(table.decided(&mwm(Weight::PortOccupancy)), [(1, 0)]);
        assert_eq!(table.decided(&mwm(Weight::QueueLength)), [(0, 0)]);
        // Of input 0, output 1 is wanted by 3 cells and output 0 by 2; those of the busy input 1 count.
        let table = Table::new("2 1 . / . 2 . / . . .").only(&[0], &[0, 1]);
        assert_eq!(table.decided(&mwm(Weight::PortOccupancy)), [(0, 1)]);
    }

    #[test]
    fn one_free_port() {
        let table = Table::new("1 7 3 4 / 9 8 9 9 / 9 9 9 9 / 2 9 9 9");
        assert_eq!(table.only(&[0], &[0, 1, 2, 3]).decided(&mwm(Weight::QueueLength)), [(0, 1)]);
        assert_eq!(table.only(&[0, 1, 3], &[0]).decided(&mwm(Weight::QueueLength)), [(1, 0)]);
    }

    #[test]
    fn all_pairs_with_the_same_weight_occur() {
        let equal = Table::new(&["5 5 5 5 5 5 5 5"; 8].join(" / "));
        let (some, config) = (equal.only(&[1, 4, 6], &[0, 2, 7]), Config::default());
        assert_eq!(
            some.all_decided(&config, 400).len(),
            6,
            "3! matchings of three inputs with three outputs"
        );
        assert_eq!(some.all_decided(&mwm(Weight::QueueLength), 400).len(), 1);
        // With all ports free the pairs of the first time stay: they are still a maximum.
        assert_eq!(equal.all_decided(&config, 400).len(), 1);
    }
}

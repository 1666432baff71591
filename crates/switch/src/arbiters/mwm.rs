//! MWM, maximum weight matching: the pairs that are worth most together.
//!
//! # Principles
//! - In each slot, of all matchings one of those with the largest sum of weights is taken.
//! - `weight queue_length` (longest queues first, LQF): throughput is 100 % under every admissible pattern of independent
//!   arrivals, but a short queue may wait for ever.
//! - `weight cell_age` (oldest cells first, OCF): the same throughput, and nobody starves.
//! - `weight port_occupancy` (longest ports first, LPF): a pair that has something to send weighs as much as waits at its
//!   input and for its output. What is found is of maximum size as well.
//!
//! # Deviations
//! - A cell's age counts the present slot, so that a cell that has just come weighs something. The articles do not say.
//!   In packet mode it is the age of the packet at the head, and a queue is as long as what is there of its packets.
//! - Ties are open in the articles. With `ties random`, where less than three quarters of the ports are free, these are put
//!   into random orders first, so that the odds do not depend on the numbers of ports; matchings of the same weight need
//!   not be equally likely. Where more are free (so in cell mode), pairs of the last time stay if they are still part of a
//!   maximum; inputs whose pairs do not are matched again in random order, with outputs from a random one on. `fixed` and
//!   `rotating` go by the numbers of ports.
//!
//! # Cost
//! Weights are read once, of free pairs that ask for each other. Where up to three ports are free on one side and up to
//! seven on the other, a few operations for each port of the other side; up to seven on both sides, at most 448 steps, with
//! no jump that depends on weights. Where k and m are free, k is less and one is more than seven, k searches over up to
//! k rows of m columns. In cell mode prices and pairs are kept, and only rows whose pair is not the best for them any more
//! are searched for.
//!
//! # References
//! - N. McKeown, A. Mekkittikul, V. Anantharam, J. Walrand, Achieving 100% Throughput in an Input-Queued Switch, IEEE
//!   Transactions on Communications 47(8), 1999: LQF and OCF.
//! - A. Mekkittikul, N. McKeown, A Practical Scheduling Algorithm to Achieve 100% Throughput in Input-Queued Switches,
//!   INFOCOM 1998: LPF.
//! - M. Ajmone Marsan, A. Bianco, P. Giaccone, E. Leonardi, F. Neri, Packet-Mode Scheduling in Input-Queued Cell-Based
//!   Switches, IEEE/ACM Transactions on Networking 10(5), 2002: in packet mode.

use qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::{Arbiter, Demand, Matching, Site};
use crate::matching::order::Order;
use crate::matching::weight::MaxWeight;
use crate::matching::{Ties, Weight};
use crate::notes::Notes;
use crate::registry::ArbiterConfig;

/// MWM's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a pair is worth.
    pub weight: Weight,
    /// Which of several maximum matchings is taken.
    pub ties: Ties,
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "maximum weight matching: by queue lengths, ages or ports";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Mwm::new(self.weight, self.ties, site)))
    }
}

/// Its order of ports, prices and buffers.
pub(crate) struct Mwm {
    order: Order,
    weight: MaxWeight,
}

impl Mwm {
    pub fn new(weight: Weight, ties: Ties, site: &Site) -> Mwm {
        let order = Order::new(ties, site.ports, &site.streams.within("ties"));
        Mwm { order, weight: MaxWeight::new(weight, site.ports) }
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
    fn two_good_pairs_are_worth_more_than_the_best_one() {
        // 9 + 1 is less than 6 + 5.
        let table = Table::new("9 6 / 5 1");
        assert_eq!(table.decided(&mwm(Weight::QueueLength)), [(0, 1), (1, 0)]);
    }

    #[test]
    fn one_heavy_pair_is_worth_more_than_two() {
        // Size is not what counts: 9 is more than 3 + 4.
        let table = Table::new("9 3 / 4 .");
        assert_eq!(table.decided(&mwm(Weight::QueueLength)), [(0, 0)]);
        // Ages say the same: arrived in slot 100 - 9 and so on.
        assert_eq!(table.decided(&mwm(Weight::CellAge)), [(0, 0)]);
        // Ports: both inputs and outputs weigh something, so two pairs are better than one.
        assert_eq!(table.decided(&mwm(Weight::PortOccupancy)), [(0, 1), (1, 0)]);
    }

    #[test]
    fn longest_ports_first() {
        // Inputs hold 5, 10 and 2 cells. For output 0, input 0 has the longer queue, but more waits at input 1.
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
    fn pairs_that_weigh_the_same_all_come() {
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

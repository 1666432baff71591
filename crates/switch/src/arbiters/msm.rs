//! MSM, maximum size matching: as many pairs as can be.
//!
//! # Principles
//! - In each slot, of all matchings one of those with most pairs is taken, whatever waits behind them.
//! - Which one is not said by that, and it matters. With `ties random` inputs are gone through in a random order and take
//!   random outputs; then paths that match one more input are looked for, through ports in random order.
//! - `ties fixed` and `rotating` are there to show the trap: a matching that prefers ports by their number leaves packets
//!   of the same ports behind, whose queues are long when others are empty. In packet mode at a load of 1 that costs
//!   some four thousandths of the throughput, in a run of any length.
//!
//! # Deviations
//! - The articles leave ties open. Here every maximum matching can come, though not all are equally likely.
//!
//! # Cost
//! A few word operations per free input where the greedy matching is a maximum, which it mostly is, without a jump that
//! depends on who asks for whom: in packet mode, with 16 ports at a load of 0.9, some four hundred instructions per slot.
//! Else a few per port on the paths, at most all of them for each input that is left over.
//!
//! # References
//! N. McKeown, A. Mekkittikul, V. Anantharam, J. Walrand, Achieving 100% Throughput in an Input-Queued Switch, IEEE
//! Transactions on Communications 47(8), 1999: why it is unstable where traffic is not uniform, and unfair.

use qdisc::Invalid;

use super::config::config;
use crate::arbiter::{Arbiter, Demand, Matching, Site};
use crate::matching::Ties;
use crate::matching::order::Order;
use crate::matching::size::MaxSize;
use crate::notes::Notes;
use crate::registry::ArbiterConfig;

config!(ties, "Parameters of MSM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "maximum size matching: as many pairs as can be";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        Ok(Box::new(Msm::<W>::new(self.ties, site)))
    }
}

/// Its order of ports, and buffers.
pub(crate) struct Msm<const W: usize> {
    order: Order,
    size: MaxSize<W>,
}

impl<const W: usize> Msm<W> {
    pub fn new(ties: Ties, site: &Site) -> Msm<W> {
        let order = Order::new(ties, site.ports, &site.streams.within("ties"));
        Msm { order, size: MaxSize::new(site.ports) }
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
    fn an_input_gives_way_so_that_one_more_is_matched() {
        // Input 0 takes output 0, which is all that input 1 asks for: it has to take output 1 instead.
        let table = Table::new("9 1 . / 9 . . / . . .");
        assert_eq!(table.decided(&msm("fixed")), [(0, 1), (1, 0)]);
        // A path through all three: 2 takes 0 from 0, which takes 1 from 1, which takes 2.
        let table = Table::new("1 1 . / . 1 1 / 1 . .");
        assert_eq!(table.decided(&msm("fixed")), [(0, 1), (1, 2), (2, 0)]);
    }

    #[test]
    fn where_only_one_can_be_matched_everybody_comes() {
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
    fn every_maximum_matching_comes() {
        // Three inputs for two outputs: 3 * 2 matchings of size 2.
        let table = Table::new("1 1 . / 1 1 . / 1 1 .");
        let seen = table.all_decided(&msm("random"), 200);
        assert_eq!(seen.len(), 6);
        assert!(seen.iter().all(|pairs| pairs.len() == 2));
    }
}

//! Greedy maximal weight matching: the heaviest pair first.
//!
//! # Principles
//! - The heaviest pair of free ports is matched, then the heaviest pair of the remaining ports, until there
//!   are no requests between them.
//! - The weight is at least half of the maximum. In practice it is close to it, for a fraction of the work.
//! - At a speedup of 2 it is stable under every admissible pattern, as every maximal matching; at 1 it may
//!   not be.
//!
//! # Deviations
//! - Weights and ties are the same as in `mwm`; the articles leave ties open. With `ties random` inputs and
//!   outputs are put into random orders, and of pairs with the same weight the first is taken.
//!
//! # Cost
//! The weights of free pairs are read once. Each match compares the heaviest pairs of all rows, and reads
//! again the rows whose heaviest pair had the same column.
//!
//! # References
//! - D. Avis, A Survey of Heuristics for the Weighted Matching Problem, Networks 13, 1983: the bound of one
//!   half.
//! - J. Dai, B. Prabhakar, The Throughput of Data Switches with and without Speedup, INFOCOM 2000: maximal
//!   matchings at a speedup of 2.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::matching::order::PortOrder;
use crate::matching::{Ties, Weight, greedy};
use crate::notes::Notes;

/// Parameters of the greedy matching.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of a pair.
    pub weight: Weight,
    /// The choice among pairs with the same weight.
    pub ties: Ties,
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "greedy maximal weight matching: the heaviest pair first";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        let order = PortOrder::new(self.ties, context.ports, &context.streams.within("ties"));
        Ok(Box::new(Greedy { order, greedy: greedy::Greedy::new(self.weight, context.ports) }))
    }
}

/// The order of ports, and buffers.
struct Greedy {
    order: PortOrder,
    greedy: greedy::Greedy,
}

impl<const W: usize> Arbiter<W> for Greedy {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.greedy.solve(demand, &mut self.order, |input, output| {
            matching.pair(input, output);
            notes.accept(input, output);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::table::Table;

    #[test]
    fn the_heaviest_pair_first() {
        let fixed = Config { weight: Weight::QueueLength, ties: Ties::Fixed };
        // 9 and the rest, although 6 + 5 is more.
        assert_eq!(Table::new("9 6 / 5 1").decided(&fixed), [(0, 0), (1, 1)]);
        // 8 takes input 2 and output 1; then 7 is the heaviest; input 0 and output 2 are left.
        assert_eq!(Table::new("6 7 2 / 7 6 4 / 5 8 7").decided(&fixed), [(2, 1), (1, 0), (0, 2)]);
        // The matching is maximal, even with pairs of little weight.
        assert_eq!(Table::new("9 . / 9 1").decided(&fixed), [(0, 0), (1, 1)]);
        assert_eq!(Table::new("9 1 / 9 .").decided(&fixed), [(0, 0)]);
    }

    #[test]
    fn all_pairs_with_the_same_weight_occur() {
        let table = Table::new("4 4 / 4 4");
        let seen = table.all_decided(&Config::default(), 100);
        assert_eq!(seen.len(), 2);
    }
}

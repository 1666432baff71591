//! TDM, time-division multiplexing: who is connected with whom is fixed for every slot, whatever waits.
//!
//! # Principles
//! - A schedule is a list of permutations and how often each comes in a frame. In slot `s` input `i` is connected with
//!   output `(i + s) mod N`: every pair has one slot in N, evenly spread.
//! - Nothing is decided, so nothing has to be computed and nobody can be starved: a pair whose rate is below its share of
//!   the frame is served in time. Slots of a pair that has nothing to send are lost.
//! - Permutations of a frame take turns as evenly as their weights let them (smooth weighted round robin): in each slot
//!   everybody's credit grows by its weight, the greatest credit is served, and pays the sum of all weights.
//!
//! # Deviations
//! - In packet mode a slot of the schedule is when a packet may begin. It holds its connection beyond, and who is due
//!   meanwhile at one of both ports loses its turn.
//!
//! # Cost
//! A look per free input. N·N·2 bytes for the permutations.
//!
//! # References
//! T. Inukai, An Efficient SS/TDMA Time Slot Assignment Algorithm, IEEE Transactions on Communications 27(10), 1979 (frames
//! of permutations); C.-S. Chang, W.-J. Chen, H.-Y. Huang, Birkhoff-von Neumann Input Buffered Crossbar Switches, INFOCOM
//! 2000.

use qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::{Arbiter, Demand, Matching, Site};
use crate::notes::Notes;
use crate::scheduler::Scheduler;

/// It has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Scheduler for Config {
    const SUMMARY: &'static str = "time division: each pair has its fixed slot in N, whatever waits";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        let ports = site.ports;
        let turned = |by: usize| (0..ports).map(|input| ((input + by) % ports) as u16).collect();
        Ok(Box::new(Frame::new((0..ports).map(|by| (turned(by), 1)).collect())))
    }
}

/// Permutations that take turns.
struct Frame {
    /// By input: its output.
    permutations: Vec<Vec<u16>>,
    /// By slot of the frame: which of them.
    order: Vec<u16>,
}

impl Frame {
    /// Permutations, each with the number of slots that it has in a frame; these sum to more than 0.
    fn new(weighted: Vec<(Vec<u16>, u32)>) -> Frame {
        let slots: i64 = weighted.iter().map(|(_, weight)| i64::from(*weight)).sum();
        debug_assert!(slots > 0, "a frame has slots");
        let mut credits = vec![0; weighted.len()];
        let turn = |_| {
            for (credit, (_, weight)) in credits.iter_mut().zip(&weighted) {
                *credit += i64::from(*weight);
            }
            // The first of those with the greatest credit.
            let most = *credits.iter().max().expect("there are permutations");
            let served = credits.iter().position(|credit| *credit == most).expect("one has the most");
            credits[served] -= slots;
            served as u16
        };
        let order = (0..slots).map(turn).collect();
        Frame { permutations: weighted.into_iter().map(|(permutation, _)| permutation).collect(), order }
    }
}

impl<const W: usize> Arbiter<W> for Frame {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        // The arbiter is not asked in slots in which nobody is free; the schedule goes on in them.
        let slot = demand.tick / demand.slot_ticks;
        let turn = self.order[(slot % self.order.len() as u64) as usize];
        let outputs = &self.permutations[usize::from(turn)];
        for input in demand.inputs {
            let output = usize::from(outputs[input]);
            if demand.of_input(input).has(output) {
                matching.pair(input, output);
                notes.grant(output, input);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, site};
    use super::*;

    #[test]
    fn every_pair_has_its_slot() {
        let mut tdm: Box<dyn Arbiter<1>> = Config {}.arbiter(&site(3)).unwrap();
        let all = Hand::cells([[1; 3]; 3]);
        for (slot, pairs) in [
            (0, "0-0 1-1 2-2"),
            (1, "0-1 1-2 2-0"),
            (2, "0-2 1-0 2-1"),
            (3, "0-0 1-1 2-2"),
            (7, "0-1 1-2 2-0"),
        ] {
            assert_eq!(all.clone().at(slot).pairs(&mut *tdm), pairs, "slot {slot}");
        }
        // Who has nothing to send, or is not free, loses its slot.
        let some = Hand::cells([[0, 1, 1], [1, 1, 0], [1, 1, 1]]);
        assert_eq!(some.clone().at(1).pairs(&mut *tdm), "0-1 2-0");
        assert_eq!(some.free(&[0, 2], &[1, 2]).at(1).pairs(&mut *tdm), "0-1");
    }

    /// Two permutations, the first with five slots of seven: its slots are spread, not in a row.
    #[test]
    fn permutations_take_turns_by_weight() {
        let mut frame = Frame::new(vec![(vec![1, 0, 2], 5), (vec![0, 2, 1], 2)]);
        // Credits before each turn: 5 2, 3 4, 8 -1, 6 1, 4 3, 2 5, 7 0.
        assert_eq!(frame.order, [0, 1, 0, 0, 0, 1, 0]);
        let all = Hand::cells([[1; 3]; 3]);
        assert_eq!(all.clone().at(0).pairs(&mut frame), "0-1 1-0 2-2");
        assert_eq!(all.clone().at(1).pairs(&mut frame), "0-0 1-2 2-1");
        assert_eq!(all.at(7 + 5).pairs(&mut frame), "0-0 1-2 2-1");
    }
}

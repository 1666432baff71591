//! FIRM: iSLIP that returns to whom it granted in vain, and so comes nearer to first come, first served.
//!
//! # Principles
//! - Request, grant and accept as in iSLIP: outputs grant the asking input that comes next from their pointer on, inputs
//!   accept the granting output that comes next from theirs.
//! - An accepted grant moves both pointers to one beyond the partner.
//! - A grant that is not accepted moves the output's pointer to the very input that it granted. Who was granted comes
//!   first until it is served, and nobody who asks later overtakes it; in iSLIP the pointer stays behind, and inputs
//!   between it and the granted one may come in between.
//!
//! # Deviations
//! - The article defines one iteration. With several, pointers move in the first one only, as iSLIP's do and for the same
//!   reason: otherwise who lost its turn in the first iteration may lose it for ever.
//!
//! # Cost
//! A word operation per output and iteration; iterations end when nothing is granted any more.
//!
//! # References
//! D. Serpanos, P. Antoniadis, FIRM: A Class of Distributed Scheduling Algorithms for High-Speed ATM Switches with
//! Multiple Input Queues, INFOCOM 2000.

use qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rounds::{Choice, Rounds, beyond};
use crate::arbiter::{Arbiter, Demand, Matching, Site, check_iterations};
use crate::notes::Notes;
use crate::registry::ArbiterConfig;
use crate::row::Row;

/// FIRM's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How many iterations a slot has.
    pub iterations: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { iterations: 4 }
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "iSLIP whose outputs return to the input that they granted in vain";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        let pointers = Pointers { grant: vec![0; site.ports], accept: vec![0; site.ports] };
        Ok(Box::new(Firm { rounds: Rounds::new(self.iterations), pointers }))
    }
}

struct Firm<const W: usize> {
    rounds: Rounds<W>,
    pointers: Pointers,
}

struct Pointers {
    /// By output: the input that comes first.
    grant: Vec<u16>,
    /// By input: the output that comes first.
    accept: Vec<u16>,
}

impl<const W: usize> Choice<W> for Pointers {
    #[inline]
    fn grant(&mut self, iteration: u32, output: usize, asking: Row<W>) -> usize {
        let input = asking.from(usize::from(self.grant[output])).expect("somebody asks");
        if iteration == 1 {
            // In vain, as far as it knows; `accept` moves it on.
            self.grant[output] = input as u16;
        }
        input
    }
    #[inline]
    fn accept(&mut self, iteration: u32, input: usize, grants: Row<W>) -> usize {
        let output = grants.from(usize::from(self.accept[input])).expect("somebody granted");
        if iteration == 1 {
            self.grant[output] = beyond(input, self.grant.len());
            self.accept[input] = beyond(output, self.accept.len());
        }
        output
    }
}

impl<const W: usize> Arbiter<W> for Firm<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.rounds.run(&mut self.pointers, demand, matching, notes);
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        visit("grant", &self.pointers.grant);
        visit("accept", &self.pointers.accept);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, pointers, site};
    use super::super::islip;
    use super::*;

    /// Output 1 grants input 2 in vain, and its pointer goes there. In the next slot input 0 asks for output 1, too: FIRM
    /// serves input 2, which came first; iSLIP's pointer is still at 0, and so input 0 overtakes.
    #[test]
    fn who_was_granted_in_vain_comes_first() {
        let mut firm: Box<dyn Arbiter<1>> = Config { iterations: 1 }.arbiter(&site(3)).unwrap();
        let islip = islip::Config { iterations: 1, ..islip::Config::default() };
        let mut islip: Box<dyn Arbiter<1>> = islip.arbiter(&site(3)).unwrap();
        let slots = [
            // Asked, FIRM's answer, its pointers afterwards, iSLIP's answer, its pointers afterwards.
            (
                [[0, 0, 0], [0, 0, 0], [1, 1, 0]],
                ("2-0", "grant 020, accept 001"),
                ("2-0", "grant 000, accept 001"),
            ),
            (
                [[0, 1, 0], [0, 0, 0], [0, 1, 0]],
                ("2-1", "grant 000, accept 002"),
                ("0-1", "grant 010, accept 201"),
            ),
        ];
        for (asked, by_firm, by_islip) in slots {
            let hand = Hand::cells(asked);
            assert_eq!((hand.pairs(&mut *firm).as_str(), pointers(&*firm).as_str()), by_firm);
            assert_eq!((hand.pairs(&mut *islip).as_str(), pointers(&*islip).as_str()), by_islip);
        }
    }

    /// A second iteration finds another pair and moves nothing.
    #[test]
    fn pointers_move_in_the_first_iteration_only() {
        let mut firm: Box<dyn Arbiter<1>> = Config { iterations: 2 }.arbiter(&site(3)).unwrap();
        let hand = Hand::cells([[1, 1, 0], [0, 1, 0], [0, 0, 0]]);
        assert_eq!(hand.grants(&mut *firm), "0>0 0>1, 1>1");
        assert_eq!(pointers(&*firm), "grant 100, accept 100");
    }
}

//! FIRM: iSLIP whose outputs return to the input of a grant that was not accepted, which is closer to first
//! come, first served.
//!
//! # Principles
//! - Request, grant and accept as in iSLIP: outputs grant the requesting input that comes next from their
//!   pointer on, inputs accept the granting output that comes next from theirs.
//! - An accepted grant moves both pointers to one beyond the partner.
//! - A grant that is not accepted moves the pointer of the output to the input that it granted. That input
//!   has the highest priority until it is served, and later requests do not overtake it. In iSLIP the pointer
//!   stays behind, and inputs between it and the granted one may be served first.
//!
//! # Deviations
//! - The article defines one iteration. With several, pointers move in the first one only, as in iSLIP and
//!   for the same reason: otherwise an input that loses its turn in the first iteration may lose it for ever.
//!
//! # Cost
//! A word operation per output and iteration. Iterations end when nothing more is granted.
//!
//! # References
//! D. Serpanos, P. Antoniadis, FIRM: A Class of Distributed Scheduling Algorithms for High-Speed ATM Switches
//! with Multiple Input Queues, INFOCOM 2000.

use giveway_qdisc::Invalid;

use super::config::config;
use super::round_robin::{Both, RoundRobin, Rule};
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, check_iterations};

config!(iterations, "Parameters of FIRM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "iSLIP whose outputs return to the input of a grant that was not accepted";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(RoundRobin::new(self.iterations, context.ports, BackToGranted)))
    }
}

/// In the first iteration an accepted grant moves both pointers beyond the partner; one that is not accepted
/// moves the pointer of the output to the input that it granted.
struct BackToGranted;

impl Rule for BackToGranted {
    #[inline]
    fn granted<const W: usize>(&self, iteration: u32, output: usize, input: usize, pointers: &mut Both<W>) {
        if iteration == 1 {
            // The grant counts as not accepted until `accepted` moves the pointer on.
            pointers.grant.point_at(output, input);
        }
    }

    #[inline]
    fn accepted<const W: usize>(&self, iteration: u32, input: usize, output: usize, pointers: &mut Both<W>) {
        if iteration == 1 {
            pointers.grant.move_past(output, input);
            pointers.accept.move_past(input, output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context, pointers};
    use super::super::islip;
    use super::*;

    /// Input 2 does not accept the grant of output 1, whose pointer moves to input 2. In the next slot input
    /// 0 requests output 1, too: FIRM serves input 2, which came first; the pointer of iSLIP is still at 0,
    /// so input 0 overtakes.
    #[test]
    fn an_input_that_was_granted_comes_first() {
        let mut firm: Box<dyn Arbiter<1>> = Config { iterations: 1 }.arbiter(&context(3)).unwrap();
        let islip = islip::Config { iterations: 1, ..islip::Config::default() };
        let mut islip: Box<dyn Arbiter<1>> = islip.arbiter(&context(3)).unwrap();
        let slots = [
            // Requests; pairs of FIRM, its pointers afterwards; pairs of iSLIP, its pointers afterwards.
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
        for (requests, by_firm, by_islip) in slots {
            let hand = Hand::cells(requests);
            assert_eq!((hand.pairs(&mut *firm).as_str(), pointers(&*firm).as_str()), by_firm);
            assert_eq!((hand.pairs(&mut *islip).as_str(), pointers(&*islip).as_str()), by_islip);
        }
    }

    /// A second iteration finds another pair and moves nothing.
    #[test]
    fn pointers_move_in_the_first_iteration_only() {
        let mut firm: Box<dyn Arbiter<1>> = Config { iterations: 2 }.arbiter(&context(3)).unwrap();
        let hand = Hand::cells([[1, 1, 0], [0, 1, 0], [0, 0, 0]]);
        assert_eq!(hand.grants(&mut *firm), "0>0 0>1, 1>1");
        assert_eq!(pointers(&*firm), "grant 100, accept 100");
    }
}

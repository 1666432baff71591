//! DRRM, dual round-robin matching: every input requests one output, every output grants one input, and no
//! accept is needed.
//!
//! # Principles
//! - In each iteration every unmatched input requests one unmatched output: of those that it has a packet
//!   for, the first from its request pointer on.
//! - Every requested output grants the requesting input that comes next from its grant pointer on. Since that
//!   input has requested nothing else, they are matched: two steps instead of three, and one message per
//!   input.
//! - The pointers of a matched pair move to one beyond the partner; all others stay. An input without a grant
//!   requests the same output again, so the pointers of busy inputs come to point at different outputs, as
//!   the pointers of outputs at inputs in iSLIP.
//!
//! # Deviations
//! - The article has one iteration. With several, an input without a grant requests the next output that is
//!   still unmatched, and pointers move in the first iteration only: an input that is served elsewhere in a
//!   later iteration still waits for the output at its pointer.
//!
//! # Cost
//! A word operation per input and per output in each iteration. Iterations end when no input can request any
//! more.
//!
//! # References
//! H. J. Chao, Saturn: A Terabit Packet Switch Using Dual Round-Robin, IEEE Communications Magazine
//! 38(12), 2000.

use giveway_qdisc::Invalid;

use super::config::config;
use super::round_robin::Pointers;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching, check_iterations};
use crate::notes::Notes;
use crate::port_set::PortSet;

config!(iterations, "Parameters of DRRM.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "dual round robin: an input requests one output, which grants one input";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(Drrm::<W> {
            iterations: self.iterations,
            request: Pointers::new(context.ports),
            grant: Pointers::new(context.ports),
            requesting: vec![PortSet::EMPTY; context.ports],
        }))
    }
}

struct Drrm<const W: usize> {
    iterations: u32,
    /// By input: the output with the highest priority for a request.
    request: Pointers<W>,
    /// By output: the input with the highest priority for a grant.
    grant: Pointers<W>,
    /// By output: the inputs that request it in this iteration; empty between iterations.
    requesting: Vec<PortSet<W>>,
}

impl<const W: usize> Arbiter<W> for Drrm<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        let (mut inputs, mut outputs) = (demand.inputs, demand.outputs);
        for iteration in 1..=self.iterations {
            notes.iteration(iteration);
            let mut requested = PortSet::EMPTY;
            for input in inputs {
                let wanted = demand.requests.of_input[input] & outputs;
                match self.request.choose(input, wanted) {
                    Some(output) => {
                        self.requesting[output].insert(input);
                        requested.insert(output);
                        notes.request(input, output);
                    }
                    // Outputs stay matched until the end of the slot, so this input cannot be matched any
                    // more.
                    None => inputs.remove(input),
                }
            }
            if requested.is_empty() {
                break;
            }
            for output in requested {
                let requesting = std::mem::replace(&mut self.requesting[output], PortSet::EMPTY);
                let input = self.grant.choose(output, requesting).expect("an input requests this output");
                if iteration == 1 {
                    self.request.move_past(input, output);
                    self.grant.move_past(output, input);
                }
                matching.pair(input, output);
                inputs.remove(input);
                notes.grant(output, input);
            }
            outputs &= !requested;
        }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        visit("request", self.request.positions());
        visit("grant", self.grant.positions());
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context, pointers};
    use super::*;

    /// All inputs request all outputs: pointers slip apart within N - 1 slots, and then every slot is full.
    #[test]
    fn pointers_slip_apart() {
        let hand = Hand::cells([[1; 3]; 3]);
        let mut drrm: Box<dyn Arbiter<1>> = Config { iterations: 1 }.arbiter(&context(3)).unwrap();
        let slots = [
            // All request output 0, which grants input 0.
            ("0-0", "request 100, grant 100"),
            // Input 0 requests 1, the others again 0.
            ("0-1 1-0", "request 210, grant 210"),
            ("0-2 1-1 2-0", "request 021, grant 021"),
            ("0-0 1-2 2-1", "request 102, grant 102"),
        ];
        for (pairs, after) in slots {
            assert_eq!((hand.pairs(&mut *drrm).as_str(), pointers(&*drrm).as_str()), (pairs, after));
        }
    }

    /// An input without a grant requests the next free output; its pointer stays at the output of its first
    /// request.
    #[test]
    fn a_second_request_in_the_same_slot() {
        let hand = Hand::cells([[1, 1, 1], [1, 0, 1], [1, 0, 0]]);
        let mut drrm: Box<dyn Arbiter<1>> = Config { iterations: 2 }.arbiter(&context(3)).unwrap();
        assert_eq!(hand.grants(&mut *drrm), "0>0, 1>2");
        assert_eq!(pointers(&*drrm), "request 100, grant 100");
    }
}

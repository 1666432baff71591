//! SERENA: the last matching merged with the arrivals, by weight.
//!
//! # Principles
//! - The weight of a pair is the length of its queue. Lengths change little from slot to slot, so the last
//!   matching is a good one to begin with. Queues grow by arrivals, so arrivals show where weight has
//!   increased.
//! - The arrivals of a slot have at most one edge per input. They become a matching when every output keeps
//!   the one with the longest queue.
//! - The union of both matchings consists of paths and cycles, in which edges alternate. In each of these the
//!   heavier half is taken, so the result weighs at least as much as either matching.
//! - Ports that are still free are matched with any that request them. Memory and arrivals alone are enough
//!   for a throughput of 1 under every admissible traffic, at a cost proportional to N.
//!
//! # Deviations
//! - In the article the arrivals are completed to a matching of all ports before the merge, by round robin
//!   and regardless of queues. Here both matchings stay partial, which allows a choice in smaller pieces, and
//!   iSLIP matches the remaining ports, until nothing can be added.
//! - The last matching consists of the pairs of free ports that were last matched with each other. In packet
//!   mode only few ports are free, and those were matched long ago. Pairs with an empty queue drop out.
//! - An arrival is the last packet that joined a queue of the input since the input was free; in packet mode
//!   it waits until the input is free.
//! - Ties: among arrivals for an output one of the longest queues, each with the same probability; between
//!   halves of the same weight the last matching stays.
//!
//! # Cost
//! For each free port a few steps and two weights, and the cost of iSLIP for the remaining ports.
//!
//! # References
//! P. Giaccone, B. Prabhakar, D. Shah, Randomized Scheduling Algorithms for High-Aggregate Bandwidth
//! Switches, IEEE Journal on Selected Areas in Communications 21(4), 2003.

use giveway_qdisc::{Invalid, Rng};

use super::config::config;
use super::islip::{self, Islip};
use super::rounds::heaviest;
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::notes::Notes;
use crate::port_set::PortSet;

config!(none, "SERENA has no parameters.");

impl ArbiterConfig for Config {
    const SUMMARY: &'static str =
        "the last matching merged with the arrivals, the heavier part of each piece";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        let ports = context.ports;
        // With as many iterations as ports the matching is maximal.
        let rest = islip::Config { iterations: ports as u32, ..islip::Config::default() };
        Ok(Box::new(Serena::<W> {
            last: Edges::new(ports),
            arrivals: vec![NONE; ports],
            kept: Edges::new(ports),
            candidates: vec![PortSet::EMPTY; ports],
            piece: Vec::with_capacity(ports),
            rest: rest.islip(ports),
            rng: context.streams.within("serena").rng(),
        }))
    }
}

/// No port.
const NONE: u16 = u16::MAX;

/// A partner for each port, or none.
struct Edges {
    /// By input: the output.
    of_input: Vec<u16>,
    /// By output: the input.
    of_output: Vec<u16>,
}

impl Edges {
    fn new(ports: usize) -> Edges {
        Edges { of_input: vec![NONE; ports], of_output: vec![NONE; ports] }
    }

    /// Makes two ports partners, and separates them from other partners.
    #[inline]
    fn pair(&mut self, input: usize, output: usize) {
        self.part(input);
        let before = std::mem::replace(&mut self.of_output[output], input as u16);
        if before != NONE {
            self.of_input[usize::from(before)] = NONE;
        }
        self.of_input[input] = output as u16;
    }

    /// Separates an input from its partner.
    #[inline]
    fn part(&mut self, input: usize) {
        let before = std::mem::replace(&mut self.of_input[input], NONE);
        if before != NONE {
            self.of_output[usize::from(before)] = NONE;
        }
    }
}

struct Serena<const W: usize> {
    /// The last partner of each port.
    last: Edges,
    /// By input: the output of the last arrival since the input was free.
    arrivals: Vec<u16>,
    /// Arrivals of this slot that their output keeps; other entries are left from earlier slots.
    kept: Edges,
    /// By output: inputs with an arrival for it; empty between slots.
    candidates: Vec<PortSet<W>>,
    /// Inputs of a path or a cycle.
    piece: Vec<usize>,
    /// Matches the remaining ports.
    rest: Islip<W>,
    rng: Rng,
}

/// The two matchings of a slot, restricted to free ports and queues that are not empty.
struct Both<const W: usize> {
    /// Inputs with a partner in the last matching.
    by_last: PortSet<W>,
    /// Inputs whose arrival was kept.
    by_arrival: PortSet<W>,
    /// Outputs that keep an arrival.
    kept_at: PortSet<W>,
}

impl<const W: usize> Serena<W> {
    /// Determines the two matchings of this slot.
    #[inline]
    fn both(&mut self, demand: &Demand<'_, W>) -> Both<W> {
        let (mut by_last, mut by_arrival, mut kept_at) = (PortSet::EMPTY, PortSet::EMPTY, PortSet::EMPTY);
        for input in demand.inputs {
            let wanted = demand.of_input(input);
            let last = self.last.of_input[input];
            if last != NONE && wanted.has(usize::from(last)) {
                by_last.insert(input);
            }
            let arrival = std::mem::replace(&mut self.arrivals[input], NONE);
            if arrival != NONE && wanted.has(usize::from(arrival)) {
                self.candidates[usize::from(arrival)].insert(input);
                kept_at.insert(usize::from(arrival));
            }
        }
        for output in kept_at {
            let candidates = std::mem::replace(&mut self.candidates[output], PortSet::EMPTY);
            let input = heaviest(&mut self.rng, candidates, |input| demand.weights.cells(input, output));
            self.kept.of_output[output] = input as u16;
            self.kept.of_input[input] = output as u16;
            by_arrival.insert(input);
        }
        Both { by_last, by_arrival, kept_at }
    }

    /// Collects the inputs of the path or cycle that contains `first` in `piece`, and removes them from
    /// `left`.
    #[inline]
    fn collect(&mut self, first: usize, both: &Both<W>, left: &mut PortSet<W>) {
        self.piece.clear();
        self.piece.push(first);
        left.remove(first);
        // Forward: over the partner in the last matching to the input whose arrival that output keeps ...
        let mut at = first;
        while both.by_last.has(at) {
            let output = usize::from(self.last.of_input[at]);
            let next = usize::from(self.kept.of_output[output]);
            if !both.kept_at.has(output) || !left.has(next) {
                break;
            }
            self.piece.push(next);
            left.remove(next);
            at = next;
        }
        // ... and backward: over the arrival to the last partner of its output.
        let mut at = first;
        while both.by_arrival.has(at) {
            let output = usize::from(self.kept.of_input[at]);
            let next = usize::from(self.last.of_output[output]);
            if self.last.of_output[output] == NONE || !both.by_last.has(next) || !left.has(next) {
                break;
            }
            self.piece.push(next);
            left.remove(next);
            at = next;
        }
    }
}

impl<const W: usize> Arbiter<W> for Serena<W> {
    fn listens(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, input: usize, output: usize) {
        self.arrivals[input] = output as u16;
    }

    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        let both = self.both(demand);
        // The union of two matchings consists of paths and cycles. Each is decided alone, since no two have a
        // port in common.
        let mut left = both.by_last | both.by_arrival;
        while let Some(first) = left.lowest() {
            self.collect(first, &both, &mut left);
            let weigh = |among: &PortSet<W>, edges: &Edges| -> u64 {
                let inputs = self.piece.iter().filter(|input| among.has(**input));
                inputs.map(|input| demand.weights.cells(*input, usize::from(edges.of_input[*input]))).sum()
            };
            let (last, arrival) = (weigh(&both.by_last, &self.last), weigh(&both.by_arrival, &self.kept));
            let (among, edges) =
                if arrival > last { (both.by_arrival, &self.kept) } else { (both.by_last, &self.last) };
            for input in self.piece.iter().copied().filter(|input| among.has(*input)) {
                let output = usize::from(edges.of_input[input]);
                matching.pair(input, output);
                notes.accept(input, output);
            }
        }
        let (inputs, outputs) = (demand.inputs & !matching.inputs, demand.outputs & !matching.outputs);
        if !inputs.is_empty() && !outputs.is_empty() {
            self.rest.decide(&Demand { inputs, outputs, ..*demand }, matching, notes);
        }
        for &(input, output) in matching.pairs() {
            self.last.pair(usize::from(input), usize::from(output));
        }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        Arbiter::<W>::pointers(&self.rest, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, context};
    use super::*;

    fn serena() -> Box<dyn Arbiter<1>> {
        Config {}.arbiter(&context(4)).unwrap()
    }

    /// A cycle and a path, and a port that is left over.
    ///
    /// The first slot matches 0-0, 1-1 and 2-2, since there are no other requests. Then arrivals 0>1 and 1>0
    /// close a cycle with the first two: 5 + 1 against 3 + 4, so the arrivals win. Arrivals 2>3 and 3>3 meet
    /// at output 3, which keeps the one of the longer queue: input 2 with 6 cells. That makes a path with
    /// 2-2, of 7 cells, which stays. Input 3 and output 3 remain, and request each other.
    #[test]
    fn the_heavier_half_of_each_piece() {
        let mut serena = serena();
        let first = Hand::cells([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]);
        assert_eq!(first.pairs(&mut *serena), "0-0 1-1 2-2");
        for (input, output) in [(0, 1), (1, 0), (2, 3), (3, 3)] {
            serena.on_arrival(input, output);
        }
        let then = Hand::cells([[5, 3, 0, 0], [4, 1, 0, 0], [0, 0, 7, 6], [0, 0, 0, 2]]);
        assert_eq!(then.pairs(&mut *serena), "0-1 1-0 2-2 3-3");
        // Without arrivals the last matching stays, even if other pairs weigh more.
        assert_eq!(first.pairs(&mut *serena), "0-0 1-1 2-2");
        let heavy = Hand::cells([[1, 9, 0, 0], [9, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]);
        assert_eq!(heavy.pairs(&mut *serena), "0-0 1-1 2-2");
        // With the same weight it stays, too.
        serena.on_arrival(0, 1);
        serena.on_arrival(1, 0);
        let alike = Hand::cells([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]);
        assert_eq!(alike.pairs(&mut *serena), "0-0 1-1 2-2");
    }

    /// As in packet mode: an arrival waits for its input to be free, and pairs with a busy port are neither
    /// used nor forgotten.
    #[test]
    fn busy_ports() {
        let mut serena = serena();
        let all = Hand::cells([[1, 1, 0, 0], [1, 1, 0, 0], [0; 4], [0; 4]]);
        assert_eq!(all.pairs(&mut *serena), "0-0 1-1");
        serena.on_arrival(1, 0);
        assert_eq!(all.clone().free(&[0], &[0, 1]).pairs(&mut *serena), "0-0");
        // 1-0 weighs more than 0-0, and input 0 gets what is left.
        let heavier = Hand::cells([[1, 1, 0, 0], [3, 1, 0, 0], [0; 4], [0; 4]]);
        assert_eq!(heavier.clone().free(&[0, 1], &[0]).pairs(&mut *serena), "1-0");
        assert_eq!(heavier.pairs(&mut *serena), "0-1 1-0");
    }
}

//! Matchings of maximum size.
//!
//! A greedy matching comes first, which leaves few inputs over, or none. For each of these a shortest augmenting path is
//! looked for, breadth first on rows of bits: a path from a free input to a free output along which every second pair is
//! matched, so that exchanging its pairs matches one more. Where there is none, nothing that was seen in the search can be
//! part of a later path either (it is a Hungarian tree), and is not looked at again.
//!
//! J. Hopcroft, R. Karp, An n^(5/2) Algorithm for Maximum Matchings in Bipartite Graphs, SIAM Journal on Computing 2(4),
//! 1973, for why this finds a maximum; their phases of disjoint paths are not worth it for a few ports.

use crate::arbiter::Demand;
use crate::matching::order::Order;
use crate::row::Row;

/// Nobody.
const NOBODY: u16 = u16::MAX;

/// Finds matchings of maximum size.
#[derive(Clone, Debug)]
pub(crate) struct MaxSize {
    /// By input: its output. `NOBODY` between calls.
    output_of: Vec<u16>,
    /// By output: its input, if it is matched.
    input_of: Vec<u16>,
    /// By output: the input from which a search came to it.
    reached_from: Vec<u16>,
    /// Inputs in their order.
    inputs: Vec<u16>,
    /// Inputs that the greedy matching left over.
    left: Vec<u16>,
    /// Inputs that a search has come to.
    seen: Vec<u16>,
}

impl MaxSize {
    pub fn new(ports: usize) -> MaxSize {
        MaxSize {
            output_of: vec![NOBODY; ports],
            input_of: vec![NOBODY; ports],
            reached_from: vec![NOBODY; ports],
            inputs: Vec::with_capacity(ports),
            left: Vec::with_capacity(ports),
            seen: Vec::with_capacity(ports),
        }
    }

    /// Calls `pair` for every pair of a matching of maximum size.
    #[inline]
    pub fn solve<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        mut pair: impl FnMut(usize, usize),
    ) {
        order.begin();
        // One port alone: its partner is all that there is to choose.
        if let Some(output) = demand.outputs.only() {
            if let Some(input) = order.pick(demand.of_output(output)) {
                pair(input, output);
            }
            return;
        }
        if let Some(input) = demand.inputs.only() {
            if let Some(output) = order.pick(demand.of_input(input)) {
                pair(input, output);
            }
            return;
        }
        self.search(demand, order);
        for &input in &self.inputs {
            let output = std::mem::replace(&mut self.output_of[usize::from(input)], NOBODY);
            if output != NOBODY {
                pair(usize::from(input), usize::from(output));
            }
        }
    }

    fn search<const W: usize>(&mut self, demand: &Demand<'_, W>, order: &mut Order) {
        order.list(demand.inputs, &mut self.inputs);
        self.left.clear();
        let mut free = demand.outputs;
        for at in 0..self.inputs.len() {
            let input = self.inputs[at];
            match order.pick(demand.of_input(usize::from(input)) & free) {
                Some(output) => {
                    self.output_of[usize::from(input)] = output as u16;
                    self.input_of[output] = input;
                    free.remove(output);
                }
                None => self.left.push(input),
            }
        }
        // Outputs from which no free output can be reached any more.
        let mut dead = Row::EMPTY;
        for at in 0..self.left.len() {
            if free.is_empty() {
                return;
            }
            match self.path(demand, order, self.left[at], free, dead) {
                Ok(output) => free.remove(output),
                Err(seen) => dead = seen,
            }
        }
    }

    /// Looks for an augmenting path from a free input and exchanges its pairs. Says which output it has matched; or which
    /// outputs were seen in vain, those that are dead already included.
    fn path<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut Order,
        root: u16,
        free: Row<W>,
        dead: Row<W>,
    ) -> Result<usize, Row<W>> {
        let mut visited = dead;
        self.seen.clear();
        self.seen.push(root);
        let mut next = 0;
        while let Some(&input) = self.seen.get(next) {
            next += 1;
            let new = demand.of_input(usize::from(input)) & !visited;
            if let Some(end) = order.pick(new & free) {
                self.exchange(root, input, end);
                return Ok(end);
            }
            let begin = self.seen.len();
            for output in new {
                self.reached_from[output] = input;
                self.seen.push(self.input_of[output]);
            }
            order.shuffle(&mut self.seen[begin..]);
            visited |= new;
        }
        Err(visited)
    }

    /// Exchanges the pairs of the path that ends with a free output, reached from `input`.
    fn exchange(&mut self, root: u16, mut input: u16, end: usize) {
        let mut output = end;
        loop {
            let before = std::mem::replace(&mut self.output_of[usize::from(input)], output as u16);
            self.input_of[output] = input;
            if input == root {
                return;
            }
            output = usize::from(before);
            input = self.reached_from[output];
        }
    }
}

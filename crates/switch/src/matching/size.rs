//! Matchings of maximum size.
//!
//! A greedy matching comes first and leaves few inputs or none. For each of these, a breadth-first search on
//! rows of bits looks for a shortest augmenting path: a path from a free input to a free output along which
//! every second pair is matched, so that exchanging its pairs matches one more. Where there is none, no port
//! of the search can be part of a later path either (the search is a Hungarian tree), and later searches skip
//! it.
//!
//! J. Hopcroft, R. Karp, An n^(5/2) Algorithm for Maximum Matchings in Bipartite Graphs, SIAM Journal on
//! Computing 2(4), 1973, prove that this finds a maximum. Their phases of disjoint paths do not pay for a few
//! ports.

use crate::arbiter::Demand;
use crate::matching::order::PortOrder;
use crate::port_set::PortSet;

/// Finds matchings of maximum size.
#[derive(Clone, Debug)]
pub(crate) struct MaxSize<const W: usize> {
    /// Inputs that request a free output, with these outputs.
    requesting: Vec<(u16, PortSet<W>)>,
    /// Matched inputs.
    matched: Vec<u16>,
    /// Inputs that the greedy matching left free.
    left: Vec<u16>,
    /// By matched input: its output.
    output_of: Vec<u16>,
    /// By matched output: its input. Valid during a search only.
    input_of: Vec<u16>,
    /// By output: the input from which the search reached it.
    reached_from: Vec<u16>,
    /// Inputs that the search has reached, in order.
    seen: Vec<u16>,
}

impl<const W: usize> MaxSize<W> {
    /// Buffers for a switch of `ports` ports.
    pub fn new(ports: usize) -> MaxSize<W> {
        MaxSize {
            requesting: vec![(0, PortSet::EMPTY); ports + 1],
            matched: vec![0; ports + 1],
            left: vec![0; ports + 1],
            output_of: vec![0; ports],
            input_of: vec![0; ports],
            reached_from: vec![0; ports],
            seen: Vec::with_capacity(ports),
        }
    }

    /// Passes every pair of a matching of maximum size to `pair`.
    #[inline]
    pub fn solve(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        mut pair: impl FnMut(usize, usize),
    ) {
        order.begin();
        // One input and one output leave no choice. In preemptive mode these are half of all calls.
        if let (Some(input), Some(output)) = (demand.inputs.only(), demand.outputs.only()) {
            if demand.of_input(input).has(output) {
                pair(input, output);
            }
            return;
        }
        // Lists grow by one or zero instead of a branch, which could not be predicted.
        let (mut requesting, mut wanted) = (0, PortSet::EMPTY);
        for input in demand.inputs {
            let outputs = demand.of_input(input);
            self.requesting[requesting] = (input as u16, outputs);
            requesting += usize::from(!outputs.is_empty());
            wanted |= outputs;
        }
        let list = &mut self.requesting[..requesting];
        order.turn(list, |(input, _)| *input);
        let (mut matched, mut left, mut free) = (0, 0, wanted);
        for at in 0..list.len() {
            order.next(list, at);
            let (input, outputs) = list[at];
            let (output, there) = order.choose(outputs & free);
            free.remove_if(output, there);
            self.output_of[usize::from(input)] = output as u16;
            self.matched[matched] = input;
            matched += usize::from(there);
            self.left[left] = input;
            left += usize::from(!there);
        }
        if left > 0 && !free.is_empty() {
            matched = self.search(demand, order, free, matched, left);
        }
        for input in &self.matched[..matched] {
            let input = usize::from(*input);
            pair(input, usize::from(self.output_of[input]));
        }
    }

    /// Matches the inputs that are left, as far as augmenting paths exist. Returns the number of matched
    /// inputs.
    fn search(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        mut free: PortSet<W>,
        mut matched: usize,
        left: usize,
    ) -> usize {
        for input in &self.matched[..matched] {
            self.input_of[usize::from(self.output_of[usize::from(*input)])] = *input;
        }
        // Outputs from which no free output can be reached, in this and all later searches.
        let mut dead = PortSet::EMPTY;
        for at in 0..left {
            if free.is_empty() {
                break;
            }
            match self.path(demand, order, self.left[at], free, dead) {
                Ok(output) => {
                    free.remove(output);
                    self.matched[matched] = self.left[at];
                    matched += 1;
                }
                Err(seen) => dead = seen,
            }
        }
        matched
    }

    /// Searches an augmenting path from a free input and exchanges its pairs. `Ok` returns the output that is
    /// matched in addition; `Err` returns all outputs from which no free output can be reached,
    /// `dead` included.
    fn path(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
        root: u16,
        free: PortSet<W>,
        dead: PortSet<W>,
    ) -> Result<usize, PortSet<W>> {
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

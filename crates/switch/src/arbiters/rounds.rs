//! Iterations of request, grant and accept, which parallel iterative matching and its descendants have in
//! common. They differ in the choices of the ports.

use giveway_qdisc::Rng;

use crate::arbiter::{Demand, Matching};
use crate::notes::Notes;
use crate::per_port::PerPort;
use crate::port_set::PortSet;

/// The choices of ports. Iterations count from 1.
pub(super) trait Choice<const W: usize> {
    /// The input that an output grants, one of the inputs that request it. There is at least one.
    fn grant(&mut self, iteration: u32, output: usize, requesting: PortSet<W>) -> usize;
    /// The output that an input accepts, one of those that grant it. There is at least one.
    fn accept(&mut self, iteration: u32, input: usize, grants: PortSet<W>) -> usize;
}

/// The iterations of a slot.
pub(super) struct Rounds<const W: usize> {
    iterations: u32,
    /// By input: the outputs that grant it in this iteration; empty between iterations.
    grants: PerPort<PortSet<W>, W>,
}

impl<const W: usize> Rounds<W> {
    /// At most `iterations` iterations per slot.
    pub fn new(iterations: u32) -> Rounds<W> {
        Rounds { iterations, grants: PerPort::new(PortSet::EMPTY) }
    }

    /// Matches: every unmatched output grants one of the unmatched inputs that request it, then every input
    /// accepts one of its grants. Ends when no output is left, or when an iteration has no grants.
    #[inline]
    pub fn run(
        &mut self,
        choice: &mut impl Choice<W>,
        demand: &Demand<'_, W>,
        matching: &mut Matching<W>,
        notes: &mut Notes,
    ) {
        let (mut inputs, mut outputs) = (demand.inputs, demand.outputs);
        for iteration in 1..=self.iterations {
            notes.iteration(iteration);
            let mut granted = PortSet::EMPTY;
            for output in outputs {
                let requesting = demand.requests.of_output[output] & inputs;
                if requesting.is_empty() {
                    // All inputs that request it are matched, and no request is added within a slot.
                    outputs.remove(output);
                    continue;
                }
                if notes.wanted() {
                    requesting.iter().for_each(|input| notes.request(input, output));
                }
                let input = choice.grant(iteration, output, requesting);
                self.grants[input].insert(output);
                granted.insert(input);
                notes.grant(output, input);
            }
            for input in granted {
                let grants = std::mem::replace(&mut self.grants[input], PortSet::EMPTY);
                let output = choice.accept(iteration, input, grants);
                matching.pair(input, output);
                outputs.remove(output);
                notes.accept(input, output);
            }
            inputs &= !granted;
            // Without a trace an iteration without grants can be skipped.
            if outputs.is_empty() && !notes.wanted() || granted.is_empty() {
                break;
            }
        }
    }
}

/// A uniformly random port of a set. Draws a random number only if there are several.
#[inline]
pub(super) fn any<const W: usize>(rng: &mut Rng, among: PortSet<W>) -> usize {
    let chosen = match among.count() {
        0 | 1 => among.lowest(),
        several => among.nth(rng.below(several as u64) as usize),
    };
    chosen.expect("the set is not empty")
}

/// The port with the greatest weight; among several of them, a uniformly random one.
#[inline]
pub(super) fn heaviest<const W: usize>(
    rng: &mut Rng,
    among: PortSet<W>,
    weight: impl Fn(usize) -> u64,
) -> usize {
    let (mut most, mut tied) = (0, PortSet::<W>::EMPTY);
    for port in among {
        let weight = weight(port);
        tied.clear_if(weight > most);
        most = most.max(weight);
        tied.insert_if(port, weight == most);
    }
    any(rng, tied)
}

//! Request, grant, accept, a few times: what parallel iterative matching and its descendants share. They differ in whom a
//! port chooses.

use qdisc::Rng;

use crate::arbiter::{Demand, Matching};
use crate::notes::Notes;
use crate::per_port::PerPort;
use crate::row::Row;

/// Whom ports choose. Iterations count from 1.
pub(super) trait Choice<const W: usize> {
    /// Which of the inputs that ask for it an output grants; there is at least one.
    fn grant(&mut self, iteration: u32, output: usize, asking: Row<W>) -> usize;
    /// Which of the outputs that grant it an input accepts; there is at least one.
    fn accept(&mut self, iteration: u32, input: usize, grants: Row<W>) -> usize;
}

/// The iterations of a slot.
pub(super) struct Rounds<const W: usize> {
    iterations: u32,
    /// By input: who grants it in this iteration; empty between iterations.
    grants: PerPort<Row<W>, W>,
}

impl<const W: usize> Rounds<W> {
    pub fn new(iterations: u32) -> Rounds<W> {
        Rounds { iterations, grants: PerPort::new(Row::EMPTY) }
    }

    /// Every unmatched output chooses among the unmatched inputs that ask for it, then every input among its grants. Ends
    /// when no output is left that anybody could ask for, or nothing is granted any more.
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
            let mut granted = Row::EMPTY;
            for output in outputs {
                let asking = demand.requests.of_output[output] & inputs;
                if asking.is_empty() {
                    // Those who asked are matched, and nobody new comes within a slot.
                    outputs.remove(output);
                    continue;
                }
                if notes.wanted() {
                    asking.iter().for_each(|input| notes.request(input, output));
                }
                let input = choice.grant(iteration, output, asking);
                self.grants[input].insert(output);
                granted.insert(input);
                notes.grant(output, input);
            }
            for input in granted {
                let grants = std::mem::replace(&mut self.grants[input], Row::EMPTY);
                let output = choice.accept(iteration, input, grants);
                matching.pair(input, output);
                outputs.remove(output);
                notes.accept(input, output);
            }
            inputs &= !granted;
            // Who is left was not asked for, or nobody asked. A trace shows the iteration that finds nobody.
            if outputs.is_empty() && !notes.wanted() || granted.is_empty() {
                break;
            }
        }
    }
}

/// One of several ports, each as likely. Draws only where there is a choice.
#[inline]
pub(super) fn any<const W: usize>(rng: &mut Rng, among: Row<W>) -> usize {
    let chosen = match among.count() {
        0 | 1 => among.lowest(),
        several => among.nth(rng.below(several as u64) as usize),
    };
    chosen.expect("there is somebody to choose")
}

/// One of several ports with the greatest weight, each of these as likely.
#[inline]
pub(super) fn heaviest<const W: usize>(rng: &mut Rng, among: Row<W>, weight: impl Fn(usize) -> u64) -> usize {
    let (mut most, mut tied) = (0, Row::<W>::EMPTY);
    for port in among {
        let weight = weight(port);
        tied.clear_if(weight > most);
        most = most.max(weight);
        tied.insert_if(port, weight == most);
    }
    any(rng, tied)
}

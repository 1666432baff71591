//! Arbiters that a caller brings, in place of one of the registry.
//!
//! An [`Outside`] arbiter sees the requests of a slot as a list of pairs, so it does not depend on the size
//! of the switch. Each of its pairs is checked. After a mistake the switch matches nothing, and
//! [`Sim::mistake`](crate::Sim::mistake) is a sentence about it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::arbiter::{Arbiter, ArbiterContext, Demand, Matching, Weights};
use crate::notes::Notes;
use crate::packet::Class;

/// An arbiter that a caller brings.
pub trait Outside: Send {
    /// Adds pairs of an input and an output to `pairs`, which is empty. Each must be one of the requests, and
    /// a port may be in one pair.
    ///
    /// # Errors
    /// Anything for which the run has to end, in a sentence.
    fn decide(&mut self, asked: &SlotRequests<'_>, pairs: &mut Vec<(usize, usize)>) -> Result<(), String>;
}

/// The requests of a slot between free ports, and the queues behind them.
pub struct SlotRequests<'a> {
    /// The requests, as pairs of an input and an output, in ascending order. Never empty.
    pub pairs: &'a [(usize, usize)],
    /// The number of the slot of the fabric, from zero on.
    pub slot: u64,
    weights: &'a dyn Weights,
    age: &'a dyn Fn(usize, usize) -> u64,
}

impl SlotRequests<'_> {
    /// The number of cells in the queue of a request.
    pub fn cells(&self, input: usize, output: usize) -> u64 {
        self.weights.cells(input, output)
    }

    /// The time since the arrival of the packet at the head of the queue of a request, in slots of the
    /// fabric.
    pub fn age(&self, input: usize, output: usize) -> u64 {
        (self.age)(input, output)
    }
}

/// Builds an arbiter for a class of packets. In modes without classes all packets are long.
pub type BuildOutside<'a> = &'a dyn Fn(&ArbiterContext, Class) -> Box<dyn Outside>;

/// The arbiters that a caller brings for a switch.
pub(crate) struct Brought<'a> {
    build: BuildOutside<'a>,
    /// Their first mistake.
    pub mistake: Mistake,
}

impl<'a> Brought<'a> {
    pub fn new(build: BuildOutside<'a>) -> Brought<'a> {
        Brought { build, mistake: Mistake::default() }
    }

    /// The arbiter for a class of packets.
    pub fn arbiter<const W: usize>(&self, context: &ArbiterContext, class: Class) -> Box<dyn Arbiter<W>> {
        let arbiter = (self.build)(context, class);
        Box::new(CheckedArbiter::new(arbiter, context.ports, self.mistake.clone()))
    }
}

/// The first mistake of the arbiters of a switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mistake(Arc<Mutex<Option<String>>>);

impl Mistake {
    /// The sentence, if there was a mistake.
    pub fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, mistake: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(mistake);
    }
}

/// An arbiter of a caller, whose matchings are checked.
struct CheckedArbiter {
    arbiter: Box<dyn Outside>,
    mistake: Mistake,
    ports: usize,
    asked: Vec<(usize, usize)>,
    pairs: Vec<(usize, usize)>,
    /// True after a mistake.
    failed: bool,
}

impl CheckedArbiter {
    /// An arbiter that reports its mistake there.
    fn new(arbiter: Box<dyn Outside>, ports: usize, mistake: Mistake) -> CheckedArbiter {
        CheckedArbiter { arbiter, mistake, ports, asked: Vec::new(), pairs: Vec::new(), failed: false }
    }

    /// Lets the arbiter decide, and checks what it returns.
    fn matched<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        matching: &mut Matching<W>,
    ) -> Result<(), String> {
        self.asked.clear();
        self.pairs.clear();
        for input in demand.inputs {
            self.asked.extend(demand.of_input(input).into_iter().map(|output| (input, output)));
        }
        if self.asked.is_empty() {
            return Ok(());
        }
        let slot = demand.tick / demand.slot_ticks;
        let age = |input, output| demand.age(input, output);
        let asked = SlotRequests { pairs: &self.asked, slot, weights: demand.weights, age: &age };
        self.arbiter.decide(&asked, &mut self.pairs)?;
        let at = |wrong: String| format!("slot {slot}: {wrong}");
        for (input, output) in self.pairs.iter().copied() {
            if input.max(output) >= self.ports {
                let last = self.ports - 1;
                return Err(at(format!("the pair ({input}, {output}) is not one of ports 0 to {last}")));
            }
            if matching.inputs.has(input) {
                return Err(at(format!("input {input} is in two pairs")));
            }
            if matching.outputs.has(output) {
                return Err(at(format!("output {output} is in two pairs")));
            }
            if self.asked.binary_search(&(input, output)).is_err() {
                return Err(at(format!(
                    "input {input} does not request output {output}: its queue is empty, or a port is busy"
                )));
            }
            matching.pair(input, output);
        }
        Ok(())
    }
}

impl<const W: usize> Arbiter<W> for CheckedArbiter {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        if self.failed {
            return;
        }
        match self.matched(demand, matching) {
            Ok(()) => matching.pairs().iter().for_each(|(input, output)| {
                notes.accept(usize::from(*input), usize::from(*output));
            }),
            Err(mistake) => {
                self.mistake.set(mistake);
                self.failed = true;
                matching.clear();
            }
        }
    }
}

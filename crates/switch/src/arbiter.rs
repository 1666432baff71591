//! The contract of arbiters: who is connected with whom in a slot.
//!
//! An arbiter knows requests, weights and its own pointers. It does not know what is behind a request: a cell, a packet
//! that will hold its connection until its last cell, a short packet that may interrupt another. That is the business of
//! the modes of the switch, so that every arbiter can be used in every mode.

use qdisc::{Invalid, Streams};

use crate::notes::Notes;
use crate::per_port::PerPort;
use crate::queues::Requests;
use crate::row::Row;

/// What an arbiter may know of a queue, beside that it is not empty.
pub trait Weights {
    /// Cells that are there now.
    fn cells(&self, input: usize, output: usize) -> u64;
    /// When the packet at its head arrived, in ticks; the smaller, the older.
    fn head(&self, input: usize, output: usize) -> u64;

    /// [`cells`](Weights::cells) of several queues of an input, in one call: of those outputs whose bits are set in
    /// `outputs` (the words of a row). Others are left as they are.
    fn cells_of(&self, input: usize, outputs: &[u64], cells: &mut [u64]) {
        each(outputs, |output| cells[output] = self.cells(input, output));
    }
    /// [`head`](Weights::head) of several queues of an input, in the same way.
    fn heads_of(&self, input: usize, outputs: &[u64], heads: &mut [u64]) {
        each(outputs, |output| heads[output] = self.head(input, output));
    }
}

/// Each port of a row, given as its words.
#[inline]
fn each(words: &[u64], mut visit: impl FnMut(usize)) {
    for (at, word) in words.iter().enumerate() {
        let mut left = *word;
        while left != 0 {
            visit(64 * at + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// What is asked of an arbiter in a slot.
pub struct Demand<'a, const W: usize> {
    /// Who asks for whom, those included who are not free.
    pub requests: &'a Requests<W>,
    /// Inputs that are free and ask for something.
    pub inputs: Row<W>,
    /// Outputs that are free and asked for.
    pub outputs: Row<W>,
    /// The queues behind the requests.
    pub weights: &'a dyn Weights,
    /// Now, in ticks.
    pub tick: u64,
    /// Ticks of a slot of the fabric.
    pub slot_ticks: u64,
}

impl<const W: usize> Demand<'_, W> {
    /// Free outputs that an input asks for.
    #[inline]
    pub fn of_input(&self, input: usize) -> Row<W> {
        self.requests.of_input[input] & self.outputs
    }
    /// Free inputs that ask for an output.
    #[inline]
    pub fn of_output(&self, output: usize) -> Row<W> {
        self.requests.of_output[output] & self.inputs
    }
    /// How long the packet at the head of a queue has been there, in slots of the fabric.
    #[inline]
    pub fn age(&self, input: usize, output: usize) -> u64 {
        (self.tick - self.weights.head(input, output)) / self.slot_ticks
    }
}

/// Pairs of an input and an output, none of which is in two pairs.
#[derive(Clone, Debug)]
pub struct Matching<const W: usize> {
    pairs: PerPort<(u16, u16), W>,
    count: usize,
    /// Matched inputs.
    pub inputs: Row<W>,
    /// Matched outputs.
    pub outputs: Row<W>,
}

impl<const W: usize> Default for Matching<W> {
    fn default() -> Matching<W> {
        Matching::new()
    }
}

impl<const W: usize> Matching<W> {
    /// No pair yet, and room for as many as there can be.
    pub fn new() -> Matching<W> {
        Matching { pairs: PerPort::new((0, 0)), count: 0, inputs: Row::EMPTY, outputs: Row::EMPTY }
    }
    /// Forgets all pairs.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
        self.inputs = Row::EMPTY;
        self.outputs = Row::EMPTY;
    }
    /// Adds a pair. Neither must be in one yet.
    #[inline]
    pub fn pair(&mut self, input: usize, output: usize) {
        debug_assert!(
            !self.inputs.has(input) && !self.outputs.has(output),
            "one of {input}, {output} is matched"
        );
        self.pairs[self.count] = (input as u16, output as u16);
        self.count += 1;
        self.inputs.insert(input);
        self.outputs.insert(output);
    }
    /// The pairs, input first, in the order in which they were found.
    #[inline]
    pub fn pairs(&self) -> &[(u16, u16)] {
        self.pairs.first(self.count)
    }
}

/// Decides who is connected with whom.
pub trait Arbiter<const W: usize>: Send {
    /// Adds pairs to `matching`, which is empty: only such as `demand` has. What it decides may depend on all earlier
    /// demands and arrivals, and on nothing else.
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes);

    /// Whether it wants to know what arrives. Most do not: queues ask.
    fn listens(&self) -> bool {
        false
    }

    /// A packet has come to one of its queues, whether its ports are free or not. Only who [listens](Self::listens) is told.
    fn arrived(&mut self, _input: usize, _output: usize) {}

    /// Its pointers, for `--trace-slots`: a name, and where it stands for each port.
    fn pointers(&self, _visit: &mut dyn FnMut(&'static str, &[u16])) {}
}

/// Where an arbiter is put.
#[derive(Clone, Debug)]
pub struct Site {
    /// How many inputs and outputs there are.
    pub ports: usize,
    /// Where its random numbers come from.
    pub streams: Streams,
}

impl Site {
    /// One of several arbiters of the same switch.
    pub fn within(&self, name: &str) -> Site {
        Site { ports: self.ports, streams: self.streams.within(name) }
    }
}

/// Refuses a number of iterations that does nothing.
pub(crate) fn check_iterations(iterations: u32) -> Result<(), Invalid> {
    match iterations {
        1..=1024 => Ok(()),
        _ => Err(Invalid::new(
            "iterations",
            format!("{iterations} iterations: write 1 to 1024; 4 are enough for most switches"),
        )),
    }
}

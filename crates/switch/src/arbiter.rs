//! The contract of arbiters, which match inputs with outputs in each slot.
//!
//! An arbiter sees requests, weights and its own pointers. It does not depend on what a request stands for: a
//! cell, a packet that holds its connection until its last cell, or a short packet that may interrupt
//! another. The modes of the switch decide that, so every arbiter works in every mode.

use giveway_qdisc::{Invalid, Streams};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::notes::Notes;
use crate::options::{Mode, Phases, Queueing};
use crate::per_port::PerPort;
use crate::port_set::PortSet;
use crate::queues::Requests;
use crate::speed::Speedup;

/// Lengths and ages of the queues behind requests.
pub trait Weights {
    /// Number of cells in a queue that have arrived.
    fn cells(&self, input: usize, output: usize) -> u64;
    /// Arrival time of the packet at the head of a queue, in ticks.
    fn head(&self, input: usize, output: usize) -> u64;

    /// Writes [`cells`](Weights::cells) of several queues of an input to `cells`, indexed by output.
    /// `outputs` selects the queues and is given as the words of a row; other elements are left as they are.
    fn cells_of(&self, input: usize, outputs: &[u64], cells: &mut [u64]) {
        each(outputs, |output| cells[output] = self.cells(input, output));
    }
    /// Writes [`head`](Weights::head) of several queues of an input to `heads`, with arguments as
    /// [`cells_of`](Weights::cells_of).
    fn heads_of(&self, input: usize, outputs: &[u64], heads: &mut [u64]) {
        each(outputs, |output| heads[output] = self.head(input, output));
    }
}

/// Visits each port of a row that is given as its words.
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

/// The input of an arbiter in a slot: requests, free ports and weights.
pub struct Demand<'a, const W: usize> {
    /// All requests, including requests of and for busy ports.
    pub requests: &'a Requests<W>,
    /// Free inputs that have requests.
    pub inputs: PortSet<W>,
    /// Free outputs that are requested.
    pub outputs: PortSet<W>,
    /// The queues behind the requests.
    pub weights: &'a dyn Weights,
    /// The present time, in ticks.
    pub tick: u64,
    /// Length of a slot of the fabric, in ticks.
    pub slot_ticks: u64,
}

impl<const W: usize> Demand<'_, W> {
    /// Free outputs that an input requests.
    #[inline]
    pub fn of_input(&self, input: usize) -> PortSet<W> {
        self.requests.of_input[input] & self.outputs
    }
    /// Free inputs that request an output.
    #[inline]
    pub fn of_output(&self, output: usize) -> PortSet<W> {
        self.requests.of_output[output] & self.inputs
    }
    /// Time since the arrival of the packet at the head of a queue, in slots of the fabric.
    #[inline]
    pub fn age(&self, input: usize, output: usize) -> u64 {
        (self.tick - self.weights.head(input, output)) / self.slot_ticks
    }
}

/// Pairs of an input and an output, in which each port occurs at most once.
#[derive(Clone, Debug)]
pub struct Matching<const W: usize> {
    pairs: PerPort<(u16, u16), W>,
    count: usize,
    /// Matched inputs.
    pub inputs: PortSet<W>,
    /// Matched outputs.
    pub outputs: PortSet<W>,
}

impl<const W: usize> Default for Matching<W> {
    fn default() -> Matching<W> {
        Matching::new()
    }
}

impl<const W: usize> Matching<W> {
    /// An empty matching, which never allocates again.
    pub fn new() -> Matching<W> {
        Matching { pairs: PerPort::new((0, 0)), count: 0, inputs: PortSet::EMPTY, outputs: PortSet::EMPTY }
    }
    /// Removes all pairs.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
        self.inputs = PortSet::EMPTY;
        self.outputs = PortSet::EMPTY;
    }
    /// Adds a pair of ports that are not matched yet.
    #[inline]
    pub fn pair(&mut self, input: usize, output: usize) {
        debug_assert!(
            !self.inputs.has(input) && !self.outputs.has(output),
            "input {input} or output {output} is matched already"
        );
        self.pairs[self.count] = (input as u16, output as u16);
        self.count += 1;
        self.inputs.insert(input);
        self.outputs.insert(output);
    }
    /// The pairs, input first, in the order in which they were added.
    #[inline]
    pub fn pairs(&self) -> &[(u16, u16)] {
        self.pairs.first(self.count)
    }
}

/// Matches inputs with outputs, slot by slot.
pub trait Arbiter<const W: usize>: Send {
    /// Adds pairs to `matching`, which is empty. Each must be a request in `demand` between free ports. The
    /// result may depend on this and earlier demands, on arrivals and on the random numbers of the
    /// [`ArbiterContext`], and on nothing else.
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes);

    /// `true` if the arbiter needs [`on_arrival`](Self::on_arrival). Most arbiters only need requests.
    fn listens(&self) -> bool {
        false
    }

    /// Reports that a packet has joined a queue, of free or busy ports. Called only if
    /// [`listens`](Self::listens) is `true`.
    fn on_arrival(&mut self, _input: usize, _output: usize) {}

    /// Passes each kind of pointers to `visit`, for `--trace-slots`: its name, and the positions by port.
    fn pointers(&self, _visit: &mut dyn FnMut(&'static str, &[u16])) {}
}

/// The switch for which an arbiter is built.
#[derive(Clone, Debug)]
pub struct ArbiterContext {
    /// Number of inputs, and of outputs.
    pub ports: usize,
    /// Source of random numbers.
    pub streams: Streams,
}

impl ArbiterContext {
    /// The context of one of several arbiters of the same switch, with separate random numbers.
    pub fn within(&self, name: &str) -> ArbiterContext {
        ArbiterContext { ports: self.ports, streams: self.streams.within(name) }
    }
}

/// The configuration of an arbiter, from which the arbiter is built. Every file in `arbiters/` has one, named
/// `Config`.
pub trait ArbiterConfig: Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// Description in one line, for `giveway list`.
    const SUMMARY: &'static str;
    /// Default of [`Options::mode`](crate::options::Options::mode): the mode for which the arbiter was
    /// designed.
    const MODE: Mode = Mode::Packet;
    /// Default of [`Options::phases`](crate::options::Options::phases) in preemptive mode.
    const PHASES: Phases = Phases::Sequential;
    /// The queues that the arbiter needs.
    const QUEUEING: Queueing = Queueing::Virtual;
    /// Default of [`Options::speedup`](crate::options::Options::speedup).
    const SPEEDUP: Speedup = Speedup::ONE;

    /// Builds the arbiter for a switch.
    ///
    /// # Errors
    /// The parameter without meaning there, and what to write instead.
    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid>;

    /// Builds the arbiter for short packets, in modes that have two classes.
    ///
    /// # Errors
    /// As [`arbiter`](ArbiterConfig::arbiter).
    fn short_arbiter<const W: usize>(
        &self,
        context: &ArbiterContext,
    ) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        self.arbiter(context)
    }
}

/// Refuses a number of iterations outside 1 to 1024.
pub(crate) fn check_iterations(iterations: u32) -> Result<(), Invalid> {
    match iterations {
        1..=1024 => Ok(()),
        _ => Err(Invalid::new(
            "iterations",
            format!("{iterations} iterations: write 1 to 1024; 4 are enough for most switches"),
        )),
    }
}

//! Switches as tables of weights, for tests.

use std::collections::BTreeSet;

use giveway_qdisc::Streams;

use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching, Weights};
use crate::notes::Notes;
use crate::port_set::PortSet;
use crate::queues::Requests;

/// The present time in ticks, which are slots.
const NOW: u64 = 1 << 40;

/// Cells of each queue; 0 is an empty one. As ages they count the present slot.
#[derive(Clone, Debug)]
pub(crate) struct Table<const W: usize = 1> {
    pub cells: Vec<Vec<u64>>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

impl Table<1> {
    /// A table from text: rows of inputs with `/` between them, `.` for an empty queue. All ports are free.
    pub fn new(text: &str) -> Table<1> {
        let cell = |cell: &str| if cell == "." { 0 } else { cell.parse().unwrap() };
        Table::of(text.split('/').map(|row| row.split_whitespace().map(cell).collect()).collect())
    }
}

impl<const W: usize> Table<W> {
    /// A table from cells by input and output. All ports are free.
    pub fn of(cells: Vec<Vec<u64>>) -> Table<W> {
        let ports = cells.len();
        assert!(cells.iter().all(|row| row.len() == ports));
        Table { cells, inputs: (0..ports).collect(), outputs: (0..ports).collect() }
    }

    /// This table with only these ports free.
    pub fn only(&self, inputs: &[usize], outputs: &[usize]) -> Table<W> {
        Table { cells: self.cells.clone(), inputs: inputs.to_vec(), outputs: outputs.to_vec() }
    }

    /// `true` if both ports are free and there is a request between them.
    pub fn requests(&self, input: usize, output: usize) -> bool {
        self.cells[input][output] > 0 && self.inputs.contains(&input) && self.outputs.contains(&output)
    }

    /// A new arbiter for it.
    pub fn arbiter(&self, config: &impl ArbiterConfig) -> Box<dyn Arbiter<W>> {
        config.arbiter(&ArbiterContext { ports: self.cells.len(), streams: Streams::new(1) }).unwrap()
    }

    /// The pairs that a new arbiter matches.
    pub fn decided(&self, config: &impl ArbiterConfig) -> Vec<(usize, usize)> {
        self.decide(&mut *self.arbiter(config))
    }

    /// All different matchings of an arbiter in this number of slots, with pairs ascending by input.
    pub fn all_decided(&self, config: &impl ArbiterConfig, slots: u32) -> BTreeSet<Vec<(usize, usize)>> {
        let mut arbiter = self.arbiter(config);
        let mut sorted = || {
            let mut pairs = self.decide(&mut *arbiter);
            pairs.sort_unstable();
            pairs
        };
        (0..slots).map(|_| sorted()).collect()
    }

    /// The pairs that an arbiter matches. Panics unless they are a matching of requests between free ports.
    pub fn decide(&self, arbiter: &mut dyn Arbiter<W>) -> Vec<(usize, usize)> {
        let mut requests = Requests::<W>::none();
        for (input, row) in self.cells.iter().enumerate() {
            for (output, _) in row.iter().enumerate().filter(|(_, cells)| **cells > 0) {
                requests.insert(input, output);
            }
        }
        let demand = Demand {
            requests: &requests,
            inputs: self.inputs.iter().copied().collect::<PortSet<W>>() & requests.inputs,
            outputs: self.outputs.iter().copied().collect::<PortSet<W>>() & requests.outputs,
            weights: self,
            tick: NOW,
            slot_ticks: 1,
        };
        let mut matching = Matching::new();
        if !demand.inputs.is_empty() && !demand.outputs.is_empty() {
            arbiter.decide(&demand, &mut matching, &mut Notes::off());
        }
        let pairs: Vec<(usize, usize)> = matching
            .pairs()
            .iter()
            .map(|(input, output)| (usize::from(*input), usize::from(*output)))
            .collect();
        let (mut inputs, mut outputs) = (PortSet::<W>::EMPTY, PortSet::<W>::EMPTY);
        for &(input, output) in &pairs {
            assert!(self.requests(input, output), "({input}, {output}) is not a request between free ports");
            assert!(!inputs.has(input) && !outputs.has(output), "({input}, {output}): one is in two pairs");
            inputs.insert(input);
            outputs.insert(output);
        }
        pairs
    }
}

impl<const W: usize> Weights for Table<W> {
    fn cells(&self, input: usize, output: usize) -> u64 {
        assert!(self.cells[input][output] > 0, "({input}, {output}) is empty and was looked at");
        self.cells[input][output]
    }
    fn head(&self, input: usize, output: usize) -> u64 {
        NOW + 1 - self.cells(input, output)
    }
}

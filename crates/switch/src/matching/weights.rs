//! What a pair of ports is worth, read once per matching.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::Demand;
use crate::matching::order::Order;
use crate::row::Row;

/// What a pair of an input and an output is worth. One that has nothing to send is worth nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The cells in their queue now (longest queue first; MWM-QL).
    #[default]
    QueueLength,
    /// How long the packet at the head of their queue has been there, the present slot included (oldest first; MWM-CA).
    CellAge,
    /// The cells at the input plus those for the output, in all queues (longest port first, LPF).
    PortOccupancy,
}

/// Reads weights.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    weight: Weight,
    /// By input: cells there. Of free inputs only.
    at_input: Vec<u64>,
    /// By output: cells for it. Of free outputs only.
    for_output: Vec<u64>,
    /// By output: what was read of an input.
    row: Vec<u64>,
}

impl Reader {
    pub fn new(weight: Weight, ports: usize) -> Reader {
        Reader { weight, at_input: vec![0; ports], for_output: vec![0; ports], row: vec![0; ports] }
    }

    /// Before the first row: what concerns whole ports.
    #[inline]
    pub fn begin<const W: usize>(&mut self, demand: &Demand<'_, W>) {
        if self.weight == Weight::PortOccupancy {
            self.sum(demand);
        }
    }

    /// Cells at free inputs and for free outputs; those of busy ports count as well, at their other end.
    fn sum<const W: usize>(&mut self, demand: &Demand<'_, W>) {
        demand.inputs.iter().for_each(|input| self.at_input[input] = 0);
        demand.outputs.iter().for_each(|output| self.for_output[output] = 0);
        for input in demand.requests.inputs {
            let all = demand.requests.of_input[input];
            let free = demand.inputs.has(input);
            let of_interest = if free { all } else { all & demand.outputs };
            demand.weights.cells_of(input, of_interest.words(), &mut self.row);
            if free {
                self.at_input[input] = all.iter().map(|output| self.row[output]).sum();
            }
            (all & demand.outputs).iter().for_each(|output| self.for_output[output] += self.row[output]);
        }
    }

    /// What an input is worth with each of these outputs, all of which it asks for: at least 1, so that a matching of
    /// maximum weight leaves nobody out who could be matched. Goes to the place of each output in `into`.
    #[inline]
    pub fn read<const W: usize>(
        &self,
        demand: &Demand<'_, W>,
        input: usize,
        outputs: Row<W>,
        into: &mut [u64],
    ) {
        match self.weight {
            Weight::QueueLength => demand.weights.cells_of(input, outputs.words(), into),
            Weight::CellAge => {
                // In ticks, so that nothing is rounded.
                let end = demand.tick + demand.slot_ticks;
                demand.weights.heads_of(input, outputs.words(), into);
                outputs.iter().for_each(|output| into[output] = end - into[output]);
            }
            Weight::PortOccupancy => {
                let here = self.at_input[input];
                outputs.iter().for_each(|output| into[output] = here + self.for_output[output]);
            }
        }
    }
}

/// The heaviest pair where one input or one output is all there is to match; `None` where there are more of both.
#[inline]
pub(crate) fn single<const W: usize>(
    demand: &Demand<'_, W>,
    (inputs, outputs): (Row<W>, Row<W>),
    reader: &mut Reader,
    order: &mut Order,
) -> Option<(usize, usize)> {
    let (mut most, mut heaviest) = (0, Row::<W>::EMPTY);
    let mut compare = |port: usize, weight: u64| {
        if weight > most {
            (most, heaviest) = (weight, Row::one(port));
        } else if weight == most {
            heaviest.insert(port);
        }
    };
    let mut row = std::mem::take(&mut reader.row);
    let input = inputs.only();
    let output = outputs.only();
    if let Some(input) = input {
        reader.read(demand, input, outputs, &mut row);
        outputs.iter().for_each(|output| compare(output, row[output]));
    } else if let Some(output) = output {
        for input in inputs {
            reader.read(demand, input, outputs, &mut row);
            compare(input, row[output]);
        }
    }
    reader.row = row;
    match (input, output) {
        (Some(input), _) => order.pick(heaviest).map(|output| (input, output)),
        (None, Some(output)) => order.pick(heaviest).map(|input| (input, output)),
        (None, None) => None,
    }
}

/// Free ports that have a free port to ask for, or to be asked by.
#[inline]
pub(crate) fn asking<const W: usize>(demand: &Demand<'_, W>) -> (Row<W>, Row<W>) {
    let (mut inputs, mut outputs) = (Row::EMPTY, Row::EMPTY);
    if demand.inputs.count() < demand.outputs.count() {
        for input in demand.inputs {
            let asked = demand.of_input(input);
            outputs |= asked;
            if !asked.is_empty() {
                inputs.insert(input);
            }
        }
    } else {
        for output in demand.outputs {
            let asking = demand.of_output(output);
            inputs |= asking;
            if !asking.is_empty() {
                outputs.insert(output);
            }
        }
    }
    (inputs, outputs)
}

/// The weights between free ports, without the others.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Rows are outputs and columns are inputs. There are never more rows than columns.
    turned: bool,
    /// The ports of the rows, in their order.
    pub rows: Vec<u16>,
    /// The ports of the columns, in their order.
    pub columns: Vec<u16>,
    /// Row by row; 0 is nothing to send.
    pub weights: Vec<u64>,
}

impl Block {
    pub fn new(ports: usize) -> Block {
        Block {
            turned: false,
            rows: Vec::with_capacity(ports),
            columns: Vec::with_capacity(ports),
            weights: Vec::with_capacity(ports * ports),
        }
    }

    /// Reads the weights between these ports of a demand.
    #[inline]
    pub fn read<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        (inputs, outputs): (Row<W>, Row<W>),
        reader: &mut Reader,
        order: &mut Order,
    ) {
        self.turned = inputs.count() > outputs.count();
        let (rows, columns) = if self.turned { (outputs, inputs) } else { (inputs, outputs) };
        order.list(rows, &mut self.rows);
        order.list(columns, &mut self.columns);
        let width = self.columns.len();
        self.weights.clear();
        self.weights.resize(self.rows.len() * width, 0);
        let (inputs, outputs, input_step, output_step) = match self.turned {
            false => (&self.rows, &self.columns, width, 1),
            true => (&self.columns, &self.rows, 1, width),
        };
        let mut row = std::mem::take(&mut reader.row);
        for (at, input) in inputs.iter().enumerate() {
            let input = usize::from(*input);
            let asked = demand.of_input(input);
            reader.read(demand, input, asked, &mut row);
            for (place, output) in outputs.iter().enumerate() {
                let output = usize::from(*output);
                // What is left there of another input is not looked at.
                let weight = if asked.has(output) { row[output] } else { 0 };
                self.weights[at * input_step + place * output_step] = weight;
            }
        }
        reader.row = row;
    }

    /// The input and the output of a place.
    #[inline]
    pub fn ports(&self, row: usize, column: usize) -> (usize, usize) {
        let (row, column) = (usize::from(self.rows[row]), usize::from(self.columns[column]));
        if self.turned { (column, row) } else { (row, column) }
    }
}

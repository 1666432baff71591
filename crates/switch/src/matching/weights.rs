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
    #[inline(always)]
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

/// The free ports that ask for each other, and the weights between them.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Inputs that ask for a free output, in their order, and more.
    inputs: Vec<u16>,
    /// Outputs that a free input asks for, in their order, and more.
    outputs: Vec<u16>,
    /// How many inputs, and how many outputs these are.
    sides: (usize, usize),
    /// By output: what is read of an input; 0 between calls.
    row: Vec<u64>,
    /// Rows are outputs and columns are inputs, so that there are never more rows than columns.
    turned: bool,
    /// Row by row, as many as there are; 0 is nothing to send. What comes after the last has no meaning.
    weights: Vec<u64>,
}

impl Block {
    pub fn new(ports: usize) -> Block {
        Block {
            inputs: vec![0; ports + 1],
            outputs: vec![0; ports + 1],
            sides: (0, 0),
            row: vec![0; ports],
            turned: false,
            weights: vec![0; ports * ports],
        }
    }

    /// Looks who asks. Says how many inputs and how many outputs these are.
    #[inline]
    pub fn gather<const W: usize>(&mut self, demand: &Demand<'_, W>, order: &mut Order) -> (usize, usize) {
        self.sides = if demand.inputs.count() <= demand.outputs.count() {
            let (inputs, wanted) =
                asking(demand.inputs, |input| demand.of_input(input), order, &mut self.inputs);
            (inputs, order.list(wanted, &mut self.outputs))
        } else {
            let (outputs, wanting) =
                asking(demand.outputs, |output| demand.of_output(output), order, &mut self.outputs);
            (order.list(wanting, &mut self.inputs), outputs)
        };
        self.sides
    }

    /// Inputs that ask for a free output, in their order.
    #[inline]
    pub fn inputs(&self) -> &[u16] {
        &self.inputs[..self.sides.0]
    }

    /// Outputs that a free input asks for, in their order.
    #[inline]
    pub fn outputs(&self) -> &[u16] {
        &self.outputs[..self.sides.1]
    }

    /// Reads all weights between them, each once: an input, an output, both by their places, and the weight, which is 0
    /// where there is nothing to send.
    #[inline]
    pub fn visit<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        reader: &Reader,
        mut weight: impl FnMut(usize, usize, u64),
    ) {
        for (at, input) in self.inputs[..self.sides.0].iter().enumerate() {
            let input = usize::from(*input);
            reader.read(demand, input, demand.of_input(input), &mut self.row);
            for (place, output) in self.outputs[..self.sides.1].iter().enumerate() {
                weight(at, place, std::mem::take(&mut self.row[usize::from(*output)]));
            }
        }
    }

    /// Reads all weights, as rows and columns. Says how many rows there are, how many columns, and the weights row by row.
    pub fn read<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        reader: &Reader,
    ) -> (usize, usize, &mut [u64]) {
        let (inputs, outputs) = self.sides;
        self.turned = inputs > outputs;
        let (height, width) = (inputs.min(outputs), inputs.max(outputs));
        let (input_step, output_step) = if self.turned { (1, width) } else { (width, 1) };
        let mut weights = std::mem::take(&mut self.weights);
        self.visit(demand, reader, |input, output, weight| {
            weights[input * input_step + output * output_step] = weight;
        });
        self.weights = weights;
        (height, width, &mut self.weights[..height * width])
    }

    /// The weights that were read, of each row.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        let (inputs, outputs) = self.sides;
        self.weights.chunks_exact(inputs.max(outputs)).take(inputs.min(outputs))
    }

    /// The input and the output of a row and a column.
    #[inline]
    pub fn ports(&self, row: usize, column: usize) -> (usize, usize) {
        let (input, output) = if self.turned { (column, row) } else { (row, column) };
        (usize::from(self.inputs[input]), usize::from(self.outputs[output]))
    }

    /// The weight of a row and a column.
    #[inline]
    pub fn weight(&self, row: usize, column: usize) -> u64 {
        self.weights[row * self.sides.0.max(self.sides.1) + column]
    }
}

/// Which of these ports ask for any port on the other side, in their order. Says how many, and for which.
#[inline]
fn asking<const W: usize>(
    ports: Row<W>,
    asks: impl Fn(usize) -> Row<W>,
    order: &mut Order,
    into: &mut [u16],
) -> (usize, Row<W>) {
    let (mut length, mut all) = (0, Row::EMPTY);
    for port in ports {
        let asked = asks(port);
        all |= asked;
        length = order.add_if(into, length, port, !asked.is_empty());
    }
    order.turn(&mut into[..length], |port| *port);
    (length, all)
}

//! Weights of pairs of ports, which are read once per matching.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::Demand;
use crate::matching::order::PortOrder;
use crate::port_set::PortSet;

/// Weight of a pair of an input and an output. Pairs without packets to send have weight 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Number of cells in the queue of the pair (longest queue first; MWM-QL).
    #[default]
    QueueLength,
    /// Age of the packet at the head of the queue, the present slot included (oldest first; MWM-CA).
    CellAge,
    /// Cells at the input plus cells for the output, in all queues (longest port first, LPF).
    PortOccupancy,
}

/// Reads the weights of a demand.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    weight: Weight,
    /// By input: its cells. Valid for free inputs only.
    at_input: Vec<u64>,
    /// By output: cells for it. Valid for free outputs only.
    for_output: Vec<u64>,
    /// Buffer for one input: cells by output.
    row: Vec<u64>,
}

impl Reader {
    pub fn new(weight: Weight, ports: usize) -> Reader {
        Reader { weight, at_input: vec![0; ports], for_output: vec![0; ports], row: vec![0; ports] }
    }

    /// Prepares a matching: computes the sums of ports that the weights need.
    #[inline]
    pub fn begin<const W: usize>(&mut self, demand: &Demand<'_, W>) {
        if self.weight == Weight::PortOccupancy {
            self.sum(demand);
        }
    }

    /// Sums cells at free inputs and for free outputs. Cells of a busy port count at the port on their other
    /// side.
    fn sum<const W: usize>(&mut self, demand: &Demand<'_, W>) {
        demand.inputs.iter().for_each(|input| self.at_input[input] = 0);
        demand.outputs.iter().for_each(|output| self.for_output[output] = 0);
        for input in demand.requests.inputs {
            let all = demand.requests.of_input[input];
            let free = demand.inputs.has(input);
            let relevant = if free { all } else { all & demand.outputs };
            demand.weights.cells_of(input, relevant.words(), &mut self.row);
            if free {
                self.at_input[input] = all.iter().map(|output| self.row[output]).sum();
            }
            (all & demand.outputs).iter().for_each(|output| self.for_output[output] += self.row[output]);
        }
    }

    /// Writes the weights of an input with each of `outputs`, all of which it requests, to `into`, indexed by
    /// output. Weights are at least 1, so that a matching of maximum weight is also maximal.
    #[inline(always)]
    pub fn read<const W: usize>(
        &self,
        demand: &Demand<'_, W>,
        input: usize,
        outputs: PortSet<W>,
        into: &mut [u64],
    ) {
        match self.weight {
            Weight::QueueLength => demand.weights.cells_of(input, outputs.words(), into),
            Weight::CellAge => {
                // In ticks, so that ages are not rounded.
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

/// The free ports that have requests for each other, and the weights between them.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Inputs that request a free output, in their order; the rest of the list is unused.
    inputs: Vec<u16>,
    /// Outputs that a free input requests, in their order; the rest of the list is unused.
    outputs: Vec<u16>,
    /// Numbers of these inputs and outputs.
    sides: (usize, usize),
    /// Buffer for one input: weights by output; all 0 between calls.
    row: Vec<u64>,
    /// `true` if rows are outputs and columns are inputs. There are never more rows than columns.
    turned: bool,
    /// Weights row by row, 0 for pairs without packets to send; the rest of the list is unused.
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

    /// Collects the ports. Returns the numbers of inputs and outputs.
    #[inline]
    pub fn gather<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        order: &mut PortOrder,
    ) -> (usize, usize) {
        self.sides = if demand.inputs.count() <= demand.outputs.count() {
            let (inputs, wanted) =
                with_requests(demand.inputs, |input| demand.of_input(input), order, &mut self.inputs);
            (inputs, order.list(wanted, &mut self.outputs))
        } else {
            let (outputs, wanting) =
                with_requests(demand.outputs, |output| demand.of_output(output), order, &mut self.outputs);
            (order.list(wanting, &mut self.inputs), outputs)
        };
        self.sides
    }

    /// Inputs that request a free output, in their order.
    #[inline]
    pub fn inputs(&self) -> &[u16] {
        &self.inputs[..self.sides.0]
    }

    /// Outputs that a free input requests, in their order.
    #[inline]
    pub fn outputs(&self) -> &[u16] {
        &self.outputs[..self.sides.1]
    }

    /// Reads all weights, each once, and passes them to `weight`: the positions of input and output, and the
    /// weight, which is 0 where there are no packets to send.
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
            for (position, output) in self.outputs[..self.sides.1].iter().enumerate() {
                weight(at, position, std::mem::take(&mut self.row[usize::from(*output)]));
            }
        }
    }

    /// Reads all weights as a matrix. Returns the numbers of rows and columns, and the weights row by row.
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

    /// The rows of the matrix that was read last.
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        let (inputs, outputs) = self.sides;
        self.weights.chunks_exact(inputs.max(outputs)).take(inputs.min(outputs))
    }

    /// The input and the output of an element of the matrix.
    #[inline]
    pub fn ports(&self, row: usize, column: usize) -> (usize, usize) {
        let (input, output) = if self.turned { (column, row) } else { (row, column) };
        (usize::from(self.inputs[input]), usize::from(self.outputs[output]))
    }

    /// An element of the matrix.
    #[inline]
    pub fn weight(&self, row: usize, column: usize) -> u64 {
        self.weights[row * self.sides.0.max(self.sides.1) + column]
    }
}

/// Writes the ports of `ports` that have a request to `into`, in their order. Returns their number, and the
/// ports of the other side that they have requests with.
#[inline]
fn with_requests<const W: usize>(
    ports: PortSet<W>,
    requests: impl Fn(usize) -> PortSet<W>,
    order: &mut PortOrder,
    into: &mut [u16],
) -> (usize, PortSet<W>) {
    let (mut length, mut all) = (0, PortSet::EMPTY);
    for port in ports {
        let requested = requests(port);
        all |= requested;
        length = order.add_if(into, length, port, !requested.is_empty());
    }
    order.turn(&mut into[..length], |port| *port);
    (length, all)
}

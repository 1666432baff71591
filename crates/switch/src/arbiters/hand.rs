//! A switch of a few ports, for tests that can be followed by hand.

use crate::arbiter::{Arbiter, ArbiterContext, Demand, Matching, Weights};
use crate::notes::{Note, Notes};
use crate::port_set::PortSet;
use crate::queues::Requests;
use giveway_qdisc::Streams;

/// Queues by input (a row) and output.
#[derive(Clone)]
pub struct Hand {
    cells: Vec<Vec<u64>>,
    ages: Vec<Vec<u64>>,
    inputs: PortSet<1>,
    outputs: PortSet<1>,
    tick: u64,
}

/// Later than any age in a test.
const NOW: u64 = 1000;

impl Hand {
    /// A switch with these numbers of cells in its queues, all of the same age.
    pub fn cells<const N: usize>(cells: [[u64; N]; N]) -> Hand {
        Hand {
            cells: cells.map(Vec::from).to_vec(),
            ages: vec![vec![0; N]; N],
            inputs: PortSet::first(N),
            outputs: PortSet::first(N),
            tick: NOW,
        }
    }

    /// A switch whose queues have one packet of these ages in slots, 0 for empty queues.
    pub fn ages<const N: usize>(ages: [[u64; N]; N]) -> Hand {
        let cells = ages.map(|line| line.map(|age| age.min(1)));
        Hand { ages: ages.map(Vec::from).to_vec(), ..Hand::cells(cells) }
    }

    /// Sets the number of cells of a queue.
    pub fn with_cells(mut self, input: usize, output: usize, cells: u64) -> Hand {
        self.cells[input][output] = cells;
        self
    }

    /// Makes only these inputs and outputs free.
    pub fn free(mut self, inputs: &[usize], outputs: &[usize]) -> Hand {
        self.inputs = inputs.iter().copied().collect();
        self.outputs = outputs.iter().copied().collect();
        self
    }

    /// Sets the present slot.
    pub fn at(mut self, slot: u64) -> Hand {
        self.tick = slot;
        self
    }

    /// The pairs that an arbiter matches, as text: `input-output`, ascending by input.
    pub fn pairs(&self, arbiter: &mut dyn Arbiter<1>) -> String {
        self.decide(arbiter).0
    }

    /// The grants of an arbiter as text: `2>0` from input 2 to output 0, as in traces, with a part for each
    /// iteration that has grants.
    pub fn grants(&self, arbiter: &mut dyn Arbiter<1>) -> String {
        let notes = self.decide(arbiter).1;
        let iterations = notes.split(|note| matches!(note, Note::Iteration(_)));
        let grants = iterations.map(|notes| {
            let grant = |note: &Note| match note {
                Note::Grant(output, input) => Some(format!("{input}>{output}")),
                _ => None,
            };
            notes.iter().filter_map(grant).collect::<Vec<_>>().join(" ")
        });
        grants.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn decide(&self, arbiter: &mut dyn Arbiter<1>) -> (String, Vec<Note>) {
        let ports = self.cells.len();
        let mut requests = Requests::none();
        for (input, line) in self.cells.iter().enumerate() {
            for output in (0..ports).filter(|output| line[*output] > 0) {
                requests.insert(input, output);
            }
        }
        let demand = Demand {
            requests: &requests,
            inputs: requests.inputs & self.inputs,
            outputs: requests.outputs & self.outputs,
            weights: self,
            tick: self.tick,
            slot_ticks: 1,
        };
        let (mut matching, mut notes) = (Matching::new(), Notes::on());
        arbiter.decide(&demand, &mut matching, &mut notes);
        let mut pairs = matching.pairs().to_vec();
        pairs.sort_unstable();
        let pairs: Vec<String> = pairs.iter().map(|(input, output)| format!("{input}-{output}")).collect();
        (pairs.join(" "), notes.take())
    }
}

impl Weights for Hand {
    fn cells(&self, input: usize, output: usize) -> u64 {
        self.cells[input][output]
    }
    fn head(&self, input: usize, output: usize) -> u64 {
        self.tick - self.ages[input][output]
    }
}

/// The context of a switch of `ports` ports.
pub fn context(ports: usize) -> ArbiterContext {
    ArbiterContext { ports, streams: Streams::new(1) }
}

/// The positions of the pointers of an arbiter, such as `grant 012, accept 000`.
pub fn pointers(arbiter: &dyn Arbiter<1>) -> String {
    let mut all: Vec<String> = Vec::new();
    arbiter.pointers(&mut |name, at| {
        let at: String = at.iter().map(u16::to_string).collect();
        all.push(format!("{name} {at}"));
    });
    all.join(", ")
}

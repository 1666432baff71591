//! A switch of a few ports on paper, for tests that can be followed by hand.

use crate::arbiter::{Arbiter, Demand, Matching, Site, Weights};
use crate::notes::{Note, Notes};
use crate::queues::Requests;
use crate::row::Row;
use qdisc::Streams;

/// Queues by input (a line) and output.
#[derive(Clone)]
pub struct Hand {
    cells: Vec<Vec<u64>>,
    ages: Vec<Vec<u64>>,
    inputs: Row<1>,
    outputs: Row<1>,
    tick: u64,
}

/// Later than any age in a test.
const NOW: u64 = 1000;

impl Hand {
    /// So many cells in each queue, all of the same age; 0: it is empty.
    pub fn cells<const N: usize>(cells: [[u64; N]; N]) -> Hand {
        Hand {
            cells: cells.map(Vec::from).to_vec(),
            ages: vec![vec![0; N]; N],
            inputs: Row::first(N),
            outputs: Row::first(N),
            tick: NOW,
        }
    }

    /// The slots for which the head of each queue has been there; 0: the queue is empty.
    pub fn ages<const N: usize>(ages: [[u64; N]; N]) -> Hand {
        let cells = ages.map(|line| line.map(|age| age.min(1)));
        Hand { ages: ages.map(Vec::from).to_vec(), ..Hand::cells(cells) }
    }

    /// This queue has so many cells.
    pub fn with_cells(mut self, input: usize, output: usize, cells: u64) -> Hand {
        self.cells[input][output] = cells;
        self
    }

    /// Only these inputs and outputs are free.
    pub fn free(mut self, inputs: &[usize], outputs: &[usize]) -> Hand {
        self.inputs = inputs.iter().copied().collect();
        self.outputs = outputs.iter().copied().collect();
        self
    }

    /// In this slot.
    pub fn at(mut self, slot: u64) -> Hand {
        self.tick = slot;
        self
    }

    /// What an arbiter makes of it, as text: its pairs `input-output`, ascending by input.
    pub fn pairs(&self, arbiter: &mut dyn Arbiter<1>) -> String {
        self.decide(arbiter).0
    }

    /// Its grants, `2>0` from input 2 to output 0 as in traces, one part for each iteration that had any.
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

/// Where so many ports are.
pub fn site(ports: usize) -> Site {
    Site { ports, streams: Streams::new(1) }
}

/// Where the pointers of an arbiter stand, such as `grant 012, accept 000`.
pub fn pointers(arbiter: &dyn Arbiter<1>) -> String {
    let mut all: Vec<String> = Vec::new();
    arbiter.pointers(&mut |name, at| {
        let at: String = at.iter().map(u16::to_string).collect();
        all.push(format!("{name} {at}"));
    });
    all.join(", ")
}

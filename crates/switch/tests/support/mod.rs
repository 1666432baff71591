//! Random demands, for tests that call an arbiter directly.
#![allow(dead_code, reason = "each test uses a part of it")]

use giveway_qdisc::{Rng, Streams};
use giveway_switch::arbiter::{Arbiter, ArbiterContext, Demand, Matching, Weights};
use giveway_switch::notes::Notes;
use giveway_switch::options::Queueing;
use giveway_switch::registry::Entry;
use giveway_switch::{PortSet, Requests, Spec};

/// The state of one slot: queues, free ports and arrivals.
pub struct Paper<const W: usize> {
    pub ports: usize,
    pub requests: Requests<W>,
    pub inputs: PortSet<W>,
    pub outputs: PortSet<W>,
    /// By input and output.
    cells: Vec<u64>,
    /// By input and output.
    heads: Vec<u64>,
    tick: u64,
    arrivals: Vec<(usize, usize)>,
}

/// The distribution of random slots.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub ports: usize,
    /// Percentage of the queues that are not empty.
    pub filled: u64,
    /// Percentage of the ports that are busy.
    pub busy: u64,
    pub seed: u64,
}

/// Length of a slot of the fabric, in ticks.
const SLOT: u64 = 3;

impl Shape {
    /// Draws `count` independent slots. They do not depend on the width of rows.
    pub fn slots<const W: usize>(self, queueing: Queueing, count: u64) -> Vec<Paper<W>> {
        let mut rng = Streams::new(self.seed).within("paper").rng();
        (0..count).map(|slot| self.slot(queueing, 1000 + slot, &mut rng)).collect()
    }

    fn slot<const W: usize>(self, queueing: Queueing, slot: u64, rng: &mut Rng) -> Paper<W> {
        let ports = self.ports;
        let mut paper = Paper {
            ports,
            requests: Requests::none(),
            inputs: PortSet::EMPTY,
            outputs: PortSet::EMPTY,
            cells: vec![0; ports * ports],
            heads: vec![u64::MAX; ports * ports],
            tick: slot * SLOT,
            arrivals: Vec::new(),
        };
        for input in 0..ports {
            // An input with one queue requests only the output of its first packet.
            let (outputs, filled) = match queueing {
                Queueing::Virtual => (0..ports, self.filled),
                Queueing::Fifo | Queueing::Output | Queueing::Combined => {
                    let head = rng.below(ports as u64) as usize;
                    (head..head + 1, 100)
                }
            };
            for output in outputs {
                if rng.below(100) < filled {
                    paper.requests.insert(input, output);
                    // Few values, so that there are ties.
                    paper.cells[input * ports + output] = 1 + rng.below(6);
                    paper.heads[input * ports + output] = (slot - rng.below(6)) * SLOT;
                }
            }
            let asked = paper.requests.of_input[input];
            if !asked.is_empty() && rng.below(2) == 0 {
                let output = asked
                    .nth(rng.below(asked.count() as u64) as usize)
                    .expect("the index is below the count");
                paper.arrivals.push((input, output));
            }
        }
        let mut free = || -> PortSet<W> { (0..ports).filter(|_| rng.below(100) >= self.busy).collect() };
        paper.inputs = paper.requests.inputs & free();
        paper.outputs = paper.requests.outputs & free();
        paper
    }
}

impl<const W: usize> Paper<W> {
    /// Calls an arbiter as the modes of the switch do: only if ports are free.
    pub fn ask(&self, arbiter: &mut dyn Arbiter<W>, matching: &mut Matching<W>) {
        matching.clear();
        for (input, output) in &self.arrivals {
            arbiter.on_arrival(*input, *output);
        }
        if self.inputs.is_empty() || self.outputs.is_empty() {
            return;
        }
        let demand = Demand {
            requests: &self.requests,
            inputs: self.inputs,
            outputs: self.outputs,
            weights: self,
            tick: self.tick,
            slot_ticks: SLOT,
        };
        arbiter.decide(&demand, matching, &mut Notes::off());
    }
}

impl<const W: usize> Weights for Paper<W> {
    fn cells(&self, input: usize, output: usize) -> u64 {
        self.cells[input * self.ports + output]
    }
    fn head(&self, input: usize, output: usize) -> u64 {
        self.heads[input * self.ports + output]
    }
}

/// Builds an arbiter for a switch of `ports` ports.
pub fn build<const W: usize>(spec: &Spec, ports: usize, seed: u64) -> Box<dyn Arbiter<W>> {
    let context = ArbiterContext { ports, streams: Streams::new(seed).within("arbiters") };
    spec.arbiter(&context).expect("the specification is valid")
}

/// An arbiter with a number of iterations, if it has that parameter.
pub fn iterated(entry: &Entry<Spec>, iterations: usize) -> Option<Spec> {
    let mut parameters = entry.default().parameters();
    *parameters.get_mut("iterations")? = iterations.into();
    Some((entry.from_json)(parameters).expect("iterations is a parameter"))
}

/// An arbiter with its default parameters, with one iteration, and with as many iterations as ports.
pub fn variants(entry: &Entry<Spec>, ports: usize) -> Vec<Spec> {
    let iterated = [1, ports].into_iter().filter_map(|iterations| iterated(entry, iterations));
    std::iter::once(entry.default()).chain(iterated).collect()
}

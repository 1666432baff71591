//! Birkhoff-von Neumann decomposition: from rates to slots of a frame, and from these to permutations.

use giveway_qdisc::Streams;

use crate::arbiter::{Demand, Weights};
use crate::matching::Ties;
use crate::matching::order::PortOrder;
use crate::matching::size::MaxSize;
use crate::queues::Requests;
use crate::rates::Rates;

/// Largest length of a frame, in slots per port.
const FRAME: u32 = 64;

/// Tolerance for rates that differ from a whole number of slots, which rounding may cause.
const ROUNDING: f64 = 1e-6;

/// Slots of each pair in a frame, row by row: rates are rounded up, and rows and columns are filled up to the
/// same sum.
pub(super) fn slots(ports: usize, rates: &Rates) -> Vec<u32> {
    let of = |frame: u32| {
        let rate = move |at: usize| rates.of(at / ports, at % ports) * f64::from(frame);
        (0..ports * ports).map(rate)
    };
    let longest = FRAME * ports as u32;
    let whole = |slots: f64| (slots - libm::round(slots)).abs() < ROUNDING;
    let frame = (1..longest).find(|frame| of(*frame).all(whole)).unwrap_or(longest);
    let mut slots: Vec<u32> = of(frame).map(|slots| libm::ceil(slots - ROUNDING) as u32).collect();
    let mut inputs: Vec<u32> = slots.chunks(ports).map(|row| row.iter().sum()).collect();
    let mut outputs: Vec<u32> =
        (0..ports).map(|output| slots.iter().skip(output).step_by(ports).sum()).collect();
    let most = inputs.iter().chain(&outputs).copied().max().expect("a switch has ports");
    // Rows lack the same total as columns, so both are complete at the same time.
    let (mut input, mut output) = (0, 0);
    while input < ports && output < ports {
        let added = (most - inputs[input]).min(most - outputs[output]);
        slots[input * ports + output] += added;
        inputs[input] += added;
        outputs[output] += added;
        if inputs[input] == most {
            input += 1;
        } else {
            output += 1;
        }
    }
    slots
}

/// Decomposes slots, whose rows and columns all have the same sum, into permutations with weights (Birkhoff).
pub(super) fn permutations<const W: usize>(ports: usize, mut slots: Vec<u32>) -> Vec<(Vec<u16>, u32)> {
    let mut left: u32 = slots[..ports].iter().sum();
    let mut weighted = Vec::new();
    let mut take = |permutation: Vec<u16>, slots: &mut [u32]| {
        let at = |input: usize| input * ports + usize::from(permutation[input]);
        let weight = (0..ports).map(|input| slots[at(input)]).min().expect("a switch has ports");
        (0..ports).for_each(|input| slots[at(input)] -= weight);
        if weight > 0 {
            weighted.push((permutation, weight));
        }
        weight
    };
    for by in 0..ports {
        let turned = (0..ports).map(|input| ((input + by) % ports) as u16).collect();
        left -= take(turned, &mut slots);
    }
    let mut size = MaxSize::new(ports);
    // A fixed order uses no random numbers, so any stream will do.
    let mut order = PortOrder::new(Ties::Fixed, ports, &Streams::new(0));
    while left > 0 {
        let mut requests = Requests::<W>::none();
        for at in (0..ports * ports).filter(|at| slots[*at] > 0) {
            requests.insert(at / ports, at % ports);
        }
        let demand = Demand {
            inputs: requests.inputs,
            outputs: requests.outputs,
            requests: &requests,
            weights: &Unweighted,
            tick: 0,
            slot_ticks: 1,
        };
        // Rows and columns with the same sum have a perfect matching (König).
        let mut permutation = vec![0; ports];
        size.solve(&demand, &mut order, |input, output| permutation[input] = output as u16);
        left -= take(permutation, &mut slots);
    }
    weighted
}

/// Weights for a matching of maximum size, which does not read them.
struct Unweighted;

impl Weights for Unweighted {
    fn cells(&self, _: usize, _: usize) -> u64 {
        1
    }
    fn head(&self, _: usize, _: usize) -> u64 {
        0
    }
}

//! TDM, time-division multiplexing: who is connected with whom is fixed for every slot, whatever waits.
//!
//! # Principles
//! - A schedule is a list of permutations and how often each comes in a frame. For `uniform` traffic, the default, in slot
//!   `s` input `i` is connected with output `(i + s) mod N`: every pair has one slot in N, evenly spread.
//! - For other traffic the frame follows the rates (Birkhoff, von Neumann): rates are counted in slots of a frame, lines are
//!   filled up until all have the same sum, and permutations are taken off, each as often as its smallest entry allows,
//!   until nothing is left. The turns `i` to `(i + k) mod N` are taken first, then perfect matchings; the patterns consist
//!   of turns only.
//! - Nothing is decided, so nothing has to be computed and nobody can be starved: a pair whose rate is below its share of
//!   the frame is served in time. Slots of a pair that has nothing to send are lost.
//! - Permutations of a frame take turns as evenly as their weights let them (smooth weighted round robin): in each slot
//!   everybody's credit grows by its weight, the greatest credit is served, and pays the sum of all weights.
//!
//! # Deviations
//! - The article's rates can be any numbers. Here a frame has the fewest slots, up to 64 N, in which all rates are whole
//!   numbers of slots. Where there is no such frame each rate is rounded up to whole slots in 64 N, which lengthens the frame
//!   by at most N slots: every pair is served at 64/65 of its rate or more, so that a load of 0.98 is carried.
//! - Permutations of equal weight take their turns one after the other in the order in which they were taken off; the
//!   article's algorithm is a fair queueing of the same weights.
//! - In packet mode a slot of the schedule is when a packet may begin. It holds its connection beyond, and who is due
//!   meanwhile at one of both ports loses its turn.
//!
//! # Cost
//! A look per free input. Two bytes for each port of each permutation, of which patterns have at most N and other rates at
//! most N² - 2N + 2, and for each slot of the frame.
//!
//! # References
//! T. Inukai, An Efficient SS/TDMA Time Slot Assignment Algorithm, IEEE Transactions on Communications 27(10), 1979 (frames
//! of permutations); C.-S. Chang, W.-J. Chen, H.-Y. Huang, Birkhoff-von Neumann Input Buffered Crossbar Switches, INFOCOM
//! 2000.

use qdisc::{Invalid, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arbiter::{Arbiter, Demand, Matching, Site, Weights};
use crate::matching::Ties;
use crate::matching::order::Order;
use crate::matching::size::MaxSize;
use crate::notes::Notes;
use crate::queues::Requests;
use crate::rates::{Pattern, Rates};
use crate::registry::ArbiterConfig;

/// What the schedule is made for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How the load of an input spreads over the outputs, as the traffic's pattern has it.
    pub pattern: PatternName,
    /// Of the pattern unbalanced: the share of the output opposite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Of the pattern matrix: cells per slot from each input to each output, row by row. For up to 64 ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
}

/// The pattern that a schedule is made for; the names are those of the traffic's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternName {
    /// The same to every output.
    #[default]
    Uniform,
    /// Two thirds to the output opposite, one third to the one beside it.
    Diagonal,
    /// To the output opposite about half, to each next one half of that to the one before.
    LogDiagonal,
    /// Half to the output opposite, the other half evenly to all others.
    QuasiDiagonal,
    /// A share to the output opposite, the rest evenly to all.
    Unbalanced,
    /// Any rates.
    Matrix,
}

impl Config {
    /// The traffic's pattern.
    fn traffic(&self, ports: usize) -> Result<Pattern, Invalid> {
        if self.share.is_some() && self.pattern != PatternName::Unbalanced {
            let message = "only one pattern has a share: write \"pattern unbalanced\" or leave it out";
            return Err(Invalid::new("share", message));
        }
        if !self.rates.is_empty() && self.pattern != PatternName::Matrix {
            let message = "only one pattern has rates of its own: write \"pattern matrix\" or leave them out";
            return Err(Invalid::new("rates", message));
        }
        Ok(match self.pattern {
            PatternName::Uniform => Pattern::Uniform,
            PatternName::Diagonal => Pattern::Diagonal,
            PatternName::LogDiagonal => Pattern::LogDiagonal,
            PatternName::QuasiDiagonal => Pattern::QuasiDiagonal,
            PatternName::Unbalanced => {
                let missing = || {
                    Invalid::new("share", "unbalanced traffic has a share: write for example \"share 0.5\"")
                };
                Pattern::Unbalanced(self.share.ok_or_else(missing)?)
            }
            PatternName::Matrix if self.rates.len() == ports * ports => {
                Pattern::Matrix(self.rates.chunks(ports).map(<[f64]>::to_vec).collect())
            }
            PatternName::Matrix => {
                let message = format!(
                    "{} rates: write {ports} for each of {ports} inputs, row by row, such as \"rates [0.5 0.5 0.5 0.5]\" \
                     for 2 ports; larger switches than of 64 ports only know the other patterns",
                    self.rates.len()
                );
                return Err(Invalid::new("rates", message));
            }
        })
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "time division: each pair has its fixed slots in a frame, whatever waits";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        let ports = site.ports;
        let name = if self.pattern == PatternName::Matrix { "rates" } else { "share" };
        let named = |invalid: Invalid| Invalid::new(name, invalid.message);
        let rates = Rates::new(&self.traffic(ports)?, ports, 1.0).map_err(named)?;
        if rates.check(false).is_err() {
            let message = "no schedule serves more than one cell per slot of an input or output: write rates of which \
                           every row and every column sums to at most 1";
            return Err(Invalid::new("rates", message));
        }
        Ok(Box::new(Frame::new(permutations::<W>(ports, slots(ports, &rates)))))
    }
}

/// A frame of at most so many slots per port is looked for.
const FRAME: u32 = 64;

/// How much a rate may be above a whole number of slots by rounding alone.
const ROUNDING: f64 = 1e-6;

/// Slots of each pair in a frame, row by row: rates rounded up, and lines filled up until all have the same sum.
fn slots(ports: usize, rates: &Rates) -> Vec<u32> {
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
    let most = inputs.iter().chain(&outputs).copied().max().expect("there are ports");
    // All rows lack together what all columns lack, so both come to their ends together.
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

/// Permutations with their weights that together have these slots, of which all lines have the same sum (Birkhoff).
fn permutations<const W: usize>(ports: usize, mut slots: Vec<u32>) -> Vec<(Vec<u16>, u32)> {
    let mut left: u32 = slots[..ports].iter().sum();
    let mut weighted = Vec::new();
    let mut take = |permutation: Vec<u16>, slots: &mut [u32]| {
        let at = |input: usize| input * ports + usize::from(permutation[input]);
        let weight = (0..ports).map(|input| slots[at(input)]).min().expect("there are ports");
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
    // Its random numbers are not used where the order is fixed.
    let mut order = Order::new(Ties::Fixed, ports, &Streams::new(0));
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
        // Lines with the same sum have a perfect matching (König).
        let mut permutation = vec![0; ports];
        size.solve(&demand, &mut order, |input, output| permutation[input] = output as u16);
        left -= take(permutation, &mut slots);
    }
    weighted
}

/// Nobody asks for weights where only the size of a matching counts.
struct Unweighted;

impl Weights for Unweighted {
    fn cells(&self, _: usize, _: usize) -> u64 {
        1
    }
    fn head(&self, _: usize, _: usize) -> u64 {
        0
    }
}

/// Permutations that take turns.
struct Frame {
    /// By input: its output.
    permutations: Vec<Vec<u16>>,
    /// By slot of the frame: which of them.
    order: Vec<u16>,
}

impl Frame {
    /// Permutations, each with the number of slots that it has in a frame; these sum to more than 0.
    fn new(weighted: Vec<(Vec<u16>, u32)>) -> Frame {
        let slots: i64 = weighted.iter().map(|(_, weight)| i64::from(*weight)).sum();
        debug_assert!(slots > 0, "a frame has slots");
        let mut credits = vec![0; weighted.len()];
        let turn = |_| {
            for (credit, (_, weight)) in credits.iter_mut().zip(&weighted) {
                *credit += i64::from(*weight);
            }
            // The first of those with the greatest credit.
            let most = *credits.iter().max().expect("there are permutations");
            let served = credits.iter().position(|credit| *credit == most).expect("one has the most");
            credits[served] -= slots;
            served as u16
        };
        let order = (0..slots).map(turn).collect();
        Frame { permutations: weighted.into_iter().map(|(permutation, _)| permutation).collect(), order }
    }
}

impl<const W: usize> Arbiter<W> for Frame {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        // The arbiter is not asked in slots in which nobody is free; the schedule goes on in them.
        let slot = demand.tick / demand.slot_ticks;
        let turn = self.order[(slot % self.order.len() as u64) as usize];
        let outputs = &self.permutations[usize::from(turn)];
        for input in demand.inputs {
            let output = usize::from(outputs[input]);
            if demand.of_input(input).has(output) {
                matching.pair(input, output);
                notes.grant(output, input);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand::{Hand, site};
    use super::*;

    #[test]
    fn every_pair_has_its_slot() {
        let mut tdm: Box<dyn Arbiter<1>> = Config::default().arbiter(&site(3)).unwrap();
        let all = Hand::cells([[1; 3]; 3]);
        for (slot, pairs) in [
            (0, "0-0 1-1 2-2"),
            (1, "0-1 1-2 2-0"),
            (2, "0-2 1-0 2-1"),
            (3, "0-0 1-1 2-2"),
            (7, "0-1 1-2 2-0"),
        ] {
            assert_eq!(all.clone().at(slot).pairs(&mut *tdm), pairs, "slot {slot}");
        }
        // Who has nothing to send, or is not free, loses its slot.
        let some = Hand::cells([[0, 1, 1], [1, 1, 0], [1, 1, 1]]);
        assert_eq!(some.clone().at(1).pairs(&mut *tdm), "0-1 2-0");
        assert_eq!(some.free(&[0, 2], &[1, 2]).at(1).pairs(&mut *tdm), "0-1");
    }

    /// Two permutations, the first with five slots of seven: its slots are spread, not in a row.
    #[test]
    fn permutations_take_turns_by_weight() {
        let mut frame = Frame::new(vec![(vec![1, 0, 2], 5), (vec![0, 2, 1], 2)]);
        // Credits before each turn: 5 2, 3 4, 8 -1, 6 1, 4 3, 2 5, 7 0.
        assert_eq!(frame.order, [0, 1, 0, 0, 0, 1, 0]);
        let all = Hand::cells([[1; 3]; 3]);
        assert_eq!(all.clone().at(0).pairs(&mut frame), "0-1 1-0 2-2");
        assert_eq!(all.clone().at(1).pairs(&mut frame), "0-0 1-2 2-1");
        assert_eq!(all.at(7 + 5).pairs(&mut frame), "0-0 1-2 2-1");
    }

    /// What pairs are served in a schedule, in shares of the slots, row by row.
    fn served(ports: usize, schedule: impl IntoIterator<Item = (Vec<usize>, f64)>) -> Vec<f64> {
        let mut served = vec![0.0; ports * ports];
        for (outputs, share) in schedule {
            for (input, output) in outputs.into_iter().enumerate() {
                served[input * ports + output] += share;
            }
        }
        served
    }

    fn own(ports: usize, rates: &Rates) -> (Vec<f64>, usize, u32) {
        let weighted = permutations::<1>(ports, slots(ports, rates));
        let frame: u32 = weighted.iter().map(|(_, weight)| weight).sum();
        let count = weighted.len();
        let share = |(outputs, weight): (Vec<u16>, u32)| {
            let mut seen = outputs.clone();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..ports as u16), "{outputs:?} is no permutation");
            (outputs.into_iter().map(usize::from).collect(), f64::from(weight) / f64::from(frame))
        };
        (served(ports, weighted.into_iter().map(share)), count, frame)
    }

    /// Against the decomposition of `theory`, which counts in 10^-12: where a frame has the rates exactly, both serve
    /// every pair alike; otherwise this one serves at most a 65th less than it should.
    #[test]
    fn pairs_are_served_at_their_rates() {
        use Pattern::{Diagonal, LogDiagonal, Matrix, QuasiDiagonal, Unbalanced, Uniform};
        let two = vec![vec![0.5, 0.3, 0.2], vec![0.2, 0.5, 0.3], vec![0.3, 0.2, 0.5]];
        let one = vec![vec![0.7, 0.1, 0.2], vec![0.1, 0.6, 0.3], vec![0.2, 0.3, 0.5]];
        for (pattern, ports, frame) in [
            (Uniform, 16, Some(16)),
            (Diagonal, 16, Some(3)),
            (LogDiagonal, 8, Some(255)),
            (LogDiagonal, 16, None),
            (QuasiDiagonal, 16, Some(30)),
            (Unbalanced(0.5), 16, Some(32)),
            (Unbalanced(0.123), 16, None),
            (Matrix(two), 3, Some(10)),
            (Matrix(one), 3, Some(10)),
        ] {
            let rates = Rates::new(&pattern, ports, 1.0).unwrap();
            let rows = (0..ports).map(|input| rates.row(input).to_vec()).collect();
            let matrix = theory::crossbar::rates::RateMatrix::new(rows).unwrap();
            let schedule = matrix.schedule().unwrap();
            let theirs = served(ports, schedule.into_iter().map(|each| (each.outputs, each.share)));
            let (ours, count, slots) = own(ports, &rates);
            assert!(count <= ports * ports - 2 * ports + 2, "{pattern:?}: {count} permutations");
            if let Some(frame) = frame {
                assert_eq!(slots, frame, "{pattern:?}");
            }
            for (pair, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                if frame.is_some() {
                    assert!((ours - theirs).abs() < 1e-9, "{pattern:?}, pair {pair}: {ours}, not {theirs}");
                } else {
                    assert!(*ours >= theirs * 64.0 / 65.0, "{pattern:?}, pair {pair}: {ours} of {theirs}");
                }
            }
        }
    }

    /// Of no turn all inputs have a slot here: what is left to perfect matchings is everything.
    #[test]
    fn matchings_take_what_turns_leave() {
        let swapped = Config {
            pattern: PatternName::Matrix,
            rates: vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            ..Config::default()
        };
        let mut tdm: Box<dyn Arbiter<1>> = swapped.arbiter(&site(3)).unwrap();
        assert_eq!(Hand::cells([[1; 3]; 3]).at(5).pairs(&mut *tdm), "0-1 1-0 2-2");
        // A line that has less than others is filled up, and everybody is still served in full.
        let rates = Rates::new(&Pattern::Matrix(vec![vec![0.5, 0.25], vec![0.0, 0.25]]), 2, 1.0).unwrap();
        let (served, ..) = own(2, &rates);
        assert!(served.iter().zip([0.5, 0.25, 0.0, 0.25]).all(|(has, wants)| *has >= wants), "{served:?}");
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let said = |config: Config| match config.arbiter::<1>(&site(3)) {
            Ok(_) => "nothing".to_owned(),
            Err(invalid) => invalid.to_string(),
        };
        let with = |pattern, share, rates: &[f64]| Config { pattern, share, rates: rates.to_vec() };
        assert!(said(with(PatternName::Diagonal, Some(0.5), &[])).contains("pattern unbalanced"));
        assert!(said(with(PatternName::Unbalanced, None, &[])).contains("share 0.5"));
        assert!(said(with(PatternName::Unbalanced, Some(1.5), &[])).contains("from 0 to 1"));
        assert!(said(with(PatternName::Uniform, None, &[0.1; 9])).contains("pattern matrix"));
        assert!(said(with(PatternName::Matrix, None, &[0.1; 4])).contains("write 3 for each of 3 inputs"));
        assert!(said(with(PatternName::Matrix, None, &[0.5; 9])).contains("sums to at most 1"));
        assert_eq!(said(with(PatternName::Unbalanced, Some(0.5), &[])), "nothing");
    }
}

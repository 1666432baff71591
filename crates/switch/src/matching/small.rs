//! Matchings of maximum weight among a few ports, without a jump that depends on weights: a search along paths takes its
//! time with jumps that nobody can foresee.
//!
//! - Where there are up to three ports on one side, those of the other side are gone through, and for each set of the three
//!   the largest weight is kept of all matchings of that set with those that were seen.
//! - Where there are more, the same by sets of outputs: the best matching of the first inputs with each set of as many. With
//!   the last input at any one output of a set, what is best for the others is known already. For so few outputs that is a
//!   list of steps which is always the same.
//!
//! M. Held, R. M. Karp, A Dynamic Programming Approach to Sequencing Problems, Journal of the SIAM 10(1), 1962, have sets
//! for another problem.

use crate::arbiter::Demand;
use crate::matching::weights::{Block, Reader};

/// The most ports on a side.
pub(crate) const MOST: usize = 7;
/// Keys of an input are as far from those of the next.
const STRIDE: usize = 8;
/// Bits that say the output of an input: 7 the first, 1 the last, 0 none.
const BITS: u32 = 3;
/// Bits that say the outputs of all inputs, those of the first input above.
const CHOICES: u32 = BITS * MOST as u32;
/// Weights must be below this, so that the sum of all has room above the choices.
const LIMIT: u64 = 1 << (u64::BITS - CHOICES - BITS);

/// The last input of so many as the set has outputs is put to one of these.
#[derive(Clone, Copy)]
struct Step {
    /// The set without that output.
    from: u8,
    /// The set.
    to: u8,
    /// Where the key is.
    key: u8,
}

/// All steps, by sets ascending as numbers: those of fewer outputs come first.
const STEPS: [Step; MOST << (MOST - 1)] = {
    let mut steps = [Step { from: 0, to: 0, key: 0 }; MOST << (MOST - 1)];
    let (mut at, mut to) = (0, 1);
    while to < 1u8 << MOST {
        let input = to.count_ones() as usize - 1;
        let mut output = 0;
        while output < MOST {
            if to >> output & 1 != 0 {
                steps[at] = Step { from: to & !(1 << output), to, key: (input * STRIDE + output) as u8 };
                at += 1;
            }
            output += 1;
        }
        to += 1;
    }
    steps
};

/// Finds them.
#[derive(Clone, Debug)]
pub(crate) struct Small {
    /// By input and output, of which there is one more than there can be: the weight, and below it the choice. So the
    /// largest sum is of the largest weight, and says whose it is; of several, the first in the order of inputs, then of
    /// outputs.
    keys: [u64; STRIDE * STRIDE],
    /// By set of outputs: the best sum of as many inputs.
    best: [u64; 256],
}

/// Where the choice of an input stands.
#[inline]
fn place(input: usize) -> u32 {
    CHOICES - BITS * (input as u32 + 1)
}

impl Small {
    pub fn new() -> Small {
        Small { keys: [0; STRIDE * STRIDE], best: [0; 256] }
    }

    /// Calls `pair` for every pair of a matching of maximum weight; or for none and says no, where a weight is too large.
    #[inline]
    pub fn solve<const W: usize>(
        &mut self,
        demand: &Demand<'_, W>,
        block: &mut Block,
        reader: &Reader,
        pair: &mut impl FnMut(usize, usize),
    ) -> bool {
        let (inputs, outputs) = (block.inputs().len(), block.outputs().len());
        let (fewer, more) = (inputs.min(outputs), inputs.max(outputs));
        if fewer > 3 {
            // The side that has fewer is made as large, by ports that are worth nothing.
            self.keys.fill(0);
        }
        let mut all = 0;
        block.visit(demand, reader, |input, output, weight| {
            all |= weight;
            self.keys[input * STRIDE + output] = weight << CHOICES | ((MOST - output) as u64) << place(input);
        });
        if all >= LIMIT {
            return false;
        }
        let (step, across) = if inputs <= outputs { (STRIDE, 1) } else { (1, STRIDE) };
        let best = match fewer {
            1 => self.one_by_one::<1, 2>(step, more, across),
            2 => self.one_by_one::<2, 4>(step, more, across),
            3 => self.one_by_one::<3, 8>(step, more, across),
            _ => self.by_sets(more),
        };
        for (at, input) in block.inputs().iter().enumerate() {
            let output = MOST - (best >> place(at)) as usize % STRIDE;
            if self.keys[at * STRIDE + output] >> CHOICES > 0 {
                pair(usize::from(*input), usize::from(block.outputs()[output]));
            }
        }
        true
    }

    /// The best sum where there are `FEW` ports on one side, whose keys are `step` from each other, and `more` on the other.
    #[inline]
    fn one_by_one<const FEW: usize, const SETS: usize>(
        &self,
        step: usize,
        more: usize,
        across: usize,
    ) -> u64 {
        // By set of the few: the best sum until now.
        let mut best = [0u64; SETS];
        for port in 0..more {
            let keys: [u64; FEW] = std::array::from_fn(|few| self.keys[port * across + few * step]);
            // From the largest set down, so that each is found from those without this port.
            for set in (1..SETS).rev() {
                for (few, key) in keys.iter().enumerate() {
                    if set >> few & 1 != 0 {
                        best[set] = best[set].max(best[set & !(1 << few)] + key);
                    }
                }
            }
        }
        best[SETS - 1]
    }

    /// The best sum of so many inputs and as many outputs.
    #[inline]
    fn by_sets(&mut self, ports: usize) -> u64 {
        let last = (1usize << ports) - 1;
        self.best[1..=last].fill(0);
        for step in &STEPS[..ports << (ports - 1)] {
            let sum = self.best[usize::from(step.from)] + self.keys[usize::from(step.key) % self.keys.len()];
            let best = &mut self.best[usize::from(step.to)];
            *best = sum.max(*best);
        }
        self.best[last]
    }
}

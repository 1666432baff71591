//! Matchings of maximum weight among a few ports, by dynamic programming over sets of ports. No branch
//! depends on weights: a search of augmenting paths spends its time on mispredicted branches.
//!
//! - Up to three ports on one side: the ports of the other side are added one by one. For each set of the
//!   three, the largest weight of its matchings with the ports added so far is kept.
//! - More ports: for each set of k outputs, the best matching with the first k inputs is kept. The last input
//!   takes any one output of the set; the best for the remaining set is known already. For so few outputs,
//!   the steps are a constant list.
//!
//! M. Held, R. M. Karp, A Dynamic Programming Approach to Sequencing Problems, Journal of the SIAM 10(1),
//! 1962, use sets in the same way for another problem.

use crate::arbiter::Demand;
use crate::matching::weights::{Block, Reader};

/// Largest number of ports on a side.
pub(crate) const MAX: usize = 7;
/// Distance between the keys of an input and the keys of the next.
const STRIDE: usize = 8;
/// Bits that encode the output of an input: 7 is the first, 1 the last, 0 none.
const BITS: u32 = 3;
/// Bits that encode the outputs of all inputs; the first input has the highest bits.
const CHOICES: u32 = BITS * MAX as u32;
/// Weights must be below this, so that their sum fits above the choices.
const LIMIT: u64 = 1 << (u64::BITS - CHOICES - BITS);

/// Matches the last of the inputs of a set with one of its outputs.
#[derive(Clone, Copy)]
struct Step {
    /// The set without that output.
    from: u8,
    /// The set.
    to: u8,
    /// Index of the key.
    key: u8,
}

/// All steps, with sets ascending as numbers, so that every subset of a set comes before it.
const STEPS: [Step; MAX << (MAX - 1)] = {
    let mut steps = [Step { from: 0, to: 0, key: 0 }; MAX << (MAX - 1)];
    let (mut at, mut to) = (0, 1);
    while to < 1u8 << MAX {
        let input = to.count_ones() as usize - 1;
        let mut output = 0;
        while output < MAX {
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

/// Finds matchings of maximum weight for up to [`MAX`] ports on a side.
#[derive(Clone, Debug)]
pub(crate) struct Small {
    /// By input and output, with one output more than there can be: the weight in the high bits, the choice
    /// in the low bits. So the largest sum has the largest weight and encodes its matching. Among equal
    /// weights it is the first in the order of inputs, then of outputs.
    keys: [u64; STRIDE * STRIDE],
    /// By set of outputs: the best sum for as many inputs.
    best: [u64; 256],
}

/// Lowest bit of the choice of an input.
#[inline]
fn choice_shift(input: usize) -> u32 {
    CHOICES - BITS * (input as u32 + 1)
}

impl Small {
    pub fn new() -> Small {
        Small { keys: [0; STRIDE * STRIDE], best: [0; 256] }
    }

    /// Passes every pair of a matching of maximum weight to `pair`. Returns `false`, without any pair, if a
    /// weight is too large.
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
            // Ports of weight 0 fill up the smaller side.
            self.keys.fill(0);
        }
        let mut all = 0;
        block.visit(demand, reader, |input, output, weight| {
            all |= weight;
            self.keys[input * STRIDE + output] =
                weight << CHOICES | ((MAX - output) as u64) << choice_shift(input);
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
            let output = MAX - (best >> choice_shift(at)) as usize % STRIDE;
            if self.keys[at * STRIDE + output] >> CHOICES > 0 {
                pair(usize::from(*input), usize::from(block.outputs()[output]));
            }
        }
        true
    }

    /// The best sum for `FEW` ports on one side, whose keys are `step` apart, and `more` ports on the other,
    /// `across` apart.
    #[inline]
    fn one_by_one<const FEW: usize, const SETS: usize>(
        &self,
        step: usize,
        more: usize,
        across: usize,
    ) -> u64 {
        // By set of the few: the best sum so far.
        let mut best = [0u64; SETS];
        for port in 0..more {
            let keys: [u64; FEW] = std::array::from_fn(|few| self.keys[port * across + few * step]);
            // From the largest set down, because each sum needs those of its subsets without the present
            // port.
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

    /// The best sum for `ports` inputs and as many outputs.
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

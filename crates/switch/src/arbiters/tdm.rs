//! TDM, time-division multiplexing: the matching of each slot is fixed in advance, regardless of queues.
//!
//! # Principles
//! - A schedule is a list of permutations with the number of slots of each in a frame. For `uniform` traffic,
//!   the default, in slot `s` input `i` is connected with output `(i + s) mod N`: every pair has one slot in
//!   N, evenly spread.
//! - For other traffic the frame follows the rates (Birkhoff, von Neumann): rates are converted to slots of a
//!   frame, rows and columns are filled up until all have the same sum, and permutations are subtracted, each
//!   as often as its smallest entry permits, until nothing is left. The rotations `i` to `(i + k) mod N` are
//!   subtracted first, then perfect matchings. The named patterns consist of rotations only.
//! - Nothing is computed during a run, and no queue starves: a pair whose rate is below its share of the
//!   frame is served in time. Slots of a pair without packets to send are lost.
//! - The permutations of a frame are spread as evenly as their weights permit (smooth weighted round robin):
//!   in each slot the credit of each permutation grows by its weight, the one with the greatest credit is
//!   served, and its credit is reduced by the sum of all weights.
//!
//! # Deviations
//! - The article permits any rates. Here a frame has the fewest slots, up to 64 N, in which all rates are
//!   whole numbers of slots. If there is no such frame, each rate is rounded up to whole slots in 64 N, which
//!   lengthens the frame by at most N slots: every pair is served at 64/65 of its rate or more, so a load of
//!   0.98 is carried.
//! - Permutations of equal weight are served in the order in which they were subtracted; the algorithm of the
//!   article is a fair queueing of the same weights.
//! - In packet mode a packet may start in the slot of its pair. It holds its connection for longer, and pairs
//!   that are due meanwhile at one of both ports lose their slot.
//!
//! # Cost
//! A step per free input. Two bytes for each port of each permutation, of which patterns have at most N and
//! other rates at most N² - 2N + 2, and for each slot of the frame.
//!
//! # References
//! T. Inukai, An Efficient SS/TDMA Time Slot Assignment Algorithm, IEEE Transactions on Communications
//! 27(10), 1979 (frames of permutations); C.-S. Chang, W.-J. Chen, H.-Y. Huang, Birkhoff-von Neumann Input
//! Buffered Crossbar Switches, INFOCOM 2000.

mod decomposition;

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::decomposition::{permutations, slots};
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, Demand, Matching};
use crate::notes::Notes;
use crate::rates::{Pattern, Rates};

/// Parameters of TDM: the traffic that the schedule is made for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Distribution of the load of an input over the outputs, as the pattern of the traffic.
    pub pattern: PatternName,
    /// Pattern unbalanced: the share of the output with the number of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Pattern matrix: cells per slot from each input to each output, row by row. For up to 64 ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
}

/// The pattern that a schedule is made for, with the names of the patterns of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternName {
    /// Equal load to every output.
    #[default]
    Uniform,
    /// Two thirds to the output with the number of the input, one third to the next output.
    Diagonal,
    /// About half to the output with the number of the input, and to each next output half of the load of the
    /// one before.
    LogDiagonal,
    /// Half to the output with the number of the input, the other half evenly to all others.
    QuasiDiagonal,
    /// A share to the output with the number of the input, the rest evenly to all.
    Unbalanced,
    /// Any rates.
    Matrix,
}

impl Config {
    /// The pattern of the traffic, with its parameters.
    fn traffic(&self, ports: usize) -> Result<Pattern, Invalid> {
        if self.share.is_some() && self.pattern != PatternName::Unbalanced {
            let message =
                "only the pattern unbalanced has a share: write \"pattern unbalanced\" or leave it out";
            return Err(Invalid::new("share", message));
        }
        if !self.rates.is_empty() && self.pattern != PatternName::Matrix {
            let message = "only the pattern matrix has rates: write \"pattern matrix\" or leave them out";
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
                     for 2 ports; a switch of more than 64 ports needs another pattern",
                    self.rates.len()
                );
                return Err(Invalid::new("rates", message));
            }
        })
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "time division: each pair has fixed slots in a frame, regardless of queues";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        let ports = context.ports;
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

/// The schedule: permutations, and their order in a frame.
struct Frame {
    /// Each permutation lists the output of each input.
    permutations: Vec<Vec<u16>>,
    /// By slot of the frame: index of the permutation.
    order: Vec<u16>,
}

impl Frame {
    /// A schedule of permutations with their numbers of slots in a frame, whose sum is above 0.
    fn new(weighted: Vec<(Vec<u16>, u32)>) -> Frame {
        let slots: i64 = weighted.iter().map(|(_, weight)| i64::from(*weight)).sum();
        debug_assert!(slots > 0, "a frame has slots");
        let mut credits = vec![0; weighted.len()];
        let turn = |_| {
            for (credit, (_, weight)) in credits.iter_mut().zip(&weighted) {
                *credit += i64::from(*weight);
            }
            // The first permutation with the greatest credit.
            let most = *credits.iter().max().expect("a schedule has permutations");
            let served =
                credits.iter().position(|credit| *credit == most).expect("`most` is one of the credits");
            credits[served] -= slots;
            served as u16
        };
        let order = (0..slots).map(turn).collect();
        Frame { permutations: weighted.into_iter().map(|(permutation, _)| permutation).collect(), order }
    }
}

impl<const W: usize> Arbiter<W> for Frame {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        // The slot follows from the time, not from the number of calls: there is no call in slots without
        // free ports.
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
mod tests;

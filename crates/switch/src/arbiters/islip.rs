//! iSLIP: request, grant, accept, with round-robin pointers that slip apart.
//!
//! # Principles
//! - In each iteration every unmatched input requests all outputs that it has a packet for.
//! - Every unmatched output grants the requesting input that comes next from its pointer on.
//! - Every input accepts the granting output that comes next from its own pointer on.
//! - Both pointers move to one beyond the partner, and only when the grant is accepted. So the pointers of
//!   outputs move apart; under uniform load they come to point at different inputs, and grants no longer
//!   collide.
//!
//! # Deviations
//! - In the article pointers move in the first iteration only, which prevents starvation of any request. In
//!   section 3 of the P-SPF paper they move whenever a grant is accepted. `pointers` selects; the default
//!   follows the article.
//!
//! # Cost
//! A word operation per output and iteration. Iterations end when nothing more is granted.
//!
//! # References
//! N. McKeown, The iSLIP Scheduling Algorithm for Input-Queued Switches, IEEE/ACM Transactions on Networking
//! 7(2), 1999.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round_robin::{Both, RoundRobin, Rule};
use crate::arbiter::{Arbiter, ArbiterConfig, ArbiterContext, check_iterations};

/// Parameters of iSLIP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Iterations per slot.
    pub iterations: u32,
    /// The grants that move pointers.
    pub pointers: Pointers,
}

/// The grants that move pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pointers {
    /// Those accepted in the first iteration.
    First,
    /// All that are accepted.
    Every,
}

impl Default for Config {
    fn default() -> Config {
        Config { iterations: 4, pointers: Pointers::First }
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "round-robin pointers that slip apart; request, grant and accept, repeated";

    fn arbiter<const W: usize>(&self, context: &ArbiterContext) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(self.islip::<W>(context.ports)))
    }
}

/// An iSLIP arbiter. P-SPF matches long packets with it; QPS and SERENA complete their matchings with it.
pub(super) type Islip<const W: usize> = RoundRobin<W, OnAccept>;

impl Config {
    /// Builds the arbiter for a switch of `ports` ports.
    pub(super) fn islip<const W: usize>(&self, ports: usize) -> Islip<W> {
        let iterations = match self.pointers {
            Pointers::First => 1,
            Pointers::Every => u32::MAX,
        };
        RoundRobin::new(self.iterations, ports, OnAccept { iterations })
    }
}

/// Both pointers move beyond the partner when a grant is accepted, in the first `iterations` iterations of a
/// slot.
pub(super) struct OnAccept {
    iterations: u32,
}

impl Rule for OnAccept {
    #[inline]
    fn granted<const W: usize>(&self, _: u32, _: usize, _: usize, _: &mut Both<W>) {}

    #[inline]
    fn accepted<const W: usize>(&self, iteration: u32, input: usize, output: usize, pointers: &mut Both<W>) {
        if iteration <= self.iterations {
            pointers.grant.move_past(output, input);
            pointers.accept.move_past(input, output);
        }
    }
}

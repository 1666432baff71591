//! iSLIP: request, grant, accept, with round-robin pointers that slip.
//!
//! # Principles
//! - In each iteration every unmatched input asks for all outputs that it has something for.
//! - Every unmatched output grants the asking input that comes next from its pointer on.
//! - Every input accepts the granting output that comes next from its own pointer on.
//! - Both pointers move to one beyond the partner, and only when the grant is accepted. So the pointers of outputs move
//!   apart, and under uniform load they come to point at different inputs: nobody collides.
//!
//! # Deviations
//! - The article moves pointers in the first iteration only, which is what keeps every request from starving. P-SPF's
//!   section 3 moves them whenever a grant is accepted. `pointers` chooses; the default is the article's.
//!
//! # Cost
//! A word operation per output and iteration; iterations end when nothing is granted any more.
//!
//! # References
//! N. McKeown, The iSLIP Scheduling Algorithm for Input-Queued Switches, IEEE/ACM Transactions on Networking 7(2), 1999.

use qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rounds::{Choice, Rounds, beyond};
use crate::arbiter::{Arbiter, Demand, Matching, Site, check_iterations};
use crate::notes::Notes;
use crate::per_port::PerPort;
use crate::registry::ArbiterConfig;
use crate::row::Row;

/// iSLIP's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How many iterations a slot has.
    pub iterations: u32,
    /// When pointers move.
    pub pointers: Pointers,
}

/// When pointers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pointers {
    /// With grants that are accepted in the first iteration.
    First,
    /// With every grant that is accepted.
    Every,
}

impl Default for Config {
    fn default() -> Config {
        Config { iterations: 4, pointers: Pointers::First }
    }
}

impl ArbiterConfig for Config {
    const SUMMARY: &'static str = "round-robin pointers that slip apart; request, grant, accept, a few times";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(Islip::new(self, site.ports)))
    }
}

/// iSLIP, which is also the half for long packets of P-SPF.
pub(crate) struct Islip<const W: usize> {
    rounds: Rounds<W>,
    pointers: RoundRobin<W>,
}

/// The pointers of all ports.
struct RoundRobin<const W: usize> {
    ports: usize,
    /// Pointers move only in so many iterations.
    moving: u32,
    /// By output: the input that comes first.
    grant: PerPort<u16, W>,
    /// By input: the output that comes first.
    accept: PerPort<u16, W>,
}

impl<const W: usize> Islip<W> {
    pub fn new(config: &Config, ports: usize) -> Islip<W> {
        let moving = match config.pointers {
            Pointers::First => 1,
            Pointers::Every => u32::MAX,
        };
        let (grant, accept) = (PerPort::new(0), PerPort::new(0));
        let pointers = RoundRobin { ports, moving, grant, accept };
        Islip { rounds: Rounds::new(config.iterations), pointers }
    }
}

impl<const W: usize> Choice<W> for RoundRobin<W> {
    #[inline]
    fn grant(&mut self, _: u32, output: usize, asking: Row<W>) -> usize {
        asking.from(usize::from(self.grant[output])).expect("somebody asks")
    }

    #[inline]
    fn accept(&mut self, iteration: u32, input: usize, grants: Row<W>) -> usize {
        let output = grants.from(usize::from(self.accept[input])).expect("somebody granted it");
        if iteration <= self.moving {
            self.grant[output] = beyond(input, self.ports);
            self.accept[input] = beyond(output, self.ports);
        }
        output
    }
}

impl<const W: usize> Arbiter<W> for Islip<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        self.rounds.run(&mut self.pointers, demand, matching, notes);
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        visit("grant", self.pointers.grant.first(self.pointers.ports));
        visit("accept", self.pointers.accept.first(self.pointers.ports));
    }
}

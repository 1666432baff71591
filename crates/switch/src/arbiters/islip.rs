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

use crate::arbiter::{Arbiter, Demand, Matching, Site, check_iterations};
use crate::notes::Notes;
use crate::per_port::PerPort;
use crate::row::Row;
use crate::scheduler::Scheduler;

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

impl Scheduler for Config {
    const SUMMARY: &'static str = "round-robin pointers that slip apart; request, grant, accept, a few times";

    fn arbiter<const W: usize>(&self, site: &Site) -> Result<Box<dyn Arbiter<W>>, Invalid> {
        check_iterations(self.iterations)?;
        Ok(Box::new(Islip::new(self, site.ports)))
    }
}

/// The pointers of all ports.
pub(crate) struct Islip<const W: usize> {
    iterations: u32,
    /// Pointers move only in so many iterations.
    moving: u32,
    ports: u16,
    /// By output: the input that comes first.
    grant: PerPort<u16, W>,
    /// By input: the output that comes first.
    accept: PerPort<u16, W>,
    /// By input: who grants it in this iteration; empty between iterations.
    grants: PerPort<Row<W>, W>,
}

impl<const W: usize> Islip<W> {
    pub fn new(config: &Config, ports: usize) -> Islip<W> {
        Islip {
            iterations: config.iterations,
            moving: match config.pointers {
                Pointers::First => 1,
                Pointers::Every => u32::MAX,
            },
            ports: ports as u16,
            grant: PerPort::new(0),
            accept: PerPort::new(0),
            grants: PerPort::new(Row::EMPTY),
        }
    }

    /// One beyond a port, around.
    #[inline]
    fn beyond(&self, port: usize) -> u16 {
        let next = port as u16 + 1;
        if next == self.ports { 0 } else { next }
    }
}

impl<const W: usize> Arbiter<W> for Islip<W> {
    fn decide(&mut self, demand: &Demand<'_, W>, matching: &mut Matching<W>, notes: &mut Notes) {
        let (mut inputs, mut outputs) = (demand.inputs, demand.outputs);
        for iteration in 1..=self.iterations {
            notes.iteration(iteration);
            let mut granted = Row::EMPTY;
            for output in outputs {
                let asking = demand.requests.of_output[output] & inputs;
                if notes.wanted() {
                    asking.iter().for_each(|input| notes.request(input, output));
                }
                match asking.from(usize::from(self.grant[output])) {
                    Some(input) => {
                        self.grants[input].insert(output);
                        granted.insert(input);
                        notes.grant(output, input);
                    }
                    // Those who asked are matched, and nobody new comes within a slot.
                    None => outputs.remove(output),
                }
            }
            for input in granted {
                let grants = std::mem::replace(&mut self.grants[input], Row::EMPTY);
                let output = grants.from(usize::from(self.accept[input])).expect("somebody granted it");
                if iteration <= self.moving {
                    self.grant[output] = self.beyond(input);
                    self.accept[input] = self.beyond(output);
                }
                matching.pair(input, output);
                outputs.remove(output);
                notes.accept(input, output);
            }
            inputs &= !granted;
            // Who is left was not asked, or nobody is. A trace shows the iteration that finds nobody.
            if outputs.is_empty() && !notes.wanted() || granted.is_empty() {
                break;
            }
        }
    }

    fn pointers(&self, visit: &mut dyn FnMut(&'static str, &[u16])) {
        visit("grant", self.grant.first(usize::from(self.ports)));
        visit("accept", self.accept.first(usize::from(self.ports)));
    }
}

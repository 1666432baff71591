//! `giveway run --trace-slots`: the first slots of a switch, step by step.

use std::io::{self, Write};

use giveway_scenario::{Host, Scenario};
use giveway_switch::Sim;

use crate::{Outcome, show, terminal};

/// Prints the first `count` slots of the fabric for each scheduler, with the first seed.
pub fn slots(scenarios: &[Scenario], count: u32, out: &mut dyn Write) -> io::Result<Outcome> {
    if scenarios.iter().any(|scenario| scenario.network().is_some()) {
        show::sentence(
            "--trace-slots is for a switch, and this scenario runs on a network: --export writes what its queues did",
        );
        return Ok(Outcome::Wrong);
    }
    let mut first = true;
    for scenario in scenarios {
        let Host::Switch(crossbar) = &scenario.host else { continue };
        for trial in scenario.trials().iter().filter(|trial| trial.seed == scenario.seeds[0]) {
            let mut sim = match Sim::new(&crossbar.plan(trial)) {
                Ok(sim) => sim,
                Err(invalid) => {
                    show::sentence(&format!("{}: {invalid}", trial.name));
                    return Ok(Outcome::Wrong);
                }
            };
            if !first {
                writeln!(out)?;
            }
            first = false;
            writeln!(out, "{}", terminal::bold(&format!("{}, seed {}", trial.name, trial.seed)))?;
            for _ in 0..count {
                writeln!(out, "{}", sim.trace_slot())?;
            }
        }
    }
    Ok(Outcome::Done)
}

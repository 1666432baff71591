//! `giveway run --trace-slots`: prints the first slots of a switch, step by step.

use std::io::Write;

use giveway_scenario::{Backend, Scenario};
use giveway_switch::Sim;

use crate::error::CliError;
use crate::{Outcome, terminal};

/// Prints the first `count` slots of the switch for each arbiter, with the first seed.
pub fn slots(scenarios: &[Scenario], count: u32, out: &mut dyn Write) -> Result<Outcome, CliError> {
    if scenarios.iter().any(|scenario| scenario.network().is_some()) {
        return Err(CliError::Usage(
            "--trace-slots is for a switch, and this scenario runs on a network: --export writes the packets of its queues"
                .to_owned(),
        ));
    }
    let mut first = true;
    for scenario in scenarios {
        let Backend::Switch(crossbar) = &scenario.backend else { continue };
        for trial in scenario.trials().iter().filter(|trial| trial.seed == scenario.seeds[0]) {
            let mut sim = Sim::new(&crossbar.plan(trial))
                .map_err(|invalid| CliError::Usage(format!("{}: {invalid}", trial.name)))?;
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

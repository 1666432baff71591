//! Runs of a switch: a [`Plan`], and the simulation that carries it out.

use giveway_qdisc::Invalid;

use crate::engine::{Engine, Run};
use crate::notes::SlotTrace;
use crate::outcome::Outcome;
pub use crate::plan::{BATCHES, PORTS, Plan};

/// A simulation of a switch of any size.
pub struct Sim(Box<dyn Run>);

impl Sim {
    /// Sets up a run.
    ///
    /// # Errors
    /// The parameter that cannot be used, and what to write instead.
    pub fn new(plan: &Plan) -> Result<Sim, Invalid> {
        if !PORTS.contains(&plan.ports) {
            let message = format!("{} ports: write {} to {}", plan.ports, PORTS.start(), PORTS.end());
            return Err(Invalid::new("ports", message));
        }
        if plan.warmup >= plan.slots {
            let message = format!(
                "a warm-up of {} slots leaves nothing of {} to measure: write less",
                plan.warmup, plan.slots
            );
            return Err(Invalid::new("warmup", message));
        }
        Ok(Sim(match plan.ports {
            ..=64 => Box::new(Engine::<1>::new(plan)?),
            65..=128 => Box::new(Engine::<2>::new(plan)?),
            129..=256 => Box::new(Engine::<4>::new(plan)?),
            _ => Box::new(Engine::<16>::new(plan)?),
        }))
    }

    /// Runs up to the begin of a slot of the links, at most to the end of the plan.
    pub fn step_to(&mut self, slot: u64) {
        self.0.step_to(slot);
    }

    /// Runs one slot of the fabric and returns a trace of it.
    pub fn trace_slot(&mut self) -> SlotTrace {
        self.0.trace_slot()
    }

    /// The results so far.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome()
    }
}

/// Runs a plan to its end and returns the results.
///
/// # Errors
/// As [`Sim::new`].
pub fn run(plan: &Plan) -> Result<Outcome, Invalid> {
    let mut sim = Sim::new(plan)?;
    sim.step_to(plan.slots);
    Ok(sim.outcome())
}

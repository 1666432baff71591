//! Runs of a switch: a [`Plan`], and the simulation that carries it out.

use giveway_qdisc::Invalid;

use crate::engine::{Engine, Run};
use crate::notes::SlotTrace;
use crate::outcome::Outcome;
use crate::outside::{Brought, BuildOutside, Mistake};
pub use crate::plan::{BATCHES, PORTS, Plan};

/// A simulation of a switch of any size.
pub struct Sim {
    run: Box<dyn Run>,
    /// The first mistake of an arbiter that a caller brought.
    mistake: Mistake,
}

impl Sim {
    /// Sets up a run.
    ///
    /// # Errors
    /// The parameter that cannot be used, and what to write instead.
    pub fn new(plan: &Plan) -> Result<Sim, Invalid> {
        Sim::of(plan, None)
    }

    /// Sets up a run with arbiters that `build` builds. The arbiter of the plan only gives the mode of the
    /// switch and the other options.
    ///
    /// # Errors
    /// As [`Sim::new`], and if the switch of the plan has no arbiter, as an output-queued one.
    pub fn with_arbiter(plan: &Plan, build: BuildOutside<'_>) -> Result<Sim, Invalid> {
        Sim::of(plan, Some(&Brought::new(build)))
    }

    fn of(plan: &Plan, brought: Option<&Brought<'_>>) -> Result<Sim, Invalid> {
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
        let run: Box<dyn Run> = match plan.ports {
            ..=64 => Box::new(Engine::<1>::new(plan, brought)?),
            65..=128 => Box::new(Engine::<2>::new(plan, brought)?),
            129..=256 => Box::new(Engine::<4>::new(plan, brought)?),
            _ => Box::new(Engine::<16>::new(plan, brought)?),
        };
        Ok(Sim { run, mistake: brought.map(|brought| brought.mistake.clone()).unwrap_or_default() })
    }

    /// The first mistake of an arbiter that a caller brought, in a sentence. From then on nothing is matched.
    pub fn mistake(&self) -> Option<String> {
        self.mistake.get()
    }

    /// Runs up to the start of a slot of the links, at most to the end of the plan.
    pub fn step_to(&mut self, slot: u64) {
        self.run.step_to(slot);
    }

    /// Runs one slot of the fabric and returns a trace of it.
    pub fn trace_slot(&mut self) -> SlotTrace {
        self.run.trace_slot()
    }

    /// The results so far.
    pub fn outcome(&self) -> Outcome {
        self.run.outcome()
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

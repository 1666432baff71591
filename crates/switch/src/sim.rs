//! A run: what arrives, slot by slot, and what the switch does with it.

use std::path::PathBuf;

use qdisc::{Invalid, Streams};

use crate::arbiter::Site;
use crate::clock::Clock;
use crate::inputs::{Begin, Inputs};
use crate::links::Links;
use crate::modes::Fabric;
use crate::notes::{Notes, SlotTrace};
use crate::options::{Input, Mode, Queueing};
use crate::outcome::{Batch, Outcome};
use crate::registry::Spec;
use crate::shared::Shared;
use crate::tally::{Sums, Tally};
use crate::traffic::{Place, TrafficSpec};

/// The fewest and the most ports of a switch.
pub const PORTS: std::ops::RangeInclusive<usize> = 2..=1024;

/// How many batches the measurement interval has: for intervals, and for the slope of the backlog.
pub const BATCHES: u64 = 20;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Inputs, and as many outputs.
    pub ports: usize,
    /// Who decides.
    pub arbiter: Spec,
    /// What arrives.
    pub traffic: TrafficSpec,
    /// Slots of the links, warm-up included.
    pub slots: u64,
    /// Slots that are not measured, in the beginning.
    pub warmup: u64,
    /// Where random numbers come from. What arrives does not depend on the arbiter.
    pub streams: Streams,
    /// What names of files are relative to; empty for the current folder.
    pub folder: PathBuf,
}

/// A run of a switch of any size.
pub struct Sim(Box<dyn Run>);

impl Sim {
    /// Sets it up.
    ///
    /// # Errors
    /// The parameter that makes no sense, and what to write instead.
    pub fn new(plan: &Plan) -> Result<Sim, Invalid> {
        if !PORTS.contains(&plan.ports) {
            let message = format!("{} ports: a switch has {} to {}", plan.ports, PORTS.start(), PORTS.end());
            return Err(Invalid::new("ports", message));
        }
        if plan.warmup >= plan.slots {
            let message = format!("{} slots leave nothing of {} to measure", plan.warmup, plan.slots);
            return Err(Invalid::new("warmup", message));
        }
        Ok(Sim(match plan.ports {
            ..=64 => Box::new(Switch::<1>::new(plan)?),
            65..=128 => Box::new(Switch::<2>::new(plan)?),
            129..=256 => Box::new(Switch::<4>::new(plan)?),
            _ => Box::new(Switch::<16>::new(plan)?),
        }))
    }

    /// Runs until a slot of the links has begun, at most until the end of the plan.
    pub fn step_to(&mut self, slot: u64) {
        self.0.step_to(slot);
    }

    /// Runs one slot of the fabric and tells everything about it.
    pub fn trace_slot(&mut self) -> SlotTrace {
        self.0.trace_slot()
    }

    /// What was measured until now.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome()
    }
}

/// Runs a plan to its end.
///
/// # Errors
/// As [`Sim::new`].
pub fn run(plan: &Plan) -> Result<Outcome, Invalid> {
    let mut sim = Sim::new(plan)?;
    sim.step_to(plan.slots);
    Ok(sim.outcome())
}

/// A run with rows of whatever width.
trait Run: Send {
    fn step_to(&mut self, slot: u64);
    fn trace_slot(&mut self) -> SlotTrace;
    fn outcome(&self) -> Outcome;
}

struct Switch<const W: usize> {
    shared: Shared<W>,
    fabric: Box<dyn Fabric<W>>,
    inputs: Inputs<W>,
    slots: u64,
    warmup: u64,
    /// The slot in which the present batch ends; the first "batch" is the warm-up.
    batch_end: u64,
    at_batch: Sums,
    batches: Vec<Batch>,
    /// The slot of the fabric in which the measurement interval begins.
    fabric_from: u64,
}

impl<const W: usize> Switch<W> {
    fn new(plan: &Plan) -> Result<Switch<W>, Invalid> {
        let ports = plan.ports;
        let streams = plan.streams.within("switch");
        let clock = Clock::new(plan.arbiter.speedup());
        // "scheduler" is only the name of a random stream: another name would change every result.
        let site = Site { ports, streams: streams.within("scheduler") };
        let fabric = plan.arbiter.fabric(&site)?;
        let offered = plan.traffic.build(&Place {
            ports,
            streams: streams.within("traffic"),
            folder: plan.folder.clone(),
        })?;
        let short_first = matches!(plan.arbiter.mode(), Mode::Spf | Mode::Preemptive);
        // With its queues at the outputs a switch takes all cells that are there in one slot, and with them a packet whose
        // cells come all at once.
        let whole = plan.arbiter.queueing() == Queueing::Output && !offered.serial;
        let crossing = |cells: u32| clock.fabric_ticks * if whole { 1 } else { u64::from(cells) };
        let tally = Tally::new(offered.kinds.clone(), ports, clock.slot_ticks, crossing);
        let links = Links::new(ports, &offered.kinds, short_first, clock.slot_ticks);
        let shared = Shared::new(clock, tally, links);
        let begin = match (plan.arbiter.queueing(), plan.arbiter.options.input.unwrap_or_default()) {
            (Queueing::Output, _) => Begin::Complete,
            (_, Input::StoreAndForward) => Begin::LastCell,
            (Queueing::Combined, Input::CutThrough) => Begin::FirstCell,
            (_, Input::CutThrough) => Begin::Paced,
        };
        Ok(Switch {
            shared,
            fabric,
            inputs: Inputs::new(offered, begin, &clock),
            slots: plan.slots,
            warmup: plan.warmup,
            batch_end: plan.warmup,
            at_batch: Sums::default(),
            batches: Vec::with_capacity(BATCHES as usize),
            fabric_from: 0,
        })
    }

    /// One slot of the fabric, after what may begin to cross in it has come to the queues.
    #[inline]
    fn slot(&mut self) {
        let shared = &mut self.shared;
        shared.clock.begin();
        let due = self.inputs.due(shared.clock.fabric);
        if !due.is_empty() {
            self.fabric.arrive_all(due, &mut self.inputs, shared);
        }
        self.fabric.slot(shared);
        shared.clock.advance();
    }

    /// A batch, or the warm-up, has ended.
    fn close_batch(&mut self) {
        let Shared { clock, tally, links, .. } = &mut self.shared;
        links.advance(clock.tick, &mut |left, tick| tally.left(left.kind, left.arrived, tick));
        tally.settle();
        let measured = self.slots - self.warmup;
        if self.batch_end == self.warmup {
            tally.forget();
            links.forget();
            self.fabric_from = clock.fabric;
        } else {
            let sums = tally.sums();
            self.batches.push(Batch::new(
                self.batch_end,
                &self.at_batch,
                &sums,
                tally.backlog(),
                clock.slot_ticks,
            ));
        }
        self.at_batch = tally.sums();
        let next = self.batches.len() as u64 + 1;
        self.batch_end = self.warmup + measured * next / BATCHES;
    }
}

impl<const W: usize> Run for Switch<W> {
    fn step_to(&mut self, slot: u64) {
        let until = slot.min(self.slots);
        loop {
            let stop = until.min(self.batch_end) * self.shared.clock.slot_ticks;
            while self.shared.clock.tick < stop {
                self.slot();
            }
            self.shared.settle();
            if self.batch_end > until || self.batches.len() as u64 == BATCHES {
                return;
            }
            self.close_batch();
        }
    }

    fn trace_slot(&mut self) -> SlotTrace {
        let slot = self.shared.clock.fabric;
        self.shared.notes = Notes::on();
        self.slot();
        self.shared.settle();
        let notes = std::mem::take(&mut self.shared.notes).take();
        let mut pointers = Vec::new();
        self.fabric.pointers(&mut |half, name, at| pointers.push((half, name, at.to_vec())));
        SlotTrace { slot, notes, pointers }
    }

    fn outcome(&self) -> Outcome {
        let slots = self.shared.clock.slot.saturating_sub(self.warmup).min(self.slots - self.warmup);
        let fabric = self.shared.clock.fabric - self.fabric_from;
        Outcome::new(&self.shared.tally, &self.shared.links, (slots, fabric), self.batches.clone())
    }
}

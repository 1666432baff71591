//! The simulation of one switch, for one width of rows.

use giveway_qdisc::Invalid;

use crate::arbiter::ArbiterContext;
use crate::clock::Clock;
use crate::inputs::{Begin, Inputs};
use crate::links::Links;
use crate::modes::Fabric;
use crate::notes::{Notes, SlotTrace};
use crate::options::{Input, Mode, Queueing};
use crate::outcome::{Batch, Outcome};
use crate::outside::Brought;
use crate::plan::{BATCHES, Plan};
use crate::shared::Shared;
use crate::statistics::{Statistics, Sums};
use crate::traffic::TrafficContext;

/// A simulation with any width of rows.
pub(crate) trait Run: Send {
    /// As [`Sim::step_to`](crate::sim::Sim::step_to).
    fn step_to(&mut self, slot: u64);
    /// As [`Sim::trace_slot`](crate::sim::Sim::trace_slot).
    fn trace_slot(&mut self) -> SlotTrace;
    /// As [`Sim::outcome`](crate::sim::Sim::outcome).
    fn outcome(&self) -> Outcome;
}

/// A switch with its traffic, and the batches that it has run.
pub(crate) struct Engine<const W: usize> {
    shared: Shared<W>,
    fabric: Box<dyn Fabric<W>>,
    inputs: Inputs<W>,
    /// Length of the run in slots of the links.
    slots: u64,
    /// Slots before the measurement interval.
    warmup: u64,
    /// The slot in which the present batch ends; the first "batch" is the warm-up.
    batch_end: u64,
    /// Sums at the start of the present batch.
    at_batch: Sums,
    batches: Vec<Batch>,
    /// The slot of the fabric in which the measurement interval started.
    fabric_from: u64,
}

impl<const W: usize> Engine<W> {
    /// Builds the switch of a plan, with the arbiters that a caller brings.
    pub fn new(plan: &Plan, brought: Option<&Brought<'_>>) -> Result<Engine<W>, Invalid> {
        let ports = plan.ports;
        let streams = plan.streams.within("switch");
        let clock = Clock::new(plan.arbiter.speedup());
        // "scheduler" is only the name of a random stream: another name would change every result.
        let context = ArbiterContext { ports, streams: streams.within("scheduler") };
        let fabric = match brought {
            Some(brought) => plan.arbiter.fabric_with(&context, brought)?,
            None => plan.arbiter.fabric(&context)?,
        };
        let offered = plan.traffic.build(&TrafficContext {
            ports,
            streams: streams.within("traffic"),
            folder: plan.folder.clone(),
        })?;
        let short_first = matches!(plan.arbiter.mode(), Mode::Spf | Mode::Preemptive);
        // An output-queued switch takes any number of cells in one slot, so a packet whose cells arrive at
        // once crosses in one.
        let whole = plan.arbiter.queueing() == Queueing::Output && !offered.serial;
        let crossing = |cells: u32| clock.fabric_ticks * if whole { 1 } else { u64::from(cells) };
        let statistics = Statistics::new(offered.kinds.clone(), ports, clock.slot_ticks, crossing);
        let links = Links::new(ports, &offered.kinds, short_first, clock.slot_ticks);
        let shared = Shared::new(clock, statistics, links);
        let begin = match (plan.arbiter.queueing(), plan.arbiter.options.input.unwrap_or_default()) {
            (Queueing::Output, _) => Begin::Complete,
            (_, Input::StoreAndForward) => Begin::LastCell,
            (Queueing::Combined, Input::CutThrough) => Begin::FirstCell,
            (_, Input::CutThrough) => Begin::Paced,
        };
        Ok(Engine {
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

    /// Runs the slots of the fabric that start before `tick`.
    fn run_to(&mut self, tick: u64) {
        self.fabric.run(tick, &mut self.inputs, &mut self.shared);
        self.shared.settle();
    }

    /// Ends a batch or the warm-up.
    fn close_batch(&mut self) {
        let Shared { clock, statistics, links, .. } = &mut self.shared;
        links.advance(clock.tick, &mut |left, tick| statistics.on_departure(left.kind, left.arrived, tick));
        statistics.settle();
        let measured = self.slots - self.warmup;
        if self.batch_end == self.warmup {
            statistics.reset(self.fabric.longest());
            links.reset_maxima(clock.tick);
            self.fabric_from = clock.fabric;
            self.at_batch = Sums::default();
        } else {
            let sums = statistics.sums();
            self.batches.push(Batch::new(
                self.batch_end,
                &self.at_batch,
                &sums,
                statistics.backlog(),
                clock.slot_ticks,
            ));
            self.at_batch = sums;
        }
        let next = self.batches.len() as u64 + 1;
        self.batch_end = self.warmup + measured * next / BATCHES;
    }
}

impl<const W: usize> Run for Engine<W> {
    fn step_to(&mut self, slot: u64) {
        let until = slot.min(self.slots);
        loop {
            self.run_to(until.min(self.batch_end) * self.shared.clock.slot_ticks);
            if self.batch_end > until || self.batches.len() as u64 == BATCHES {
                return;
            }
            self.close_batch();
        }
    }

    fn trace_slot(&mut self) -> SlotTrace {
        let slot = self.shared.clock.fabric;
        self.shared.notes = Notes::on();
        // A slot has at least one tick.
        self.run_to(self.shared.clock.tick + 1);
        let notes = std::mem::take(&mut self.shared.notes).take();
        let mut pointers = Vec::new();
        self.fabric.pointers(&mut |half, name, at| pointers.push((half, name, at.to_vec())));
        SlotTrace { slot, notes, pointers }
    }

    fn outcome(&self) -> Outcome {
        let slots = self.shared.clock.slot.saturating_sub(self.warmup).min(self.slots - self.warmup);
        let fabric = self.shared.clock.fabric - self.fabric_from;
        Outcome::new(&self.shared.statistics, &self.shared.links, (slots, fabric), self.batches.clone())
    }
}

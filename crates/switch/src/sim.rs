//! A run: what arrives, slot by slot, and what the switch does with it.

use qdisc::{Invalid, Streams};

use crate::arbiter::Site;
use crate::clock::Clock;
use crate::links::Links;
use crate::modes::Fabric;
use crate::notes::Notes;
use crate::outcome::{Batch, Outcome};
use crate::packet::Packet;
use crate::scheduler::{Input, Mode, Queueing, Spec};
use crate::shared::{Coming, Shared};
use crate::tally::{Sums, Tally};
use crate::traffic::{Arrival, Offered, Place, Source, TrafficSpec};
use crate::wheel::Wheel;

/// The fewest and the most ports of a switch.
pub const PORTS: std::ops::RangeInclusive<usize> = 2..=1024;

/// How many batches the measured part has: for intervals, and for the slope of the backlog.
pub const BATCHES: u64 = 20;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Inputs, and as many outputs.
    pub ports: usize,
    /// Who decides.
    pub scheduler: Spec,
    /// What arrives.
    pub traffic: TrafficSpec,
    /// Slots of the links, warm-up included.
    pub slots: u64,
    /// Slots that are not measured, in the beginning.
    pub warmup: u64,
    /// Where random numbers come from. What arrives does not depend on the scheduler.
    pub streams: Streams,
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
}

impl<const W: usize> Switch<W> {
    fn new(plan: &Plan) -> Result<Switch<W>, Invalid> {
        let ports = plan.ports;
        let streams = plan.streams.within("switch");
        let clock = Clock::new(plan.scheduler.options.speedup);
        let site = Site { ports, streams: streams.within("scheduler") };
        let fabric = plan.scheduler.fabric(&site)?;
        let Offered { kinds, sources, .. } =
            plan.traffic.build(&Place { ports, streams: streams.within("traffic") })?;
        let short_first = matches!(plan.scheduler.mode(), Mode::Spf | Mode::Preemptive);
        let shared = Shared {
            ports: ports as u64,
            clock,
            tally: Tally::new(kinds, ports, clock.slot_ticks, clock.fabric_ticks),
            links: Links::new(ports, short_first, clock.slot_ticks),
            coming: vec![Coming::default(); ports],
            notes: Notes::off(),
        };
        let begin = match (plan.scheduler.queueing(), plan.scheduler.options.input) {
            (Queueing::Output, _) => Begin::Complete,
            (_, Input::StoreAndForward) => Begin::LastCell,
            (_, Input::CutThrough) => {
                Begin::Paced { slower: clock.slot_ticks - clock.fabric_ticks, slot_ticks: clock.slot_ticks }
            }
        };
        Ok(Switch {
            shared,
            fabric,
            inputs: Inputs::new(sources, begin),
            slots: plan.slots,
            warmup: plan.warmup,
            batch_end: plan.warmup,
            at_batch: Sums::default(),
            batches: Vec::with_capacity(BATCHES as usize),
        })
    }

    /// One slot of the fabric, after all slots of the links that have begun until then.
    #[inline]
    fn slot(&mut self) {
        let shared = &mut self.shared;
        while shared.clock.slot * shared.clock.slot_ticks <= shared.clock.tick {
            let slot = shared.clock.slot;
            shared.clock.slot += 1;
            for input in self.inputs.due.take(slot) {
                let (arrival, arrived) = self.inputs.pass(input, slot);
                let Arrival { to, cells, kind, class, last, .. } = arrival;
                shared.coming[input] = Coming { to, last };
                shared.tally.arrived(input, cells);
                let packet = Packet { arrived: arrived * shared.clock.slot_ticks, cells, kind, class };
                self.fabric.arrive(input, usize::from(to), packet, shared);
            }
        }
        self.fabric.slot(shared);
        shared.clock.advance();
    }

    /// A batch, or the warm-up, has ended.
    fn close_batch(&mut self) {
        let Shared { clock, tally, links, .. } = &mut self.shared;
        links.advance(clock.tick, &mut |left, tick| tally.left(left.kind, left.arrived, tick));
        let measured = self.slots - self.warmup;
        if self.batch_end == self.warmup {
            tally.forget();
            links.forget();
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
            if self.batch_end > until || self.batches.len() as u64 == BATCHES {
                return;
            }
            self.close_batch();
        }
    }

    fn outcome(&self) -> Outcome {
        let slots = self.shared.clock.slot.saturating_sub(self.warmup).min(self.slots - self.warmup);
        Outcome::new(&self.shared.tally, &self.shared.links, slots, self.batches.clone())
    }
}

/// When packets may begin to cross, and from when on their delay counts.
#[derive(Clone, Copy, Debug)]
enum Begin {
    /// As soon as the fabric, whose slots are `slower` ticks shorter, cannot overtake the link.
    Paced { slower: u64, slot_ticks: u64 },
    /// With the last cell; the delay counts from there.
    LastCell,
    /// With the last cell; the delay counts from the first.
    Complete,
}

/// The inputs, and what comes next at each.
struct Inputs<const W: usize> {
    sources: Vec<Box<dyn Source>>,
    next: Vec<Option<Arrival>>,
    /// The slot in which the next packet may begin to cross.
    due: Wheel<W>,
    begin: Begin,
}

impl<const W: usize> Inputs<W> {
    fn new(sources: Vec<Box<dyn Source>>, begin: Begin) -> Inputs<W> {
        let ports = sources.len();
        let mut inputs = Inputs { sources, next: vec![None; ports], due: Wheel::new(ports), begin };
        (0..ports).for_each(|input| inputs.fetch(input, 0));
        inputs
    }

    /// Gets the next packet of an input.
    #[inline]
    fn fetch(&mut self, input: usize, now: u64) {
        self.next[input] = self.sources[input].next();
        if let Some(arrival) = &self.next[input] {
            let due = match self.begin {
                Begin::Paced { slower: 0, .. } => arrival.first,
                Begin::Paced { slower, slot_ticks } => {
                    arrival.first + ((arrival.last - arrival.first) * slower).div_ceil(slot_ticks)
                }
                Begin::LastCell | Begin::Complete => arrival.last,
            };
            self.due.set(input, due, now);
        }
    }

    /// The packet that is due at an input, and the slot from which its delay counts.
    #[inline]
    fn pass(&mut self, input: usize, slot: u64) -> (Arrival, u64) {
        let arrival = self.next[input].expect("it is due");
        self.fetch(input, slot + 1);
        let counted = match self.begin {
            Begin::Paced { .. } | Begin::Complete => arrival.first,
            Begin::LastCell => arrival.last,
        };
        (arrival, counted)
    }
}
